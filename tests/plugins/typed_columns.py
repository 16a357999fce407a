"""A source that gives columns of several partitions, and a sink that takes columns as they are. A folder with this file
is a plugin.path."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headgate.api import (
    INT,
    STRING,
    ConfigDef,
    Form,
    Key,
    RowsFrom,
    SinkConnector,
    SourceConnector,
    SourceTable,
    SourceTask,
    TableSinkTask,
)
from headgate.api import schema as types

ROWS = 200
"""Of each of both partitions in one table."""
PARTITIONS = ("left", "right")
ORDER = types.struct(
    {"number": types.INT64, "side": types.STRING, "tags": types.array(types.STRING).as_optional()}, name="order"
)


def _order(number: int, side: str) -> dict[str, Any]:
    return {"number": number, "side": side, "tags": None if number % 7 == 0 else [side, str(number)]}


class ColumnsSourceTask(SourceTask):
    """Numbers, to left and right, as far as `count`; it goes on where each partition was."""

    def start(self, config: Mapping[str, str]) -> None:
        self._topic, self._count = config["topic"], int(config["count"])
        known = self.context.offset_reader.offsets([{"side": side} for side in PARTITIONS])
        self._at = [0 if each is None else int(each["number"]) for each in known]

    def poll(self) -> SourceTable | None:
        if min(self._at) >= self._count:
            return None
        numbers: list[int] = []
        values: list[dict[str, Any]] = []
        places: list[RowsFrom] = []
        for index, side in enumerate(PARTITIONS):
            chosen = range(self._at[index], min(self._at[index] + ROWS, self._count))
            numbers += chosen
            values += [_order(number, side) for number in chosen]
            self._at[index] = chosen.stop
            places.append(RowsFrom(len(values), {"side": side}, {"number": chosen.stop}))
        kind = pa.struct([("number", pa.int64()), ("side", pa.string()), ("tags", pa.list_(pa.string()))])
        headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
        table = pa.table(
            {
                "key": pa.array([f"k{number}" for number in numbers]),
                "value": pa.array(values, kind),
                "headers": pa.array([[{"key": "h", "value": f"header {number}"}] for number in numbers], headers),
            }
        )
        return SourceTable(
            topic=self._topic, table=table, value_schema=ORDER, key_schema=types.STRING, places=tuple(places)
        )


class ColumnsSource(SourceConnector):
    config = ConfigDef(Key("topic", STRING, doc="Where to."), Key("count", INT, 1000, doc="Numbers of each side."))
    task_class = ColumnsSourceTask

    def start(self, config: Mapping[str, str]) -> None:
        self._config = {"count": "1000", **config}

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config]


class TypedSinkTask(TableSinkTask):
    columns = ("offset", "key", "value")
    form = Form.TYPED

    def start(self, config: Mapping[str, str]) -> None:
        self._file = config["file"]

    def put(self, table: pa.Table) -> None:
        """One line for each table: what its columns are, and its rows."""
        if not table.num_rows:
            return
        told = {
            "key": str(table.schema.field("key").type),
            "value": str(table.schema.field("value").type),
            "schema": None if self.value_schema is None else self.value_schema.name,
            "rows": table.select(["key", "value"]).to_pylist(),
        }
        with open(self._file, "a") as file:
            file.write(json.dumps(told) + "\n")


class TypedSink(SinkConnector):
    config = ConfigDef(Key("file", STRING, doc="Where tables are described."))
    task_class = TypedSinkTask

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks
