"""Casts of columns: each value becomes what it becomes alone, or its row is refused."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from frame_lots import FLOATS, TEXTS, fitting, shaped
from frame_support import attempt, exact
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api import DataError, Schema, SchemaType
from headgate.api import schema as s
from headgate.api.frame import Values, arrow_type
from headgate.java.numbers import float32
from headgate.pipeline.columns.casts import cast_values
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.transforms.casts import TARGETS, cast_to

PLAIN: Final = [Schema(kind) for kind in SchemaType if kind.value not in ("ARRAY", "MAP", "STRUCT")]
LOGICAL: Final = [s.DATE, s.TIME, s.TIMESTAMP, *map(s.decimal, (0, 2, 6, 7, 18, 19, 22, 23, 38))]
NESTED: Final = [s.array(s.INT8), s.mapping(s.STRING, s.INT8), s.struct({"a": s.INT8})]
SHAPES: Final = [pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.list_(pa.int64())]


def assert_casts(values: Values, target: SchemaType) -> int:
    """How many rows were refused."""
    cast = cast_to(target, values.schema)
    expected, failing = [], []
    for item in objects(values):
        try:
            expected.append(cast(item))
            failing.append(False)
        except DataError:
            failing.append(True)
    made, refused = attempt(lambda: cast_values(values, target))
    if refused is not None:
        assert refused == failing
        return assert_casts(values.where(pa.array([not each for each in failing])), target) + sum(failing)
    made.validate(full=True)
    if values.schema is not None:
        assert made.type == arrow_type(Schema(target))
    assert exact(made.to_pylist()) == exact(expected)
    return 0


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=settings().max_examples // 4)
@given(rng=st.randoms(use_true_random=True))
def test_every_cast_gives_what_it_gives_for_one_value(target: SchemaType, rng: Random) -> None:
    for schema in [*PLAIN, *LOGICAL, *NESTED]:
        schema = schema.as_optional()
        drawn = [fitting(rng, schema, lacking=False) for _ in range(9)]
        assert_casts(Values(values_of(schema, drawn).data.slice(1), schema), target)
    for shape in SHAPES:
        assert_casts(Values(pa.array([shaped(rng, shape, 0.1) for _ in range(9)], shape).slice(1)), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("schema", "items"),
    [
        (s.STRING, [*TEXTS, "9" * 15, "9" * 16, "9" * 18, "9" * 19, "-" + "9" * 18, "0.1", "1" * 15 + "." + "9" * 17]),
        (s.FLOAT64, [*FLOATS, *(2.0**power for power in range(-30, 70)), 0.30000000000000004, 123456.789]),
        (s.FLOAT32, [*map(float32, FLOATS), *(2.0**power for power in range(-30, 70))]),
        (s.INT64, [0, 1, -1, 127, 128, -129, 2**24 + 1, 2**31, 2**40 + 2**15 + 1, 2**53 + 1, 2**63 - 1, -(2**63)]),
        (s.decimal(2), [Decimal(each).scaleb(-2) for each in (0, -1, 150, -12899, 2**53, 2**53 + 1, -(2**70), 10**27)]),
        (s.decimal(38), [Decimal(each).scaleb(-38) for each in (0, -1, 10**20, 2**63)]),
    ],
    ids=lambda each: each.type.value if isinstance(each, Schema) else "",
)
def test_edges(schema: Schema, items: Sequence[Any], target: SchemaType) -> None:
    assert_casts(values_of(schema, list(items)), target)
    shape = {s.STRING: pa.string(), s.FLOAT64: pa.float64(), s.INT64: pa.int64()}.get(schema)
    if shape is not None:
        assert_casts(Values(pa.array(items, shape)), target)


@given(st.lists(st.floats(), min_size=1) | st.lists(st.floats(1e-4, 1e8), min_size=1))
def test_text_of_floats(items: list[float]) -> None:
    assert assert_casts(Values(pa.array(items, pa.float64())), SchemaType.STRING) == 0


def test_text_of_floats_of_32_bits() -> None:
    # At powers of two the next float is nearer below than above: there the shortest text is not always the nearest.
    near = [np.nextafter(np.float32(2.0**power), np.float32(way)) for power in range(-40, 40) for way in (0, 9e30)]
    bits = np.random.default_rng(7).integers(0, 2**32, 3000, np.uint32).view(np.float32)
    some = np.random.default_rng(8).uniform(-1e6, 1e6, 2000).astype(np.float32)
    items = [2.0**power for power in range(-40, 40)] + [float(each) for each in (*near, *bits, *some)]
    assert assert_casts(values_of(s.FLOAT32, items), SchemaType.STRING) == 0


@given(st.lists(st.from_regex(r"\A-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?\Z"), min_size=1, max_size=5))
def test_numbers_in_text(items: list[str]) -> None:
    for target in (SchemaType.FLOAT32, SchemaType.FLOAT64, SchemaType.INT64, SchemaType.INT8):
        assert_casts(values_of(s.STRING, items), target)


@pytest.mark.parametrize(
    ("schema", "items", "target", "expected"),
    [
        (s.INT32, [300, None], SchemaType.INT8, [44, None]),
        (s.FLOAT64, [3.99, -1e300], SchemaType.INT32, [3, -(2**31)]),
        (s.STRING, ["12", "-7", "007"], SchemaType.INT32, [12, -7, 7]),
        (s.STRING, ["+5", "٣"], SchemaType.INT64, [5, 3]),
        (s.STRING, ["True", "yes"], SchemaType.BOOLEAN, [True, False]),
        (s.FLOAT64, [1e7, 0.5, 2.0], SchemaType.STRING, ["1.0E7", "0.5", "2.0"]),
        (s.decimal(2), [Decimal("1.50"), Decimal("-0.10")], SchemaType.STRING, ["1.50", "-0.10"]),
        (s.decimal(2), [Decimal("1.51"), None], SchemaType.FLOAT64, [1.51, None]),
        (s.BYTES, [b"x", b""], SchemaType.STRING, ["eA==", ""]),
    ],
)
def test_usual_casts_go_by_columns(schema: Schema, items: list[Any], target: SchemaType, expected: list[Any]) -> None:
    given = values_of(schema.as_optional(), items)
    assert cast_values(given, target).to_pylist() == expected
    assert assert_casts(given, target) == 0


def test_only_the_rows_that_fail_are_refused() -> None:
    _, refused = attempt(lambda: cast_values(Values(pa.array(["1", "x", None, "300"])), SchemaType.INT8))
    assert refused == [False, True, False, True]
