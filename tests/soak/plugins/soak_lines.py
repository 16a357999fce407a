"""What connectors of the soak need of their own. A folder with this file is a plugin.path."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headgate.api import STRING, ConfigDef, Key, RetriableError, SourceConnector, SourceRecord, SourceTask
from headgate.api import schema as types

STAMP: Final = " stamped"


def stamped(record: Any) -> Any:
    """For `headgate.transforms.Python`."""
    return record.with_value(f"{record.value}{STAMP}")


class LaterTask(SourceTask):
    """Cannot poll while a file exists, but may be asked again; then there is one record."""

    def start(self, config: Mapping[str, str]) -> None:
        self.topic, self.gate = config["topic"], Path(config["retry.while"])
        self.ending = threading.Event()
        self.told = self.context.offset_reader.offset({"later": "one"}) is not None

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.gate.exists():
            raise RetriableError("not now")
        if self.told:
            self.ending.wait(0.5)
            return None
        self.told = True
        return [
            SourceRecord(
                topic=self.topic,
                value="later",
                value_schema=types.STRING,
                source_partition={"later": "one"},
                source_offset={"told": 1},
            )
        ]

    def stop_requested(self) -> None:
        self.ending.set()


class Later(SourceConnector):
    config = ConfigDef(
        Key("topic", STRING, doc="Topic to write to."),
        Key("retry.while", STRING, doc="Polls are to be repeated while this file exists."),
    )
    task_class = LaterTask

    def start(self, config: Mapping[str, str]) -> None:
        self.props = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props]
