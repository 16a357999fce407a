"""SchemaCache: what is made of a schema, made once for the many records that have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from headgate.api import Schema

T = TypeVar("T")

_SIZE: Final = 16


class SchemaCache(Generic[T]):
    """Remembers results for the last 16 schemas. To hash a schema takes long, so its identity is tried first."""

    def __init__(self, make: Callable[[Schema], T]) -> None:
        self._make = make
        self._by_id: dict[int, tuple[Schema, T]] = {}
        self._by_value: dict[Schema, T] = {}

    def __call__(self, schema: Schema) -> T:
        # The schema is kept beside the result, so no other one can have its id.
        found = self._by_id.get(id(schema))
        return found[1] if found is not None else self._look_up(schema)

    def _look_up(self, schema: Schema) -> T:
        made = self._by_value.pop(schema, None)
        if made is None:
            made = self._make(schema)
        self._by_value[schema] = made  # now the youngest
        self._by_id[id(schema)] = schema, made
        _shorten(self._by_value)
        _shorten(self._by_id)
        return made


def _shorten(kept: dict[Any, Any]) -> None:
    if len(kept) > _SIZE:
        del kept[next(iter(kept))]
