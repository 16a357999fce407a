"""What the runtime promises a sink task, played with plain values: offsets, puts, commits, failures, crashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from headgate.api import TopicPartition
from headgate.api.testing import MemorySinkTaskContext
from headgate.connectors.exact_file_sink import ExactFileSinkTask

Row = tuple[TopicPartition, int, str]


def rows_of(where: TopicPartition, offset: int) -> list[Row]:
    """What transforms make of a record: one row, none, or several."""
    return [(where, offset, f"{where} {offset} {number}") for number in range((offset * 7 + where.partition) % 4)]


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        {
            "value": pa.array([value for _, _, value in rows], pa.string()),
            "original_topic": pa.array([where.topic for where, _, _ in rows], pa.string()),
            "original_partition": pa.array([where.partition for where, _, _ in rows], pa.int32()),
            "original_offset": pa.array([offset for _, offset, _ in rows], pa.int64()),
        }
    )


def written(root: Path) -> dict[str, list[str]]:
    """The lines of each partition, in the order of the sorted paths."""
    found: dict[str, list[str]] = {}
    for file in sorted(root.glob("*/*/until-*.txt")):
        found.setdefault(file.parent.parent.name, []).extend(file.read_text().splitlines())
    return found


class Group:
    """A consumer group of one task at a time, and the offsets that it has committed."""

    def __init__(self, root: Path, ends: Mapping[TopicPartition, int]) -> None:
        self.root = root
        self.ends = ends
        self.committed: dict[TopicPartition, int] = {}
        self.member = Member(self)

    def crash(self) -> Member:
        """The task is gone, or only thought to be; the next one begins. The old one is returned."""
        old, self.member = self.member, Member(self)
        return old

    def finish(self) -> None:
        """To the end of the topic."""
        while any(self.member.positions[where] < end for where, end in self.ends.items()):
            self.member.put(50)
        self.member.commit()
        self.member.leave()

    def check(self) -> None:
        expected = {
            str(where): [value for offset in range(end) for _, _, value in rows_of(where, offset)]
            for where, end in self.ends.items()
        }
        found = written(self.root)
        assert {name: found.get(name, []) for name in expected} == expected


class Member:
    """One task with all partitions, as `tasks/sink/loop.py` drives it."""

    def __init__(self, group: Group) -> None:
        self.group = group
        config = {"file": str(group.root), "exactly.once": "true"}
        self.task = ExactFileSinkTask()
        self.context = MemorySinkTaskContext(config, group.ends)
        self.task.context = self.context
        self.task.start(config)
        self.positions: dict[TopicPartition, int] = {}
        self.safe: dict[TopicPartition, int] = {}
        self.open()

    def open(self) -> None:
        self.positions = {where: self.group.committed.get(where, 0) for where in self.group.ends}
        self.task.open(list(self.positions))
        self.positions |= self._wishes()
        self.safe = dict(self.positions)

    def _wishes(self) -> dict[TopicPartition, int]:
        wished = dict(self.context.rewound)
        self.context.rewound.clear()
        return wished

    def put(self, count: int, pieces: int = 1, but: int = 0) -> None:
        """A batch of `count` records of each partition, in so many calls; without the last `but` of them, something
        failed in between."""
        following = {where: min(at + count, self.group.ends[where]) for where, at in self.positions.items()}
        rows = [
            row
            for where, at in self.positions.items()
            for offset in range(at, following[where])
            for row in rows_of(where, offset)
        ]
        step = -(-len(rows) // pieces) or 1
        for number in range(pieces - but):
            self.task.put(table(rows[number * step : (number + 1) * step]))
        if but == 0:
            self.positions = following

    def commit(self, heard: bool = True) -> bool:
        """Whether the task let it pass. Kafka may not hear of it."""
        try:
            passed = self.task.pre_commit(dict(self.positions))
        except Exception:
            self.positions = {**self.safe, **self._wishes()}
            self.safe = dict(self.positions)
            return False
        assert all(offset <= self.positions[where] for where, offset in passed.items())
        self.safe |= passed
        if heard:
            self.group.committed |= passed
        return True

    def rebalance(self) -> None:
        """The partitions go, with a commit, and come back."""
        self.commit()
        self.task.close(list(self.positions))
        self.open()

    def lose(self) -> None:
        """They go without a commit, and come back."""
        self.task.close(list(self.positions))
        self.open()

    def leave(self) -> None:
        self.task.close(list(self.positions))
        self.task.stop()
