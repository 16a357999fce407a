"""Makes what Datagen makes, without a worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.api import SourceTable
from headgate.api.testing import MemoryConnectorContext, MemoryOffsets, MemorySourceTaskContext
from headgate.connectors import Datagen
from headgate.connectors.datagen.avro import read_avro
from headgate.connectors.datagen.compact import read_compact
from headgate.connectors.datagen.generator import Generator
from headgate.connectors.datagen.random_rows import RandomRows
from headgate.connectors.datagen.task import DatagenTask

FAST = {"topic": "t", "rate": "0"}


def errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in Datagen().validate(config) if value.errors}


def tasks_of(config: Mapping[str, str], tasks: int = 1, offsets: MemoryOffsets | None = None) -> list[DatagenTask]:
    connector = Datagen()
    connector.context = MemoryConnectorContext()
    connector.start(config)
    started = []
    for each in connector.task_configs(tasks):
        task = DatagenTask()
        task.context = MemorySourceTaskContext(each, offsets)
        task.start(each)
        started.append(task)
    return started


def polled(task: DatagenTask) -> SourceTable:
    found = task.poll()
    assert isinstance(found, SourceTable)
    return found


def rows_of(generator: Generator, numbers: Iterable[int], seed: int = 0) -> list[Any]:
    return column_of(generator, numbers, seed).to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


def column_of(generator: Generator, numbers: Iterable[int], seed: int = 0) -> pa.Array:
    found = np.array(list(numbers), np.int64)
    return generator.column(RandomRows.of(seed, found, 1_700_000_000_000 + found), 0)


def values(schema: str, count: int = 1000, seed: int = 0) -> list[Any]:
    """What a schema makes of one field, `f`, in our own notation or Avro."""
    read = read_avro if schema.startswith("{") else read_compact
    return [row["f"] for row in rows_of(read(schema), range(count), seed)]


def avro(field: Any, **more: Any) -> str:
    """A schema of Avro with one field, `f`, of this type."""
    import json

    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": field}], **more})


def shown(tables: Sequence[SourceTable]) -> list[Any]:
    return [row for each in tables for row in each.table.to_pylist()]
