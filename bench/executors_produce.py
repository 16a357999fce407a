"""A folder of files into a topic: through the worker, and sent by the executors; on this machine, and on a cluster.

PYTHONPATH=tests/end_to_end python bench/executors_produce.py [rows]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from side import HEADGATE, Side
from spark_cluster_support import spark_cluster
from topics import Topics

from headgate.dev.broker import Broker

_FILES: Final = 16
_FEW: Final = 1000
"""Rows of a file to warm up with."""
_PARTITIONS: Final = 4
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_COLUMNS: Final = "id BIGINT, customer STRING, note STRING, total DOUBLE"
_WAYS: Final = {"never": "through the worker", "always": "by executors"}


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as made, Broker() as broker:
        folder, topics = Path(made), Topics(broker.bootstrap)
        files = {kind: write(folder / kind, kind, rows // _FILES) for kind in ("parquet", "json")}
        for kind in files:
            write(folder / f"few-{kind}", kind, _FEW)
        with Side(HEADGATE, broker.bootstrap, folder) as side:
            measure("local", side, topics, files, rows)
        cluster = folder / "cluster"
        cluster.mkdir()
        with spark_cluster(cluster) as spark, Side(HEADGATE, broker.bootstrap, folder, more=spark.settings) as side:
            measure("cluster", side, topics, files, rows)


def write(folder: Path, kind: str, rows: int) -> Path:
    """Files of about 100 bytes for each row, as JSON."""
    folder.mkdir()
    for file in range(_FILES):
        first = file * rows
        table = pa.table(
            {
                "id": range(first, first + rows),
                "customer": [f"customer-{number % 10_000}" for number in range(rows)],
                "note": [f"order {number} of the day, to the back door" for number in range(rows)],
                "total": [number / 100 for number in range(rows)],
            }
        )
        if kind == "parquet":
            pq.write_table(table, folder / f"{file:03}.parquet")
        else:
            (folder / f"{file:03}.json").write_text("".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    return folder


def measure(where: str, side: Side, topics: Topics, files: Mapping[str, Path], rows: int) -> None:
    for kind, folder in files.items():
        for way, words in _WAYS.items():
            name = f"{where}-{kind}-{way}"
            carried(f"{name}-warm-up", side, topics, folder.parent / f"few-{kind}", kind, way, _FEW * _FILES)
            took = carried(name, side, topics, folder, kind, way, rows // _FILES * _FILES)
            print(f"{where:8} {kind:8} {words:20} {rows / took:10,.0f} rows/s {took:6.1f} s", flush=True)


def carried(name: str, side: Side, topics: Topics, folder: Path, kind: str, way: str, rows: int) -> float:
    topics.make([name], _PARTITIONS)
    config = {
        "connector.class": "headgate.connectors.SparkSource",
        "path": str(folder),
        "format": kind,
        "schema": _COLUMNS,
        "topic": name,
        "settle.ms": "0",
        "executors.produce": way,
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
    }
    began = time.monotonic()
    side.create(name, config)
    side.until(lambda: topics.end(name, _PARTITIONS) >= rows, "all rows are in the topic", 0.05)
    took = time.monotonic() - began
    side.delete(name)
    topics.delete(name)
    return took


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
