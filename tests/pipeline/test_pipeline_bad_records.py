"""One bad record costs that record, in a batch of any size and on every way through the pipeline."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pipeline_plugins import (
    BAD,
    BYTES,
    DECIMALS,
    JSON,
    TEXT,
    AsDecimal,
    FailOn,
    Reroute,
    chain_spec,
    consumed,
    step,
)

from headgate.api import Form, Header, SourceRecord, SourceTable
from headgate.api import schema as s
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.batch import CONSUMED
from headgate.pipeline.failure import ConsumedRecord, Failure, PolledRecord, Stage
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.tolerance import Triage

pytestmark = pytest.mark.kip(298, "error handling in Connect")

RECORDS = Output(Kind.RECORDS)
ALL = {"errors.tolerance": "all"}
DEAD = {**ALL, "errors.deadletterqueue.topic.name": "dead"}
NOTHING = step(FailOn, {"value": "never"})
MANY = 100_000


def sink(*steps: StepSpec, output: Output, errors: dict[str, str] = ALL, **converters: PluginSpec) -> SinkChain:
    return SinkChain(chain_spec(*steps, errors=errors, **converters), output)


def run_table(chain: SinkChain, batch: pa.Table) -> tuple[list[dict[str, Any]], list[Failure]]:
    triage = Triage(chain.policy)
    return chain.table(batch, triage).to_pylist(), triage.failures


def places(failures: list[Failure]) -> list[tuple[Stage, int]]:
    return [(each.stage, each.record.offset) for each in failures if isinstance(each.record, ConsumedRecord)]


# --- sinks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(), (NOTHING,)], ids=["columns", "records"])
def test_one_bad_value_among_a_hundred_thousand(steps: tuple[StepSpec, ...]) -> None:
    values: list[bytes | None] = [b'{"n":%d}' % number for number in range(MANY)]
    values[MANY // 2] = b'{"n":'
    chain = sink(*steps, output=Output(Kind.TABLE, ("offset", "value"), Form.JSON), value=JSON)
    triage = Triage(chain.policy)
    table = chain.table(consumed(values), triage)
    assert table["value"].to_pylist() == [f'{{"n":{number}}}' for number in range(MANY) if number != MANY // 2]
    assert table["offset"].to_pylist() == [10 + number for number in range(MANY) if number != MANY // 2]
    assert places(triage.failures) == [(Stage.VALUE_CONVERTER, 10 + MANY // 2)]
    assert [each.row for each in triage.failures] == [MANY // 2]


@pytest.mark.parametrize("form", [Form.TEXT, Form.JSON])
@pytest.mark.parametrize("bad", [{0}, {4}, {0, 4}, {1, 2, 3}, {0, 1, 2, 3, 4}])
def test_the_quick_and_the_slow_way_keep_and_lose_the_same(form: Form, bad: set[int]) -> None:
    good = [b'{"a":1}', None, b"[1.0,2]", b'"x"', b"null"]
    batch = consumed([b"{" if row in bad else value for row, value in enumerate(good)], [b"k1", None, b"k3", b"", b"k"])
    output = Output(Kind.TABLE, ("topic", "partition", "offset", "timestamp", "key", "value"), form)
    quick = run_table(sink(output=output, value=JSON, errors=DEAD), batch)
    slow = run_table(sink(NOTHING, output=output, value=JSON, errors=DEAD), batch)
    assert quick == slow
    assert [row["offset"] for row in quick[0]] == [10 + row for row in range(5) if row not in bad]
    assert places(quick[1]) == [(Stage.VALUE_CONVERTER, 10 + row) for row in sorted(bad)]


@pytest.mark.parametrize("steps", [(), (NOTHING,)], ids=["columns", "records"])
def test_bad_keys_and_bad_values_of_one_batch(steps: tuple[StepSpec, ...]) -> None:
    chain = sink(*steps, output=Output(Kind.TABLE, ("key", "value"), Form.JSON), key=JSON, value=JSON)
    kept, failures = run_table(chain, consumed([b"1", b"{", b"3", b"{"], [b"1", b"2", b"{", b"{"]))
    assert kept == [{"key": "1", "value": "1"}]
    keys, values = Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER
    assert places(failures) == [(values, 11), (keys, 12), (keys, 13)]


@pytest.mark.parametrize("steps", [(), (AsDecimal,)], ids=["columns", "records"])
def test_what_cannot_be_shown_is_a_bad_record(steps: tuple[type, ...]) -> None:
    converter = TEXT if steps else DECIMALS
    output = Output(Kind.TABLE, ("value",), Form.JSON)
    chain = sink(*map(step, steps), output=output, value=converter)
    kept, failures = run_table(chain, consumed([b"1.5", None]))
    assert kept == [{"value": None}]
    assert places(failures) == [(Stage.VALUE_CONVERTER, 10)]


def test_bad_records_for_a_task_that_takes_records() -> None:
    headers: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": b"1"}], None, None]
    chain = SinkChain(chain_spec(step(FailOn, {"value": "b"}), headers=BAD, errors=ALL), RECORDS)
    triage = Triage(chain.policy)
    found = chain.records(consumed([b"a", b"b", b"c"], headers=headers), triage)
    assert [record.value for record in found] == ["c"]
    assert places(triage.failures) == [(Stage.HEADER_CONVERTER, 10), (Stage.TRANSFORMATION, 11)]
    assert [each.error for each in triage.failures] == ["headgate.api.errors.DataError"] * 2


def test_a_failure_has_the_record_as_kafka_had_it_whatever_was_done_to_it() -> None:
    headers: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}]]
    chain = sink(step(Reroute), step(FailOn, {"value": "b"}), output=RECORDS, errors=DEAD)
    triage = Triage(chain.policy)
    assert chain.records(consumed([b"b"], [b"\xff"], headers), triage) == []
    assert [each.record for each in triage.failures] == [
        ConsumedRecord("t", 3, 10, 1700000000000, "CreateTime", b"\xff", b"b", (("h", b"1"), ("h", None)))
    ]


@pytest.mark.parametrize(
    ("errors", "everything"),
    [
        ({}, False),
        (ALL, False),
        ({**ALL, "errors.log.enable": "true"}, False),
        ({"errors.log.enable": "true", "errors.log.include.messages": "true"}, True),
        (DEAD, True),
    ],
)
def test_whole_records_travel_only_where_somebody_wants_them(errors: dict[str, str], everything: bool) -> None:
    output = Output(Kind.TABLE, ("value",))
    expected = frozenset(CONSUMED.names) if everything else {"value", "topic", "partition", "offset"}
    assert sink(output=output, value=JSON, errors=errors).needed == expected
    # Bytes as they are cannot fail.
    assert sink(output=output, value=BYTES, errors=errors).needed == {"value"}


# --- sources ----------------------------------------------------------------------------------------------------------


def source(*steps: StepSpec, errors: dict[str, str] = DEAD, **converters: PluginSpec) -> SourceChain:
    return SourceChain(chain_spec(*steps, errors=errors, **converters))


def test_one_bad_record_among_a_hundred_thousand_polled() -> None:
    chain = source(step(FailOn, {"value": "50000"}), errors=ALL)
    triage = Triage(chain.policy)
    records = [SourceRecord(topic="t", value=f"{number}", source_offset={"n": number}) for number in range(MANY)]
    table = chain.records(records, triage)
    assert table.num_rows == MANY - 1
    assert table["row"].to_pylist() == [number for number in range(MANY) if number != 50000]
    assert [each.record for each in triage.failures] == [PolledRecord("t", None, {"n": 50000})]


@pytest.mark.parametrize("bad", [{0}, {2}, {0, 1, 2}])
def test_rows_and_records_keep_and_lose_the_same(bad: set[int]) -> None:
    values = [None if row in bad else row for row in range(3)]
    chain = source(value=JSON)
    by_rows, by_records = Triage(chain.policy), Triage(chain.policy)
    table = pa.table({"value": pa.array(values, pa.int32()), "timestamp": pa.array([5, 6, 7], pa.int64())})
    rows = chain.columns(SourceTable(topic="t", table=table, value_schema=s.INT32), by_rows)
    records = [
        SourceRecord(topic="t", value=value, value_schema=s.INT32, timestamp=5 + row)
        for row, value in enumerate(values)
    ]
    assert rows == chain.records(records, by_records)
    assert by_rows.failures == by_records.failures
    assert [each.row for each in by_rows.failures] == sorted(bad)


def test_a_failed_record_of_a_source_is_kept_as_its_converters_write_it() -> None:
    chain = source(step(FailOn, {"value": "b"}), value=JSON)
    triage = Triage(chain.policy)
    record = SourceRecord(
        topic="t",
        value="b",
        key="k",
        timestamp=5,
        headers=(Header("h", 1, s.INT32),),
        source_partition={"file": "x"},
        source_offset={"position": 3},
    )
    assert chain.records([record], triage).num_rows == 0
    assert [each.record for each in triage.failures] == [
        PolledRecord("t", {"file": "x"}, {"position": 3}, 5, b"k", b'"b"', (("h", b"1"),))
    ]


@pytest.mark.parametrize(
    ("value", "kept"), [(None, None), (b"\xff", b"\xff"), ("é", "é".encode()), ({"a": [1.0]}, b"{a=[1.0]}")]
)
def test_what_its_converter_cannot_write_is_kept_as_it_is_or_as_text(value: Any, kept: bytes | None) -> None:
    chain = source(value=BAD, headers=BAD)
    triage = Triage(chain.policy)
    chain.records([SourceRecord(topic="t", value=value, headers=(Header("h", value),))], triage)
    (failure,) = triage.failures
    assert failure.stage is Stage.HEADER_CONVERTER
    assert failure.record == PolledRecord("t", None, None, None, None, kept, (("h", kept),))


def test_the_log_gets_the_whole_record_of_a_source() -> None:
    errors = {**ALL, "errors.log.enable": "true", "errors.log.include.messages": "true"}
    chain = source(step(FailOn, {"value": "b"}), errors=errors)
    triage = Triage(chain.policy)
    chain.records([SourceRecord(topic="t", value="b")], triage)
    record = triage.failures[0].record
    assert isinstance(record, PolledRecord)
    assert record.shown.startswith("SourceRecord{sourcePartition=null, sourceOffset=null} ConnectRecord{topic='t'")
    assert record.value is None
