"""DatagenTask: makes the records of its slices, at its pace."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headgate.api import ConnectError, RowsFrom, Schema, SourceRecord, SourceTable, SourceTask
from headgate.connectors.datagen.config import DatagenConfig
from headgate.connectors.datagen.pace import Pace
from headgate.connectors.datagen.slices import Run, Slices, offset_map, partition_map, slices_of, start_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

log = logging.getLogger(__name__)

TASK: Final = "datagen.task"
TASKS: Final = "datagen.tasks"
"""Keys that the connector gives to its tasks."""

_MOST_ROWS: Final = 10_000
_MOST_BYTES: Final = 4 << 20
"""Most of one poll."""
_IDLE_S: Final = 1.0
_LATEST_MS: Final = 253_402_300_799_999


class DatagenTask(SourceTask):
    """A record depends on its number, the seed and the schema alone, so whoever goes on at an offset makes what would
    have come."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._told = False

    def start(self, config: Mapping[str, str]) -> None:
        from headgate.connectors.datagen.nested import has_maps

        task, tasks = int(config[TASK]), int(config[TASKS])
        self._config = DatagenConfig.of(config, tasks)
        mine = list(slices_of(task, tasks))
        stored = self.context.offset_reader.offsets([partition_map(number) for number in mine])
        starts = {number: start_of(number, offset) for number, offset in zip(mine, stored, strict=True)}
        self._slices = Slices(starts, self._config.records)
        self._pace = Pace(self._config.rate)
        values = self._config.values
        self._rows = max(1, min(_MOST_ROWS, _MOST_BYTES // values.width))
        self._one_by_one = self._config.schemaless and has_maps(values.schema)

    def poll(self) -> Sequence[SourceRecord] | SourceTable | None:
        if self._stop.wait(min(self._pace.wait(), _IDLE_S)):
            return None
        allowed = self._pace.take(self._rows)
        if not allowed:
            return None
        runs = self._slices.take(allowed)
        if not runs:
            self._tell_the_end()
            self._stop.wait(_IDLE_S)
            return None
        return self._made(runs)

    def stop_requested(self) -> None:
        self._stop.set()

    def stop(self) -> None:
        self._stop.set()

    def _tell_the_end(self) -> None:
        if not self._told:
            log.info("All records are made: nothing more comes of this task")
        self._told = True

    def _made(self, runs: Sequence[Run]) -> Sequence[SourceRecord] | SourceTable:
        import pyarrow as pa

        config = self._config
        numbers = _numbers(runs)
        value = self._values(numbers)
        columns = {"value": value}
        if config.key_field is not None:
            columns["key"] = value.field(config.key_field)
        if config.timestamp_start is not None:
            columns["timestamp"] = pa.array(self._times(numbers))
        if self._one_by_one:
            return self._records(numbers, runs, columns)
        return SourceTable(
            topic=config.topic,
            table=pa.table(columns),
            value_schema=None if config.schemaless else config.values.schema,
            key_schema=self._key_schema(),
            places=_places(runs),
        )

    def _values(self, numbers: Numbers) -> pa.Array:
        from headgate.connectors.datagen.nested import plain_type
        from headgate.connectors.datagen.random_rows import RandomRows

        rows = RandomRows.of(self._config.seed, numbers, self._times(numbers))
        made = self._config.values.column(rows, 0)
        return made.cast(plain_type(made.type)) if self._config.schemaless else made

    def _times(self, numbers: Numbers) -> Numbers:
        import numpy as np

        start, step = self._config.timestamp_start, self._config.timestamp_step
        if start is None:
            return np.full(len(numbers), time.time_ns() // 1_000_000)
        if start + int(numbers[-1]) * step > _LATEST_MS:
            raise ConnectError(
                f"Record {numbers[-1]} would have a timestamp after the year 9999: begin earlier, or anew"
            )
        return start + numbers * step

    def _key_schema(self) -> Schema | None:
        config = self._config
        field = config.values.schema.field(config.key_field or "")
        return None if field is None or config.schemaless else field.schema

    def _records(self, numbers: Numbers, runs: Sequence[Run], columns: Mapping[str, pa.Array]) -> list[SourceRecord]:
        """Maps that differ in their keys have no type in columns, unless a schema says what they are."""
        made = {name: column.to_pylist(maps_as_pydicts="strict") for name, column in columns.items()}
        owners = [run.slice for run in runs for _ in range(run.first, run.end)]
        return [
            SourceRecord(
                topic=self._config.topic,
                **dict(zip(made, row, strict=True)),
                source_partition=partition_map(owner),
                source_offset=offset_map(int(number) + 1),
            )
            for number, owner, row in zip(numbers, owners, zip(*made.values(), strict=True), strict=True)
        ]


def _numbers(runs: Sequence[Run]) -> Numbers:
    import numpy as np

    firsts = np.array([run.first for run in runs], np.int64)
    counts = np.array([run.end - run.first for run in runs], np.int64)
    return np.arange(counts.sum(), dtype=np.int64) + np.repeat(firsts - np.cumsum(counts) + counts, counts)


def _places(runs: Sequence[Run]) -> list[RowsFrom]:
    places, end = [], 0
    for run in runs:
        end += run.end - run.first
        places.append(RowsFrom(end, partition_map(run.slice), offset_map(run.end)))
    return places
