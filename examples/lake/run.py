"""A small lake: PostgreSQL, JDBC, Kafka, SQL, Parquet, Delta. The worker is killed in the middle; nothing is missing.

Run it with `make lake`; `make lake ARGS="--rows 200000"` has more to do.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from headgate.dev import ports
from headgate.dev.broker import Broker, BrokerFailed
from headgate.dev.postgres import Postgres, PostgresFailed
from headgate.jars.find import JavaMissing
from headgate.jars.jars import DELTA, JDBC_DRIVERS, FetchFailed, fetch

HERE = Path(__file__).parent
DATA = Path("lake-data").absolute()
FILES = ("orders-source", "parquet-sink", "delta-sink")
TABLE = """
    CREATE TABLE IF NOT EXISTS orders (id BIGSERIAL PRIMARY KEY, country TEXT NOT NULL, cents BIGINT NOT NULL);
    INSERT INTO orders (country, cents)
    SELECT (ARRAY['AT', 'CH', 'DE', 'FR'])[1 + n % 4], (n * 7919) % 10000 FROM generate_series(1, {rows}) AS n;
"""
QUICK_TO_START = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""All is over before what Java would compile better is worth it."""
TOTALS = "SELECT country, count(*), sum(cents) FROM {relation} GROUP BY country ORDER BY country"


class Failed(Exception):
    """Something did not come up; the message is for whoever tries this."""


def say(text: str) -> None:
    print(f"\n\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"\n==> {text}", flush=True)


class Worker:
    """One worker process, whose output goes to a file."""

    def __init__(self, bootstrap: str) -> None:
        self.url = f"http://127.0.0.1:{8083 if ports.is_free(8083) else ports.pick_free(1)[0]}"
        self.log = DATA / "worker.log"
        self._file = DATA / "worker.properties"
        jars = [*fetch(JDBC_DRIVERS), *fetch(DELTA)]
        own = {"bootstrap.servers": bootstrap, "listeners": self.url, "spark.jars": ",".join(map(str, jars))}
        own |= QUICK_TO_START
        lines = [f"{key}={value}\n" for key, value in own.items()]
        self._file.write_text((HERE / "worker.properties").read_text() + "".join(lines))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "headgate"), "distributed", str(self._file)]
        print(f"    {' '.join(command)} > {self.log} &", flush=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.until("The worker answering", self._healthy)

    def kill(self) -> None:
        assert self._process is not None
        print(f"    kill -9 {self._process.pid}", flush=True)
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def create(self, file: str, values: dict[str, str]) -> None:
        text = (HERE / f"{file}.json").read_text()
        for name, value in values.items():
            text = text.replace(name, value)
        print(f"    {file}.json", flush=True)
        request = urllib.request.Request(f"{self.url}/connectors", text.encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=100):
                pass
        except urllib.error.HTTPError as error:
            raise Failed(f"{file}.json was answered {error.code}: {error.read().decode()}") from None

    def until(self, what: str, condition: Callable[[], Any], seconds: float = 120) -> None:
        """Waits, with a dot each second, until it is so; raises Failed when a task has failed."""
        began, dots = time.monotonic(), 0
        while not condition():
            assert self._process is not None
            if self._process.poll() is not None:
                raise Failed(f"The worker ended: {self.log} says why")
            if time.monotonic() > began + seconds:
                raise Failed(f"{what} did not happen within {seconds:.0f} s: {self.log} may say why")
            if time.monotonic() > began + dots + 1:
                print(".", end="", flush=True)
                dots += 1
                self._require_well()
            time.sleep(0.2)
        if dots:
            print(flush=True)

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=15) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _require_well(self) -> None:
        try:
            with urllib.request.urlopen(f"{self.url}/connectors?expand=status", timeout=15) as answer:
                found = json.load(answer)
        except OSError:
            return
        for each in found.values():
            for task in each["status"]["tasks"]:
                if task["state"] == "FAILED":
                    raise Failed(f"A task of {each['status']['name']} has failed:\n{task['trace']}")


