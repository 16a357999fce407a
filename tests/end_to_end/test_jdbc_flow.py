"""From a table through Kafka into a table, with a broker and a worker, by Confluent's class names and keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import JSON, Client, await_
from jdbc_support import PostgresStore

from headgate.dev.postgres import Postgres

pytestmark = pytest.mark.spark

ROWS = 3000


@pytest.fixture
def store(postgres: Postgres, unique: Callable[[str], str]) -> PostgresStore:
    made = PostgresStore(postgres, unique("flow"))
    made.run("CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, item TEXT NOT NULL, total NUMERIC(12, 2), at TIMESTAMPTZ)")
    return made


def add(store: PostgresStore, count: int) -> None:
    store.run(
        f"INSERT INTO orders (item, total, at) SELECT 'item ' || n, n * 1.25, now() FROM generate_series(1, {count}) n"
    )


def source(store: PostgresStore, prefix: str) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        **store.config,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "schema.pattern": store.schema,
        "table.whitelist": "orders",
        "topic.prefix": prefix,
        "poll.interval.ms": "100",
        "load.max.rows": "1000",
        "value.converter": JSON,
        "key.converter": JSON,
    }


def sink(store: PostgresStore, topic: str) -> dict[str, str]:
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        **store.config,
        "topics": topic,
        "table.name.format": "copy",
        "auto.create": "true",
        "insert.mode": "insert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "exactly.once": "true",
        "value.converter": JSON,
        "key.converter": JSON,
    }


def test_all_rows_arrive_once(client: Client, name: str, topic: str, store: PostgresStore) -> None:
    add(store, ROWS)
    client.create(f"{name}-in", source(store, f"{topic}-"))
    client.create(f"{name}-out", sink(store, f"{topic}-orders"))

    def copied() -> int:
        if client.status(f"{name}-out")["tasks"] and client.states(f"{name}-out")[1] == ["FAILED"]:
            raise AssertionError(client.status(f"{name}-out"))
        found = store.run(
            f"SELECT count(*) FROM information_schema.tables WHERE table_schema = '{store.schema}'"
            " AND table_name = 'copy'"
        )
        return int(store.run("SELECT count(*) FROM copy")[0][0]) if found == [["1"]] else 0

    await_(lambda: copied() == ROWS, "all rows", 90)
    add(store, 10)
    await_(lambda: copied() == ROWS + 10, "later rows")
    different = (
        "SELECT count(*) FROM orders o FULL JOIN copy c USING (id) WHERE (o.item, o.total) IS DISTINCT FROM"
        " (c.item, c.total) OR date_trunc('milliseconds', o.at AT TIME ZONE 'UTC') <> c.at"
    )
    assert store.run(different) == [["0"]]
    (offset,) = await_(lambda: client.offsets(f"{name}-in"), "the offset")
    assert offset["partition"]["protocol"] == "1"
    await_(lambda: client.offsets(f"{name}-in")[0]["offset"] == {"incrementing": ROWS + 10}, "the last offset")
    client.put(f"{name}-out", "stop")
    await_(lambda: client.states(f"{name}-out") == ("STOPPED", []), "the end of its task")
    client.call("DELETE", f"/connectors/{name}-out/offsets", 200)
    assert store.run("SELECT count(*) FROM headgate_offsets WHERE next_offset IS NOT NULL") == [["0"]]


def test_a_url_that_would_load_a_class_is_answered_with_400(client: Client, name: str, store: PostgresStore) -> None:
    config = source(store, "x-")
    config["connection.url"] += "&socketFactory=org.example.Evil"
    told = client.create(name, config, expected=400)["message"]
    assert "socketFactory is none of the settings that are known to be harmless" in told
    assert store.server.password not in told


def test_a_wrong_password_fails_the_task_and_is_nowhere_to_be_read(
    client: Client, name: str, store: PostgresStore
) -> None:
    client.create(name, {**source(store, "x-"), "connection.password": "not-this-one"})
    status = client.await_states(name, "RUNNING", "FAILED")
    assert "does not let us in" in status["tasks"][0]["trace"]
    assert "not-this-one" not in str(status)
