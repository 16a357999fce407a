"""Libraries that read and write JSON and Avro, beside Headgate's columns, at the same work: orders of 20 fields.

    pip install polars duckdb msgspec pysimdjson      # not needed by Headgate; what is missing is left out
    PYTHONPATH=.:tests/pipeline/registry python bench/libraries.py

Processor time of one process for a record, the median of several turns, and whether all values came out as they should.
Decision 0023 has the figures.
"""

from __future__ import annotations

import io
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final

import fastavro
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from orders import ORDER, order
from registry_stand_in import StandIn

from headgate.api.frame import Group
from headgate.pipeline.columns.as_json import as_json
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.json_value import Options
from headgate.pipeline.converters.registry.avro import AvroConverter

ROWS: Final = 20_000
TURNS: Final = 7
HEADGATE: Final = "Headgate, by columns"

Work = Callable[[], Any]
Way = tuple[str, Work, Callable[[Any], bool]]
"""Who, what it does, and whether what came of it is right."""


class Input:
    """The same orders as texts, as columns, as objects and in Avro."""

    def __init__(self, registry: StandIn) -> None:
        self.json = JsonConverter()
        self.json.configure({"schemas.enable": "false"}, is_key=False)
        self.avro = AvroConverter()
        self.avro.configure({"schema.registry.url": registry.url}, is_key=False)
        orders = [order(number, 100) for number in range(ROWS)]
        self.texts = pa.array([self.json.from_connect("t", each.schema, each) for each in orders], pa.binary())
        self.listed: list[bytes] = self.texts.to_pylist()
        self.values = values_of(ORDER, orders)
        self.column = pa.json.read_json(io.BytesIO(b"\n".join(self.listed))).to_struct_array().combine_chunks()
        """As Arrow guesses the types."""
        self.trees: list[Any] = [json.loads(each) for each in self.listed]
        self.avro_bytes = pa.array([self.avro.from_connect("t", each.schema, each) for each in orders], pa.binary())
        self.avro_schema = json.loads(registry.by_id[1]["schema"])


def reading_json(given: Input) -> Iterator[Way]:
    joined = b"\n".join(given.listed)

    def same(column: Any) -> bool:
        return bool(column.to_pylist() == given.trees)

    def ours(groups: list[Group]) -> bool:
        found = {
            row: tree for each in groups for row, tree in zip(each.rows.to_pylist(), objects(each.values), strict=True)
        }
        return [found[row] for row in range(ROWS)] == given.trees

    yield HEADGATE, lambda: list(given.json.read_columns("t", given.texts)), ours
    yield "pyarrow.json", lambda: pa.json.read_json(io.BytesIO(joined)), same
    yield "orjson, to objects", lambda: [orjson.loads(each) for each in given.listed], lambda it: it == given.trees
    try:
        import msgspec

        decode = msgspec.json.Decoder().decode
        yield "msgspec, to objects", lambda: [decode(each) for each in given.listed], lambda it: it == given.trees
    except ImportError:
        pass
    try:
        import simdjson

        parser = simdjson.Parser()
        yield (
            "pysimdjson, to objects",
            lambda: [parser.parse(each).as_dict() for each in given.listed],
            lambda it: it == given.trees,
        )
    except ImportError:
        pass
    try:
        import polars as pl

        kind = pl.from_arrow(given.column).dtype
        texts = pl.from_arrow(given.texts.cast(pa.string()))
        assert isinstance(texts, pl.Series)
        yield "polars, told the types", lambda: texts.str.json_decode(kind), lambda it: it.to_list() == given.trees
    except ImportError:
        pass
    try:
        import duckdb

        session = duckdb.connect(config={"threads": 1})
        table = pa.table({"text": given.texts.cast(pa.string())})
        session.register("orders", table)
        shape = session.execute("select json_group_structure(text::json) from orders").fetchall()[0][0]
        query = f"select from_json(text, '{shape}') as v from orders"
        yield "DuckDB, told the types", lambda: session.sql(query).to_arrow_table()["v"], same
    except ImportError:
        pass


def writing_json(given: Input) -> Iterator[Way]:
    def same(texts: Any) -> bool:
        listed = texts if isinstance(texts, list) else texts.to_pylist()
        return bool([each.encode() if isinstance(each, str) else each for each in listed] == given.listed)

    yield HEADGATE, lambda: as_json(given.values, Options()), same
    yield "orjson, from objects", lambda: [orjson.dumps(each) for each in given.trees], same
    try:
        import msgspec

        encode = msgspec.json.Encoder().encode
        yield "msgspec, from objects", lambda: [encode(each) for each in given.trees], same
    except ImportError:
        pass
    try:
        import polars as pl

        column = pl.from_arrow(given.column)
        assert isinstance(column, pl.Series)
        yield "polars", lambda: column.struct.json_encode(), lambda it: same(it.to_list())
    except ImportError:
        pass
    try:
        import duckdb

        session = duckdb.connect(config={"threads": 1})
        session.register("orders", pa.table({"v": given.column}))
        yield "DuckDB", lambda: session.sql("select to_json(v) as t from orders").to_arrow_table()["t"], same
    except ImportError:
        pass


def reading_avro(given: Input) -> Iterator[Way]:
    numbers = list(range(ROWS))
    listed = given.avro_bytes.to_pylist()
    schema = fastavro.parse_schema(given.avro_schema)

    def one_by_one() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(each[5:]), schema, None) for each in listed]

    yield (
        HEADGATE,
        lambda: next(iter(given.avro.read_columns("t", given.avro_bytes))),
        lambda it: pc.struct_field(it.values.data, "id").to_pylist() == numbers,
    )
    yield "fastavro, to objects", one_by_one, lambda it: [each["id"] for each in it] == numbers


def measured(work: Work) -> float:
    """Microseconds of processor time for a record."""
    work()
    found = []
    for _ in range(TURNS):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return statistics.median(found) / ROWS * 1e6


def main() -> None:
    with closing(StandIn()) as registry:
        given = Input(registry)
        for what, ways in (("JSON read", reading_json), ("JSON written", writing_json), ("Avro read", reading_avro)):
            for who, work, right in ways(given):
                print(f"| {what} | {who} | {measured(work):.2f} | {'yes' if right(work()) else 'no'} |")


if __name__ == "__main__":
    main()
