"""FieldPath: where a field is, by its name (syntax V1) or by the names on the way to it (V2, KIP-821)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import HIGH, STRING, ConfigError, DataError, Key, Schema, SchemaType, Struct, one_of_any_case
from headgate.api.frame import Values
from headgate.pipeline.columns.structs import fields_of, with_default
from headgate.pipeline.transforms.structs import require_map, require_struct

SYNTAX: Final = Key(
    "field.syntax.version",
    STRING,
    default="V1",
    validator=one_of_any_case("V1", "V2"),
    importance=HIGH,
    doc="How fields are named: V1 takes the name of a field at the top level as it stands, V2 takes a path with dots "
    "into nested structs and maps. Back-ticks around a name keep the dots in it.",
)
_NESTED: Final = "nested field access"


@dataclass(frozen=True, slots=True)
class FieldPath:
    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, version: str) -> FieldPath:
        """Raises ConfigError."""
        if version.upper() == "V1":
            return cls((text,))
        if not text:
            raise ConfigError("Field path must not be empty")
        return cls(_steps(text))

    def field_of(self, schema: Schema) -> Schema | None:
        """The schema of the field, or None when there is no such field. Raises DataError."""
        found: Schema | None = schema
        for step in self.steps:
            assert found is not None
            if found.type is not SchemaType.STRUCT:
                raise DataError("Cannot look up fields on non-struct type")
            member = found.field(step)
            if member is None:
                return None
            found = member.schema
        return found

    def in_map(self, value: Mapping[str, Any]) -> Any:
        """The value at the path, or None where it ends early."""
        found: Any = value
        for position, step in enumerate(self.steps):
            found = (require_map(found, _NESTED) if position else found).get(step)
            if found is None:
                return None
        return found

    def in_struct(self, value: Struct, *, replace_null: bool) -> Any:
        found: Any = value
        for step in self.steps:
            parent = require_struct(found, _NESTED)
            found = parent[step] if replace_null else parent.get_without_default(step)
            if found is None:
                return None
        return found

    def in_columns(self, values: Values, *, replace_null: bool) -> Values:
        """The same for structs or maps in a column. Raises NotByColumns where there is something else."""
        found = values
        for step in self.steps:
            field = fields_of(found).get(step)
            if field is None:
                return Values.nulls(len(values))
            found = with_default(field, found) if replace_null and field.schema is not None else field
        return found


def _steps(path: str) -> tuple[str, ...]:
    steps = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted(path, at)
        else:
            dot = path.find(".", at)
            end = dot if dot >= 0 else len(path)
            step, at = path[at:end], end + 1
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return tuple(steps)


def _quoted(path: str, opened: int) -> tuple[str, int]:
    """A name in back-ticks, and where the next one starts. Only a back-tick before a dot or the end closes it, and only
    such a one needs an escape."""
    name = ""
    start = at = opened + 1
    while (at := path.find("`", at)) >= 0:
        last = at == len(path) - 1
        escaped = path[at - 1] == "\\"
        if last and not escaped:
            return name + path[start:at], at + 1
        if not last and path[at + 1] == ".":
            if not escaped:
                return name + path[start:at], at + 2
            name += path[start : at - 1] + "`"
            start = at + 1
        at += 1
    raise ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position"
        f" {opened} to escape it"
    )
