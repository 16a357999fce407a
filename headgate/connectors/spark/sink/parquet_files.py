"""Parquet files that executors write by Arrow: rows that are columns already need not be made rows for Spark's writer.

About a third of the processor time of Spark's own writer (docs/performance.md), for what both write alike. All else is
left to that one: options that only it knows, and columns whose values it names folders by in a way of its own.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CODEC: Final = "spark.sql.parquet.compression.codec"
_SETTINGS: Final = ("spark.sql.parquet.output", "spark.sql.parquet.writeLegacy", "spark.hadoop.parquet.")
"""Of the worker file, about how files look."""
_CODECS: Final[Mapping[str, str]] = {
    **{each: each for each in ("snappy", "gzip", "zstd")},
    **dict.fromkeys(("none", "uncompressed"), "none"),
}
"""Spark's names for them, and Arrow's."""
_ESCAPED: Final = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""What Spark does not have in the name of a folder."""
_NOTHING: Final = "__HIVE_DEFAULT_PARTITION__"
"""Where there is no value, or no text in it."""
_ROWS: Final = ".rows"
"""Where rows are on their way to an executor; no reader looks at it."""


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Plain values, it travels."""

    folder: str
    partition_by: tuple[str, ...]
    codec: str

    @classmethod
    def of(
        cls, session: SparkSession, folder: str, schema: pa.Schema, by: Sequence[str], options: Mapping[str, str]
    ) -> ParquetFiles | None:
        """None: it takes Spark's own writer."""
        given = {name.lower(): value for name, value in options.items()}
        codec = given.pop("compression", session.conf.get(_CODEC, "snappy"))
        known = _CODECS.get((codec or "").strip().lower(), "")
        told = given or any(name.startswith(_SETTINGS) for name in session.conf.getAll)
        alike = all(_named_alike(schema.field(name).type) for name in by)
        return cls(folder, tuple(by), known) if known and alike and not told else None

    def write(self, session: SparkSession, rows: pa.Table, files: int) -> None:
        """Executors of this machine write so many files, for each folder. Raises what they meet."""
        folder = Path(self.folder)
        folder.mkdir()
        several = -(-rows.num_rows // files)
        parts = [folder / f"{_ROWS}-{number}" for number in range(files)]
        try:
            for number, part in enumerate(parts):
                with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
                    writer.write_table(rows.slice(number * several, several))
            names = [str(part) for part in parts]
            session.sparkContext.parallelize(names, files).foreach(self._write_part)
        finally:
            for part in parts:
                part.unlink(missing_ok=True)

    def _write_part(self, name: str) -> None:
        """On an executor."""
        file = f"part-{uuid.uuid4()}.{self.codec}.parquet"
        with pa.memory_map(name) as source:
            for folder, rows in _by_folder(pa.ipc.open_file(source).read_all(), self.partition_by):
                path = Path(self.folder, folder)
                path.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows, path / file, compression=self.codec, store_schema=False)


def _by_folder(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each folder, in their order, without the columns that its name tells."""
    if not by:
        yield "", rows
        return
    parts = [_part_names(name, rows.column(name).combine_chunks()) for name in by]
    folders = pc.dictionary_encode(pc.binary_join_element_wise(*parts, "/"))
    sorted_rows = rows.drop_columns(list(by)).take(pc.sort_indices(folders.indices))
    start = 0
    for name, count in zip(folders.dictionary.to_pylist(), np.bincount(folders.indices).tolist(), strict=True):
        yield name, sorted_rows.slice(start, count)
        start += count


def _part_names(column: str, values: pa.Array) -> pa.Array:
    """As Spark writes them, and reads them again."""
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    texts = ["" if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    return pa.array([f"{_escaped(column)}={_escaped(text) or _NOTHING}" for text in texts]).take(encoded.indices)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _named_alike(kind: pa.DataType) -> bool:
    """Whether Spark names a folder by such a value as Python writes it."""
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind))
