"""Data sources for PySpark that follow a file: each line is a row. Their options are the same."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)

COLUMNS = "number INT NOT NULL, text STRING, half DOUBLE"


def lines(file: str) -> list[str]:
    return Path(file).read_text().splitlines() if Path(file).exists() else []


def row(number: int, text: str) -> tuple[int, str, float]:
    return number, text, number / 2


class _Followed(DataSource):
    def schema(self) -> str:
        return self.options.get("columns", COLUMNS)


class Part(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        super().__init__((start, end))
        self.start, self.end = start, end


class LinesReader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.file, self.parts = options["file"], int(options.get("parts", "2"))
        self.form = options.get("form", "tuple")
        self.told = options.get("told")
        """Where it writes what it is told."""
        self.slow = options.get("slow")

    def initialOffset(self) -> dict[str, Any]:
        return {"line": 0}

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
        return {"line": len(lines(self.file))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._note(f"partitions {start['line']} {end['line']}")
        count = end["line"] - start["line"]
        edges = [start["line"] + count * part // self.parts for part in range(self.parts + 1)]
        return [Part(*pair) for pair in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Part)
        self._note(f"read by {os.getpid()}")
        found = lines(self.file)
        if self.slow and Path(self.slow).exists():
            Path(f"{self.slow}.reached").touch()
            time.sleep(120)
        rows = [row(number, found[number]) for number in range(partition.start, partition.end)]
        for each in rows:
            if each[1] == "bad":
                raise ValueError(f"line {each[0]} is bad")
        if self.form == "arrow":
            kind = pa.schema([pa.field("number", pa.int32(), False), ("text", pa.string()), ("half", pa.float64())])
            yield pa.RecordBatch.from_pylist([dict(zip(kind.names, each, strict=True)) for each in rows], kind)
        elif self.form == "row":
            yield from (Row(half=half, number=number, text=text) for number, text, half in rows)
        else:
            yield from rows

    def commit(self, end: dict[str, Any]) -> None:
        self._note(f"commit {end['line']}")

    def stop(self) -> None:
        self._note("stop")

    def _note(self, what: str) -> None:
        if self.told:
            with open(self.told, "a") as out:
                out.write(f"{what}\n")


class Lines(_Followed):
    """Read by the executors, in parts."""

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return LinesReader(dict(self.options))


class NestedReader(LinesReader):
    def initialOffset(self) -> dict[str, Any]:
        return {"file": {"line": 0}, "kinds": ["a", None]}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # type: ignore[override]
        most = start["file"]["line"] + 7
        return {**start, "file": {"line": min(most, len(lines(self.file)))}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return super().partitions(start["file"], end["file"])

    def commit(self, end: dict[str, Any]) -> None:
        super().commit(end["file"])


class Nested(_Followed):
    """Its offsets are nested, and it goes on by no more than seven lines at a time."""

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return NestedReader(dict(self.options))


class SimpleReader(SimpleDataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.file = options["file"]

    def initialOffset(self) -> dict[str, Any]:
        return {"line": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[Any], dict[str, Any]]:
        found = lines(self.file)
        return self._rows(found, start["line"], len(found)), {"line": len(found)}

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any]:
        return self._rows(lines(self.file), start["line"], end["line"])

    def _rows(self, found: list[str], start: int, end: int) -> Iterator[Any]:
        return iter([row(number, found[number]) for number in range(start, end)])


class Simple(_Followed):
    """Read by the worker."""

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return SimpleReader(dict(self.options))


class ForgetfulReader(SimpleReader):
    readBetweenOffsets = SimpleDataSourceStreamReader.readBetweenOffsets


class Forgetful(_Followed):
    """Cannot read again what it has read."""

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:
        return ForgetfulReader(dict(self.options))


class Whole(_Followed):
    """Can be read as a whole only."""

    def reader(self, schema: Any) -> DataSourceReader:
        raise NotImplementedError
