"""The headers of a source's records, as Kafka gets them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.api import HeaderConverter
from headgate.api.frame import HEADERS, Frame, NotByColumns
from headgate.pipeline.columns.header_bytes import header_bytes

_KNOWN: Final = 1000
"""Headers that are converted once: most are the same in many records."""


def given_headers(converter: HeaderConverter, topic: str, column: pa.Array) -> pa.Array:
    """HEADERS, of a column of lists of structs with `key` and `value`, text or bytes, as a source task gives it."""
    if not pa.types.is_list(column.type) or not pa.types.is_struct(column.type.value_type):
        raise NotByColumns("headers of another type")
    items = column.flatten()
    written = lru_cache(_KNOWN)(lambda key, value: converter.from_connect_header(topic, key, None, value))
    values = pa.array([written(each["key"], each["value"]) for each in items.to_pylist()], pa.binary())
    keys = items.field("key").cast(pa.string())
    made = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    offsets = np.concatenate([[0], np.cumsum(column.value_lengths().fill_null(0).to_numpy())]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), made).cast(HEADERS)


def all_headers(converter: HeaderConverter, topic: str, frame: Frame) -> pa.Array:
    """HEADERS, as Kafka gets them; null where no record has any."""
    headers, count = frame.headers, frame.count
    if not headers.added:
        return pa.nulls(count, HEADERS) if headers.given is None else headers.given
    if headers.given is not None:
        raise NotByColumns("headers of two kinds")
    width = len(headers.added)
    keys = np.tile(np.array([name for name, _ in headers.added], object), count)
    columns = pa.concat_arrays([header_bytes(converter, topic, name, values) for name, values in headers.added])
    # Column by column becomes record by record.
    order = np.arange(count * width).reshape(width, count).T.ravel()
    items = pa.StructArray.from_arrays(
        [pa.array(keys, pa.string()), columns.take(pa.array(order))], fields=list(HEADERS.value_type)
    )
    offsets = pa.array(np.arange(0, (count + 1) * width, width, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, items).cast(HEADERS)
