"""Parcels: records made ready for requests, some for each, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import DataError, Schema, SinkRecord
from headgate.connectors.http.address import Address
from headgate.connectors.http.sink_config import DELETE, JSON_ARRAY, NDJSON, SKIP, HttpSinkConfig
from headgate.connectors.http.url_template import KEY, TOPIC
from headgate.java.json import loads
from headgate.pipeline.converters.json import JsonConverter

_SEPARATOR: Final = 1
"""Bytes between two records, or around them."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What one request has."""

    method: str
    address: Address
    body: bytes | None
    records: Sequence[SinkRecord]
    """Those in it: none where nothing is to be sent."""
    end: int
    """The number of the first record that comes after it."""


@dataclass(frozen=True, slots=True)
class _Item:
    method: str
    address: Address
    data: bytes | None


class Parcels:
    def __init__(self, config: HttpSinkConfig) -> None:
        self._config = config
        self._json = JsonConverter()
        self._json.configure({"schemas.enable": "false"}, is_key=False)

    def next(self, records: Sequence[SinkRecord], start: int, most: int) -> Parcel:
        """The records from `start` on that go together, at most so many. Raises DataError, which is about the first."""
        config, first, end = self._config, self._item(records[start]), start + 1
        if first is None:
            return Parcel(config.method, config.client.address, None, (), end)
        items, kept = [first], [records[start]]
        size = _size(first)
        while end < len(records) and len(items) < most:
            try:
                item = self._item(records[end])
            except DataError:
                break  # the next parcel begins with it
            if item is not None:
                size += _size(item)
                if item.address != first.address or size + _SEPARATOR > config.batch_bytes:
                    break
                items.append(item)
                kept.append(records[end])
            end += 1
        return Parcel(first.method, first.address, self._joined([item.data for item in items]), kept, end)

    def _item(self, record: SinkRecord) -> _Item | None:
        """None: it is not sent."""
        config = self._config
        if record.value is None and config.on_null == SKIP:
            return None
        key = self._text(record.key_schema, record.key) if KEY in config.url.variables else None
        try:
            address = config.url.filled({TOPIC: record.topic, KEY: key})
        except UnicodeEncodeError as error:
            raise DataError(f"Its key cannot be sent: {error}") from error
        if record.value is None:
            if config.on_null == DELETE:
                return _Item("DELETE", address, None)
            raise DataError("It has no value, and on.null=fail")
        return _Item(config.method, address, self._data(record.value_schema, record.value))

    def _data(self, schema: Schema | None, value: Any) -> bytes:
        config = self._config
        if not config.raw or not isinstance(value, str | bytes | bytearray | memoryview):
            return self._written(schema, value)
        try:
            data = value.encode() if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError as error:
            raise DataError(f"Its value cannot be sent: {error}") from error
        if config.batch_format == NDJSON and b"\n" in data:
            raise DataError("Its value has several lines, which ndjson would make several records of")
        return data

    def _text(self, schema: Schema | None, value: Any) -> str | None:
        """A key, for a URL: texts as they are, bytes as base64, all others as JSON."""
        if value is None or isinstance(value, str):
            return value
        written = self._written(schema, value)
        return str(loads(written)) if written.startswith(b'"') else written.decode()

    def _written(self, schema: Schema | None, value: Any) -> bytes:
        written = self._json.from_connect("", schema, value)
        assert written is not None  # only null is
        return written

    def _joined(self, data: Sequence[bytes | None]) -> bytes | None:
        parts = [each for each in data if each is not None]
        if self._config.batch_format == JSON_ARRAY:
            return b"[" + b",".join(parts) + b"]"
        if self._config.batch_format == NDJSON:
            return b"".join([each + b"\n" for each in parts])
        return parts[0] if parts else None


def _size(item: _Item) -> int:
    return len(item.data or b"") + _SEPARATOR
