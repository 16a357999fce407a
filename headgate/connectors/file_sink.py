"""FileStreamSink: values as lines at the end of a file, or on standard output; or exactly once, in a folder."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from headgate.api import ConfigValue, ConnectError, Form, SinkConnector, TableSinkTask, TopicPartition
from headgate.api.reach import Reach, ReachKind
from headgate.connectors.exact_file_sink import ExactFileSinkTask
from headgate.connectors.file_sink_config import CONFIG, FILE, FileSinkConfig, validated
from headgate.connectors.ledger import Ledger
from headgate.connectors.lines import lines_of

if TYPE_CHECKING:
    import pyarrow as pa


class FileStreamSinkTask(TableSinkTask):
    """Appends the text of each value and a newline; a null is written as `null`. Lines are in the file after `put`, and
    safe from a power cut after `flush`."""

    aliases = ("org.apache.kafka.connect.file.FileStreamSinkTask",)
    columns = ("value",)
    form = Form.TEXT

    def __init__(self) -> None:
        self._out: BinaryIO | None = None
        self._durable = False

    def start(self, config: Mapping[str, str]) -> None:
        file = FileSinkConfig.of(config).file
        self._name = f"file {file}" if file else "standard output"
        if file:
            self.context.require(Reach(ReachKind.WRITE, file, FILE))
        try:
            # Unbuffered: one write to the end of the file is never mixed with that of another task.
            self._out = open(file, "ab", buffering=0) if file else sys.stdout.buffer  # noqa: SIM115
            self._durable = file is not None and stat.S_ISREG(os.fstat(self._out.fileno()).st_mode)
        except (OSError, AttributeError) as error:
            raise self._unwritable(error) from error

    def put(self, table: pa.Table) -> None:
        if table.num_rows == 0:
            return
        assert self._out is not None
        left = memoryview(lines_of(table.column("value")))
        try:
            while left:
                left = left[self._out.write(left) :]
            self._out.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self._out is not None and self._durable:
            try:
                os.fsync(self._out.fileno())
            except OSError as error:
                raise self._unwritable(error) from error

    def stop(self) -> None:
        if self._out is not None and self._out is not getattr(sys.stdout, "buffer", None):
            self._out.close()
        self._out = None

    def _unwritable(self, error: Exception) -> ConnectError:
        return ConnectError(f"Cannot write to {self._name}: {getattr(error, 'strerror', None) or error}")


class FileStreamSinkConnector(SinkConnector):
    """Appends what its tasks get, all to one file; or, with `exactly.once`, writes it to a folder, each record once."""

    aliases = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    config = CONFIG
    task_class: ClassVar[type[FileStreamSinkTask]] = FileStreamSinkTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Sequence[Reach]:
        file = config.get(FILE, "").strip()
        return [Reach(ReachKind.WRITE, file, FILE)] if file else ()

    @classmethod
    def task_class_for(cls, config: Mapping[str, str]) -> type[FileStreamSinkTask | ExactFileSinkTask]:
        return ExactFileSinkTask if FileSinkConfig.of(config).exactly_once else cls.task_class

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(super().validate(config))

    def start(self, config: Mapping[str, str]) -> None:
        FileSinkConfig.of(config)  # a wrong configuration fails here, not in every task
        self._task_config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """A file keeps no offsets: any are fine. A folder does, and goes on with them in a new epoch."""
        settings = FileSinkConfig.of(config)
        if settings.exactly_once and settings.file is not None:
            root = Path(settings.file)
            for where, offset in offsets.items():
                Ledger(root, where).move(offset)
            if not offsets:  # all are to be reset, and the group has forgotten which they are
                for ledger in Ledger.all_in(root):
                    ledger.move(None)
        return True
