"""Texts of JSON in batches of one kind, with a few others among them, and schemas for them; drawn by Hypothesis."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from sink_strategies import FLOATS, INTEGERS, NAMES, ODD, STRINGS, WRITERS

from headgate.api import Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import arrow_type
from headgate.pipeline.columns.objects import objects
from headgate.pipeline.converters.json import JsonConverter

Draw = Callable[[st.DrawFn], Any]

TEXTS = STRINGS | st.sampled_from(['"', "\\", '\\"', "]}", "[{", ",", "\n", "a: b, c", "null", "é😀", "😀" * 3, "\x7f"])
SCALARS: Final[Sequence[st.SearchStrategy[Any]]] = (INTEGERS, FLOATS, TEXTS, st.booleans(), st.none())


def converter(**config: str) -> JsonConverter:
    """With a dot for each underscore."""
    made = JsonConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, is_key=False)
    return made


def exact(value: Any) -> Any:
    """The value with its types, and with the order of what is in it."""
    if isinstance(value, Struct):
        return Struct, [exact(item) for item in value.values]
    if isinstance(value, dict):
        return dict, [(exact(key), exact(item)) for key, item in value.items()]
    if isinstance(value, list):
        return list, [exact(item) for item in value]
    return type(value), repr(value)


def by_columns(made: JsonConverter, data: pa.Array) -> dict[int, tuple[Schema | None, Any]]:
    """What the columns say of those rows that are in one."""
    found: dict[int, tuple[Schema | None, Any]] = {}
    for group in made.read_columns("t", data):
        rows, schema = group.rows.to_pylist(), group.values.schema
        assert rows == sorted(rows)
        assert not found.keys() & set(rows)
        group.values.data.validate(full=True)
        if schema is not None:
            assert group.values.data.type == arrow_type(schema)
        found.update(zip(rows, ((schema, item) for item in objects(group.values)), strict=True))
    return found


def check(made: JsonConverter, data: pa.Array) -> int:
    """Says how many rows are in a column, all of them as `to_connect` has them."""
    found = by_columns(made, data)
    for row, (schema, value) in found.items():
        one = made.to_connect("t", data[row].as_py())
        assert (schema, exact(value)) == (one[0], exact(one[1])), data[row]
    return len(found)


@st.composite
def columns(draw: st.DrawFn, texts: Sequence[bytes | None]) -> pa.Array:
    """Of these texts, and maybe only a slice of something longer."""
    before, behind = draw(st.sampled_from([((), ()), ((b"[",), (b'"',)), ((None, b"x" * 9), ())]))
    return pa.array([*before, *texts, *behind], pa.binary()).slice(len(before), len(texts))


# --- without schema ---------------------------------------------------------------------------------------------------


def _kinds(depth: int) -> st.SearchStrategy[st.SearchStrategy[Any]]:
    """Strategies for values of one kind each."""
    scalars = st.sampled_from(SCALARS)
    if depth == 0:
        return scalars
    inner = _kinds(depth - 1)
    lists = inner.map(lambda kind: st.lists(kind, max_size=3))
    objects = st.dictionaries(st.sampled_from(NAMES), inner, max_size=4).map(st.fixed_dictionaries)
    with_nulls = (lists | objects).map(lambda kind: st.none() | kind)
    return scalars | lists | objects | with_nulls


@st.composite
def plain_batches(draw: st.DrawFn) -> list[bytes | None]:
    """Most of them of one or two kinds."""
    write = draw(st.sampled_from(WRITERS))
    values: list[bytes | None] = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(_kinds(3))
        values += [write(draw(kind)).encode(errors="replace") for _ in range(draw(st.integers(1, 6)))]
    values = draw(st.permutations(values))
    for place in draw(st.lists(st.integers(0, len(values)), max_size=2)):
        values.insert(place, draw(ODD))
    return values


# --- with schema ------------------------------------------------------------------------------------------------------

DECIMALS = st.integers(-(10**40), 10**40) | st.integers(-(10**6), 10**6)
_WHOLE: Final = (
    st.integers(-130, 130)
    | st.integers(-40000, 40000)
    | st.integers(-(2**63), 2**63 - 1)
    | st.sampled_from([2**31, -(2**31) - 1, 86_399_999, 86_400_000, 2932896, 2932897, -719162, -719163, 2**63])
)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unscaled(value: int) -> str:
    return _base64(value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


LEAVES: Final[Sequence[tuple[Schema, st.SearchStrategy[Any]]]] = (
    *((kind, _WHOLE) for kind in (s.INT8, s.INT16, s.INT32, s.INT64, s.DATE, s.TIME, s.TIMESTAMP)),
    *((kind, FLOATS | st.integers(-(10**20), 10**20)) for kind in (s.FLOAT32, s.FLOAT64)),
    (s.BOOLEAN, st.booleans()),
    (s.STRING, TEXTS),
    (s.BYTES, st.binary(max_size=8).map(_base64) | st.sampled_from(["a", "aGk", "aGl=", "aG==", "====", "a b="])),
    *((s.decimal(scale), DECIMALS.map(_unscaled)) for scale in (0, 2, 20)),
    (s.decimal(2), st.sampled_from([0.5, 1.25, -1.25, 12.5, 3])),
)
NASTY = st.sampled_from([None, None, 1.5, -0.0, "x", "", True, 2**70, 10**120, [], [1], {}, {"a": 1}])


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> tuple[Schema, st.SearchStrategy[Any]]:
    """A schema, and JSON that is of it."""
    kinds = ["leaf", "leaf", "struct", "array", "map"] if depth else ["leaf"]
    kind = draw(st.sampled_from(kinds))
    inner = schemas(depth=depth - 1)
    if kind == "leaf":
        schema, values = draw(st.sampled_from(LEAVES))
        default = draw(st.none() | st.sampled_from(_DEFAULTS.get(schema, [None])))
        schema = replace(schema, default=default)
    elif kind == "struct":
        fields = draw(st.dictionaries(st.sampled_from(NAMES), inner, max_size=4))
        schema = s.struct({name: found for name, (found, _) in fields.items()}, name=draw(st.sampled_from([None, "S"])))
        values = st.fixed_dictionaries({name: each for name, (_, each) in fields.items()})
    elif kind == "array":
        item, each = draw(inner)
        schema, values = s.array(item), st.lists(each, max_size=3)
    else:
        item, each = draw(inner)
        keys = draw(st.sampled_from([s.STRING, s.STRING, s.INT32]))
        schema = s.mapping(keys, item)
        values = st.dictionaries(TEXTS, each, max_size=3) if keys is s.STRING else st.just([])
    if draw(st.booleans()):
        return schema.as_optional(), values | st.none()
    return schema, values


_DEFAULTS: Final[dict[Schema, list[Any]]] = {
    s.INT8: [1],
    s.INT64: [-(2**63)],
    s.FLOAT32: [0.5],
    s.FLOAT64: [-0.0],
    s.STRING: ["", "dé"],
    s.BYTES: [b"\x00"],
}


def _spoilt(draw: st.DrawFn, tree: Any) -> Any:
    """The same, or with something in it that is missing, more, at another place, or not as it should be."""
    if draw(st.integers(0, 14)) == 0:
        return draw(NASTY)
    if isinstance(tree, list):
        return [_spoilt(draw, item) for item in tree]
    if isinstance(tree, dict):
        tree = {name: _spoilt(draw, item) for name, item in tree.items()}
        if draw(st.integers(0, 14)) == 0:
            change = draw(st.sampled_from(["drop", "add", "turn"]))
            if change == "drop":
                return dict([*tree.items()][1:])
            return {**tree, "zz": draw(NASTY)} if change == "add" else dict([*tree.items()][::-1])
    return tree


@st.composite
def typed_batches(draw: st.DrawFn) -> tuple[Schema, list[str], Callable[[Any], str]]:
    """A schema, texts of it, and how they are written."""
    schema, values = draw(schemas())
    write = draw(st.sampled_from(WRITERS))
    trees = [draw(values) for _ in range(draw(st.integers(1, 6)))]
    if draw(st.booleans()):  # all of them in the same way
        trees = [{**tree, "zz": 1} if isinstance(tree, dict) else tree for tree in trees]
    return schema, [write(_spoilt(draw, tree)) for tree in trees], write
