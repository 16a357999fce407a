"""PostgreSQL by JdbcSource and JdbcSink, beside Python programs that do the same with psycopg and confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import psycopg
from inputs import PARTITIONS, SALES
from lake import first_sales
from program import Program
from rates import taken, work
from sales import FIELDS
from side import HEADGATE
from topics import FILL_BLOCK
from turn import Figure, Turn

from headgate.dev.ports import HOST
from headgate.dev.postgres import USER, Postgres
from headgate.jars.jars import JDBC_DRIVERS, fetch

_ROWS: Final = 2_000_000
_WARM: Final = 20_000
_COLUMNS: Final = {
    "id": "BIGINT PRIMARY KEY",
    "region": "TEXT NOT NULL",
    "product": "TEXT NOT NULL",
    "customer": "BIGINT NOT NULL",
    "pieces": "INT NOT NULL",
    "price": "DOUBLE PRECISION NOT NULL",
    "paid": "BOOLEAN NOT NULL",
    "sold": "TIMESTAMP NOT NULL",
    "note": "TEXT",
}
_TYPES: Final = ["int8", "text", "text", "int8", "int4", "float8", "bool", "int8", "text"]
"""As COPY sends them."""
_MILLIS: Final = {"sold": "CAST(extract(epoch FROM sold) * 1000 AS BIGINT)"}
_SALES: Final = (
    "SELECT n AS id, 'region-' || n % 10, 'product-' || lpad((n % 5000)::text, 5, '0'), n % 100000, n % 9 + 1,"
    " n % 1000 + 0.25::double precision AS price, n % 5 <> 0, TIMESTAMP '2024-01-01' + n * INTERVAL '1 second' AS sold,"
    " CASE WHEN n % 4 = 0 THEN 'xxxx' END AS note"
)
_JSON: Final = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}


def jdbc_source(turn: Turn) -> Iterator[Figure]:
    """Values are JSON without schemas."""
    total = turn.sizes.lines or _ROWS
    what = "rows of PostgreSQL into a topic, JSON, beside COPY and a producer in Python"
    with Postgres() as server:
        for table, count in (("first", _WARM), ("sales", total)):
            server.run(_created(table))
            server.run(f"INSERT INTO {table} {_SALES} FROM generate_series(0, {count - 1}) n; ANALYZE {table}")
            turn.topics.make([f"{turn.name}-{table}"], PARTITIONS)
        if turn.kind == HEADGATE:
            with turn.worker(more=_drivers()) as side:
                for table, count, told in (("first", _WARM, ""), ("sales", total, what)):
                    topic = f"{turn.name}-{table}"
                    config = {
                        **_connection("JdbcSource", server),
                        "mode": "incrementing",
                        "incrementing.column.name": "id",
                        "table.whitelist": table,
                        "topic.prefix": f"{turn.name}-",
                        **_JSON,
                        "value.converter.schemas.enable": "false",
                    }
                    figures = list(work(side, told, topic, config, count, partial(_arrived, turn, topic, count)))
                yield from figures
        else:
            settings = {
                **_login(turn, server),
                "types": _TYPES,
                "casts": _MILLIS,
                "warm_table": "first",
                "warm_topic": f"{turn.name}-first",
                "table": "sales",
                "topic": f"{turn.name}-sales",
            }
            with Program("copied_table", turn.folder, settings) as program:
                yield from taken(what, total, program.tree, program.work)
        if (found := turn.topics.end(f"{turn.name}-sales", PARTITIONS)) != total:
            raise RuntimeError(f"{found} of {total} rows are in the topic")


def _arrived(turn: Turn, topic: str, total: int) -> bool:
    return turn.topics.end(topic, PARTITIONS) >= total


def jdbc_sink(turn: Turn) -> Iterator[Figure]:
    topic, warm, total = turn.inputs.topic(SALES), first_sales(turn), turn.inputs.count(SALES)
    what = "JSON with schema upserted into PostgreSQL, beside executemany in Python"
    with Postgres() as server:
        for table in ("first", "sales"):
            server.run(_created(table))
        if turn.kind == HEADGATE:
            with turn.worker(more=_drivers()) as side:
                for table, source, count, told in (("first", warm, _WARM, ""), ("sales", topic, total, what)):
                    config = {
                        **_connection("JdbcSink", server),
                        "topics": source,
                        "table.name.format": table,
                        "insert.mode": "upsert",
                        "pk.mode": "record_value",
                        "pk.fields": "id",
                        **_JSON,
                    }
                    with psycopg.connect(_address(server), autocommit=True) as looker:
                        written = partial(_written, looker, table, count)
                        figures = list(work(side, told, f"{turn.name}-{table}", config, count, written))
                yield from figures
        else:
            settings = {
                **_login(turn, server),
                "warm_table": "first",
                "warm_topic": warm,
                "warm_total": _WARM,
                "table": "sales",
                "topic": topic,
                "total": total,
            }
            with Program("upserted_rows", turn.folder, settings) as program:
                yield from taken(what, total, program.tree, program.work)
        summed = "SELECT count(*), sum(id), sum(price), count(note), max(sold)"
        found = server.run(f"{summed} FROM sales")
        wanted = server.run(f"{summed} FROM ({_SALES} FROM generate_series(0, {total - 1}) n) AS s")
        if found != wanted:
            raise RuntimeError(f"The table has {found}, not {wanted}")


def _written(looker: psycopg.Connection[Any], table: str, total: int) -> bool:
    """Asks for the last row of each partition: counting all would take time of what is measured."""
    last = (total - 1) // FILL_BLOCK
    ids = [min(total, (last - back + 1) * FILL_BLOCK) - 1 for back in range(min(PARTITIONS, last + 1))]
    found = looker.execute(f"SELECT count(*) FROM {table} WHERE id = ANY(%s)", [ids])
    return found.fetchone() == (len(ids),)


def _created(table: str) -> str:
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})"


def _drivers() -> dict[str, str]:
    return {"spark.jars": ",".join(map(str, fetch(JDBC_DRIVERS)))}


def _connection(name: str, server: Postgres) -> dict[str, str]:
    login = {"connection.user": USER, "connection.password": server.password}
    return {"connector.class": f"headgate.connectors.{name}", "connection.url": server.url, **login}


def _login(turn: Turn, server: Postgres) -> dict[str, Any]:
    return {"bootstrap": turn.topics.bootstrap, "database": _address(server), "columns": FIELDS}


def _address(server: Postgres) -> str:
    return f"host={HOST} port={server.port} user={USER} password={server.password} dbname=postgres"
