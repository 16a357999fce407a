"""What tests of statements need beside them: values without schema, and a sink that takes DataFrames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.api import STRING, ConfigDef, FrameSinkTask, Key, SinkConnector, Transform


class ParseJson(Transform[Any]):
    """A text becomes the value that it is the JSON of, without a schema."""

    def apply(self, record: Any) -> Any:
        return record.with_value(json.loads(record.value))


class FrameLinesTask(FrameSinkTask):
    columns = ("topic", "partition", "offset", "value")

    def start(self, config: Mapping[str, str]) -> None:
        self.file = config["file"]

    def put(self, frame: Any) -> None:
        with open(self.file, "a") as file:
            file.writelines(json.dumps(row.asDict()) + "\n" for row in frame.collect())


class FrameLines(SinkConnector):
    """Rows of DataFrames as JSON, line by line."""

    config = ConfigDef(Key("file", STRING, doc="File to append to."))
    task_class = FrameLinesTask

    def start(self, config: Mapping[str, str]) -> None:
        self.props = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.props]
