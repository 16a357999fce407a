"""A source whose records tell which instance of which task made them, when, and by which configuration.

A folder with this file is a plugin.path.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence

from headgate.api import INT, STRING, ConfigDef, Key, SourceConnector, SourceRecord, SourceTask
from headgate.api import schema as types

_KEYS = ConfigDef(
    Key("topic", STRING, doc="Topic to write to."),
    Key("label", STRING, "", doc="Stands in every record."),
    Key("every.ms", INT, 100, doc="So often there is a record."),
    Key("stop.ms", INT, 0, doc="Stopping a task takes so long."),
)


class WitnessTask(SourceTask):
    """`at` is on a clock that all processes of a machine share."""

    def start(self, config: Mapping[str, str]) -> None:
        self.settings = _KEYS.parse(config)
        self.number = int(config["number"])
        self.instance = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.ending = threading.Event()
        offset = self.context.offset_reader.offset({"task": self.number}) or {"next": 0}
        self.next = int(offset["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        if self.ending.wait(self.settings["every.ms"] / 1000):
            return None
        told = {
            "task": self.number,
            "instance": self.instance,
            "pid": os.getpid(),
            "at": time.monotonic(),
            "label": self.settings["label"],
            "number": self.next,
        }
        self.next += 1
        record = SourceRecord(
            topic=self.settings["topic"],
            value=json.dumps(told),
            value_schema=types.STRING,
            source_partition={"task": self.number},
            source_offset={"next": self.next},
        )
        return [record]

    def stop_requested(self) -> None:
        self.ending.set()

    def stop(self) -> None:
        time.sleep(self.settings["stop.ms"] / 1000)


class Witness(SourceConnector):
    config = _KEYS
    task_class = WitnessTask

    def start(self, config: Mapping[str, str]) -> None:
        self.props = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.props, "number": str(number)} for number in range(max_tasks)]
