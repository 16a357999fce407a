"""SinkChain: records of Kafka in, records or columns for a sink task out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from headgate.api import Converter, Form, FrameSinkTask, Header, Plugin, Schema, SinkRecord, SinkTask, TableSinkTask
from headgate.model import ChainSpec
from headgate.pipeline.batch import (
    CONSUMED,
    RAW_HEADERS,
    Batch,
    column_of,
    consumed_name,
    header_column,
    interleaved,
    joined,
    rows,
    table_schema,
    text_column,
)
from headgate.pipeline.columns import reading
from headgate.pipeline.columns.records_in_bulk import RecordsInBulk
from headgate.pipeline.columns.refused_rows import RefusedRows
from headgate.pipeline.columns.sink_plan import SinkPlan, shown_as
from headgate.pipeline.columns.typed import TypedRow, TypedTables, in_order, tables_of
from headgate.pipeline.converters.byte_array import ByteArrayConverter
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.string import is_utf8
from headgate.pipeline.directed_chain import DirectedChain
from headgate.pipeline.failure import ConsumedRecord, InternalSinkRecord, Stage
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.sql.rows import StatementRows
from headgate.pipeline.text import text
from headgate.pipeline.tolerance import StageFailed, Triage, attempt

_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_ABSENT: Final = ("", None, -1, None, None, None, None, None)
_NAMED: Final = _COLUMNS[:3]
"""What an error message names a record by."""
_UNKNOWN: Final[Any] = object()
_STAGES: Final = {"key": Stage.KEY_CONVERTER, "value": Stage.VALUE_CONVERTER}

T = TypeVar("T")

Show: TypeAlias = Callable[[str, "bytes | None"], "str | None"]
"""From a topic and bytes of Kafka to the text in a column."""


class Kind(Enum):
    RECORDS = "records"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink task takes: records, or a table of these columns with keys and values in this form."""

    kind: Kind
    columns: tuple[str, ...] = ()
    form: Form = Form.TEXT

    @classmethod
    def of(cls, task: SinkTask | TableSinkTask | FrameSinkTask) -> Output:
        return cls(Kind.RECORDS) if isinstance(task, SinkTask) else cls(Kind.TABLE, task.columns, task.form)


