"""Columns as the bytes of a header."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, cast

import pyarrow as pa

from headgate.api import HeaderConverter
from headgate.api.frame import NotByColumns, Values, WritesColumns
from headgate.pipeline.columns.objects import objects
from headgate.pipeline.inherited import said_of

_BITS: Final = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def header_bytes(converter: HeaderConverter, topic: str, name: str, values: Values) -> pa.Array:
    """Binary, null where `from_connect_header` gives None. Raises NotByColumns."""
    if all(said_of(type(converter), "write_columns", each) for each in ("from_connect", "from_connect_header")):
        with suppress(NotByColumns):
            return cast(WritesColumns, converter).write_columns(topic, values)
    distinct, places = _distinct(values)
    try:
        found = [converter.from_connect_header(topic, name, values.schema, item) for item in objects(distinct)]
    except Exception as error:
        raise NotByColumns("a header that cannot be written") from error
    written = pa.array(found, pa.binary())
    return written if places is None else written.take(places)


def _distinct(values: Values) -> tuple[Values, pa.Array | None]:
    """Each value once, and which of them each row has."""
    data = values.data
    if pa.types.is_nested(data.type) or pa.types.is_null(data.type):
        return values, None
    # Zero and minus zero are equal, but not the same.
    bits = _BITS.get(data.type)
    encoded = (data if bits is None else data.view(bits)).dictionary_encode(null_encoding="encode")
    once = encoded.dictionary
    return Values(once if bits is None else once.view(data.type), values.schema), encoded.indices
