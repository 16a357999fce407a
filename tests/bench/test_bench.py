"""What the benchmark decides without a broker: its table, its picture, its workloads and what they read."""

from __future__ import annotations

import json
import re
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from inputs import OBJECTS, ORDERS_IN_AVRO, ORDERS_IN_JSON, SALES, TEXTS, Input, Inputs
from orders import ORDER, order
from plot import Bar, drawn
from registry import Registry
from sales import SALE, sale
from side import APACHE, HEADGATE
from table import BESIDE_OTHERS, Line
from topics import Topics
from turn import Quantity
from workloads import WORKLOADS

from headgate.api import Schema
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.registry.avro import AvroConverter

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    running = Registry()
    yield running
    running.close()


def line(quantity: Quantity, ours: list[float], theirs: list[float]) -> Line:
    return Line(quantity, {HEADGATE: ours, APACHE: theirs})


def inputs(lines: int | None = None, size: int = 100, registry: str = "") -> Inputs:
    return Inputs(cast(Topics, None), Path(), registry, lines, size)


# --- the table and its picture ----------------------------------------------------------------------------------------


def test_a_ratio_is_that_of_the_medians_and_rounds_are_pairs() -> None:
    assert line(Quantity.RATE, [10, 30, 20], [10, 10, 40]).cells()[2:] == [
        "rate 2.00 \N{MULTIPLICATION SIGN} (more is better)",
        "0.50 to 3.00",
    ]


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], []), ([], [1.0]), ([1.0], [0.0])])
def test_without_both_sides_there_is_no_ratio_and_no_bar(ours: list[float], theirs: list[float]) -> None:
    one = line(Quantity.TIME, ours, theirs)
    assert one.cells()[2:] == ["-", "-"]
    assert one.bars("x") == []


def test_bars_tell_how_many_times_better_whichever_way_that_is() -> None:
    assert line(Quantity.RATE, [8], [2]).bars("x") == [Bar("rate", "x", 4)]
    assert line(Quantity.CPU, [8], [2]).bars("x") == [Bar("CPU", "x", 0.25)]


def test_the_picture_has_better_to_the_right_and_worse_to_the_left() -> None:
    picture = ET.fromstring(drawn([Bar("rate", "a & b", 4), Bar("CPU", "c", 0.5), Bar("rate", "d", 1)]))
    of = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in picture.iter(f"{of}text")][1:] == [
        *("rate", "a & b", "4.00", "d", "1.00"),
        *("CPU", "c", "0.50"),
    ]
    middle = float(re.findall(r"M([\d.]+)", picture.find(f"{of}path").get("d"))[0])  # type: ignore[union-attr,arg-type]
    better, same, worse = [
        (float(bar.get("x", "")), float(bar.get("width", ""))) for bar in list(picture.iter(f"{of}rect"))[1:]
    ]
    assert sum(worse) == middle
    assert better == (middle, 2 * worse[1])
    assert same == (middle, 0)


# --- workloads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORKLOADS)
def test_both_sides_get_the_same_connector_where_nothing_else_is_said(name: str) -> None:
    workload = WORKLOADS[name]
    ours, theirs = (workload.config_of(kind, "http://r") for kind in (HEADGATE, APACHE))
    differ = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    assert differ == {key for each in workload.only.values() for key in each}
    assert not any("<" in value for value in ours.values())
    assert ("http://r" in ours.values()) is workload.needs_registry


def test_the_page_names_every_workload() -> None:
    told = re.findall(r"^\| `([a-z]+-[a-z]+)` \| `", _PAGE.read_text(), re.MULTILINE)
    assert told == list(WORKLOADS)


def test_the_page_names_every_row_beside_others() -> None:
    assert [name for name in BESIDE_OTHERS if f"| `{name}`, by name only |" not in _PAGE.read_text()] == []


# --- what they read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "size", "count"), [(None, 100, 2_000_000), (None, 1000, 1_000_000), (None, 10_000, 100_000), (7, 100, 7)]
)
def test_of_large_records_there_are_fewer_unless_told(lines: int | None, size: int, count: int) -> None:
    assert inputs(lines, size).count(TEXTS) == count


@pytest.mark.parametrize("size", [100, 1000, 10_000])
@pytest.mark.parametrize("kind", [TEXTS, OBJECTS], ids=["texts", "objects"])
def test_lines_are_as_long_as_they_are_to_be(kind: Input, size: int) -> None:
    record = kind.records(size, "")
    assert {len(record(number)) + 1 for number in (0, 1, 1_999_999)} == {size}


def levels(schema: Schema) -> list[int]:
    """How many fields there are at each level."""
    inner = [levels(field.schema) for field in schema.fields if field.schema.fields]
    return [len(schema.fields), *map(sum, zip(*inner, strict=True))]


def test_orders_have_twenty_fields_at_three_levels() -> None:
    assert levels(ORDER) == [11, 5, 4]


@pytest.mark.parametrize("size", [100, 1000, 10_000])
@pytest.mark.parametrize("kind", [ORDERS_IN_JSON, ORDERS_IN_AVRO], ids=["json", "avro"])
def test_orders_can_be_read_again(kind: Input, size: int, registry: Registry) -> None:
    converter: Any = JsonConverter() if kind is ORDERS_IN_JSON else AvroConverter()
    converter.configure({"schema.registry.url": registry.url}, is_key=False)
    record = kind.records(size, registry.url)
    for number in range(13):
        assert converter.to_connect("t", record(number)) == (ORDER, order(number, size))


@pytest.mark.parametrize("size", [100, 1000])
def test_sales_are_what_the_converter_writes(size: int) -> None:
    converter, record = JsonConverter(), SALES.records(size, "")
    converter.configure({}, is_key=False)
    for number in (0, 1, 4, 999_999):
        assert record(number) == converter.from_connect("t", SALE, sale(number, size))


@pytest.mark.parametrize("size", [1000, 10_000])
def test_orders_are_about_as_large_as_they_are_to_be(size: int) -> None:
    record = ORDERS_IN_JSON.records(size, "")
    for number in (0, 299_999):
        payload = record(number).partition(b'"payload":')[2]
        assert size * 0.9 < len(payload) < size * 1.1


def test_a_schema_that_one_side_wrote_is_found_by_the_other(registry: Registry) -> None:
    def ask(path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{registry.url}/{path}", data) as answer:
            return json.load(answer)

    schema = {"type": "record", "name": "R", "fields": []}
    made = ask("apis/registry/v2/groups/default/artifacts?ifExists=RETURN_OR_UPDATE", schema)
    assert json.loads(ask(f"schemas/ids/{made['globalId']}")["schema"]) == schema
    assert ask(f"apis/registry/v2/ids/globalIds/{made['globalId']}") == schema
    assert ask(f"apis/registry/v2/ids/globalIds/{made['globalId']}/references") == []
