"""SparkSinkTask: gathers rows and has Spark write them when there are enough, or they have waited long enough.

All writing begins in `pre_commit`, where it is known which records are whole: one record may be several rows of several
puts. Where rows are due earlier, a commit is asked for. Such a commit does not wait for what it has begun: more rows
are gathered meanwhile, and the next one lets pass what was written. All other commits wait, for they may be the last.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError, Form, TableSinkTask, TopicPartition
from headgate.connectors.spark.sink.append import AppendTarget
from headgate.connectors.spark.sink.columns import Columns, Fitted, Misfit
from headgate.connectors.spark.sink.config import DELTA, ICEBERG, SparkSinkConfig, reaches
from headgate.connectors.spark.sink.delta import DeltaTarget
from headgate.connectors.spark.sink.exact_files import ExactFiles
from headgate.connectors.spark.sink.gathered import ORDER, Gathered, PutRows, before_mask, bounds_of
from headgate.connectors.spark.sink.iceberg import IcebergTarget
from headgate.connectors.spark.sink.rows import (
    GIVEN,
    OFFSET,
    PARTITION,
    RAW_HEADERS,
    TOPIC,
    apart,
    check_origin,
    keys_of,
    place_of,
    record_of,
    rows_of,
    value_problem,
)  # fmt: skip
from headgate.connectors.spark.sink.target import RowBatch, Target
from headgate.connectors.spark.sink.writing import Begin, Writing, in_a_thread

log = logging.getLogger(__name__)

_PLACES = (TOPIC, PARTITION, OFFSET, ORDER)
_SET_ASIDE = "To set such records aside, set errors.tolerance=all and errors.deadletterqueue.topic.name"


def target_of(config: SparkSinkConfig) -> Target:
    if config.format == ICEBERG:
        return IcebergTarget(config)
    if config.format == DELTA and (config.exactly_once or config.upsert):
        return DeltaTarget(config)
    return ExactFiles(config) if config.exactly_once else AppendTarget(config)


class SparkSinkTask(TableSinkTask):
    """What is gathered is forgotten when the task stops or a partition goes: its offsets were not let pass."""

    columns: ClassVar[tuple[str, ...]] = GIVEN
    form = Form.TYPED

    def __init__(self, clock: Callable[[], float] = time.monotonic, begin: Begin = in_a_thread) -> None:
        self._clock = clock
        self._begin = begin
        self._gathered = Gathered()
        self._held: set[TopicPartition] = set()
        self._columns: Columns | None = None
        """None: the target is to be asked, for the first time or anew."""
        self._done: Mapping[TopicPartition, int] = {}
        """What the target has, if it keeps offsets."""
        self._wrote = 0.0
        self._order = 0
        self._alarm: threading.Timer | None = None
        self._asked = False
        """The next commit is one that this task has asked for."""
        self._writing: Writing | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._config = SparkSinkConfig.of(config)
        self._reaches = list(reaches(config))
        self._target = target_of(self._config)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self._known()
        self._held |= set(partitions)
        for where in partitions:
            if where in self._done:
                self.context.offset(where, self._done[where])

    def _known(self) -> Columns:
        """The columns that there are; asks the target for them, and for its offsets, if that was not done yet."""
        if self._columns is None:
            for reach in self._reaches:
                self.context.require(reach)
            known = self._target.open(self.context.spark())
            self._done = dict(known.offsets)
            self._wrote = self._clock()
            self._columns = self._config.columns(known.schema)
        return self._columns

    # --- rows ---------------------------------------------------------------------------------------------------------

    def put(self, table: pa.Table) -> None:
        self._known()
        check_origin(table)
        numbers = pa.array(np.arange(self._order, self._order + table.num_rows))
        self._order += table.num_rows
        table = self._unwritten(table.append_column(ORDER, numbers))
        values, tombstones = apart(table)
        if values.num_rows:
            self._add(values, self._fitted(values), deleted=False)
        if tombstones.num_rows and self._config.upsert:
            self._delete(tombstones)
        if self._gathered.full(self._config.rotation):
            self._ask()
        elif self._gathered.count and self._alarm is None:
            # Nobody calls a task while no records come, but whoever asks for a commit gets one within two seconds.
            self._alarm = threading.Timer(self._config.rotation.seconds, self._ask)
            self._alarm.daemon, self._alarm.name = True, "spark-sink-alarm"
            self._alarm.start()

    def _ask(self) -> None:
        """From other threads, too."""
        self._asked = True
        self.context.request_commit()

    def _unwritten(self, table: pa.Table) -> pa.Table:
        """Without what the target has already: it comes again, from an offset that the group still has."""
        if not self._done:
            return table
        lowest = {where: first for where, (first, _) in bounds_of(table).items()}
        old = {where: self._done[where] for where, first in lowest.items() if first < self._done.get(where, 0)}
        return table.filter(pc.invert(before_mask(table, old))) if old else table

    def _fitted(self, values: pa.Table) -> Fitted:
        columns = self._known()
        problem = value_problem(values)
        try:
            if problem is not None:
                raise problem
            rows = rows_of(values, self.value_schema, self._config.metadata, self._config.key_columns)
        except Misfit as misfit:
            every = dict.fromkeys(range(values.num_rows), misfit)
            return Fitted(columns, columns.schema.empty_table(), pa.array([], pa.int64()), every)
        fitted = columns.fit(rows)
        self._columns = fitted.columns
        return fitted

    def _delete(self, tombstones: pa.Table) -> None:
        """The rows with the keys of these records."""
        columns, names = self._known(), self._config.key_columns
        if not set(names) <= set(columns.schema.names):
            return  # then there are no rows at all
        keys = keys_of(tombstones, names)
        rows = pa.table(keys) if keys else pa.table({names[0]: pa.nulls(tombstones.num_rows)})
        self._add(tombstones, columns.only(names).fit(rows), deleted=True)

    def _add(self, table: pa.Table, fitted: Fitted, deleted: bool) -> None:
        for row, misfit in fitted.refused.items():
            self._refuse(table, row, misfit)
        places = table.select(_PLACES)
        places = places.take(fitted.kept) if fitted.refused else places
        self._gathered.add(PutRows(fitted.rows, places, deleted), self._clock())

    def _refuse(self, table: pa.Table, row: int, misfit: Misfit) -> None:
        reporter = self.context.reporter
        if reporter is None:
            raise ConnectError(f"Record {place_of(table, row)} does not fit: {misfit}. {_SET_ASIDE}") from misfit
        reporter.report(record_of(table, row, self.key_schema, self.value_schema), misfit)

    # --- writing ------------------------------------------------------------------------------------------------------

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Lets pass what is written, and what stands before the first record that is not."""
        asked, self._asked = self._asked, False
        try:
            self._take(wait=not asked or self._gathered.full(self._config.rotation))
            if self._writing is None and self._due(offsets):
                self._write(offsets)
                self._take(wait=not asked)
        except Exception:
            self._forget()  # all comes again; how far the target came, it knows
            raise
        first = self._first()
        return {where: min(until, first.get(where, until)) for where, until in offsets.items()}

    def _first(self) -> Mapping[TopicPartition, int]:
        """The lowest offset of each partition whose row is not written."""
        return {**self._gathered.first, **({} if self._writing is None else self._writing.first)}

    def _due(self, offsets: Mapping[TopicPartition, int]) -> bool:
        now, rotation = self._clock(), self._config.rotation
        if self._gathered.due(rotation, now) or not self._config.exactly_once:
            return self._gathered.due(rotation, now)
        # Records that were dropped or refused on the way would be looked at again and again.
        moved = any(until > self._done.get(where, -1) for where, until in offsets.items() if where in self._held)
        return moved and not self._gathered.count and now - self._wrote >= rotation.seconds

    def _write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Begins to."""
        columns = self._known()
        session = self.context.spark()
        held = {where: until for where, until in offsets.items() if where in self._held}
        first = self._gathered.first
        pieces = self._gathered.take(held)
        batch = self._batch(pieces, held)
        self._columns = columns.written()
        self._quiet()
        self._writing = Writing(batch, first, self._begin(session, partial(self._target.write, session, batch)))
        if not self._writing.done:
            self._writing.ended.add_done_callback(lambda _: self._ask())

    def _take(self, wait: bool) -> None:
        """What has become of the rows that are being written, if that is known, or must be."""
        writing = self._writing
        if writing is None or not (wait or writing.done):
            return
        self._writing = None
        writing.ended.result()
        self._done = writing.batch.offsets if self._config.exactly_once else {}
        self._wrote = self._clock()

    def _batch(self, pieces: Sequence[PutRows], offsets: Mapping[TopicPartition, int]) -> RowBatch:
        columns = self._known()
        rows = columns.complete([piece.rows for piece in pieces])
        ahead = {where: max(until, self._done.get(where, until)) for where, until in offsets.items()}
        batch = RowBatch(rows, {**self._done, **ahead})
        return _latest(batch, pieces, self._config.key_columns) if self._config.upsert and pieces else batch

    # --- ends ---------------------------------------------------------------------------------------------------------

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        self._held -= set(partitions)
        first = self._first()
        try:
            self._take(wait=True)
        except Exception as error:
            log.warning("Rows could not be written, and come again: %s", error)
            for where in self._held & set(first):
                self.context.offset(where, first[where])
            self._forget()
        self._gathered.forget(partitions)
        if not self._held:
            self._forget()

    def stop(self) -> None:
        self._forget()

    def _forget(self) -> None:
        if self._writing is not None:
            self._writing.wait()
        self._writing = None
        self._quiet()
        self._gathered.clear()
        self._columns = None

    def _quiet(self) -> None:
        alarm, self._alarm = self._alarm, None
        if alarm is not None:
            alarm.cancel()


class HeadersSparkSinkTask(SparkSinkTask):
    """The same with headers, which cost something."""

    columns = (*GIVEN, RAW_HEADERS)


def _latest(batch: RowBatch, pieces: Sequence[PutRows], keys: Sequence[str]) -> RowBatch:
    """Of rows with the same key only the last."""
    nested = next((name for name in keys if pa.types.is_nested(batch.rows.schema.field(name).type)), None)
    if nested is not None:
        raise ConnectError(f"Column {nested} cannot be one of key.columns: its values are no single values")
    order = pa.concat_tables([piece.places.select([ORDER]) for piece in pieces]).column(ORDER)
    deleted = pa.array([piece.deleted for piece in pieces for _ in range(piece.places.num_rows)], pa.bool_())
    keyed = batch.rows.select(keys).append_column(ORDER, order)
    last = keyed.group_by(list(keys)).aggregate([(ORDER, "max")]).column(f"{ORDER}_max")
    mask = pc.is_in(order, last.combine_chunks())
    # Of rows that are to go there are only the keys, and nothing may be said of what else they have.
    free = pa.schema([field.with_nullable(True) for field in batch.rows.schema])
    rows = pa.table(batch.rows.columns, free).filter(mask)
    return RowBatch(rows, batch.offsets, deleted.filter(mask.combine_chunks()))
