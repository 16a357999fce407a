"""A chain is cut at its statements; what comes out of one part goes, as rows, into the next. Spark is not needed here:
the statement is played by the test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pipeline_plugins import JSON, Append, DropShort, FailOn, FailTimes, Reroute, chain_spec, consumed, plugin, step

from headgate.api import ConfigError, ConnectError, SinkRecord, SourceRecord, SourceTable
from headgate.api import schema as schemas
from headgate.model import ChainSpec
from headgate.pipeline import blob
from headgate.pipeline.blob import Job, Result, SelectedRows
from headgate.pipeline.failure import ConsumedRecord
from headgate.pipeline.parts import Part, parts
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.sink_chain import Kind, Output
from headgate.pipeline.sql.relation import Relation, Relations
from headgate.pipeline.transforms.sql import Sql

RECORDS = Output(Kind.RECORDS)
VALUES = Output(Kind.TABLE, ("topic", "offset", "value"))
ALL = "SELECT * FROM records"


def sql(text: str = ALL) -> Any:
    return step(Sql, {"statement": text})


def run(job: Job) -> Result:
    return blob.unpack(blob.run(blob.pack(job)))


def relation(part: Part, *results: Result) -> Relation:
    assert part.statement is not None
    return Relations(part.statement.statement.fields()).of([result.table() for result in results])


def selection(spec: ChainSpec, given: Relation, table: pa.Table, output: Output | None) -> Job:
    return blob.selection_job(blob.pack_spec(spec), SelectedRows(given.origins, output), table)


def test_a_chain_without_statement_is_one_part() -> None:
    spec = chain_spec(step(DropShort), step(Reroute))
    assert parts(spec) == [Part(spec)]


def test_each_part_ends_in_its_statement_and_the_last_in_none() -> None:
    cut = parts(chain_spec(step(DropShort), sql("SELECT 1 FROM records"), sql(), step(Reroute)))
    assert [len(part.spec.steps) for part in cut] == [2, 1, 1]
    assert [part.statement.statement.text if part.statement else None for part in cut] == [
        "SELECT 1 FROM records",
        ALL,
        None,
    ]
    assert [len(part.spec.steps) for part in parts(chain_spec(sql()))] == [1, 0]


def test_no_predicate_decides_about_a_statement() -> None:
    guarded = step(Sql, {"statement": ALL}, only_if=plugin(RecordIsTombstone))
    with pytest.raises(ConnectError, match="no predicate"):
        parts(chain_spec(guarded))


def test_a_statement_is_not_for_one_record_and_checks_its_keys() -> None:
    made = Sql()
    made.configure({"statement": f" {ALL} "})
    assert made.statement.text == ALL
    assert made.value_schema is None
    with pytest.raises(ConnectError, match="for a batch"):
        made.apply(SinkRecord(topic="t"))
    with pytest.raises(ConfigError, match="Only a query"):
        made.configure({"statement": "DROP TABLE records"})
    with pytest.raises(ConfigError, match="Missing"):
        made.configure({})
    with pytest.raises(ConfigError, match="non-empty"):
        made.configure({"statement": ALL, "value.schema": ""})


def test_a_sink_goes_on_after_its_statement() -> None:
    first, last = parts(chain_spec(step(DropShort), sql(), step(Append, {"suffix": "!"})))
    given = relation(first, run(blob.sink_job(blob.pack_spec(first.spec), RECORDS, consumed([b"a", b"bb", b"cc"]))))
    table = given.visible
    assert table.column("value").to_pylist() == ["bb", "cc"]
    assert table.column("offset").to_pylist() == [11, 12]
    records = run(selection(last.spec, given, table, RECORDS)).records()
    assert [(each.value, each.offset, each.original_offset) for each in records] == [("bb!", 11, 11), ("cc!", 12, 12)]
    rows = run(selection(last.spec, given, table.select(["value"]), VALUES)).table().to_pylist()
    assert rows == [{"topic": "t", "offset": 12, "value": text} for text in ("bb!", "cc!")]


def test_a_source_goes_on_after_its_statement() -> None:
    first, last = parts(chain_spec(step(DropShort), sql(), step(Reroute)))
    records = [SourceRecord(topic="t", value=text, value_schema=schemas.STRING) for text in ("a", "bb")]
    given = relation(first, run(blob.source_records_job(blob.pack_spec(first.spec), records)))
    assert given.visible.column("value").to_pylist() == ["bb"]
    twice = pa.concat_tables([given.visible, given.visible])
    sent = run(selection(last.spec, given, twice, None)).table()
    assert [(each["topic"], each["value"]) for each in sent.to_pylist()] == [("t-new", b"bb")] * 2


def test_columns_of_a_source_become_rows() -> None:
    first, _ = parts(chain_spec(sql()))
    table = pa.table({"value": ["a", "b"]})
    polled = SourceTable(topic="t", table=table, source_partition=None, source_offset=None, value_schema=schemas.STRING)
    given = relation(first, run(blob.source_columns_job(blob.pack_spec(first.spec), polled)))
    assert given.visible.column("value").to_pylist() == ["a", "b"]


def test_a_part_between_two_statements_gives_rows() -> None:
    first, middle, _ = parts(chain_spec(sql(), step(Append, {"suffix": "!"}), sql()))
    given = relation(first, run(blob.sink_job(blob.pack_spec(first.spec), RECORDS, consumed([b"a"]))))
    again = relation(middle, run(selection(middle.spec, given, given.visible, RECORDS)))
    assert again.visible.column("value").to_pylist() == ["a!"]
    assert again.origins.place("t", 0).offset == 10
    records = [SourceRecord(topic="t", value={"a": 1})]
    given = relation(first, run(blob.source_records_job(blob.pack_spec(first.spec), records)))
    more = relation(middle, run(selection(middle.spec, given, pa.table({"value": ["x"]}), None)))
    assert more.visible.column("value").to_pylist() == ["x!"]


def test_a_record_that_fails_behind_a_statement_is_left_out_as_the_statement_made_it() -> None:
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    first, last = parts(chain_spec(sql(), step(FailOn, {"value": "bad"}), value=JSON, errors=tolerant))
    given = relation(first, run(blob.sink_job(blob.pack_spec(first.spec), RECORDS, consumed([b'{"x":1}']))))
    table = pa.table({"value": ["good", "bad"]})
    result = run(selection(last.spec, given, table, RECORDS))
    assert [each.value for each in result.records()] == ["good"]
    (failure,) = result.failures
    assert failure.row == 1
    assert isinstance(failure.record, ConsumedRecord)
    assert (failure.record.topic, failure.record.offset, failure.record.value) == ("t", 10, b'"bad"')


def test_what_is_to_be_tried_again_behind_a_statement_is_the_rest_of_its_rows() -> None:
    FailTimes.seen.clear()
    patient = {"errors.retry.timeout": "60000"}
    first, last = parts(chain_spec(sql(), step(FailTimes, {"value": "b", "times": "1"}), errors=patient))
    given = relation(first, run(blob.sink_job(blob.pack_spec(first.spec), RECORDS, consumed([b"x"]))))
    result = run(selection(last.spec, given, pa.table({"value": ["a", "b", "c"]}), RECORDS))
    assert [each.value for each in result.records()] == ["a"]
    assert result.rest is not None
    rest = blob.unpack(blob.run(result.rest.blob(300)))
    assert [each.value for each in rest.records()] == ["b", "c"]
