"""Datagen's tasks: the same records whoever makes them, when and in which pieces."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
import threading
import time
from decimal import Decimal
from functools import cache
from unittest.mock import patch

import pyarrow as pa
import pytest
from datagen_support import FAST, errors, polled, shown, tasks_of
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api import ConnectError, ExactlyOnceSupport, SourceRecord, SourceTable, schema
from headgate.api.frame import arrow_type
from headgate.api.testing import MemoryOffsets, SourceConnectorSuite
from headgate.connectors import Datagen
from headgate.connectors.datagen.connector import Datagen as Named
from headgate.connectors.datagen.quickstarts import QUICKSTARTS
from headgate.connectors.datagen.slices import SLICES
from headgate.connectors.datagen.task import DatagenTask

EVERYTHING = (
    "id sequence, user long(1, 9), name name by user ?0.2, born date, at walk, price money, ok boolean(0.3),"
    " home { city city, zip pattern('[1-9][0-9]{4}') } ?0.1, tags array(word, 0, 4), seen map(word, timestamp, 0, 3),"
    " raw bytes, f float, d double, t time, u uuid, s sentence, m email, c choice(a=3, b), n cycle(1, 2, 3)"
)
WHOLE = {**FAST, "schema": EVERYTHING, "timestamp.start": "2024-05-06T07:08:09Z", "timestamp.step.ms": "250"}


COUNT = 2500
FEW = settings(max_examples=settings().max_examples // 5)
"""Each makes thousands of records of every kind."""


@pytest.mark.process
class TestAcceptance(SourceConnectorSuite):
    connector = Datagen
    config = {"topic": "t", "schema": "id sequence, name name", "key.field": "id", "rate": "0", "records": "0"}
    records = 250  # which are of three slices

    def add_data(self, count: int) -> None:
        self.config = {**self.config, "records": str(int(self.config["records"]) + count)}

    def test_tasks_deliver_what_comes_later(self) -> None:
        """They are asked for nothing by anybody: what comes later comes by the rate."""
        self.config = {**self.config, "rate": "300", "records": "60"}
        with self.running_tasks() as tasks:
            assert len(self._read(tasks, 60)) > 2


def everything(config: dict[str, str], tasks: int = 1) -> list[SourceTable]:
    """All tables of all tasks, up to `records`."""
    found = []
    for task in tasks_of(config, tasks):
        while (table := taken(task, 10_000)) is not None:
            found.append(table)
    return found


def taken(task: DatagenTask, rows: int) -> SourceTable | None:
    """What a poll of at most so many rows gives; without the wait, if that is nothing."""
    task._rows = rows
    with patch("headgate.connectors.datagen.task._IDLE_S", 0):
        found = task.poll()
    assert found is None or isinstance(found, SourceTable)
    return found


# --- the same records -------------------------------------------------------------------------------------------------


@FEW
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_records_do_not_depend_on_how_polls_cut_them(sizes: list[int]) -> None:
    (whole,) = tasks_of(WHOLE)
    (pieces,) = tasks_of(WHOLE)
    tables = [table.table for size in sizes if (table := taken(pieces, size))]
    expected = taken(whole, sum(sizes))
    assert expected is not None
    assert pa.concat_tables(tables).combine_chunks().equals(expected.table.combine_chunks())


@pytest.mark.process
@FEW
@given(st.integers(1, SLICES), st.integers(1, COUNT))
def test_records_do_not_depend_on_who_makes_them(tasks: int, records: int) -> None:
    found = everything({**WHOLE, "records": str(records)}, tasks)
    assert in_order(found).equals(reference().slice(0, records))


@pytest.mark.process
@FEW
@given(st.lists(st.tuples(st.integers(1, 5), st.lists(st.integers(1, 400), max_size=6)), max_size=5))
def test_whoever_goes_on_at_the_offsets_makes_what_would_have_come(lives: list[tuple[int, list[int]]]) -> None:
    """Lives of so many tasks that give in turn so many records; the last one gives the rest."""
    offsets = MemoryOffsets()
    found: list[SourceTable] = []
    for number, sizes in [*lives, (1, [COUNT])]:
        running = tasks_of({**WHOLE, "records": str(COUNT)}, number, offsets)
        for turn, size in enumerate(sizes):
            table = taken(running[turn % number], size)
            if table is not None:
                found.append(table)
                for place in table.places:
                    offsets.commit(place.source_partition, place.source_offset)
    assert in_order(found).equals(reference())


@cache
def reference() -> pa.Table:
    return in_order(everything({**WHOLE, "records": str(COUNT)}))


def in_order(tables: list[SourceTable]) -> pa.Table:
    """Of the sequence."""
    together = pa.concat_tables([each.table for each in tables]).combine_chunks()
    numbers = together["value"].chunk(0).field("id")
    return together.take(numbers.to_numpy().argsort()).combine_chunks()


def test_another_seed_gives_other_records() -> None:
    def names(**more: str) -> list[str]:
        (task,) = tasks_of({**FAST, "schema": "f name", **more})
        return [row["value"]["f"] for row in shown([polled(task)])]

    assert names() == names(seed="0") == names(**{"random.seed": "0"})
    assert names() != names(seed="1") != names(seed="-1")
    assert len(set(names(seed="9223372036854775807"))) > 1000


def test_what_was_made_once_is_made_for_ever() -> None:
    """Whoever changes a generator changes the records behind every stored offset: this is to be seen."""
    (task,) = tasks_of({**WHOLE, "seed": "42"})
    row = shown([polled(task)])[1005]
    assert row["value"] == MADE
    assert row["timestamp"] == 1714979289000 + 1005 * 250


MADE = {
    "id": 1005,
    "user": 8,
    "name": "Pavel Hill",
    "born": dt.date(2024, 10, 19),
    "at": dt.datetime(2024, 1, 1, 0, 16, 45, 818000, tzinfo=dt.UTC),
    "price": Decimal("175.54"),
    "ok": False,
    "home": {"city": "Bogota", "zip": "30636"},
    "tags": ["ocean", "ivory", "steady"],
    "seen": [
        ("earth", dt.datetime(2024, 10, 1, 17, 41, 20, 818000, tzinfo=dt.UTC)),
        ("path", dt.datetime(2024, 11, 11, 13, 50, 7, 318000, tzinfo=dt.UTC)),
    ],
    "raw": b"\\\xf1\xc4 \x86\x05\xb8\xd9\xcc\xa9\x9a\xa4\x9db",
    "f": 0.257999986410141,
    "d": 0.157997,
    "t": dt.time(0, 25, 25, 125000),
    "u": "b33a3303-8cef-432a-a330-ca0bf6e685e5",
    "s": "Mountain night cover spring after warm.",
    "m": "daniel.santos96@mail.example",
    "c": "a",
    "n": 1,
}


# --- what a record is -------------------------------------------------------------------------------------------------


def test_values_have_a_schema_and_keys_are_one_of_their_fields() -> None:
    (task,) = tasks_of({**FAST, "schema": EVERYTHING, "key.field": "name"})
    table = polled(task)
    assert table.value_schema is not None
    assert table.table["value"].type == arrow_type(table.value_schema)
    assert table.key_schema == schema.OPTIONAL_STRING
    assert all(row["key"] == row["value"]["name"] for row in shown([table]))
    assert "timestamp" not in table.table.column_names


def test_without_a_schema_values_are_plain() -> None:
    days = "date(1970-01-11, 1970-01-11)"
    text = f"id sequence, at walk(2024-01-01), born {days}, price money(2.5, 2.5), f float(1, 1), l array(now)"
    (task,) = tasks_of({**FAST, "schema": text, "key.field": "id", "schemaless": "true", "timestamp.start": "5"})
    table = polled(task)
    assert (table.value_schema, table.key_schema) == (None, None)
    row = shown([table])[3]
    at = row["value"].pop("at")
    assert 3000 <= at - dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp() * 1000 < 4000
    assert set(row["value"].pop("l")) <= {8}
    assert row == {"value": {"id": 3, "born": 10, "price": 2.5, "f": 1.0}, "key": 3, "timestamp": 8}


def test_maps_without_a_schema_are_maps() -> None:
    config = {**FAST, "schema": "id sequence, m map(word, money, 0, 3)", "schemaless": "true", "records": "150"}
    (task,) = tasks_of({**config, "key.field": "id", "timestamp.start": "7"})
    records = task.poll()
    assert isinstance(records, list)
    assert len(records) == 150
    assert records[120].replace(value=None) == SourceRecord(
        topic="t",
        value=None,
        key=120,
        timestamp=127,
        source_partition={"datagen": 1},
        source_offset={"records": 121},
    )
    assert all(isinstance(price, float) for each in records for price in each.value["m"].values())
    (typed,) = tasks_of({**config, "schemaless": "false"})
    expected = [dict(row["value"]["m"]) for row in shown([polled(typed)])]
    assert [each.value["m"].keys() for each in records] == [each.keys() for each in expected]


@pytest.mark.parametrize("name", QUICKSTARTS)
@pytest.mark.parametrize("schemaless", ["true", "false"])
def test_every_quickstart_can_be_had_with_a_schema_and_without(name: str, schemaless: str) -> None:
    (task,) = tasks_of({"topic": "t", "quickstart": name.upper(), "max.interval": "0", "schemaless": schemaless})
    assert task.poll()


def test_now_is_the_clock_unless_timestamps_are_given() -> None:
    (task,) = tasks_of({**FAST, "schema": "f now"})
    before = time.time()
    found = shown([polled(task)])[0]["value"]["f"].timestamp()
    assert before - 0.001 <= found <= time.time()
    (task,) = tasks_of({**FAST, "schema": "f now", "timestamp.start": "1000", "timestamp.step.ms": "60000"})
    assert shown([polled(task)])[2]["value"]["f"].timestamp() == 121


def test_timestamps_end_with_the_year_9999() -> None:
    config = {**FAST, "schema": "f int", "timestamp.start": "9999-12-31T23:59:59.990Z"}
    (task,) = tasks_of(config)
    with pytest.raises(ConnectError, match="Record 9999 would have a timestamp after the year 9999"):
        task.poll()


# --- how many and how fast --------------------------------------------------------------------------------------------


def test_a_flat_schema_makes_half_a_million_records_in_a_second() -> None:
    config = {**FAST, "schema": "id sequence, user long(1, 1000), city city, price double(1, 100, 2), at walk"}
    (task,) = tasks_of(config)
    polled(task)
    began, made = time.process_time(), 0
    while made < 500_000:
        made += polled(task).table.num_rows
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("f int", 10_000),
        ("f array(word, 0, 1000)", 261),
        ("f pattern('a{1000}'), g array(bytes(0, 1000), 0, 1000)", 4),
        ("f array(boolean, 65535, 65535)", 4),
    ],
)
@pytest.mark.parametrize("rate", ["0", "1e300"])
def test_a_poll_is_bounded_in_rows_and_bytes(text: str, rows: int, rate: str) -> None:
    (task,) = tasks_of({"topic": "t", "rate": rate, "schema": text})
    table = polled(task)
    while table.table.num_rows == 1:  # the first one does not wait for the pace
        table = polled(task)
    assert table.table.num_rows == rows
    assert table.table.nbytes < 5 << 20


@pytest.mark.process
def test_no_more_records_than_wanted_and_then_nothing_but_a_wait() -> None:
    (task,) = tasks_of({**FAST, "schema": "f sequence", "records": "12345"})
    found = shown([polled(task), polled(task)])
    assert [row["value"]["f"] for row in found] == list(range(12345))
    ended = threading.Event()

    def poll_on() -> None:
        assert task.poll() is None
        ended.set()

    began = time.monotonic()
    thread = threading.Thread(target=poll_on)
    thread.start()
    task.stop_requested()
    assert ended.wait(10)
    assert time.monotonic() - began < 0.9
    thread.join()


@pytest.mark.process
def test_a_task_that_waits_for_its_pace_wakes_up_when_it_shall_stop() -> None:
    (task,) = tasks_of({"topic": "t", "schema": "f int", "rate": "0.001"})
    assert polled(task).table.num_rows == 1
    threading.Timer(0.1, task.stop_requested).start()
    began = time.monotonic()
    assert task.poll() is None
    assert time.monotonic() - began < 0.9


@pytest.mark.process
def test_a_poll_does_not_block_for_much_longer_than_a_second() -> None:
    (task,) = tasks_of({"topic": "t", "schema": "f int", "rate": "0.001"})
    polled(task)
    began = time.monotonic()
    assert task.poll() is None
    assert 0.9 < time.monotonic() - began < 5


@pytest.mark.process
def test_the_rate_is_that_of_all_tasks_together() -> None:
    # Tasks earn records from their start, so that is where the time begins.
    counts, began = [0] * 4, time.monotonic()
    running = tasks_of({"topic": "t", "schema": "f int", "rate": "400"}, 4)
    while time.monotonic() - began < 1:
        for number, task in enumerate(running):
            counts[number] += polled(task).table.num_rows
    passed = time.monotonic() - began
    # A machine that is busy may take its time, but never are there too many.
    assert 200 * passed < sum(counts) <= 400 * passed + len(running)
    assert min(counts) > 50 * passed


# --- Confluent's keys -------------------------------------------------------------------------------------------------


def test_confluent_s_keys_are_of_each_task() -> None:
    confluent = {"kafka.topic": "pageviews", "quickstart": "pageviews", "max.interval": "0", "iterations": "300"}
    tables = everything(confluent, 3)
    assert {each.topic for each in tables} == {"pageviews"}
    assert sorted(row["key"] for row in shown(tables)) == [1 + 10 * number for number in range(900)]


@pytest.mark.process
def test_half_of_the_longest_interval_is_the_usual_one() -> None:
    count, began = 0, time.monotonic()
    (task,) = tasks_of({"kafka.topic": "t", "quickstart": "users", "max.interval": "20", "generate.timeout": "5"})
    while time.monotonic() - began < 1:
        count += polled(task).table.num_rows
    assert 50 < count <= 100 * (time.monotonic() - began) + 1


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_say_how_far_each_slice_is() -> None:
    (task,) = tasks_of({**FAST, "schema": "f sequence", "records": "250"})
    assert [(each.end, each.source_partition, each.source_offset) for each in polled(task).places] == [
        (100, {"datagen": 0}, {"records": 100}),
        (200, {"datagen": 1}, {"records": 200}),
        (250, {"datagen": 2}, {"records": 250}),
    ]


def test_offsets_can_be_set_and_anything_can_be_reset() -> None:
    config = {**FAST, "schema": "f sequence"}
    assert Datagen().alter_offsets(config, [({"datagen": 31}, {"records": 10**12}), ({"garbage": 1}, None)])
    with pytest.raises(ConnectError, match="An offset is"):
        Datagen().alter_offsets(config, [({"datagen": 0}, {"records": 10**12}), ({"datagen": 1}, {"position": 1})])
    moved = MemoryOffsets(({"datagen": number}, {"records": 1_000_000}) for number in range(SLICES))
    (task,) = tasks_of(config, offsets=moved)
    assert [row["value"]["f"] for row in shown([polled(task)])][:3] == [1_000_000, 1_000_001, 1_000_002]


def test_a_stored_offset_that_is_none_fails_the_task() -> None:
    with pytest.raises(ConnectError, match="The stored offset of slice 3 is none: records is 'x'"):
        tasks_of({**FAST, "schema": "f int"}, offsets=MemoryOffsets([({"datagen": 3}, {"records": "x"})]))


# --- the plugin -------------------------------------------------------------------------------------------------------


def test_it_is_known_by_our_name_and_by_confluent_s() -> None:
    assert Named is Datagen
    assert Datagen.aliases == ("headgate.connectors.Datagen", "io.confluent.kafka.connect.datagen.DatagenConnector")
    assert Datagen().exactly_once_support({}) is ExactlyOnceSupport.SUPPORTED


def test_there_are_no_more_tasks_than_slices() -> None:
    assert len(tasks_of({**FAST, "schema": "f int"}, 100)) == SLICES


@pytest.mark.process
def test_importing_it_does_not_import_pyarrow() -> None:
    code = "import sys, headgate.connectors.datagen.connector; sys.exit(bool({'pyarrow', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numbers_of_every_float_are_finite() -> None:
    (task,) = tasks_of({**FAST, "schema": "f float(-3e38, 3e38), d double(-8e307, 8e307)"})
    rows = shown([polled(task)])
    assert all(math.isfinite(row["value"]["f"]) and math.isfinite(row["value"]["d"]) for row in rows)


# --- what is refused --------------------------------------------------------------------------------------------------

GOOD = {"topic": "t", "schema": "a int, b word"}


@pytest.mark.parametrize(
    ("config", "key", "told"),
    [
        ({"schema": "a int"}, "topic", "Set the topic to write to"),
        ({"topic": "", "schema": "a int"}, "topic", "String must be non-empty"),
        ({**GOOD, "kafka.topic": "t"}, "kafka.topic", "topic is set already: they mean the same"),
        ({"topic": "t"}, "schema", "Set one of schema, quickstart and schema.string"),
        ({**GOOD, "quickstart": "users"}, "schema", "Set one of schema, quickstart and schema.string"),
        ({"topic": "t", "quickstart": "nobody"}, "quickstart", "There are clickstream, clickstream_codes,"),
        ({**GOOD, "schema.filename": "/x"}, "schema.filename", "put the text into schema.string"),
        ({**GOOD, "rate": "-1"}, "rate", "It is a number of records per second, 0 or more"),
        ({**GOOD, "rate": "NaN"}, "rate", "0 or more"),
        ({**GOOD, "rate": "Infinity"}, "rate", "0 or more"),
        ({**GOOD, "rate": "1", "max.interval": "5"}, "max.interval", "rate is set already"),
        ({**GOOD, "max.interval": "-5"}, "max.interval", "at least 0"),
        ({**GOOD, "records": "-1"}, "records", "at least 0"),
        ({**GOOD, "records": "1", "iterations": "5"}, "iterations", "records is set already"),
        ({**GOOD, "seed": "1", "random.seed": "1"}, "random.seed", "seed is set already"),
        ({**GOOD, "seed": "one"}, "seed", "Not a number of type LONG"),
        ({**GOOD, "key.field": "c"}, "key.field", "The fields are a, b"),
        ({**GOOD, "schema.keyfield": "c"}, "schema.keyfield", "The fields are a, b"),
        ({**GOOD, "key.field": "a", "schema.keyfield": "b"}, "schema.keyfield", "key.field is set already"),
        ({**GOOD, "schemaless": "maybe"}, "schemaless", "either true or false"),
        ({**GOOD, "timestamp.start": "0"}, "timestamp.start", "an instant with its zone"),
        ({**GOOD, "timestamp.start": "2024-01-01T00:00:00"}, "timestamp.start", "an instant with its zone"),
        ({**GOOD, "timestamp.start": "9" * 30}, "timestamp.start", "an instant with its zone"),
        ({**GOOD, "timestamp.step.ms": "-1"}, "timestamp.step.ms", "from 0 to 86400000"),
    ],
)
def test_what_cannot_be_is_an_error_of_its_key(config: dict[str, str], key: str, told: str) -> None:
    found = errors(config)
    assert list(found) == [key]
    assert told in found[key][0]
    with pytest.raises(ConnectError):
        tasks_of(config)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rate": "0.5", "records": "0", "seed": "-3", "key.field": "b"},
        {
            "max.interval": "1000",
            "iterations": "-1",
            "random.seed": "5",
            "schema.keyfield": "a",
            "generate.timeout": "1",
        },
        {"timestamp.start": "1714979289000", "timestamp.step.ms": "0", "schemaless": "TRUE"},
    ],
)
def test_what_can_be_is_fine(more: dict[str, str]) -> None:
    assert errors({**GOOD, **more}) == {}
