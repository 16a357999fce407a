"""SinkConnectorSuite: what is expected of a sink connector and its tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from headgate.api import schema
from headgate.api.connector import SinkConnector
from headgate.api.context import TopicPartition
from headgate.api.errors import RetriableError
from headgate.api.record import SinkRecord
from headgate.api.task import Form, FrameSinkTask, SinkTask, TableSinkTask
from headgate.api.testing.doubles import MemoryReporter, MemorySinkTaskContext
from headgate.api.testing.suite import ConnectorSuite

_RETRY_SECONDS = 0.05


class SinkConnectorSuite(ConnectorSuite):
    """Override `make_records` if the sink needs other than text values, and `written` to have the target checked."""

    connector: ClassVar[type[SinkConnector]]
    partition: TopicPartition = TopicPartition("orders", 0)
    records: int = 5

    def make_records(self, first: int, count: int) -> list[SinkRecord]:
        """Records of `partition` that the sink can take, with offsets from `first` on."""
        topic, number = self.partition.topic, self.partition.partition
        return [
            SinkRecord(
                topic=topic,
                partition=number,
                offset=offset,
                timestamp=1_700_000_000_000 + offset,
                key=f"key-{offset}",
                key_schema=schema.STRING,
                value=f"value-{offset}",
                value_schema=schema.STRING,
                original_topic=topic,
                original_partition=number,
                original_offset=offset,
            )
            for offset in range(first, first + count)
        ]

    def written(self) -> Sequence[Any] | None:
        """The values in the target, in any order; None: the suite does not look."""
        return None

    def batch(self, task: Any, records: Sequence[SinkRecord]) -> Any:
        """`records` as this kind of task takes them. A FrameSinkTask needs a DataFrame: override this."""
        if isinstance(task, SinkTask):
            return records
        if isinstance(task, TableSinkTask):
            return _table(task, records)
        assert isinstance(task, FrameSinkTask), f"{type(task).__name__} is no kind of sink task"
        raise NotImplementedError(f"override batch in {type(self).__name__}: a FrameSinkTask takes a DataFrame")

    @contextmanager
    def running_task(self) -> Iterator[Any]:
        """The first task, started, with `partition` assigned; it is closed and stopped at the end."""
        with self.running_connector() as connector:
            configs = connector.task_configs(1)
            assert configs, "no task configuration for one task"
            config = configs[0]
            task: Any = self.connector.task_class_for(self.config)()
            task.context = MemorySinkTaskContext(config, [self.partition], MemoryReporter(), self.session)
            try:
                task.start(config)
                task.open([self.partition])
                yield task
                task.close([self.partition])
            finally:
                task.stop()

    def put(self, task: Any, records: Sequence[SinkRecord]) -> None:
        """Put them, again and again while the task asks for it with RetriableError, as the runtime does."""
        batch = self.batch(task, records)
        deadline = time.monotonic() + self.patience
        while True:
            try:
                task.put(batch)
            except RetriableError as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"put() still asks for a retry after {self.patience} seconds") from error
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def commit(self, task: Any, records: Sequence[SinkRecord]) -> Mapping[TopicPartition, int]:
        """Ask what may be committed after `records`, and check the answer."""
        current = {self.partition: records[-1].offset + 1}
        answer: Mapping[TopicPartition, int] = task.pre_commit(dict(current))
        assert isinstance(answer, Mapping), f"pre_commit() answers {answer!r}, not a mapping"
        unknown = set(answer) - set(current)
        assert not unknown, f"pre_commit() names partitions that are not assigned: {unknown}"
        beyond = {where: offset for where, offset in answer.items() if offset > current[where]}
        assert not beyond, f"pre_commit() commits more than was put: {beyond}, but {current}"
        return answer

    def committed(self, task: Any, records: Sequence[SinkRecord]) -> list[SinkRecord]:
        """Those whose offsets may be committed. A task may hold records back; then it must not let their offsets be."""
        done = self.commit(task, records).get(self.partition, 0)
        return [record for record in records if record.offset < done]

    def check_written(self, records: Sequence[SinkRecord]) -> None:
        """All of them are in the target, if the suite can look there."""
        written = self.written()
        if written is not None:
            missing = [record.value for record in records if record.value not in written]
            assert not missing, f"put and flushed, but not in the target: {missing}"

    def test_records_that_are_put_and_flushed_are_in_the_target(self) -> None:
        records = self.make_records(0, self.records)
        with self.running_task() as task:
            self.put(task, records)
            done = self.committed(task, records)
            self.check_written(done)
        self.check_written(done)

    def test_every_batch_can_be_committed(self) -> None:
        with self.running_task() as task:
            for first in (0, self.records):
                records = self.make_records(first, self.records)
                self.put(task, records)
                self.commit(task, records)

    def test_nothing_can_be_put(self) -> None:
        with self.running_task() as task:
            self.put(task, [])

    def test_the_same_records_can_be_put_again(self) -> None:
        """After a failed commit or a RetriableError they come again; twice in the target is fine, missing is not."""
        records = self.make_records(0, self.records)
        with self.running_task() as task:
            self.put(task, records)
            self.put(task, records)
            self.check_written(self.committed(task, records))

    def test_a_partition_can_go_and_come_back(self) -> None:
        first, second = self.make_records(0, self.records), self.make_records(self.records, self.records)
        with self.running_task() as task:
            self.put(task, first)
            self.commit(task, first)
            task.close([self.partition])
            task.open([self.partition])
            self.put(task, second)
            self.check_written(self.committed(task, second))

    def test_another_task_goes_on_after_the_first(self) -> None:
        for first in (0, self.records):
            records = self.make_records(first, self.records)
            with self.running_task() as task:
                self.put(task, records)
                self.check_written(self.committed(task, records))

    def test_stopping_twice_is_harmless(self) -> None:
        with self.running_task() as task:
            pass
        task.stop()

    def test_altering_offsets_is_answered(self) -> None:
        self._alter({self.partition: 0})
        self._alter({self.partition: None})


def _table(task: TableSinkTask, records: Sequence[SinkRecord]) -> Any:
    import pyarrow as pa

    numbers = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.int64()}
    types = {name: numbers.get(name.removeprefix("original_"), pa.string()) for name in task.columns}
    columns = {
        name: [_cell(getattr(record, name), name in ("key", "value"), task.form) for record in records]
        for name in task.columns
    }
    return pa.table({name: pa.array(cells, types[name]) for name, cells in columns.items()})


def _cell(value: Any, shown: bool, form: Form) -> Any:
    if value is None or not shown:
        return value
    return json.dumps(value) if form is Form.JSON else str(value)
