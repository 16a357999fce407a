"""Values of a struct, all at once: by name, each would be searched for and checked again."""

from __future__ import annotations

from typing import Any

from headgate.api import Schema, Struct


def values_of(struct: Struct) -> list[Any]:
    """As they were set, in the order of the fields; not to be changed."""
    return struct._values


def struct_of(schema: Schema, values: list[Any]) -> Struct:
    """Of values that are known to fit, one for each field."""
    made = Struct.__new__(Struct)
    made.schema = schema
    made._values = values
    return made