def rows_of(folder: Path) -> int:
    """Rows that a reader would see."""
    return rows_of_delta(folder) if (folder / "_delta_log").is_dir() else rows_of_files(folder)


def rows_of_delta(folder: Path) -> int:
    """By its log: files that are being written, or that a dead worker left, are no part of the table."""
    changes = (json.loads(line) for file in (folder / "_delta_log").glob("*.json") for line in file.open())
    return sum(json.loads(change["add"]["stats"])["numRecords"] for change in changes if "add" in change)


def rows_of_files(folder: Path) -> int:
    """By their footers."""
    import pyarrow.parquet as pq

    files = [path for path in folder.rglob("*.parquet") if not any(part.startswith("_") for part in path.parts)]
    return sum(pq.read_metadata(path).num_rows for path in files)


def complete(folder: Path, rows: int) -> bool:
    return rows_of(folder) >= rows


def queried() -> dict[str, list[tuple[Any, ...]]]:
    """Both halves of the lake, asked by a Spark that has nothing to do with the worker's."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {
        "spark.jars": ",".join(map(str, fetch(DELTA))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        **QUICK_TO_START,
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        session.sparkContext.setLogLevel("ERROR")
        found = {}
        for kind in ("parquet", "delta"):
            session.read.format(kind).load(str(DATA / kind)).createOrReplaceTempView(kind)
            query = TOTALS.format(relation=kind)
            print(f"    spark.sql({query!r})", flush=True)
            found[kind] = [tuple(row) for row in session.sql(query).collect()]
        return found
    finally:
        session.stop()


def tour(worker: Worker, database: Postgres, rows: int) -> None:
    say(f"A table of {rows:,} orders in PostgreSQL")
    database.run(TABLE.format(rows=rows))
    say("Three connectors: the table into Kafka, from there into Parquet and into Delta")
    secret = DATA / "database.properties"
    secret.write_text(f"password={database.password}\n")
    secret.chmod(0o600)
    for file in FILES:
        worker.create(file, {"DATABASE": database.url, "PASSWORD": str(secret), "FOLDER": str(DATA)})
    worker.until("The first files", lambda: rows_of(DATA / "parquet") and rows_of(DATA / "delta"))
    arrived = rows_of(DATA / "parquet")
    say(f"{arrived:,} rows are there: killing the worker as a power cut would, and then more orders come")
    worker.kill()
    database.run(TABLE.format(rows=rows))
    worker.start()
    for kind in ("parquet", "delta"):
        worker.until(f"All rows in {kind}", partial(complete, DATA / kind, 2 * rows))
    say("Counting: the database, then the lake by Spark SQL")
    wanted = [
        (country, int(count), int(cents)) for country, count, cents in database.run(TOTALS.format(relation="orders"))
    ]
    for line in wanted:
        print("    orders:  {} {:>8,} {:>14,}".format(*line))
    worker.stop()
    for kind, found in queried().items():
        if found != wanted:
            raise Failed(f"{kind} has {found}, the database {wanted}")
        print(f"    {kind}: the same, to the cent", flush=True)


def run(rows: int) -> None:
    began = time.monotonic()
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    say("Starting PostgreSQL and a Kafka broker (the first time, jars are downloaded)")
    with Postgres() as database, Broker(DATA / "broker") as broker:
        worker = Worker(broker.bootstrap)
        try:
            say("Starting a worker")
            worker.start()
            tour(worker, database, rows)
            say(f"Done in {time.monotonic() - began:.0f} s: 0 lost, 0 doubled. The lake is in {DATA.name}")
        finally:
            worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="From PostgreSQL through Kafka into Parquet and Delta.")
    parser.add_argument("--rows", type=int, default=50_000, help="of the table, before and after the kill (50,000)")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(parser.parse_args().rows)
    except (Failed, BrokerFailed, PostgresFailed, FetchFailed, JavaMissing) as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
