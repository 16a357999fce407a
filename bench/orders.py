"""Orders: 20 fields at three levels with a schema of Connect's, as JsonConverter and AvroConverter write them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from headgate.api import Converter, Struct
from headgate.api.schema import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    array,
    struct,
)
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.registry.avro import AvroConverter

ADDRESS: Final = struct(
    {"street": STRING, "city": STRING, "postcode": STRING, "country": OPTIONAL_STRING}, name="bench.Address"
)
CUSTOMER: Final = struct(
    {"id": INT64, "name": STRING, "vip": BOOLEAN, "since": INT32.as_optional(), "address": ADDRESS},
    name="bench.Customer",
)
ORDER: Final = struct(
    {
        "id": INT64,
        "code": STRING,
        "placed": TIMESTAMP,
        "paid": BOOLEAN,
        "total": FLOAT64,
        "weight": FLOAT32,
        "pieces": INT32,
        "tags": array(STRING),
        "coupon": OPTIONAL_STRING,
        "customer": CUSTOMER,
        "note": OPTIONAL_STRING,
    },
    name="bench.Order",
)
_FIRST: Final = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_LEAST: Final = 400
"""Bytes of an order without note, as JSON without its schema."""


def order(number: int, size: int) -> Struct:
    """Its note makes it as large as it is to be; without one it is as small as it can be."""
    address = [f"{number % 97} Long Street", "Springfield", f"{number % 100_000:05d}", "DE" if number % 2 else None]
    since = None if number % 3 else 1990 + number % 30
    customer = [number % 10_000, f"customer {number % 10_000:05d}", number % 7 == 0, since, Struct.of(ADDRESS, address)]
    values: list[Any] = [
        *(number, f"order-{number:09d}", _FIRST + dt.timedelta(seconds=number), number % 5 != 0),
        *(number % 1000 + 0.25, number % 50 + 0.5, number % 9 + 1, ["new", "web", f"week-{number % 52}"]),
        *(None if number % 4 else "spring", Struct.of(CUSTOMER, customer)),
        "x" * (size - _LEAST) if size > _LEAST else None,
    ]
    return Struct.of(ORDER, values)


def orders_in_json(size: int, registry: str) -> Callable[[int], bytes]:
    return _written(JsonConverter(), {}, size)


def orders_in_avro(size: int, registry: str) -> Callable[[int], bytes]:
    return _written(AvroConverter(), {"schema.registry.url": registry}, size)


def _written(converter: Converter, config: dict[str, str], size: int) -> Callable[[int], bytes]:
    converter.configure(config, is_key=False)

    def write(number: int) -> bytes:
        data = converter.from_connect("orders", ORDER, order(number, size))
        assert data is not None
        return data

    return write
