"""A million random batches, by columns and record by record: what comes of them must be the same.

`make same` runs it. The property tests look at a few hundred batches for every change; this is for an hour when nobody
needs the machine. Number 7 of a seed is always the same: `make same ARGS="--seed 1 --only 7"` shows it again.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
from frame_lots import BYTES, a_frame, a_schema, fitting, some_values
from frame_support import assert_decides_the_same, assert_same
from json_strategies import check
from pipeline_plugins import TEXT, chain_spec, consumed, plugin
from registry_columns import by_columns, by_records
from registry_stand_in import StandIn
from registry_support import configured as with_registry
from sink_strategies import TOLERANT, run
from test_converter_columns import READERS, assert_same_read, assert_same_written, from_connect
from test_registry_protobuf_columns import but_for_order
from test_transform_columns_same import PREDICATES, TRANSFORMS, a_config
from transform_support import configured

from headgate.api import ConfigError, Form
from headgate.api.frame import NotByColumns
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.columns import json_groups, reading
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.registry.avro import AvroConverter
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter
from headgate.pipeline.sink_chain import Kind, Output, SinkChain

Work = Callable[[Random], int]
"""It says how many batches were compared."""

_TOLD_EVERY_S: Final = 60.0
_SCHEMAS: Final = 2_000
"""After so many batches, registries and converters begin anew: each remembers all schemas that it has met."""
_DAMAGE: Final = [b"\0", b"\xff", b"\x80", b'"', b"{", b"}", b",", b"1", b"-", b" ", b"e", b".", b"null"]


def damaged(rng: Random, data: bytes | None) -> bytes | None:
    """Most stay as they are."""
    if not data or rng.random() < 0.85:
        return data
    place = rng.randrange(len(data))
    kept = data[place + rng.choice([0, 1]) :] if rng.random() < 0.8 else b""
    return data[:place] + rng.choice([b"", *_DAMAGE]) + kept


def mixed(rng: Random, *lots: Sequence[bytes | Exception | None]) -> list[bytes | None]:
    """Of all of them, in any order, some more than once, some damaged."""
    found = [each for lot in lots for each in lot if not isinstance(each, Exception)]
    return [damaged(rng, rng.choice(found)) for _ in range(rng.randint(1, 8))] if found else []


# --- what is compared -------------------------------------------------------------------------------------------------


def transformed(rng: Random) -> int:
    classes, keys = rng.choice(TRANSFORMS)
    frame = a_frame(rng)
    try:
        transform = configured(rng.choice(classes), a_config(rng, keys))
    except ConfigError:
        return 0
    assert_same(transform, frame)
    return 1


def decided(rng: Random) -> int:
    cls, configs = rng.choice(PREDICATES)
    predicate = cls()
    predicate.configure(rng.choice(configs))
    assert_decides_the_same(predicate, a_frame(rng))
    return 1


def _json(rng: Random) -> dict[str, str]:
    return {
        "schemas.enable": rng.choice(["true", "false"]),
        "decimal.format": rng.choice(["BASE64", "NUMERIC"]),
        "replace.null.with.default": rng.choice(["true", "false"]),
    }


def json_texts(rng: Random, config: dict[str, str]) -> list[bytes | None]:
    """Of two kinds of values, as they are written."""
    converter, lots = JsonConverter(), []
    converter.configure(config, is_key=False)
    for _ in range(2):
        values = some_values(rng, rng.randint(1, 4))
        assert_same_written(converter, values)
        lots.append(from_connect(converter, values))
    return mixed(rng, *lots)


def json_written_and_read(rng: Random) -> int:
    config = _json(rng)
    texts = json_texts(rng, config)
    reader = JsonConverter()
    reader.configure(config, is_key=False)
    check(reader, pa.array([b"[", *texts, b'"'], pa.binary()).slice(1, len(texts)))
    return 2 + bool(texts)


def plain_written_and_read(rng: Random) -> int:
    converter = rng.choice(READERS)()
    converter.configure({}, is_key=False)
    values = some_values(rng, rng.randint(1, 6))
    assert_same_written(converter, values)
    assert_same_read(converter, pa.array(mixed(rng, from_connect(converter, values), BYTES), pa.binary()))
    return 2


def _step(rng: Random) -> StepSpec | None:
    classes, keys = rng.choice(TRANSFORMS)
    cls, config = rng.choice(classes), a_config(rng, keys)
    try:
        configured(cls, config)
    except ConfigError:
        return None
    guard: PluginSpec | None = None
    if rng.random() < 0.3:
        predicate, configs = rng.choice(PREDICATES)
        guard = plugin(predicate, dict(rng.choice(configs)))
    return StepSpec(cls.__name__, plugin(cls, config), guard, rng.random() < 0.5)


def through_a_sink(rng: Random) -> int:
    config = _json(rng)
    batch = consumed(json_texts(rng, config))
    steps = [step for _ in range(rng.randint(0, 3)) if (step := _step(rng)) is not None]
    spec = chain_spec(*steps, key=TEXT, value=plugin(JsonConverter, config), errors=rng.choice([{}, TOLERANT]))
    columns = rng.choice([("value",), ("key", "value"), ("topic", "partition", "offset", "timestamp", "value")])
    chain = SinkChain(spec, Output(Kind.TABLE, columns, rng.choice(list(Form))))
    by_columns, by_records = (run(chain, batch, by_columns=each) for each in (True, False))
    assert by_columns == by_records
    return 2 + bool(batch.num_rows)


class Registered:
    """Avro, Protobuf and JSON Schema, with a registry of their own."""

    KINDS: Final[Sequence[tuple[type[Any], Sequence[dict[str, Any]]]]] = (
        (AvroConverter, [{}]),
        (ProtobufConverter, [{}, {"optional_for_nullables": True}, {"wrapper_for_nullables": True}]),
        (JsonSchemaConverter, [{}, {"decimal_format": "NUMERIC"}, {"use_optional_for_nonrequired": True}]),
    )

    def __init__(self) -> None:
        self._count = 0
        self._begin()

    def _begin(self) -> None:
        self._registry = StandIn()
        self._made = [with_registry(cls, self._registry.url, **options) for cls, some in self.KINDS for options in some]

    def close(self) -> None:
        self._registry.close()

    def __call__(self, rng: Random) -> int:
        self._count += 1
        if self._count % _SCHEMAS == 0:
            self.close()
            self._begin()
        converter = rng.choice(self._made)
        lots = [lot for _ in range(2) if (lot := self._written(rng, converter))]
        data = mixed(rng, *lots)
        shown = {"shown": but_for_order} if isinstance(converter, ProtobufConverter) else {}
        read, expected = by_columns(converter, data, **shown), by_records(converter, data, **shown)
        expected = {row: expected[row] for row in read}
        assert read == expected or repr(read) == repr(expected)  # NaN, the default of a schema, is not equal to itself
        return len(lots) + bool(data)

    @staticmethod
    def _written(rng: Random, converter: Any) -> list[bytes | Exception | None]:
        """Nothing, if some of them cannot be written."""
        schema = a_schema(rng, 2, struct=True)
        values = values_of(schema, [fitting(rng, schema, lacking=False) for _ in range(rng.randint(1, 4))])
        expected = from_connect(converter, values)
        if any(isinstance(each, Exception) for each in expected):
            return []
        with suppress(NotByColumns):
            assert converter.write_columns("t", values).to_pylist() == expected
        return expected


# --- the run ----------------------------------------------------------------------------------------------------------


def work() -> dict[str, tuple[int, Work]]:
    """Each with how often it is chosen."""
    return {
        "transforms": (8, transformed),
        "predicates": (1, decided),
        "JSON": (4, json_written_and_read),
        "other converters": (1, plain_written_and_read),
        "chains of sinks": (3, through_a_sink),
        "registries": (3, Registered()),
    }


# All that looks alike goes by columns, however little it is.
@patch.object(reading, "FEWEST", 1)
@patch.object(json_groups, "FEWEST", 1)
def compare(seed: int, numbers: Iterable[int], enough: int, failed: Any) -> Counter[str]:
    """How many batches of each kind were compared; what differs is told and counted, and the run goes on."""
    kinds, done = work(), Counter[str]()
    names, chances = list(kinds), [chance for chance, _ in kinds.values()]
    told = time.monotonic()
    for number in numbers:
        rng = Random(f"{seed}-{number}")
        name = rng.choices(names, chances)[0]
        try:
            done[name] += kinds[name][1](rng)
        except Exception:
            with failed.get_lock():
                failed.value += 1
            print(f"number {number} of seed {seed} ({name}):\n{traceback.format_exc()}", flush=True)
        if done.total() >= enough:
            break
        if time.monotonic() - told > _TOLD_EVERY_S:
            told = time.monotonic()
            print(f"{done.total():,} of {enough:,} in process {os.getpid()}", flush=True)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=1_000_000, help="how many (1,000,000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same one makes the same batches")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="what has this number alone")
    given = parser.parse_args()
    failed, began = multiprocessing.Value("l", 0), time.monotonic()
    if given.only is not None:
        compare(given.seed, [given.only], 1, failed)
        return int(failed.value > 0)
    found: multiprocessing.Queue[Counter[str]] = multiprocessing.Queue()

    def part(first: int) -> None:
        share = math.ceil(given.batches / given.processes)
        found.put(compare(given.seed, itertools.count(first, given.processes), share, failed))

    running = [multiprocessing.Process(target=part, args=[first]) for first in range(given.processes)]
    for each in running:
        each.start()
    done = sum((found.get() for _ in running), Counter[str]())
    for each in running:
        each.join()
    kinds = ", ".join(f"{count:,} {name}" for name, count in done.most_common())
    seconds = time.monotonic() - began
    print(f"{done.total():,} batches of seed {given.seed} in {seconds:.0f} s: {failed.value} differ ({kinds})")
    return int(failed.value > 0)


if __name__ == "__main__":
    sys.exit(main())
