"""SourceConnectorSuite: what is expected of a source connector and its tasks."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from headgate.api.connector import ExactlyOnceSupport, SourceConnector
from headgate.api.errors import RetriableError
from headgate.api.record import SourceRecord
from headgate.api.task import SourceFrame, SourceTable, SourceTask
from headgate.api.testing.doubles import MemoryOffsets, MemorySourceTaskContext
from headgate.api.testing.suite import ConnectorSuite


@dataclass(frozen=True, slots=True)
class CommitUnit:
    """Records that are committed together: one record, or all rows of a table that have the same place."""

    rows: tuple[str, ...]
    """Key and value of each, as text that can be compared."""
    partition: Mapping[str, Any] | None
    offset: Mapping[str, Any] | None

    @classmethod
    def of(cls, polled: Sequence[SourceRecord] | SourceTable | None) -> list[CommitUnit]:
        if polled is None:
            return []
        if isinstance(polled, SourceTable):
            rows = polled.table.select([name for name in ("key", "value") if name in polled.table.column_names])
            shown = tuple(repr(row.get("key")) + repr(row["value"]) for row in rows.to_pylist())
            if not polled.places:
                return [cls(shown, polled.source_partition, polled.source_offset)]
            firsts = [0, *(each.end for each in polled.places[:-1])]
            return [
                cls(shown[first : each.end], each.source_partition, each.source_offset)
                for first, each in zip(firsts, polled.places, strict=True)
            ]
        return [cls((repr(each.key) + repr(each.value),), each.source_partition, each.source_offset) for each in polled]


class SourceConnectorSuite(ConnectorSuite):
    """Also override `add_data`. Small batches in `config` make the tests of resuming sharper."""

    connector: ClassVar[type[SourceConnector]]
    records: int = 5
    """How many records the tests ask for at once."""
    stop_seconds: float = 3.0
    """How long a task may go on polling after it was asked to stop."""

    def add_data(self, count: int) -> None:
        """Make `count` more records available to the connector, no two of them alike."""
        raise NotImplementedError(f"override add_data in {type(self).__name__}")

    @contextmanager
    def running_tasks(self, offsets: MemoryOffsets | None = None) -> Iterator[list[SourceTask]]:
        """All tasks, started where `offsets` say; they are stopped at the end."""
        tasks: list[SourceTask] = []
        with self.running_connector() as connector:
            try:
                for config in connector.task_configs(self.max_tasks):
                    task = self.connector.task_class_for(self.config)()
                    assert isinstance(task, SourceTask), f"{type(task).__name__} is no SourceTask"
                    tasks.append(task)
                    task.context = MemorySourceTaskContext(config, offsets, cluster=self.cluster, session=self.session)
                    task.start(config)
                yield tasks
            finally:
                for task in tasks:
                    task.stop_requested()
                    task.stop()

    def read(self, count: int, offsets: MemoryOffsets | None = None) -> list[CommitUnit]:
        """The next `count` records of all tasks, acknowledged as the runtime does."""
        with self.running_tasks(offsets) as tasks:
            return self._read(tasks, count)

    def _read(self, tasks: Sequence[SourceTask], count: int) -> list[CommitUnit]:
        units: list[CommitUnit] = []
        deadline = time.monotonic() + self.patience
        while (found := sum(len(unit.rows) for unit in units)) < count:
            assert time.monotonic() < deadline, f"{found} of {count} records after {self.patience} seconds"
            for task in tasks:
                units += CommitUnit.of(_poll(task))
        assert found == count, f"{found} records where there should be {count}"
        return units

    def test_tasks_deliver_what_is_there(self) -> None:
        self.add_data(self.records)
        self.read(self.records)

    def test_tasks_deliver_what_comes_later(self) -> None:
        with self.running_tasks() as tasks:
            self.add_data(self.records)
            self._read(tasks, self.records)

    def test_offsets_are_flat_maps_of_primitive_values(self) -> None:
        self.add_data(self.records)
        for unit in self.read(self.records):
            for each in (unit.partition, unit.offset):
                assert each is None or _is_flat(each), f"not a map from text to primitive values: {each!r}"

    def test_reading_goes_on_where_the_committed_offset_says(self) -> None:
        """After every unit: what is committed does not come again, what is not committed comes."""
        self.add_data(self.records)
        before = self.read(self.records)
        if all(unit.offset is None for unit in before):
            import pytest

            pytest.skip("no offsets: nothing to go on from")
        self.add_data(2)
        everything = _rows(self.read(self.records + 2))
        for done in range(len(before) + 1):
            left = everything - _rows(before[:done])
            again = _rows(self.read(left.total(), _committed(before[:done])))
            assert again == left, f"after {done} units lost {left - again}, doubled {again - left}"

    def test_poll_returns_soon_after_a_stop_is_requested(self) -> None:
        with self.running_tasks() as tasks:
            for task in tasks:
                polling, stopping = threading.Event(), threading.Event()
                thread = threading.Thread(target=_poll_until, args=(task, polling, stopping), daemon=True)
                thread.start()
                assert polling.wait(self.patience)
                stopping.set()
                task.stop_requested()
                thread.join(self.stop_seconds)
                assert not thread.is_alive(), f"poll() still blocks {self.stop_seconds} seconds after stop_requested()"

    def test_stopping_twice_is_harmless(self) -> None:
        with self.running_tasks() as tasks:
            pass
        for task in tasks:
            task.stop()

    def test_altering_offsets_accepts_what_the_tasks_commit(self) -> None:
        self.add_data(self.records)
        units = self.read(self.records)
        offsets = [(unit.partition, unit.offset) for unit in units if unit.partition is not None]
        if offsets:
            self._alter(offsets)

    def test_altering_offsets_accepts_a_reset(self) -> None:
        self.add_data(self.records)
        partitions = [unit.partition for unit in self.read(self.records) if unit.partition is not None]
        if partitions:
            self._alter([(partition, None) for partition in partitions])

    def test_exactly_once_support_is_stated_in_the_api_s_words(self) -> None:
        connector = self.connector()
        support = connector.exactly_once_support(self.config)
        assert support is None or isinstance(support, ExactlyOnceSupport), f"exactly_once_support() answers {support!r}"
        boundaries = connector.can_define_transaction_boundaries(self.config)
        assert isinstance(boundaries, bool), f"can_define_transaction_boundaries() answers {boundaries!r}"


def _poll(task: SourceTask) -> Sequence[SourceRecord] | SourceTable | None:
    try:
        polled = task.poll()
    except RetriableError:
        return None
    assert not isinstance(polled, SourceFrame), "poll() gives a frame though context.takes_frames is false"
    if not isinstance(polled, SourceTable):
        for record in polled or ():
            task.commit_record(record)
    task.commit()
    return polled


def _poll_until(task: SourceTask, polling: threading.Event, stopping: threading.Event) -> None:
    polling.set()
    while not stopping.is_set():
        _poll(task)


def _rows(units: Sequence[CommitUnit]) -> Counter[str]:
    return Counter(row for unit in units for row in unit.rows)


def _committed(units: Sequence[CommitUnit]) -> MemoryOffsets:
    return MemoryOffsets((unit.partition, unit.offset) for unit in units if unit.partition is not None)


def _is_flat(mapping: Mapping[str, Any]) -> bool:
    return all(
        isinstance(key, str) and (value is None or isinstance(value, str | bool | int | float))
        for key, value in mapping.items()
    )
