"""Sales of a topic into Parquet, by a query of Structured Streaming; run by `lake.py`."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

from program import serve
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, timestamp_millis

_ENVELOPE = (
    "payload STRUCT<id: BIGINT, region: STRING, product: STRING, customer: BIGINT, pieces: INT, price: DOUBLE,"
    " paid: BOOLEAN, sold: BIGINT, note: STRING>"
)


def append(path: str, batch: DataFrame, _: int) -> None:
    batch.write.mode("append").partitionBy("region").parquet(path)


def run(session: SparkSession, settings: dict[str, Any], topic: str, path: str) -> None:
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings["bootstrap"])
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    sales = records.select(from_json(col("value").cast("string"), _ENVELOPE).alias("sale")).select("sale.payload.*")
    query = (
        sales.withColumn("sold", timestamp_millis("sold"))
        .writeStream.foreachBatch(partial(append, path))
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{path}.checkpoint")
        .start()
    )
    query.awaitTermination()


def main() -> None:
    settings = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings["spark"].items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    serve(
        lambda: run(session, settings, settings["warm"], settings["path"] + ".warm"),
        lambda: run(session, settings, settings["topic"], settings["path"]),
    )
    session.stop()


if __name__ == "__main__":
    main()
