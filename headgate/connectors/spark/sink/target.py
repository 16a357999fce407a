"""Target: where rows go, and who may keep the offsets beside them; and what all targets do with Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from headgate.api import TopicPartition
from headgate.connectors.durable import unwritable
from headgate.connectors.spark.sink.config import DELTA, SparkSinkConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE_BYTES: Final = 64 * 1024 * 1024
"""About so much of memory goes into one file; compressed, it is less."""
_NOT_THERE: Final = (
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNABLE_TO_INFER_SCHEMA",
)
"""Spark's words for a table or folder that has nothing yet."""
_DESCRIBED: Final = ("parquet", "orc", DELTA)
"""Formats that say which columns there are."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a target says when it is opened."""

    schema: pa.Schema | None = None
    """Its columns, if it has any and can tell."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where to go on, if it keeps offsets."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    rows: pa.Table
    """With all columns; there may be none."""
    offsets: Mapping[TopicPartition, int]
    """Where to go on after them: of all partitions that were ever known."""
    deleted: pa.Array | None = None
    """With upsert: a mask of rows that are to go, of which only the keys count."""


class Target(Protocol):
    """Used by the task's thread alone. What Spark raises may come out of both, the end of its JVM among it."""

    def open(self, session: SparkSession) -> Opened:
        """Called first, and again whenever a write failed."""

    def write(self, session: SparkSession, batch: RowBatch) -> None:
        """All of it, or nothing that counts; a target that keeps no offsets may have written some."""


def altered(
    offsets: Mapping[TopicPartition, int], changes: Mapping[TopicPartition, int | None]
) -> Mapping[TopicPartition, int]:
    """With what a user wants instead. None, and no changes at all, mean that the target shall not know: then the group
    says where to go on."""
    wanted = {**offsets, **changes} if changes else {}
    return {where: offset for where, offset in wanted.items() if offset is not None}


def move_offsets(target: Target, session: SparkSession, changes: Mapping[TopicPartition, int | None]) -> None:
    """By a commit of no rows. Where there is nothing yet, there are no offsets to move. Raises Taken, ConnectError."""
    opened = target.open(session)
    wanted = altered(opened.offsets, changes)
    if opened.schema is not None and wanted != opened.offsets:
        target.write(session, RowBatch(opened.schema.empty_table(), wanted))


def frame_of(session: SparkSession, rows: pa.Table) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    frame = session.createDataFrame(rows.combine_chunks(), schema)
    return frame.coalesce(files_for(rows))


def files_for(rows: pa.Table) -> int:
    return 1 + int(rows.nbytes // _FILE_BYTES)


def schema_of(session: SparkSession, config: SparkSinkConfig) -> pa.Schema | None:
    """Of what is there; None where there is nothing, or it does not tell."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        if config.table is not None:
            found = session.table(config.table).schema
        elif config.location is not None and config.format in _DESCRIBED:
            found = session.read.format(config.format).option("mergeSchema", True).load(config.location.uri).schema
        else:
            return None
    except AnalysisException as error:
        if error.getCondition() in _NOT_THERE:
            return None
        raise
    schema = to_arrow_schema(found, timezone="UTC")
    if config.table is None and config.format != DELTA:  # the types of these are guessed from names of folders
        schema = pa.schema([each for each in schema if each.name not in config.partition_by])
    return schema if len(schema) else None


@contextmanager
def told(what: str) -> Iterator[None]:
    """What goes wrong in Spark meanwhile, said so that users understand it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        yield
    except (CapturedException, Py4JJavaError) as error:
        raise unwritable(what, _short(error)) from error
    except OSError as error:
        raise unwritable(what, error.strerror or str(error)) from error


def _short(error: Exception) -> str:
    """The last cause of many, which is the first."""
    lines = [*str(error).splitlines(), *str(getattr(error, "_stackTrace", "") or "").splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else next((line for line in lines if line.strip()), type(error).__name__)
