"""Sinks that take DataFrames. A folder with this file is a plugin.path."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from headgate.api import STRING, ConfigDef, Form, FrameSinkTask, Key, RetriableError, SinkConnector, SinkRecord


class FrameSinkTaskOfTests(FrameSinkTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.folder = Path(config["folder"])
        self.report = config["report"]
        self.gate = Path(config["retry.while"]) if config["retry.while"] else None

    def put(self, frame: Any) -> None:
        if self.gate is not None and self.gate.exists():
            raise RetriableError("not now")
        if self.report:
            for row in frame.where(frame.value == self.report).collect():
                assert self.context.reporter is not None
                record = SinkRecord(topic=row.topic, partition=row.partition, offset=row.offset, value=row.value)
                self.context.reporter.report(record, ValueError("the warehouse does not like it"))
            frame = frame.where(frame.value != self.report)
        # By the executors, as such tasks write.
        frame.select("offset", "value").write.json(str(self.folder / uuid.uuid4().hex))


class FrameSink(SinkConnector):
    config = ConfigDef(
        Key("folder", STRING, doc="Where the frames go."),
        Key("report", STRING, "", doc="A value that the task reports as bad."),
        Key("retry.while", STRING, "", doc="Frames are to be put again while this file exists."),
    )
    task_class: ClassVar[type[FrameSinkTask]] = FrameSinkTaskOfTests

    def start(self, config: Mapping[str, str]) -> None:
        self.props = {"report": "", "retry.while": "", **config}

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props] * max_tasks


class TypedFrameSinkTask(FrameSinkTask):
    columns = ("offset", "value")
    form = Form.TYPED

    def start(self, config: Mapping[str, str]) -> None:
        self.folder = Path(config["folder"])

    def put(self, frame: Any) -> None:
        frame.select("offset", "value.*").write.parquet(str(self.folder / uuid.uuid4().hex))


class TypedFrameSink(FrameSink):
    task_class = TypedFrameSinkTask
