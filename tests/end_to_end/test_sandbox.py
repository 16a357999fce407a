"""Statements that would run commands, read files or call code of others are refused before they run.

One Spark session for all of them, that of the shared worker."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from harness import Client, sink_config

from headgate.api import ConnectError
from headgate.cli.assembly import StandaloneWorker
from headgate.model import TargetState, TaskId
from headgate.runtime import task_spec
from headgate.sandbox import Sandbox
from headgate.spark import statements
from headgate.spark.plans import check_frame, check_text
from headgate.spark.statements import StatementFailed

pytestmark = pytest.mark.spark

Check = Callable[[str], str | None]

EXPRESSIONS = [
    "reflect('java.lang.System', 'getProperty', 'user.home')",
    "`Reflect`('java.lang.System', 'getProperty', 'user.home')",
    "java_method('java.lang.System', 'getProperty', 'user.home')",
    "try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')",
    "system.builtin.reflect('java.lang.System', 'getProperty', 'user.home')",
    "from_xml(key, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    "xpath_string(key, 'a')",
    "current_user()",
    "input_file_name()",
    "nobody.knows(key)",
    "IDENTIFIER('key')",
    "from_json(key, '{PYTHON_TYPE}')",
    "from_json(key, concat('{', 'PYTHON_TYPE}'))",
    "from_csv(key, '{PYTHON_TYPE}')",
    "variant_get(parse_json(key), '$', '{PYTHON_TYPE}')",
    ":parameter",
]
"""None of these may stand anywhere."""

AROUND_EXPRESSIONS = [
    "SELECT {} FROM records",
    "SELECT * FROM records WHERE {} = 'x'",
    "WITH a AS (SELECT {} AS x FROM records) SELECT * FROM a",
    "WITH a AS (WITH b AS (SELECT {} AS x FROM records) SELECT * FROM b) SELECT * FROM records",
    "SELECT * FROM records WHERE EXISTS (SELECT {} FROM records)",
    "SELECT * FROM records WHERE key IN (SELECT {} FROM records)",
    "SELECT (SELECT max({}) FROM records) FROM records",
    "SELECT count(*) FROM records GROUP BY {}",
    "SELECT count(*) FROM records GROUP BY GROUPING SETS ((key), ({}))",
    "SELECT count(*) FROM records HAVING max({}) = 'x'",
    "SELECT * FROM records ORDER BY {}",
    "SELECT * FROM records DISTRIBUTE BY {}",
    "SELECT sum(1) OVER (PARTITION BY {}) FROM records",
    "SELECT sum(1) OVER w FROM records WINDOW w AS (PARTITION BY {})",
    "SELECT transform(array(1), x -> {}) FROM records",
    "SELECT * FROM records LATERAL VIEW explode(array({})) t AS x",
    "SELECT * FROM records, LATERAL (SELECT {} AS x)",
    "SELECT * FROM records JOIN VALUES ({}) AS t(x)",
    "SELECT * FROM records JOIN explode(array({})) AS t(x)",
    "SELECT * FROM records AS a JOIN records AS b ON {} = 'x'",
    "SELECT * FROM records LIMIT length({})",
    "SELECT * FROM records OFFSET length({})",
    "SELECT key FROM records UNION SELECT {} FROM records",
    "SELECT CASE WHEN {} = 'x' THEN 1 END FROM records",
    "SELECT CAST({} AS INT) FROM records",
    "SELECT named_struct('a', array(map('b', {}))) FROM records",
    "SELECT count(1) FILTER (WHERE {} = 'x') FROM records",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY {}) FROM records",
    "SELECT * FROM (SELECT key, partition FROM records) PIVOT (max({}) FOR partition IN (1))",
    "SELECT array(1)[length({})] FROM records",
    "SELECT mask(key, upperChar => {}) FROM records",
    "SELECT * FROM records TABLESAMPLE (length({}) ROWS)",
    "FROM records |> WHERE {} = 'x'",
    "FROM records |> EXTEND {} AS y",
    "FROM records |> AGGREGATE max({}) AS y",
]

RELATIONS = [
    "text.`/etc/passwd`",
    "csv.`/etc/passwd`",
    "parquet.`hdfs://elsewhere/x`",
    "IDENTIFIER('text.`/etc/passwd`')",
    "spark_catalog.default.customers",
    "customers",
    "global_temp.customers",
    "records VERSION AS OF 1",
    "records WITH (`path` = '/etc/passwd')",
    "STREAM records",
    "sql_keywords()",
    "nobody.knows(1)",
    "(SELECT TRANSFORM(key) USING 'touch CANARY' AS (x STRING) FROM records)",
    "(FROM records MAP key USING 'touch CANARY' AS (x STRING))",
    "(SELECT /*+ REPARTITION(100000) */ * FROM records)",
]

AROUND_RELATIONS = [
    "SELECT 1 FROM records JOIN {} AS x",
    "WITH a AS (SELECT 1 FROM {} AS x) SELECT * FROM records",
    "SELECT * FROM records WHERE EXISTS (SELECT 1 FROM {} AS x)",
    "SELECT (SELECT max(1) FROM {} AS x) FROM records",
    "SELECT 1 FROM records, LATERAL (SELECT 1 FROM {} AS x)",
    "SELECT 1 FROM records UNION ALL SELECT 1 FROM {} AS x",
    "SELECT 1 FROM records JOIN explode(TABLE(SELECT 1 FROM {} AS x)) AS t",
    "FROM records |> JOIN {} AS x",
    "SELECT 1 FROM {} AS a JOIN (WITH customers AS (SELECT 1 FROM records) SELECT * FROM customers) AS b",
]

STATEMENTS = [
    "SELECT TRANSFORM(key) USING 'touch CANARY' AS (x STRING) FROM records",
    "FROM records INSERT OVERWRITE DIRECTORY 'CANARY' USING text SELECT key",
    "FROM records INSERT OVERWRITE LOCAL DIRECTORY 'CANARY' STORED AS TEXTFILE SELECT key",
    "FROM records INSERT INTO t SELECT key INSERT INTO u SELECT key",
    "WITH x AS (SELECT * FROM records) INSERT INTO t SELECT * FROM x",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM records, r",
    "SELECT /*+ REPARTITION(100000) */ * FROM records",
]
"""These begin as queries do."""

OTHERS = [
    "EXECUTE IMMEDIATE 'SELECT * FROM records'",
    "BEGIN SELECT * FROM records; END",
    "SET spark.sql.ansi.enabled = records",
    "SET VAR records = 1",
    "DECLARE VARIABLE records INT",
    "ADD JAR '/records.jar'",
    "CREATE FUNCTION records AS 'com.acme.Records' USING JAR '/records.jar'",
    "CREATE TEMPORARY VIEW v USING jdbc OPTIONS (url 'jdbc:records')",
    "CREATE TABLE t AS SELECT * FROM records",
    "CACHE TABLE records",
    "EXPLAIN SELECT * FROM records",
    "DESCRIBE records",
    "CALL records()",
]

FINE = [
    "SELECT * FROM records",
    "TABLE records",
    "SELECT key, value.id, value.price * 1.2 AS gross FROM records WHERE value.price < 100 AND key LIKE 'a%'",
    "SELECT value.id AS key, item.sku FROM records LATERAL VIEW explode(value.items) AS item",
    "SELECT value.id, i.* FROM records, LATERAL explode(value.items) AS i(item)",
    "SELECT topic, value.city, count(*) AS n, sum(value.price) FROM records GROUP BY topic, value.city HAVING n > 0",
    "SELECT topic, count(*) FROM records GROUP BY GROUPING SETS ((topic), ()) ORDER BY topic LIMIT 3",
    "WITH n AS (SELECT *, row_number() OVER (PARTITION BY value.id ORDER BY offset DESC) AS i FROM records) TABLE n",
    "WITH a AS (SELECT * FROM records), b AS (SELECT key FROM A) SELECT * FROM b",
    "SELECT sum(offset) OVER w FROM records WINDOW w AS (PARTITION BY key ORDER BY offset ROWS 1 PRECEDING)",
    "SELECT key, from_json(value.payload, 'a INT, b STRING') AS value FROM records WHERE value.payload IS NOT NULL",
    "SELECT to_json(value), parse_json(value.payload):a::int, schema_of_json('{}'), typeof(value) FROM records",
    "SELECT transform(value.items, i -> upper(i.sku)), filter(value.items, (i, n) -> n > 0) FROM records",
    "SELECT aggregate(sequence(1, 3), 0, (a, x) -> a + x), map_filter(map(1, 2), (k, v) -> k > 0) FROM records",
    "SELECT * FROM records WHERE value.id IN (SELECT max(value.id) FROM records) OR EXISTS (SELECT 1 FROM records)",
    "SELECT a.key FROM records AS a LEFT JOIN VALUES ('x', 1), ('y', 2) AS t(k, n) ON a.key = t.k CROSS JOIN range(2)",
    "SELECT key FROM records UNION ALL (SELECT key FROM records EXCEPT SELECT 'x') INTERSECT SELECT key FROM records",
    "SELECT DISTINCT CASE WHEN partition = 1 THEN 1 ELSE 2 END, coalesce(key, 'x'), if(offset > 1, 1, 0) FROM records",
    "SELECT date_trunc('DAY', timestamp), timestamp + INTERVAL 1 DAY, extract(YEAR FROM timestamp) FROM records",
    "SELECT regexp_replace(key, 'a', 'b'), trim(BOTH 'x' FROM key), substr(key, 1, 2), md5(key) || 'x' FROM records",
    "SELECT try_cast(key AS INT), CAST(offset AS STRING), decimal(1.5), string(offset), struct(1).col1 FROM records",
    "SELECT struct(value.*, upper(value.city) AS loud) AS value FROM records",
    "SELECT count(DISTINCT key), count(1) FILTER (WHERE offset > 1), median(offset), listagg(key) FROM records",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY offset), max_by(key, offset), collect_set(key) FROM records",
    "SELECT * FROM (SELECT key, partition, offset FROM records) PIVOT (max(offset) FOR partition IN (1, 2))",
    "SELECT * FROM (SELECT key, partition, offset FROM records) UNPIVOT (v FOR n IN (partition, offset))",
    "SELECT * EXCEPT (value) FROM records TABLESAMPLE (50 PERCENT)",
    "SELECT lag(offset) OVER (ORDER BY offset), ntile(2) OVER (ORDER BY offset), stack(1, 2, 3) FROM records",
    "SELECT to_csv(struct(1)), from_csv('1', schema_of_csv('1')), parse_url('http://a', 'HOST') FROM records",
    "SELECT variant_get(parse_json(value.payload), '$.a', 'int'), aes_encrypt('a', key) FROM records",
    "SELECT window(timestamp, '1 minute').start, count(*) FROM records GROUP BY 1",
    "SELECT * FROM records ORDER BY ALL LIMIT 5 OFFSET 1",
    "SELECT lpad(key, 3, 'x'), ceil(1.5, 0), nvl2(key, 1, 2), mask(key), to_binary('ab') FROM records",
    "FROM records |> WHERE offset > 1 |> SELECT key, offset |> EXTEND offset + 1 AS m |> AGGREGATE max(m) GROUP BY key",
]


@pytest.fixture(scope="module")
def check(worker: StandaloneWorker) -> Check:
    """Of a text: why it is refused; None: it may be analysed."""
    session = worker.engine.session().newSession()

    def checked(text: str) -> str | None:
        try:
            check_text(session, text, Sandbox())
        except ConnectError as error:
            return str(error)
        return None

    return checked


@pytest.mark.parametrize("around", AROUND_EXPRESSIONS)
def test_functions_that_do_harm_are_refused_wherever_they_stand(check: Check, around: str) -> None:
    assert check(around.format("key")) is None, "the rest of it is fine"
    assert [each for each in EXPRESSIONS if check(around.format(each)) is None] == []


@pytest.mark.parametrize("around", AROUND_RELATIONS)
def test_what_is_not_records_is_refused_wherever_it_stands(check: Check, around: str) -> None:
    assert check(around.format("records")) is None, "the rest of it is fine"
    assert [each for each in RELATIONS if check(around.format(each)) is None] == []


def test_what_has_an_effect_or_no_end_is_refused(check: Check) -> None:
    assert [each for each in (*STATEMENTS, *OTHERS) if check(each) is None] == []
    assert "too long" in str(check(f"SELECT array({', '.join('1' * 3000)}) FROM records"))


def test_what_statements_are_for_is_fine_as_text_and_when_it_is_analysed(worker: StandaloneWorker) -> None:
    session = worker.engine.session().newSession()
    schema = (
        "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key STRING, value STRUCT<id: BIGINT,"
        " price: DOUBLE, city: STRING, payload: STRING, items: ARRAY<STRUCT<sku: STRING, quantity: INT>>>"
    )
    session.createDataFrame([], schema).createOrReplaceTempView("records")
    for text in FINE:
        check_text(session, text, Sandbox())
        check_frame(session.sql(text), Sandbox())


def test_a_type_that_would_be_unpickled_never_gets_to_python(worker: StandaloneWorker, tmp_path: Path) -> None:
    """Spark's types may be JSON, and there a type may bring its Python class with it, as a pickle."""
    session = worker.engine.session().newSession()
    session.createDataFrame([("a",)], "key STRING").createOrReplaceTempView("records")

    class Evil:
        def __reduce__(self) -> Any:
            return open, (str(tmp_path / "canary"), "w")

    brought = base64.b64encode(pickle.dumps(Evil())).decode()
    evil = {"type": "udt", "pyClass": "json.nothing", "serializedClass": brought, "sqlType": "string"}
    schema = {"type": "struct", "fields": [{"name": "a", "type": evil, "nullable": True, "metadata": {}}]}
    text = f"SELECT from_json(key, '{json.dumps(schema)}') AS value FROM records"
    with pytest.raises(ConnectError, match="The type that from_json is given must be a text"):
        check_text(session, text, Sandbox())
    with pytest.raises(ConnectError, match="a type whose code is not Spark's own"):
        check_frame(session.sql(text), Sandbox())
    with pytest.raises(Exception, match=r"PARSE_SYNTAX_ERROR"):
        statements._declared(json.dumps(schema))
    assert not (tmp_path / "canary").exists()


