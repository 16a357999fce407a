"""SourceChain: records or columns of a source task in, records for the producer out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import pyarrow as pa

from headgate.api import ConnectError, DataError, Header, Schema, SchemaType, SourceRecord, SourceTable, Struct
from headgate.api.frame import NotByColumns
from headgate.java.text import decode_utf8
from headgate.model import ChainSpec
from headgate.pipeline.batch import PRODUCED, Produced, interleaved, joined, produced, rows
from headgate.pipeline.columns import reading
from headgate.pipeline.columns.refused_rows import RefusedRows
from headgate.pipeline.columns.source_plan import SourcePlan, now_ms
from headgate.pipeline.directed_chain import DirectedChain
from headgate.pipeline.failure import PolledRecord, Stage, shown_record
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.tolerance import StageFailed, Triage, attempt

_NO_TIMESTAMP: Final = -1
_UNKNOWN: Final[Any] = object()


class SourceChain(DirectedChain[SourceRecord]):
    """Transforms, then converters."""

    def __init__(self, spec: ChainSpec) -> None:
        super().__init__(spec)
        self._plan = SourcePlan(self._chain)

    def records(self, records: Sequence[SourceRecord], triage: Triage | None = None) -> pa.Table:
        """PRODUCED rows of the records that no transform dropped. What fails is for `triage`; without one, raises
        ToleranceExceeded. Where a statement comes next, rows for it instead."""
        triage = triage or Triage(ErrorPolicy())
        if self.cut:
            return self._statement_rows(records, triage)
        known = self._chain.steps.outcomes(records) if len(records) >= reading.FEWEST else []
        kept = [(row, record) for row, record in enumerate(known) if isinstance(record, SourceRecord)]
        if known and not isinstance(known[-1], StageFailed):
            # Where nothing failed, and all records are of a kind, their converters write columns.
            with suppress(NotByColumns, DataError):
                return self._plan.produced(kept)
        return produced(self._converted(records, triage, known=known))

    def columns(self, source: SourceTable, triage: Triage | None = None) -> pa.Table:
        """The same for a table."""
        table = source.table
        if "value" not in table.column_names:
            raise ConnectError('The table of a source task has no column "value"')
        triage = triage or Triage(ErrorPolicy())
        if self.cut or not self._plan.takes(table.num_rows):
            return self.records(list(_records(source, table)), triage)
        refused = RefusedRows(table.num_rows)
        made = list(self._plan.tables(source, refused))
        triage.by_records += refused.reasons
        left = refused.rows
        if len(left):
            records = list(_records(source, table.take(pa.array(left))))
            by_records = produced(self._converted(records, triage, left.tolist()))
            made.append((joined(by_records.column("row")), by_records))
        return interleaved(made, PRODUCED, triage.end)

    def _converted(
        self,
        records: Sequence[SourceRecord],
        triage: Triage,
        numbers: Sequence[int] | None = None,
        known: Sequence[SourceRecord | StageFailed | None] = (),
    ) -> Iterator[Produced]:
        """`numbers` are those of the rows that they were, unless these begin at 0; `known`: what transforms have made
        of the first ones already."""
        chain, outcomes = self._chain, iter(known)
        key_class, value_class = type(chain.key), type(chain.value)
        to_key, to_value = chain.key.from_connect, chain.value.from_connect
        for row, origin in zip(numbers or range(len(records)), records, strict=True):
            try:
                record = next(outcomes, _UNKNOWN)
                if record is _UNKNOWN:
                    record = chain.steps.apply(origin)
                if isinstance(record, StageFailed):
                    raise record
                if record is None:
                    continue
                topic = record.topic
                headers = self._headers(record.headers, topic) if record.headers else None
                key = attempt(Stage.KEY_CONVERTER, key_class, to_key, topic, record.key_schema, record.key)
                value = attempt(Stage.VALUE_CONVERTER, value_class, to_value, topic, record.value_schema, record.value)
            except StageFailed as failed:
                if not triage.goes_on(row, failed, partial(self._origin, origin)):
                    return
                continue
            yield Produced(row, topic, record.partition, key, value, _checked(record.timestamp), headers)

    def _headers(self, headers: Sequence[Header], topic: str) -> list[tuple[str, bytes | None]]:
        converter = self._chain.headers
        convert, cls = converter.from_connect_header, type(converter)
        return [
            (each.key, attempt(Stage.HEADER_CONVERTER, cls, convert, topic, each.key, each.schema, each.value))
            for each in headers
        ]

    def _origin(self, record: SourceRecord) -> PolledRecord:
        policy, topic = self.policy, record.topic
        shown = shown_record(record) if policy.log and policy.log_records else ""
        known = PolledRecord(topic, record.source_partition, record.source_offset, shown=shown)
        if not policy.dead_letter_topic:
            return known
        timestamp = None if record.timestamp == _NO_TIMESTAMP else record.timestamp
        key, value, headers = self._raw(topic, record)
        return known._replace(timestamp=timestamp, key=key, value=value, headers=headers)


def _records(source: SourceTable, table: pa.Table) -> Iterator[SourceRecord]:
    """Of rows of the source's table."""
    names, absent = ("key", "value", "timestamp", "partition", "headers"), (None, None, now_ms(), None, None)
    for key, value, timestamp, partition, headers in rows(table, names, absent):
        yield SourceRecord(
            topic=source.topic,
            key=_shaped(source.key_schema, key),
            value=_shaped(source.value_schema, value),
            key_schema=source.key_schema,
            value_schema=source.value_schema,
            timestamp=timestamp,
            partition=partition,
            headers=tuple(Header(each["key"], each["value"]) for each in headers or ()),
        )


def _shaped(schema: Schema | None, item: Any) -> Any:
    """What Arrow calls a dict, a list of pairs or bytes, as the schema wants it."""
    if schema is None or item is None:
        return item
    if schema.type is SchemaType.STRING and isinstance(item, bytes):
        return decode_utf8(item)
    if schema.type is SchemaType.ARRAY:
        return [_shaped(schema.value_schema, each) for each in item]
    if schema.type is SchemaType.MAP:
        pairs = item.items() if isinstance(item, Mapping) else item
        return {_shaped(schema.key_schema, key): _shaped(schema.value_schema, value) for key, value in pairs}
    if schema.type is SchemaType.STRUCT and isinstance(item, Mapping):
        given = {member.name: _shaped(member.schema, item.get(member.name)) for member in schema.fields}
        return Struct(schema, {name: value for name, value in given.items() if value is not None})
    return item


def _checked(timestamp: int | None) -> int | None:
    if timestamp is None or timestamp == _NO_TIMESTAMP:
        return None
    if timestamp < 0:
        raise DataError(f"Invalid record timestamp {timestamp}")
    return timestamp
