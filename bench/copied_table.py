"""A table of PostgreSQL into a topic, by one Python process: COPY, orjson and a producer; run by `databases.py`."""

from __future__ import annotations

import json
import sys
from typing import Any

import orjson
import psycopg
from confluent_kafka import Producer
from program import serve


def run(settings: dict[str, Any], table: str, topic: str) -> None:
    names, casts = settings["columns"], settings["casts"]
    shown = ", ".join(casts.get(name, name) for name in names)
    producer = Producer(
        {
            "bootstrap.servers": settings["bootstrap"],
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
        }
    )
    with psycopg.connect(settings["database"]) as connection, connection.cursor() as cursor:
        order = f"COPY (SELECT {shown} FROM {table} ORDER BY id) TO STDOUT (FORMAT BINARY)"
        with cursor.copy(order) as copy:
            copy.set_types(settings["types"])
            for row in copy.rows():
                value = orjson.dumps(dict(zip(names, row, strict=True)))
                while True:
                    try:
                        producer.produce(topic, value)
                        break
                    except BufferError:
                        producer.poll(0.1)
    if producer.flush(60):
        raise TimeoutError(f"Not all rows reached {topic}")


def main() -> None:
    settings = json.loads(sys.argv[1])
    serve(
        lambda: run(settings, settings["warm_table"], settings["warm_topic"]),
        lambda: run(settings, settings["table"], settings["topic"]),
    )


if __name__ == "__main__":
    main()
