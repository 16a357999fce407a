"""Avro: a schema of Avro, with the `arg.properties` that Confluent's generator of random Avro reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.api import Schema, SchemaType, schema
from headgate.connectors.datagen.generator import (
    BadSchema,
    Booleans,
    Choices,
    CountedNumbers,
    Decimals,
    FloatNumbers,
    Generator,
    NullableValues,
    WholeNumbers,
    check_text,
)
from headgate.connectors.datagen.nested import DEEPEST, Arrays, Maps, StructMember, Structs
from headgate.connectors.datagen.pattern import PatternTexts
from headgate.connectors.datagen.recipes import RECIPES
from headgate.connectors.datagen.texts import RandomBytes, Uuids

_PROPERTIES: Final = "arg.properties"
_NULL: Final = 0.5
"""Confluent's chooses a branch of a union as by a coin."""
_LENGTH: Final = (8, 15)
"""Of what says nothing of its length, in characters, bytes, items or entries."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WHOLE: Final = {"int": schema.INT32, "long": schema.INT64}
_FLOATS: Final = {"float": schema.FLOAT32, "double": schema.FLOAT64}
_LOGICAL: Final[Mapping[tuple[str, str], str]] = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "timestamp-millis"): "timestamp",
}
"""Recipes that say what is made of logical types without properties."""
_LETTERS: Final = "[a-z]"


def read_avro(text: str) -> Structs:
    """Raises BadSchema, which names the field."""
    try:
        parsed = json.loads(text)
        check_text(json.dumps(parsed, ensure_ascii=False))
    except BadSchema:
        raise
    except json.JSONDecodeError as error:
        raise BadSchema(f"line {error.lineno}, column {error.colno}: that is no JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise BadSchema("that is no JSON that could be read: too deep, or with too long a number") from None
    made = _Avro().generator(parsed, _Place())
    if not isinstance(made, Structs):
        raise BadSchema("the schema of values is a record")
    return made


@dataclass(frozen=True, slots=True)
class _Place:
    path: str = ""
    namespace: str = ""
    depth: int = 0

    def within(self, name: str, namespace: str | None = None) -> _Place:
        path = f"{self.path}.{name}" if self.path else name
        return _Place(path, self.namespace if namespace is None else namespace, self.depth + 1)

    def wrong(self, reason: object) -> BadSchema:
        return _Wrong(f"field {self.path}: {reason}" if self.path else str(reason))


class _Wrong(BadSchema):
    """With the place in it."""


@dataclass
class _Avro:
    named: dict[str, Generator | None] = field(default_factory=dict)
    """By full name; None while it is read."""

    def generator(self, node: Any, place: _Place) -> Generator:
        if place.depth > DEEPEST:
            raise place.wrong(f"types are at most {DEEPEST} deep")
        try:
            return self._generator(node, place)
        except _Wrong:
            raise
        except BadSchema as error:
            raise place.wrong(error) from None

    def _generator(self, node: Any, place: _Place) -> Generator:
        if isinstance(node, str):
            node = {"type": node}
        if isinstance(node, list):
            return self._union(node, place)
        if not isinstance(node, dict) or "type" not in node:
            raise BadSchema(f"a type is a name, an object with a type, or a union, not {json.dumps(node)[:80]}")
        kind = node["type"]
        if isinstance(kind, dict | list):
            return self.generator(kind, place)
        properties = node.get(_PROPERTIES, {})
        if not isinstance(kind, str) or not isinstance(properties, dict):
            raise BadSchema(f"a type has a name, and {_PROPERTIES} are an object")
        make = _TYPES.get(kind)
        if make is None:
            return self._known(kind, place)
        used = _Used(kind, properties)
        made: Generator = make(self, node, used, place)
        used.check()
        return made

    def _union(self, branches: list[Any], place: _Place) -> Generator:
        others = [branch for branch in branches if branch not in ("null", {"type": "null"})]
        if len(others) != 1 or len(branches) > 2:
            raise BadSchema("a union is of null and one other type")
        made = self.generator(others[0], place)
        return made if len(branches) == 1 else NullableValues.of(made, _NULL)

    def _known(self, name: str, place: _Place) -> Generator:
        full = name if "." in name or not place.namespace else f"{place.namespace}.{name}"
        found = self.named.get(full, self.named.get(name))
        if found is None:
            inside = full in self.named or name in self.named
            raise BadSchema(f"{name} is within itself, which has no end" if inside else f"there is no type {name}")
        return found

    def name(self, node: Mapping[str, Any], place: _Place) -> tuple[str, str]:
        """The full name of a type that has one, and its namespace."""
        name, namespace = node.get("name"), node.get("namespace", place.namespace)
        if not isinstance(name, str) or not all(map(_NAME.fullmatch, name.split("."))):
            raise BadSchema(f"a {node['type']} has a name")
        if "." in name:
            namespace = name.rpartition(".")[0]
        elif isinstance(namespace, str) and namespace:
            name = f"{namespace}.{name}"
        if name in self.named:
            raise BadSchema(f"there are two types {name}")
        self.named[name] = None
        return name, str(namespace)

    # --- types --------------------------------------------------------------------------------------------------------

    def record(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        name, namespace = self.name(node, place)
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise BadSchema("a record has a list of fields")
        members: dict[str, Generator] = {}
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str) or "type" not in each:
                raise BadSchema("a field is an object with a name and a type")
            inner = place.within(each["name"], namespace)
            if not _NAME.fullmatch(each["name"]) or each["name"] in members:
                raise inner.wrong("this is no name, or comes twice")
            members[each["name"]] = self.generator(each["type"], inner)
        made = Structs.of([StructMember(*each) for each in members.items()], name)
        options = used.options(made.schema)
        self.named[name] = options or made
        return options or made

    def enum(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        name, _ = self.name(node, place)
        symbols = node.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise BadSchema("an enum has a list of symbols")
        made = used.options(schema.STRING) or Choices(schema.STRING, symbols)
        if not set(made.options) <= set(symbols):
            raise BadSchema("options of an enum are among its symbols")
        self.named[name] = made
        return made

    def fixed(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        name, _ = self.name(node, place)
        size = _whole(node.get("size"), "the size of a fixed")
        made = _decimals(node, used) or RandomBytes(size, size)
        self.named[name] = made
        return made

    def array(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        made = Arrays.of(self.generator(node.get("items"), place.within("items")), *used.length())
        return used.options(made.schema) or made

    def map(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        keys = _Used("string", used.take("keys", dict) or {})
        made = Maps.of(_texts(keys), self.generator(node.get("values"), place.within("values")), *used.length())
        keys.check()
        return used.options(made.schema) or made

    def boolean(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        odds = used.take("odds")
        return used.options(schema.BOOLEAN) or Booleans(0.5 if odds is None else _number(odds))

    def whole(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        kind, logical = _WHOLE[node["type"]], _LOGICAL.get((node["type"], str(node.get("logicalType"))))
        usual: WholeNumbers | None = None
        if logical is not None:
            made = RECIPES[logical]()
            assert isinstance(made, WholeNumbers)
            kind, usual = made.schema, made
        iteration = used.take("iteration", dict)
        if iteration is not None:
            return _counted(kind, iteration)
        limits = used.range()
        if limits is None:
            most = (1 << (31 if kind.type is SchemaType.INT32 else 63)) - 1
            return used.options(kind) or usual or WholeNumbers(kind, -most - 1, most)
        low, high = (_whole(limit, "a limit") for limit in limits)
        return WholeNumbers(kind, low, high - 1)

    def floating(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        low, high = used.range() or (0.0, 1.0)
        kind = _FLOATS[node["type"]]
        return used.options(kind) or FloatNumbers(kind, _number(low), _number(high))

    def bytes(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        return _decimals(node, used) or RandomBytes(*used.length())

    def string(self, node: Mapping[str, Any], used: _Used, place: _Place) -> Generator:
        return Uuids() if node.get("logicalType") == "uuid" else _texts(used)


_TYPES: Final[Mapping[str, Callable[..., Generator]]] = {
    "record": _Avro.record,
    "enum": _Avro.enum,
    "fixed": _Avro.fixed,
    "array": _Avro.array,
    "map": _Avro.map,
    "boolean": _Avro.boolean,
    "int": _Avro.whole,
    "long": _Avro.whole,
    "float": _Avro.floating,
    "double": _Avro.floating,
    "bytes": _Avro.bytes,
    "string": _Avro.string,
}


# --- properties -------------------------------------------------------------------------------------------------------


@dataclass
class _Used:
    """The properties of a type, and which of them have been asked for: what is left over is not known."""

    of: str
    """The name of the type."""
    given: Mapping[str, Any]
    asked: set[str] = field(default_factory=set)

    def take(self, name: str, kind: type = object) -> Any:
        self.asked.add(name)
        found = self.given.get(name)
        if found is not None and not isinstance(found, kind):
            raise BadSchema(f"{name} in {_PROPERTIES} is not what it should be: {json.dumps(found)[:80]}")
        return found

    def check(self) -> None:
        left = self.given.keys() - self.asked
        if left:
            raise BadSchema(f"{_PROPERTIES} of a {self.of} have no {', '.join(sorted(left))} here, or not together")

    def length(self) -> tuple[int, int]:
        found = self.take("length")
        if found is None:
            return _LENGTH
        if not isinstance(found, dict):
            size = _whole(found, "length")
            return size, size
        least = _whole(found.get("min", 0), "min")
        return least, _whole(found.get("max", least + 16), "max") - 1

    def range(self) -> tuple[Any, Any] | None:
        found = self.take("range", dict)
        if found is None:
            return None
        if found.keys() != {"min", "max"}:
            raise BadSchema("a range has min, and max, which is not part of it")
        return found["min"], found["max"]

    def options(self, kind: Schema) -> Choices | None:
        found = self.take("options")
        if found is None:
            return None
        if not isinstance(found, list):
            raise BadSchema("options are a list here, not a file")
        return Choices(kind, [_option(kind, each) for each in found])


def _texts(used: _Used) -> Generator:
    before, behind = (used.take(name, str) or "" for name in ("prefix", "suffix"))
    options = used.options(schema.STRING)
    if options is not None:
        return Choices(schema.STRING, [f"{before}{option}{behind}" for option in options.options])
    regex = used.take("regex", str)
    if regex is not None:
        return PatternTexts.of(regex, before, behind)
    least, most = used.length()
    return PatternTexts.of(f"{_LETTERS}{{{least},{most}}}", before, behind)


def _counted(kind: Schema, found: Mapping[str, Any]) -> CountedNumbers:
    """Confluent's `restart` is the first number that does not come any more."""
    if not {"start"} <= found.keys() <= {"start", "restart", "step", "initial"}:
        raise BadSchema("an iteration has a start, and may have restart, step and initial")
    numbers = {name: _whole(value, name) for name, value in found.items()}
    start, restart = numbers["start"], numbers.get("restart")
    down = restart is not None and restart < start
    last = None if restart is None else restart + (1 if down else -1)
    ahead = numbers.get("initial", start) - start
    return CountedNumbers(kind, start, numbers.get("step", -1 if down else 1), last, ahead)


