"""Sales of a topic into a table of PostgreSQL, by one Python process: a consumer, orjson and executemany; run by
`databases.py`."""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid
from typing import Any, Final

import orjson
import psycopg
from confluent_kafka import Consumer
from program import serve

_ROWS: Final = 5000
_EPOCH: Final = dt.datetime(1970, 1, 1)


def run(settings: dict[str, Any], topic: str, table: str, total: int) -> None:
    """Each batch is a transaction, and its offsets are committed after it."""
    names = settings["columns"]
    others = ", ".join(f"{name} = EXCLUDED.{name}" for name in names if name != "id")
    sql = (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"
        f" ON CONFLICT (id) DO UPDATE SET {others}"
    )
    consumer = Consumer(
        {
            "bootstrap.servers": settings["bootstrap"],
            "group.id": f"{table}-{uuid.uuid4().hex}",  # the rounds share a topic
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    done = 0
    with psycopg.connect(settings["database"]) as connection, connection.cursor() as cursor:
        while done < total:
            rows = []
            for message in consumer.consume(_ROWS, 1.0):
                sale = orjson.loads(message.value() or b"")["payload"]
                sale["sold"] = _EPOCH + dt.timedelta(milliseconds=sale["sold"])
                rows.append(tuple(sale.values()))
            if rows:
                cursor.executemany(sql, rows)
                connection.commit()
                consumer.commit(asynchronous=True)
                done += len(rows)
    consumer.close()


def main() -> None:
    settings = json.loads(sys.argv[1])
    serve(
        lambda: run(settings, settings["warm_topic"], settings["warm_table"], settings["warm_total"]),
        lambda: run(settings, settings["topic"], settings["table"], settings["total"]),
    )


if __name__ == "__main__":
    main()
