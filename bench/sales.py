"""Sales: flat records of nine fields, one of which has ten values, with a schema, as JsonConverter writes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from headgate.api import Struct
from headgate.api.schema import BOOLEAN, FLOAT64, INT32, INT64, OPTIONAL_STRING, STRING, TIMESTAMP, struct
from headgate.pipeline.converters.json import JsonConverter

SALE: Final = struct(
    {
        "id": INT64,
        "region": STRING,
        "product": STRING,
        "customer": INT64,
        "pieces": INT32,
        "price": FLOAT64,
        "paid": BOOLEAN,
        "sold": TIMESTAMP,
        "note": OPTIONAL_STRING,
    },
    name="bench.Sale",
)
FIELDS: Final = tuple(field.name for field in SALE.fields)
REGIONS: Final = 10
_FIRST: Final = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_FIRST_MS: Final = int(_FIRST.timestamp() * 1000)
_LEAST: Final = 150
"""Bytes of a sale without note, as JSON without its schema."""


def sale(number: int, size: int) -> Struct:
    """Its note makes it as large as it is to be, if that is larger than it must be."""
    values: list[Any] = [
        *(number, f"region-{number % REGIONS}", f"product-{number % 5000:05d}", number % 100_000),
        *(number % 9 + 1, number % 1000 + 0.25, number % 5 != 0, _FIRST + dt.timedelta(seconds=number)),
        None if number % 4 else "x" * max(4, size - _LEAST),
    ]
    return Struct.of(SALE, values)


def sales_in_json(size: int, registry: str) -> Callable[[int], bytes]:
    """As the converter would write them, but quicker: there are millions."""
    converter = JsonConverter()
    converter.configure({}, is_key=False)
    written = converter.from_connect("sales", SALE, sale(0, size))
    assert written is not None
    head = written[: written.index(b'"payload":')].decode()
    note = f'"{"x" * max(4, size - _LEAST)}"'

    def write(number: int) -> bytes:
        return (
            f'{head}"payload":{{"id":{number},"region":"region-{number % REGIONS}",'
            f'"product":"product-{number % 5000:05d}","customer":{number % 100_000},"pieces":{number % 9 + 1},'
            f'"price":{number % 1000 + 0.25},"paid":{"true" if number % 5 else "false"},'
            f'"sold":{_FIRST_MS + number * 1000},"note":{"null" if number % 4 else note}}}}}'
        ).encode()

    return write