def _decimals(node: Mapping[str, Any], used: _Used) -> Decimals | None:
    if node.get("logicalType") != "decimal":
        return None
    used.asked.add("length")
    precision, scale = _whole(node.get("precision"), "precision"), _whole(node.get("scale", 0), "scale")
    if not 0 <= scale <= precision <= 18 or not precision:
        raise BadSchema("a decimal has a precision from 1 to 18 here, and a scale that is not more")
    return Decimals.of(scale, 1 - 10**precision, 10**precision - 1)


def _option(kind: Schema, value: Any) -> Any:
    """Raises BadSchema for one that is not of the type."""
    match kind.type, value:
        case (_, None) if kind.optional:
            return None
        case (SchemaType.STRUCT, dict()) if value.keys() == {each.name for each in kind.fields}:
            return {each.name: _option(each.schema, value[each.name]) for each in kind.fields}
        case (SchemaType.ARRAY, list()) if kind.value_schema:
            return [_option(kind.value_schema, each) for each in value]
        case (SchemaType.MAP, dict()) if kind.value_schema:
            return [(name, _option(kind.value_schema, each)) for name, each in value.items()]
        case (SchemaType.STRING, str()) | (SchemaType.BOOLEAN, bool()):
            return value
        case ((SchemaType.FLOAT32 | SchemaType.FLOAT64), _):
            return _number(value)
        case ((SchemaType.INT32 | SchemaType.INT64), _):
            WholeNumbers(kind, _whole(value, "an option"), value)  # which looks whether it fits
            return value
    raise BadSchema(f"the option {json.dumps(value)[:80]} is none of a {kind.type.value.lower()}")


def _whole(value: Any, what: str) -> int:
    if type(value) is not int:
        raise BadSchema(f"{what} is a whole number, not {json.dumps(value)[:80]}")
    return value


def _number(value: Any) -> float:
    try:
        return float(value) if type(value) in (int, float) else float("")
    except (ValueError, OverflowError):
        raise BadSchema(f"{json.dumps(value)[:80]} is no number, or too large a one") from None
