"""SinkChain: records of Kafka in, records or columns for a sink task out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from headgate.api import Converter, Form, Header, Schema, SinkRecord
from headgate.model import ChainSpec
from headgate.pipeline.batch import CONSUMED, TABLE, Batch, rows, table_schema, text_column
from headgate.pipeline.chain import Chain
from headgate.pipeline.converters.byte_array import ByteArrayConverter
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.pipeline.text import text
from headgate.pipeline.tolerance import Consumed, Stage, attempt

_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_ABSENT: Final = ("", None, -1, None, None, None, None, None)
_NAMED: Final = _COLUMNS[:3]
"""What an error message names a record by."""
_STAGES: Final = {"key": Stage.KEY_CONVERTER, "value": Stage.VALUE_CONVERTER}


class Kind(Enum):
    RECORDS = "records"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink task takes: records, or a table of these columns with keys and values in this form."""

    kind: Kind
    columns: tuple[str, ...] = ()
    form: Form = Form.TEXT


class SinkChain:
    """Converters, then transforms. Built once per task and process, then called batch by batch."""

    def __init__(self, spec: ChainSpec, output: Output) -> None:
        self._chain = Chain.build(spec)
        self._output = output
        self._show = _as_json() if output.form is Form.JSON else _as_text
        self._converted = [name for name in output.columns if name in ("key", "value")]

    @property
    def passthrough(self) -> bool:
        """Whether the table is the bytes of Kafka as text: nothing needs Python, nothing can fail."""
        return (
            self._output.kind is Kind.TABLE
            and not self._chain.steps
            and all(self._as_it_is(name) for name in self._converted)
        )

    @property
    def needed(self) -> frozenset[str]:
        """The columns of CONSUMED that a batch must have."""
        if self._output.kind is Kind.RECORDS or self._chain.steps:
            return frozenset(CONSUMED.names)
        columns = frozenset(self._output.columns)
        return columns if self.passthrough else columns | frozenset(_NAMED)

    def records(self, batch: Batch) -> list[SinkRecord]:
        """The records that no transform dropped. Raises ToleranceExceeded."""
        return list(self._transformed(batch))

    def table(self, batch: Batch) -> pa.Table:
        """The columns of the output, of the records that no transform dropped. Raises ToleranceExceeded."""
        schema = table_schema(self._output.columns)
        if not self._chain.steps:
            return pa.Table.from_arrays([self._column(name, batch) for name in schema.names], schema=schema)
        get = [self._getter(name) for name in schema.names]
        kept = [[each(record) for each in get] for record in self._transformed(batch)]
        columns = zip(*kept, strict=True) if kept else [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def close(self) -> None:
        self._chain.close()

    def _transformed(self, batch: Batch) -> Iterator[SinkRecord]:
        chain = self._chain
        key_class, value_class = type(chain.key), type(chain.value)
        for row in rows(batch, _COLUMNS, _ABSENT):
            topic, partition, offset, timestamp, timestamp_type, key, value, headers = row
            key_schema, key = attempt(Stage.KEY_CONVERTER, key_class, chain.key.to_connect, row, topic, key)
            value_schema, value = attempt(Stage.VALUE_CONVERTER, value_class, chain.value.to_connect, row, topic, value)
            record = SinkRecord(
                topic=topic,
                value=value,
                key=key,
                value_schema=value_schema,
                key_schema=key_schema,
                partition=partition,
                timestamp=timestamp,
                headers=self._headers(headers, row) if headers else (),
                offset=offset,
                timestamp_type=timestamp_type,
                original_topic=topic,
                original_partition=partition,
                original_offset=offset,
            )
            kept = chain.steps.apply(record, row)
            if kept is not None:
                yield kept

    def _headers(self, headers: list[dict[str, Any]], row: Consumed) -> tuple[Header, ...]:
        converter = self._chain.headers
        convert, cls, topic = converter.to_connect_header, type(converter), row[0]
        found = []
        for header in headers:
            key = header["key"]
            schema, value = attempt(Stage.HEADER_CONVERTER, cls, convert, row, topic, key, header["value"])
            found.append(Header(key, value, schema))
        return tuple(found)

    def _converter(self, name: str) -> Converter:
        return self._chain.key if name == "key" else self._chain.value

    def _as_it_is(self, name: str) -> bool:
        converter = self._converter(name)
        utf8 = type(converter) is StringConverter and converter.utf8
        return self._output.form is Form.TEXT and (utf8 or type(converter) is ByteArrayConverter)

    def _column(self, name: str, batch: Batch) -> pa.Array | pa.ChunkedArray:
        column = batch.column(name)
        if name not in self._converted:
            return column.cast(TABLE.field(name).type)
        if self._as_it_is(name):
            return text_column(column)
        converter, show = self._converter(name), self._show
        convert, stage, cls = converter.to_connect, _STAGES[name], type(converter)

        def shown(topic: str, data: bytes | None) -> str | None:
            schema, value = convert(topic, data)
            return None if value is None else show(schema, value)

        found = list(rows(batch, (*_NAMED, name), (*_ABSENT[:3], None)))
        try:
            texts = [shown(topic, data) for topic, _, _, data in found]
        except Exception:  # once more with care: which record was it?
            texts = [attempt(stage, cls, shown, row, row[0], row[3]) for row in found]
        return pa.array(texts, pa.string())

    def _getter(self, name: str) -> Callable[[SinkRecord], Any]:
        """How to take a column's value out of a record."""
        if name not in self._converted:
            return attrgetter(name)
        stage, cls, show = _STAGES[name], type(self._converter(name)), self._show
        taken = attrgetter("original_topic", "original_partition", "original_offset", f"{name}_schema", name)

        def shown(record: SinkRecord) -> str | None:
            row = taken(record)
            return None if row[4] is None else attempt(stage, cls, show, row, row[3], row[4])

        return shown


def _as_text(schema: Schema | None, value: Any) -> str:
    return text(value, schema)


def _as_json() -> Callable[[Schema | None, Any], str]:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)

    def show(schema: Schema | None, value: Any) -> str:
        data = converter.from_connect("", schema, value)
        assert data is not None  # only null without a schema is, and null is not shown
        return data.decode()

    return show
