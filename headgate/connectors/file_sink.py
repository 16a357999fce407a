"""FileStreamSink: values as lines at the end of a file, or on standard output."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Final

from headgate.api import (
    HIGH,
    STRING,
    ConfigDef,
    ConnectError,
    Form,
    Key,
    SinkConnector,
    TableSinkTask,
    TopicPartition,
)

if TYPE_CHECKING:
    import pyarrow as pa

CONFIG: Final = ConfigDef(
    Key("file", STRING, default=None, importance=HIGH, doc="File to append to; standard output when absent."),
)


class FileStreamSinkTask(TableSinkTask):
    """Appends the text of each value and a newline; a null is written as `null`. Lines are in the file after `put`, and
    safe from a power cut after `flush`."""

    columns = ("value",)
    form = Form.TEXT

    def __init__(self) -> None:
        self._out: BinaryIO | None = None
        self._durable = False

    def start(self, config: Mapping[str, str]) -> None:
        file = CONFIG.parse(config)["file"] or None
        self._name = f"file {file}" if file else "standard output"
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
        left = memoryview(_lines(table.column("value")))
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


def _lines(values: pa.ChunkedArray) -> Any:
    """A buffer with each value and a newline after it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.large_string()  # a batch may hold more than 2 GiB
    chunks = values.cast(text).fill_null("null").chunks
    # The empty string at the end gets the last line its newline.
    everything = pa.concat_arrays([*chunks, pa.array([""], text)])
    one_row = pa.LargeListArray.from_arrays(pa.array([0, len(everything)], pa.int64()), everything)
    return pc.binary_join(one_row, pa.scalar("\n", text))[0].as_buffer()


class FileStreamSinkConnector(SinkConnector):
    """Appends what its tasks get, all to one file."""

    aliases = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)
    config = CONFIG
    task_class: ClassVar[type[FileStreamSinkTask]] = FileStreamSinkTask

    def start(self, config: Mapping[str, str]) -> None:
        CONFIG.parse(config)  # a wrong configuration fails here, not in every task
        self._task_config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config] * max_tasks

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """The file keeps no offsets: any are fine."""
        return True
