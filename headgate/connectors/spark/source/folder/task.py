"""FolderTask: the records of new files in a folder."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Final

from headgate.api import Reach, ReachKind, SourceFrame, SourceTable
from headgate.connectors.spark.hadoop import HadoopFiles
from headgate.connectors.spark.source.config import ALWAYS, SparkSourceConfig
from headgate.connectors.spark.source.folder.formats import TEXT, is_pattern
from headgate.connectors.spark.source.folder.listing import FolderListing, local_files
from headgate.connectors.spark.source.folder.mark import PATH, FolderFile, FolderMark, pending
from headgate.connectors.spark.source.polling import SparkPolling, failure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


log = logging.getLogger(__name__)

_FILES: Final = 1000
"""Most that one job reads; a job for each of many small ones would cost more than reading them."""
_BYTES: Final = 64 * 1024 * 1024
_FRAME_BYTES: Final = 256 * 1024 * 1024
"""Most that executors send in one job: if it is broken off, all of it is sent again."""
_LARGE: Final = 1024 * 1024
"""From here on executors that send are worth it: a job of theirs takes half a second at least."""


class FolderTask(SparkPolling):
    """Files are read in their order, and behind the last record of each the mark moves on. The folder is looked at by
    the worker; Spark jobs are run only when there is something to read."""

    def __init__(self) -> None:
        super().__init__()
        self._columns: StructType | None = None
        self._reading: Sequence[FolderFile] = ()
        self._before_frame: FolderMark | None = None
        self._alone = 0
        """Of so many files some could not be read: which one is found out by reading them one by one."""

    def start(self, config: Mapping[str, str]) -> None:
        self.config = given = SparkSourceConfig.of(config)
        assert given.folder is not None
        self._folder, self._path = given.folder, given.folder.path
        self.context.require(given.folder.reach(ReachKind.READ, PATH))
        self._listing = FolderListing(self._path, self._look, given.pattern, given.by_time)
        self._partition = {PATH: self._path}
        stored = self.context.offset_reader.offset(self._partition)
        self._mark = None if stored is None else FolderMark.read(stored, given.by_time)

    def _next(self) -> SourceTable | SourceFrame | None:
        if self._pieces is None:
            found = self._pending()
            if not found:
                self._look_later()
                return None
            given = self._begin(found)
            if given is not None:
                return given
        assert self._pieces is not None
        try:
            piece = next(self._pieces, None)
        except Exception as error:
            told = failure(f"File {self._of(self._reading[0])} could not be read", error)
            if told is error or len(self._reading) == 1 or self._stopping.is_set():
                raise told from told.__cause__
            self._alone = len(self._reading)
            self._let_go()
            return None
        if piece is None or piece.last:
            self._let_go()
            self._alone = max(0, self._alone - 1)
            place = len(self._reading) - 1
            same = piece is not None and piece.place == place
            return self._given(place, piece.end if piece is not None and same else 0, True, piece and piece.table)
        return self._given(piece.place, piece.end, False, piece.table)

    # --- which files --------------------------------------------------------------------------------------------------

    def _look(self) -> Iterable[FolderFile]:
        if self._folder.local is not None:
            return local_files(self._folder.local)
        found = HadoopFiles(self._session(), self._folder.uri).listed(self._folder.uri)
        return [FolderFile(each.name, each.modified, each.size) for each in found if not each.folder]

    def _pending(self) -> list[FolderFile]:
        files = self._listing.files()
        if self._mark is not None:
            self._listing.look_for_late(files, self._mark)
        settle = self.config.settle_ms
        settled_at = time.time_ns() // 1_000_000 - settle if settle else None
        return pending(files, self._mark, self.config.by_time, settled_at)

    def _together(self, found: Sequence[FolderFile], most: int) -> Sequence[FolderFile]:
        """Those that one job reads, of no more bytes than this; at least one."""
        if self._alone:
            return found[:1]
        sizes = accumulate(file.size for file in found)
        small = [file for file, size in zip(found, sizes, strict=True) if size <= most]
        return list(takewhile(lambda file: not is_pattern(self._of(file)), small[:_FILES])) or found[:1]

    def _begin(self, found: Sequence[FolderFile]) -> SourceTable | SourceFrame | None:
        """Has Spark read the first of them, or send them; or moves the mark behind a file that has no columns, and so
        no records."""
        from headgate.connectors.spark.source.folder.reading import FileReading
        from headgate.connectors.spark.source.shape import SourceShape, columns_of

        files = self._together(found, _FRAME_BYTES)
        large = self.config.executors == ALWAYS or sum(file.size for file in files) >= _LARGE
        framed = large and self._gives_frames and not self._alone and not self._done_of(files[0])
        if not framed:
            files = self._together(found, _BYTES)
        paths = [self._of(file) for file in files]
        if self._folder.local is not None:
            for path in paths:  # a link may lead anywhere
                self.context.require(Reach(ReachKind.READ, path, PATH))
        session = self._session()
        reading = FileReading(self.config.format, self.config.options, self.config.batch_size)
        self._reading = files
        if self._columns is None:
            try:
                told = self.config.schema
                columns = reading.columns(session, paths[0]) if told is None else columns_of(told)
            except Exception as error:
                problem = failure(f"File {paths[0]} could not be read", error)
                raise problem from problem.__cause__
            if not columns.fields:
                return self._given(0, 0, True, None)
            log.info("Columns: %s", columns.simpleString())
            self._shape = SourceShape.of(columns, self.config, bare=self.config.format == TEXT)
            self._columns = columns
        if framed:
            return self._frame(partial(reading.frame, paths=paths, columns=self._columns))
        self._pieces = reading.pieces(session, paths, self._columns, self._done_of(files[0]))
        return None

    def _done_of(self, file: FolderFile) -> int:
        mark = self._mark
        if mark is None or mark.done or mark.name != file.name or mark.modified not in (None, file.modified):
            return 0
        return mark.records

    def _of(self, file: FolderFile) -> str:
        return os.path.join(self._path, file.name)

    # --- what is given ------------------------------------------------------------------------------------------------

    def _given(self, place: int, records: int, done: bool, read: pa.Table | None) -> SourceTable:
        """Records that end in the file of this number, behind so many of it."""
        import pyarrow as pa

        return SourceTable(
            topic=self.config.topic,
            table=pa.table({"value": pa.nulls(0)}) if read is None else self._shape.records(read),
            source_partition=self._partition,
            source_offset=self._moved(place, records, done),
            value_schema=None if read is None else self._shape.value_schema,
            key_schema=None if read is None else self._shape.key_schema,
        )

    def _frame(self, made: Callable[[SparkSession], DataFrame]) -> SourceFrame:
        """All records of the files. How many the last one has, nobody knows yet: it is done."""
        self._before_frame = self._mark
        return SourceFrame(
            topic=self.config.topic,
            frame=made,
            source_partition=self._partition,
            source_offset=self._moved(len(self._reading) - 1, 0, True),
            value_schema=self._shape.value_schema,
            key_schema=self._shape.key_schema,
            records=self._shape.tables,
        )

    def _go_back(self) -> None:
        self._mark = self._before_frame

    def _moved(self, place: int, records: int, done: bool) -> dict[str, Any]:
        """Moves the mark to the file of this number, behind so many of its records: the offset."""
        file = self._reading[place]
        self._mark = FolderMark(file.name, file.modified if self.config.by_time else None, records, done)
        self._listing.passed([each.name for each in self._reading[: place + 1]])
        return self._mark.written()
