"""Schemas: what they are made of, and a cache for what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Generic, TypeVar

from headgate.api import Schema, SchemaType

K = TypeVar("K")
T = TypeVar("T")

BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
"""Of the integers."""
SCALARS: Final[Mapping[SchemaType, type]] = {
    SchemaType.BOOLEAN: bool,
    SchemaType.STRING: str,
    SchemaType.FLOAT32: float,
    SchemaType.FLOAT64: float,
}
"""The Python types of others that are no containers, bytes left out."""
_CACHED: Final = 16


def inner(schema: Schema) -> list[Schema]:
    """Those of a struct's fields; or of a map's keys and of its values; or of an array's items."""
    within = [member.schema for member in schema.fields]
    return within + [each for each in (schema.key_schema, schema.value_schema) if each is not None]


def has_text_keys(schema: Schema) -> bool:
    """Whether this is a map that the formats of a registry write as one: its keys are strings and never null."""
    keys = schema.key_schema
    return keys is not None and keys.type is SchemaType.STRING and not keys.optional


class SchemaCache(Generic[T]):
    """What is made of a schema, made once for the many records that have it; of the last 16 schemas. To hash a schema
    takes long, so its identity is tried first."""

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = lru_cache(_CACHED)(make)
        self._by_id: dict[int, tuple[Schema, T]] = {}

    def __call__(self, schema: Schema) -> T:
        # The schema is kept beside the result, so no other one can have its id.
        found = self._by_id.get(id(schema))
        return found[1] if found is not None else self._look_up(schema)

    def _look_up(self, schema: Schema) -> T:
        made = self._make(schema)
        self._by_id[id(schema)] = schema, made
        if len(self._by_id) > _CACHED:
            del self._by_id[next(iter(self._by_id))]
        return made


class Cache(Generic[K, T]):
    """Forgets everything when full, which is rare enough, and costs nothing when not."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: dict[K, T] = {}

    def get(self, key: K, build: Callable[[], T]) -> T:
        found = self._items.get(key)
        if found is None:
            found = build()
            if len(self._items) >= self._size:
                self._items.clear()
            if self._size > 0:
                self._items[key] = found
        return found
