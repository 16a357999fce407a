"""Records into Parquet by SparkSink: how quick, beside a query of Structured Streaming, and what a backlog costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from backlog import Peak
from inputs import BACKLOG, PARTITIONS, SALES
from program import Program
from rates import taken, work
from side import HEADGATE, Side
from turn import Figure, Quantity, Turn

from headgate.jars.jars import SPARK_KAFKA, fetch

_WARM: Final = 20_000
_HEAP: Final = "2g"
"""As a worker's driver has it unless told."""
_FEWER: Final = 10
_JSON: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "partition.by": "region",
    # What is gathered at the end of the topic shall not wait for a minute for more.
    "rotate.ms": "1000",
}
_LINE: Final = {
    "transforms": "hoist",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
    "rotate.ms": "1000",
}


class ParquetRows:
    """Of a folder that grows, counted by reading the footers of new files only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, int] = {}

    def count(self) -> int:
        # Not elsewhere: those files are not finished.
        for file in (*self._folder.glob("*.parquet"), *self._folder.glob("*=*/*.parquet")):
            if file not in self._known:
                self._known[file] = pq.read_metadata(file).num_rows
        return sum(self._known.values())


def lake_sink(turn: Turn) -> Iterator[Figure]:
    topic, total = turn.inputs.topic(SALES), turn.inputs.count(SALES)
    warm, path = first_sales(turn), turn.folder / "lake"
    what = "JSON with schema into Parquet in 10 folders, beside Structured Streaming"
    if turn.kind == HEADGATE:
        with turn.worker() as side:
            rows = ParquetRows(turn.folder / "warm")
            list(
                work(side, "", "warm", spark_sink(warm, turn.folder / "warm", _JSON), 1, lambda: rows.count() >= _WARM)
            )
            found = ParquetRows(path)
            config = spark_sink(topic, path, {**_JSON, "tasks.max": "1"})
            yield from work(side, what, turn.name, config, total, lambda: found.count() >= total)
    else:
        jars = ",".join(map(str, fetch(SPARK_KAFKA)))
        spark = {"spark.jars": jars, "spark.driver.memory": _HEAP, "spark.ui.enabled": "false"}
        settings = {"bootstrap": turn.topics.bootstrap, "topic": topic, "warm": warm, "path": str(path), "spark": spark}
        with Program("streaming_query", turn.folder, settings) as query:
            yield from taken(what, total, query.tree, query.work)
    check(path, total)


def first_sales(turn: Turn) -> str:
    """A topic with a few, to be warm."""
    name, record = f"{turn.name}-first", SALES.records(turn.sizes.size, "")
    turn.topics.make([name], PARTITIONS)
    turn.topics.fill(name, map(record, range(_WARM)), PARTITIONS)
    return name


def spark_sink(topic: str, path: Path, more: Mapping[str, str]) -> dict[str, str]:
    return {
        "connector.class": "headgate.connectors.SparkSink",
        "topics": topic,
        "path": str(path),
        "format": "parquet",
        "exactly.once": "true",
        **more,
    }


def check(path: Path, total: int) -> None:
    """Who does not do the work is not to win: each sale is there once, in its folder."""
    found = ds.dataset(path, partitioning="hive").to_table(["id", "region", "price"])
    ids, folders = pc.count_distinct(found.column("id")).as_py(), pc.count_distinct(found.column("region")).as_py()
    price = sum(number % 1000 + 0.25 for number in range(total))
    if (found.num_rows, ids, pc.sum(found.column("price")).as_py()) != (total, total, price) or folders != min(
        10, total
    ):
        raise RuntimeError(f"{path} has {found.num_rows} rows with {ids} numbers in {folders} folders, not {total}")


def lake_backlog(turn: Turn) -> Iterator[Figure]:
    """The other side is the same sink with a tenth of the records: what is bounded is no more for ten times as many."""
    total = turn.inputs.count(BACKLOG)
    what = f"SparkSink {total:,} records behind, beside a tenth of that"
    if turn.kind == HEADGATE:
        topic = turn.inputs.topic(BACKLOG)
    else:
        topic, total = f"{turn.name}-few", total // _FEWER
        turn.topics.make([topic], PARTITIONS)
        turn.topics.fill(topic, map(BACKLOG.records(turn.sizes.size, ""), range(total)), PARTITIONS)
    with Side(HEADGATE, turn.topics.bootstrap, turn.folder) as side:
        rows, began = ParquetRows(turn.folder / "lake"), time.monotonic()
        with Peak(side) as peak:
            side.create(turn.name, spark_sink(topic, turn.folder / "lake", _LINE))
            side.until(lambda: rows.count() >= total, "all records have arrived", 0.2)
        yield Figure(what, total / (time.monotonic() - began), Quantity.RATE)
        yield Figure(f"{what}: most memory", peak.memory, Quantity.MEMORY)
