"""The text of a statement: what is refused without Spark, and which fields it names."""

from __future__ import annotations

import pytest

from headgate.pipeline.sql.statement import Statement


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM records",
        "select value.id from Records where value.price > 3",
        "-- a comment\n/* another */ SELECT 1 FROM `records`;",
        "WITH a AS (SELECT * FROM records) SELECT * FROM a",
        "FROM records |> WHERE value.id > 1",
        "(SELECT * FROM records) UNION ALL (SELECT * FROM records)",
        "TABLE records",
        "SELECT 'a;b' AS value FROM records",
        "SELECT reflect FROM records",
    ],
)
def test_queries_over_the_batch_may_be_tried(text: str) -> None:
    assert Statement(text).problem() is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is needed"),
        ("  -- nothing", "is needed"),
        ("DROP TABLE records", "not DROP"),
        ("INSERT INTO t SELECT * FROM records", "not INSERT"),
        ("SET spark.sql.ansi.enabled=false", "not SET"),
        ("BEGIN SELECT * FROM records; END", "not BEGIN"),
        ("'SELECT' FROM records", "only a query"),
        ("SELECT 1", "the table records"),
        ("SELECT 'records'", "the table records"),
        ("SELECT 1 -- records", "the table records"),
        ("SELECT * FROM records; DROP TABLE t", "one statement"),
        ("SELECT reflect('java.lang.System', 'exit', 1) FROM records", "side effects"),
        ("SELECT `java_method` ('java.lang.System', 'exit', 1) FROM records", "side effects"),
    ],
)
def test_what_is_no_query_over_the_batch_is_refused(text: str, said: str) -> None:
    problem = Statement(text).problem()
    assert problem is not None
    assert said.lower() in problem.lower()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT value.a, VALUE.b.c FROM records", {("value", "a"), ("value", "b", "c")}),
        ("SELECT r.value.a, records.key.id FROM records r", {("value", "a"), ("key", "id")}),
        ("SELECT value.`a b`.`c``d` FROM records", {("value", "a b", "c`d")}),
        ("SELECT value['a']['b'], value[0], value.list[1].x FROM records", {("value", "a", "b"), ("value", "list")}),
        ("SELECT value . a, value.* FROM records", {("value", "a"), ("value", "*")}),
        ("SELECT 'value.x', \"value.y\" -- value.z\n, /* value.w */ value FROM records", set()),
        ("SELECT item.sku FROM records LATERAL VIEW explode(value.items) AS item", {("value", "items")}),
    ],
)
def test_the_fields_that_it_names(text: str, paths: set[tuple[str, ...]]) -> None:
    assert set(Statement(text).fields()) == paths
