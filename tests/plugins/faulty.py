"""Connectors that misbehave as their configuration says. A folder with this file is a plugin.path."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headgate.api import (
    INT,
    STRING,
    ConfigDef,
    ConnectError,
    Key,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    Transform,
    UnsupportedOperation,
)
from headgate.api import schema as types

_KEYS = ConfigDef(
    Key("topic", STRING, "faulty", doc="Topic to write to."),
    Key("fail.in", STRING, "", doc="Methods that fail, e.g. connector.start or poll."),
    Key("fail.while", STRING, "", doc="They fail only while this file exists."),
    Key("fail.text", STRING, "", doc="What they say, in the log and in the exception."),
    Key("tasks", INT, 1, doc="Number of tasks, whatever tasks.max says."),
    Key("count", INT, 0, doc="Records to produce; then nothing."),
    Key("offsets.hook", STRING, "absent", doc="absent, true, unsupported, refused or broken."),
    Key("log", STRING, "", doc="File that tells what was called."),
)


class _Faults:
    """Reads the configuration of this file's connectors."""

    settings: Mapping[str, Any]

    def configure(self, config: Mapping[str, str]) -> None:
        self.settings = _KEYS.parse(config)

    def called(self, what: str) -> None:
        if self.settings["log"]:
            with open(self.settings["log"], "a") as file:
                file.write(what + "\n")
        wanted = what in self.settings["fail.in"].split(",")
        guard = self.settings["fail.while"]
        if wanted and (not guard or Path(guard).exists()):
            if self.settings["fail.text"]:
                logging.getLogger(__name__).warning("About to fail: %s", self.settings["fail.text"])
            raise RuntimeError(f"told to fail in {what} {self.settings['fail.text']}".strip())
        if f"hang:{what}" in self.settings["fail.in"].split(","):
            while not guard or Path(guard).exists():
                time.sleep(0.05)


class FaultySourceTask(_Faults, SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config)
        self.called("task.start")
        self.number = int(config["number"])
        self.stopped = False
        offset = self.context.offset_reader.offset({"task": self.number}) or {"next": 0}
        self.next = int(offset["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        self.called("task.poll")
        if self.next >= self.settings["count"] or self.stopped:
            time.sleep(0.05)
            return None
        record = SourceRecord(
            topic=self.settings["topic"],
            value=f"record {self.next}",
            value_schema=types.STRING,
            source_partition={"task": self.number},
            source_offset={"next": self.next + 1},
        )
        self.next += 1
        return [record]

    def stop_requested(self) -> None:
        self.stopped = True

    def stop(self) -> None:
        self.called("task.stop")


class FaultySource(_Faults, SourceConnector):
    config = _KEYS
    task_class = FaultySourceTask

    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config)
        self.props = dict(config)
        self.called("connector.start")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.called("connector.task_configs")
        return [{**self.props, "number": str(number)} for number in range(self.settings["tasks"])]

    def stop(self) -> None:
        self.called("connector.stop")

    def alter_offsets(self, config: Mapping[str, str], offsets: Any) -> bool:
        hook = config.get("offsets.hook", "absent")
        if hook == "unsupported":
            raise UnsupportedOperation("not possible")
        if hook == "refused":
            raise ConnectError("these offsets are not wanted")
        if hook == "broken":
            raise KeyError("a bug")
        return hook == "true"


class FaultySinkTask(_Faults, SinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config)
        self.called("task.start")
        self.tried = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        if "retry" in self.settings["fail.in"] and Path(self.settings["fail.while"]).exists():
            self.tried += 1
            self.context.timeout(50)
            raise RetriableError("not now")
        self.called("task.put")
        if "report" in self.settings["fail.in"]:
            records = [record for record in records if not self.reported(record)]
        with open(self.settings["log"] + ".records", "a") as file:
            file.writelines(f"{r.topic}-{r.partition}@{r.offset} {r.value!r}\n" for r in records)

    def reported(self, record: SinkRecord) -> bool:
        """Waits for the answer, as a task may."""
        errant: bool = record.value == "errant"
        if errant:
            assert self.context.reporter is not None
            self.context.reporter.report(record, ValueError("the table does not like it")).result(20)
        return errant

    def flush(self, offsets: Mapping[Any, int]) -> None:
        if "later:flush" in self.settings["fail.in"] and Path(self.settings["fail.while"]).exists():
            raise RetriableError("not now")
        if any(offsets.values()):  # there is something to flush
            self.called("task.flush")

    def stop(self) -> None:
        self.called("task.stop")


class FaultySink(_Faults, SinkConnector):
    config = _KEYS
    task_class = FaultySinkTask

    def start(self, config: Mapping[str, str]) -> None:
        self.configure(config)
        self.props = dict(config)
        self.called("connector.start")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props] * max_tasks

    def stop(self) -> None:
        self.called("connector.stop")

    def alter_offsets(self, config: Mapping[str, str], offsets: Any) -> bool:
        return FaultySource.alter_offsets(self, config, offsets)  # type: ignore[arg-type]


class CrashingTransform(Transform[Any]):
    """Ends the Python worker that runs it, as a plugin with a broken C library would."""

    def apply(self, record: Any) -> Any:
        if record.value == "crash":
            os._exit(77)
        return record


class MortalTransform(Transform[Any]):
    """Takes its Python worker with it, once for each file in a folder."""

    config = ConfigDef(Key("lives", STRING, doc="The folder."))

    def apply(self, record: Any) -> Any:
        for life in Path(self.settings["lives"]).iterdir():
            life.unlink()
            os._exit(77)
        return record


class FailingTransform(Transform[Any]):
    def apply(self, record: Any) -> Any:
        if record.value == "bad":
            raise ValueError("this value is bad")
        return record


class PatientTransform(Transform[Any]):
    """Cannot do the value "later" while a file exists, but may be asked again."""

    config = ConfigDef(Key("while", STRING, doc="The file."))

    def apply(self, record: Any) -> Any:
        if record.value == "later" and Path(self.settings["while"]).exists():
            raise RetriableError("come back later")
        return record


class WaitingTransform(Transform[Any]):
    """Waits while a file exists, as one does that asks a service which does not answer; says so beside the file."""

    config = ConfigDef(Key("while", STRING, doc="The file."))

    def apply(self, record: Any) -> Any:
        gate = Path(self.settings["while"])
        while gate.exists():
            gate.with_suffix(".waits").touch()
            time.sleep(0.02)
        return record


class GatedTransform(WaitingTransform):
    """Only the value "waiting" waits."""

    def apply(self, record: Any) -> Any:
        return super().apply(record) if record.value == "waiting" else record
