"""FileStreamSink with exactly.once=true: lines and the offsets behind them become visible together, by one rename.

The folder, not the consumer group, says where to go on. Lines are gathered out of sight, one draft for each partition;
when offsets are to be committed, the draft becomes the next entry of the partition's ledger, and only then does Kafka
hear of its offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headgate.api import ConnectError, Form, Reach, ReachKind, TableSinkTask, TopicPartition
from headgate.connectors.file_sink_config import FILE, FileSinkConfig
from headgate.connectors.ledger import Draft, Ledger, Place, Taken
from headgate.connectors.lines import lines_of

if TYPE_CHECKING:
    import pyarrow as pa

_TOPIC: Final = "original_topic"
_PARTITION: Final = "original_partition"
_OFFSET: Final = "original_offset"


class _Held:
    """A partition that the task has."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._place = Place()
        self._draft: Draft | None = None
        self._taken: Taken | None = None

    def check(self) -> None:
        """Raises Taken when another task was found to have it too."""
        if self._taken is not None:
            raise self._taken

    def begin(self) -> int | None:
        """Where to go on, if the folder knows."""
        self._place = self._ledger.end()
        return self._place.offset

    def add(self, rows: pa.Table) -> None:
        import pyarrow.compute as pc

        offsets = rows.column(_OFFSET)
        if self._place.offset is not None and pc.min(offsets).as_py() < self._place.offset:
            # Read again, from an offset that the group still has.
            rows = rows.filter(pc.greater_equal(offsets, self._place.offset))
            offsets = rows.column(_OFFSET)
        if rows.num_rows:
            if self._draft is None:
                self._draft = self._ledger.draft()
            with self._alone(), self._ledger.writing():
                self._draft.add(lines_of(rows.column("value")), pc.max(offsets).as_py() + 1)

    def commit(self, until: int) -> bool:
        """Whether the folder has everything before this offset and nothing behind it."""
        self.check()
        at = self._place.offset or 0
        if until > at:
            draft, self._draft = self._draft or self._ledger.draft(), None
            try:
                with self._alone():
                    self._place = self._ledger.add(draft, self._place, until)
            finally:
                draft.discard()
        return until >= at

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            yield
        except Taken as taken:
            self._taken = taken
            raise

    def discard(self) -> None:
        draft, self._draft = self._draft, None
        if draft is not None:
            draft.discard()


class ExactFileSinkTask(TableSinkTask):
    """Writes the text of each value and a newline, once."""

    columns = ("value", _TOPIC, _PARTITION, _OFFSET)
    form = Form.TEXT

    def __init__(self) -> None:
        self._held: dict[TopicPartition, _Held] = {}

    def start(self, config: Mapping[str, str]) -> None:
        file = FileSinkConfig.of(config).file
        assert file is not None
        self._root = Path(file)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.context.require(Reach(ReachKind.WRITE, str(self._root), FILE))
        for where in partitions:
            ledger = Ledger(self._root, where)
            ledger.discard_drafts()
            self._held[where] = _Held(ledger)
            self._begin(where)

    def _begin(self, where: TopicPartition) -> None:
        offset = self._held[where].begin()
        if offset is not None:
            self.context.offset(where, offset)

    def put(self, table: pa.Table) -> None:
        for held in self._held.values():
            held.check()
        for where, rows in _by_partition(table):
            if where in self._held:
                self._held[where].add(rows)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        try:
            return {where: until for where, until in offsets.items() if self._commit(where, until)}
        except Exception:
            # The runtime goes back and tries again. One that is not alone ends at the next put, unless it has heard by
            # then that the partition is not its own any more.
            for held in self._held.values():
                held.discard()
            for where in self._held:
                self._begin(where)
            raise

    def _commit(self, where: TopicPartition, until: int) -> bool:
        return where in self._held and self._held[where].commit(until)

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        for where in partitions:
            held = self._held.pop(where, None)
            if held is not None:
                held.discard()

    def stop(self) -> None:
        self.close(list(self._held))


def _by_partition(table: pa.Table) -> Iterator[tuple[TopicPartition, pa.Table]]:
    import pyarrow.compute as pc

    if any(table.column(name).null_count for name in (_TOPIC, _PARTITION, _OFFSET)):
        raise ConnectError(
            "A record does not say which one of Kafka it was: a transform made it anew instead of changing it"
        )
    found = table.group_by([_TOPIC, _PARTITION], use_threads=False).aggregate([]).to_pylist()
    for topic, partition in ((each[_TOPIC], each[_PARTITION]) for each in found):
        where = TopicPartition(topic, partition)
        if len(found) == 1:
            yield where, table
        else:
            same = pc.and_(pc.equal(table.column(_TOPIC), topic), pc.equal(table.column(_PARTITION), partition))
            yield where, table.filter(same)