class SinkChain(DirectedChain[SinkRecord]):
    """Converters, then transforms."""

    def __init__(self, spec: ChainSpec, output: Output) -> None:
        super().__init__(spec)
        self.output = output
        self._show = _as_json() if output.form is Form.JSON else text
        self._converted = [name for name in output.columns if name in ("key", "value")]
        self._bulk = RecordsInBulk(self._chain, shown_as(output.form))
        self._plan = None if self.passthrough else SinkPlan.of(self._chain, output.columns, output.form)

    @property
    def passthrough(self) -> bool:
        """Whether the table is the bytes of Kafka as text: nothing needs Python, nothing can fail."""
        return (
            self.output.kind is Kind.TABLE
            and not self._chain.steps
            and all(self._as_it_is(name) for name in self._converted)
        )

    @property
    def by_records(self) -> bool:
        """Whether every record goes through it by itself."""
        return self.output.kind is Kind.RECORDS or (self._plan is None and not self.passthrough)

    @property
    def needed(self) -> frozenset[str]:
        """The columns of CONSUMED that a batch must have."""
        columns = frozenset(map(consumed_name, self.output.columns))
        if self.passthrough:
            return columns
        # A record that fails may be wanted whole.
        if self.output.kind is Kind.RECORDS or self.policy.keeps_records:
            return frozenset(CONSUMED.names)
        columns |= frozenset(_NAMED)
        # For steps, all of a record is converted: what can fail must be tried.
        return columns | self._chain.steps.uses | self._chain.fallible if self._chain.steps else columns

    def records(self, batch: Batch, triage: Triage | None = None) -> list[SinkRecord]:
        """The records that no transform dropped. What fails is for `triage`; without one, raises ToleranceExceeded."""
        keep = InternalSinkRecord.of if self.policy.dead_letter_topic else None
        return self._each(batch, triage or Triage(ErrorPolicy()), keep)

    def table(self, batch: Batch, triage: Triage | None = None) -> pa.Table:
        """The same as the columns of the output."""
        triage = triage or Triage(ErrorPolicy())
        schema = table_schema(self.output.columns)
        by_rows = self._by_rows if self._chain.steps else self._quick
        made, rest, numbers = self._by_columns(batch, triage, lambda plan, *of: plan.table(*of, schema))
        if len(numbers):
            kept, table = by_rows(rest, schema, triage, numbers)
            if not made:
                return table
            made.append((pa.array(kept, pa.int64()), table))
        return interleaved(made, schema, triage.end)

    def typed(self, batch: Batch, triage: Triage) -> TypedTables:
        """The same with keys and values as they are: one table after the other."""
        names = self._typed_names
        made, rest, numbers = self._by_columns(batch, triage, lambda plan, *of: plan.typed(*of, names))
        if not self._chain.steps:  # then what nobody wants need not be readable
            wanted = {*_NAMED, *map(consumed_name, names)}
            rest = rest.select([name for name in rest.schema.names if name in wanted])
        places: list[int] = []
        kept = self._each(rest, triage, lambda record, _: self._typed_row(record), numbers, places)
        first = 0
        for count, table in tables_of(kept, names):
            made.append((pa.array(places[first : first + count], pa.int64()), table))
            first += count
        if RAW_HEADERS in self.output.columns:
            headers = joined(batch.column("headers"))
            made = [(numbers, table.with_headers(headers.take(numbers))) for numbers, table in made]
        return in_order(made, triage.end)

    @property
    def _typed_names(self) -> list[str]:
        """The columns but for those headers, which are of no use for anything else."""
        return [name for name in self.output.columns if name != RAW_HEADERS]

    def _typed_row(self, record: SinkRecord) -> TypedRow:
        return attempt(Stage.VALUE_CONVERTER, type(self._chain.value), TypedRow.of, record, self.output.columns)

    def _by_columns(
        self, batch: Batch, triage: Triage, finish: Callable[..., T]
    ) -> tuple[list[tuple[pa.Array, T]], Batch, Sequence[int]]:
        """Pieces with the numbers of their rows; and what is left to be done record by record, with its numbers."""
        plan = self._plan
        if plan is None or batch.num_rows < reading.FEWEST:
            return [], batch, range(batch.num_rows)
        refused = RefusedRows(batch.num_rows)
        made = list(plan.pieces(batch, refused, partial(finish, plan)))
        triage.by_records += refused.reasons
        left = refused.rows
        rest = batch if len(left) == batch.num_rows else batch.take(pa.array(left))
        return made, rest, left.tolist()

    def rows(self, batch: Batch, triage: Triage) -> pa.Table:
        """The records as the statement will see them."""
        rows = StatementRows(self._chain.headers)
        return rows.table(self._each(batch, triage, lambda record, _: rows.row(record)))

    def selected(self, records: Sequence[SinkRecord], triage: Triage) -> list[SinkRecord] | pa.Table | TypedTables:
        """Of records that a statement made: what the chain gives, rows for the next statement or its output."""
        if self.cut:
            return self._statement_rows(records, triage)
        if self.output.kind is Kind.RECORDS:
            return self._stepped(records, triage, lambda record: record)
        if self.output.form is Form.TYPED:
            return self._selected_typed(self._stepped(records, triage, self._typed_row))
        schema = table_schema(self.output.columns)
        get = [self._getter(name) for name in schema.names]
        return _table(self._stepped(records, triage, lambda record: [each(record) for each in get]), schema)

    def _selected_typed(self, rows: Sequence[TypedRow]) -> TypedTables:
        """With headers as the statement left them."""
        made, first = [], 0
        for count, table in tables_of(rows, self._typed_names):
            if RAW_HEADERS in self.output.columns:
                records = [row.record for row in rows[first : first + count]]
                table = table.with_headers(header_column([self._raw_headers(each.topic, each) for each in records]))
            made.append(table)
            first += count
        return TypedTables(made)

    def consumed(self, record: SinkRecord) -> ConsumedRecord:
        """What the record was made of; what the task made itself is written by the converters."""
        if isinstance(record, InternalSinkRecord):
            return ConsumedRecord.of(record.consumed)
        topic = record.original_topic or record.topic
        partition = record.original_partition if record.original_partition is not None else record.partition
        offset = record.original_offset if record.original_offset is not None else record.offset
        return ConsumedRecord(
            topic, partition, offset, record.timestamp, record.timestamp_type, *self._raw(topic, record)
        )

    _origin = consumed

    # --- record by record ---------------------------------------------------------------------------------------------

    def _by_rows(
        self, batch: Batch, schema: pa.Schema, triage: Triage, numbers: Sequence[int]
    ) -> tuple[Sequence[int], pa.Table]:
        """`numbers` are those of the rows; those that are left come back beside the table."""
        many = len(numbers) >= reading.FEWEST
        known = self._chain.steps.outcomes(self._bulk.records(batch)) if many else []
        if known and not isinstance(known[-1], StageFailed):
            table = self._bulk.table([record for record in known if isinstance(record, SinkRecord)], schema)
            if table is not None:
                return [number for number, record in zip(numbers, known, strict=True) if record is not None], table
        get = [self._getter(name) for name in schema.names]
        places: list[int] = []
        kept = self._each(batch, triage, lambda record, _: [each(record) for each in get], numbers, places, known)
        return places, _table(kept, schema)

    def _each(
        self,
        batch: Batch,
        triage: Triage,
        finish: Callable[[SinkRecord, Sequence[Any]], Any] | None,
        numbers: Sequence[int] | None = None,
        places: list[int] | None = None,
        known: Sequence[SinkRecord | StageFailed | None] = (),
    ) -> list[Any]:
        """`numbers` are those of the rows, unless they begin at 0; the ones that are kept are added to `places`.
        `known`: what has become of the first ones already."""
        convert, apply, outcomes = self._record, self._chain.steps.apply, iter(known)
        numbers = range(batch.num_rows) if numbers is None else numbers
        done = []
        for index, row in zip(numbers, rows(batch, _COLUMNS, _ABSENT), strict=True):
            try:
                kept = next(outcomes, _UNKNOWN)
                if kept is _UNKNOWN:
                    kept = apply(convert(row))
                if isinstance(kept, StageFailed):
                    raise kept
                if kept is not None:
                    done.append(kept if finish is None else finish(kept, row))
                    if places is not None:
                        places.append(index)
            except StageFailed as failed:
                if not triage.goes_on(index, failed, partial(ConsumedRecord.of, row)):
                    break
        return done

    def _record(self, row: Sequence[Any]) -> SinkRecord:
        """Of a row of the CONSUMED columns. Raises StageFailed."""
        topic, partition, offset, timestamp, timestamp_type, key, value, headers = row
        chain = self._chain
        stage: Stage = Stage.KEY_CONVERTER
        converter: Plugin = chain.key
        try:
            key_schema, key = chain.key.to_connect(topic, key)
            stage, converter = Stage.VALUE_CONVERTER, chain.value
            value_schema, value = chain.value.to_connect(topic, value)
            if headers:
                stage, converter = Stage.HEADER_CONVERTER, chain.headers
                headers = self._headers(headers, topic)
        except Exception as error:
            raise StageFailed(stage, type(converter), error) from error
        return SinkRecord.unchecked(
            {
                "topic": topic,
                "value": value,
                "key": key,
                "value_schema": value_schema,
                "key_schema": key_schema,
                "partition": partition,
                "timestamp": timestamp,
                "headers": headers or (),
                "offset": offset,
                "timestamp_type": timestamp_type,
                "original_topic": topic,
                "original_partition": partition,
                "original_offset": offset,
            }
        )

    def _headers(self, headers: list[dict[str, Any]], topic: str) -> tuple[Header, ...]:
        convert = self._chain.headers.to_connect_header
        found = []
        for header in headers:
            key = header["key"]
            schema, value = convert(topic, key, header["value"])
            found.append(Header(key, value, schema))
        return tuple(found)

    def _getter(self, name: str) -> Callable[[SinkRecord], Any]:
        """How to take a column's value out of a record."""
        if name not in self._converted:
            return attrgetter(name)
        stage, cls, show = _STAGES[name], type(self._converter(name)), self._show
        taken = attrgetter(name, f"{name}_schema")

        def shown(record: SinkRecord) -> str | None:
            value, schema = taken(record)
            try:
                return None if value is None else show(value, schema)
            except Exception as error:
                raise StageFailed(stage, cls, error) from error

        return shown

    # --- columns without a record per row -----------------------------------------------------------------------------

    def _quick(
        self, batch: Batch, schema: pa.Schema, triage: Triage, numbers: Sequence[int]
    ) -> tuple[Sequence[int], pa.Table]:
        ready: dict[str, Any] = {}
        shows: dict[str, Show] = {}
        for field in schema:
            column = batch.column(consumed_name(field.name))
            if field.name not in self._converted:
                ready[field.name] = column.cast(field.type)
            elif self._as_it_is(field.name):
                ready[field.name] = text_column(column)
            else:
                shows[field.name] = self._shower(field.name)
        shown: dict[str, list[str | None]] | None = None
        with suppress(Exception):
            shown = {
                name: [show(topic, data) for topic, data in rows(batch, ("topic", name), ("", None))]
                for name, show in shows.items()
            }
        if shown is None:  # once more with care: which record was it?
            kept, shown = self._careful(batch, shows, triage, numbers)
            ready = {name: column.take(pa.array(kept, pa.int64())) for name, column in ready.items()}
            numbers = [numbers[index] for index in kept]
        columns = ready | {name: column_of(texts, pa.string()) for name, texts in shown.items()}
        return numbers, pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _careful(
        self, batch: Batch, shows: Mapping[str, Show], triage: Triage, numbers: Sequence[int]
    ) -> tuple[list[int], dict[str, list[str | None]]]:
        """The rows that did not fail, and the texts of their columns."""
        calls = [
            (show, _STAGES[name], type(self._converter(name)), _COLUMNS.index(name)) for name, show in shows.items()
        ]
        kept: list[int] = []
        texts: list[list[str | None]] = []
        for index, row in enumerate(rows(batch, _COLUMNS, _ABSENT)):
            try:
                texts.append([attempt(stage, cls, show, row[0], row[place]) for show, stage, cls, place in calls])
                kept.append(index)
            except StageFailed as failed:
                if not triage.goes_on(numbers[index], failed, partial(ConsumedRecord.of, row)):
                    break
        return kept, {name: [row[place] for row in texts] for place, name in enumerate(shows)}

    def _shower(self, name: str) -> Show:
        convert, show = self._converter(name).to_connect, self._show

        def shown(topic: str, data: bytes | None) -> str | None:
            schema, value = convert(topic, data)
            return None if value is None else show(value, schema)

        return shown

    def _converter(self, name: str) -> Converter:
        return self._chain.key if name == "key" else self._chain.value

    def _as_it_is(self, name: str) -> bool:
        converter = self._converter(name)
        return self.output.form is Form.TEXT and (is_utf8(converter) or type(converter) is ByteArrayConverter)


def _table(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [column_of(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _as_json() -> Callable[[Any, Schema | None], str]:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)

    def show(value: Any, schema: Schema | None) -> str:
        data = converter.from_connect("", schema, value)
        assert data is not None  # only null without a schema is, and null is not shown
        return data.decode()

    return show