def test_tables_that_the_worker_file_names_may_be_looked_up(worker: StandaloneWorker, tmp_path: Path) -> None:
    session = worker.engine.session().newSession()
    session.createDataFrame([("a",)], "key STRING").createOrReplaceTempView("records")
    (tmp_path / "names.txt").write_text("a\nb\n")
    text = f"SELECT n.value FROM records JOIN text.`{tmp_path}/names.txt` AS n ON n.value = key"
    with pytest.raises(ConnectError, match=r"names.txt cannot be used: only records can, .* headgate.tables"):
        check_text(session, text, Sandbox())
    for sandbox in (Sandbox.of({"headgate.tables": f"text.`{tmp_path}/names.txt`"}), Sandbox(mode="open")):
        check_text(session, text, sandbox)
        frame = session.sql(text)
        check_frame(frame, sandbox)
        assert [row.value for row in frame.collect()] == ["a"]
    with pytest.raises(ConnectError, match="LogicalRelation is none of what is known"):
        check_frame(session.sql(text), Sandbox())


def test_code_of_others_is_refused_after_analysis_too(worker: StandaloneWorker) -> None:
    session = worker.engine.session().newSession()
    session.createDataFrame([("a",)], "key STRING").createOrReplaceTempView("records")
    session.udf.register("mine", lambda text: text)
    for found, name in (("mine(key)", "PythonUDF"), ("current_user", "CurrentUser")):
        with pytest.raises(ConnectError, match=name):
            check_frame(session.sql(f"SELECT {found} FROM records"), Sandbox())


def test_a_refused_statement_is_a_400_and_never_runs(
    worker: StandaloneWorker, client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    for around, text in product(("{}", "WITH w AS ({}) SELECT * FROM records, w"), STATEMENTS):
        query = around.format(text.replace("CANARY", str(canary)))
        config = {
            **sink_config(tmp_path / "out", topic),
            "name": name,
            "transforms": "sql",
            "transforms.sql.type": "headgate.transforms.Sql",
            "transforms.sql.statement": query,
        }
        said = client.create(name, config, expected=400)["message"]
        assert "for configuration transforms.sql.statement" in said
        # And where it was stored before anybody looked: when the task starts.
        spec = task_spec.build(TaskId(name, 0), config, config, TargetState.STARTED, worker.config, worker.plugins)
        with pytest.raises(StatementFailed):
            worker.engine.statements(spec, None)
    assert not canary.exists()
