"""The acceptance suites pass good connectors and catch bad ones."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from headgate.api import (
    INT,
    STRING,
    ConfigDef,
    ConfigError,
    ConnectError,
    Form,
    Key,
    RetriableError,
    RowsFrom,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTable,
    SourceTask,
    TableSinkTask,
    Task,
    TopicPartition,
    UnsupportedOperation,
    at_least,
)
from headgate.api.testing import SinkConnectorSuite, SourceConnectorSuite

pytestmark = pytest.mark.process

# --- a source: numbers, shared out among the tasks by remainder -------------------------------------------------------


class NumbersTask(SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.share, self.shares = int(config["share"]), int(config["shares"])
        stored = self.context.offset_reader.offset({"share": self.share})
        self.next = self.first(stored["next"]) if stored else 0
        self.wake = threading.Event()
        self.committed: list[SourceRecord] = []

    def first(self, stored: int) -> int:
        return stored

    def poll(self) -> Sequence[SourceRecord] | None:
        mine = [n for n in NumbersConnector.numbers[self.next :] if n % self.shares == self.share][:2]
        if not mine:
            self.wait()
            return None
        self.next = mine[-1] + 1
        return [self.record(n) for n in mine]

    def wait(self) -> None:
        self.wake.wait(0.01)

    def record(self, n: int) -> SourceRecord:
        return SourceRecord(topic="t", value=n, source_partition={"share": self.share}, source_offset={"next": n + 1})


class NumbersConnector(SourceConnector):
    """Counts."""

    numbers: ClassVar[list[int]] = []
    config = ConfigDef(
        Key("topic", STRING, doc="Where to."), Key("step", INT, default=1, validator=at_least(1), doc="How far apart.")
    )
    task_class = NumbersTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{"share": str(n), "shares": str(max_tasks)} for n in range(max_tasks)]


class NumbersSuite(SourceConnectorSuite):
    connector = NumbersConnector
    config = {"topic": "t"}
    patience = 0.5
    stop_seconds = 0.2

    def setup_method(self) -> None:
        NumbersConnector.numbers = []

    def add_data(self, count: int) -> None:
        there = len(NumbersConnector.numbers)
        NumbersConnector.numbers += range(there, there + count)


class TestRecordsFromSeveralTasks(NumbersSuite):
    patience = 10.0
    stop_seconds = 3.0


class Flaky(NumbersTask):
    polls = 0

    def poll(self) -> Sequence[SourceRecord] | None:
        self.polls += 1
        if self.polls % 2:
            raise RetriableError("not now")
        return super().poll()


class FlakyConnector(NumbersConnector):
    """Fails every other time, but says that it can be tried again."""

    task_class = Flaky


class TestRetriableErrors(TestRecordsFromSeveralTasks):
    connector = FlakyConnector


class Placed(NumbersTask):
    def poll(self) -> SourceTable | None:  # type: ignore[override]
        records = super().poll()
        if not records:
            return None
        places = [RowsFrom(end, {"share": self.share}, each.source_offset or {}) for end, each in enumerate(records, 1)]
        return SourceTable(topic="t", table=pa.table({"value": [each.value for each in records]}), places=places)


class PlacedConnector(NumbersConnector):
    """Gives tables of which each row has its own place."""

    task_class = Placed


class TestTablesWithPlaces(TestRecordsFromSeveralTasks):
    connector = PlacedConnector


class WithoutOffsets(NumbersTask):
    def record(self, n: int) -> SourceRecord:
        return SourceRecord(topic="t", value=n)


class Doubling(NumbersTask):
    def first(self, stored: int) -> int:
        return max(0, stored - 1)


class Losing(NumbersTask):
    def first(self, stored: int) -> int:
        return stored + self.shares


class Forgetful(NumbersTask):
    def first(self, stored: int) -> int:
        return 0


class PlacedAndForgetful(Placed):
    def first(self, stored: int) -> int:
        return 0


class DeepOffsets(NumbersTask):
    def record(self, n: int) -> SourceRecord:
        return super().record(n).replace(source_offset={"next": n + 1, "deep": {"n": n}})


class Deaf(NumbersTask):
    def wait(self) -> None:
        threading.Event().wait(1)


class FragileStop(NumbersTask):
    def stop(self) -> None:
        self.wake.set()
        del self.wake


class Twice(NumbersTask):
    def poll(self) -> Sequence[SourceRecord] | None:
        return [record for record in super().poll() or () for _ in range(2)]


def variant(name: str, **changes: Any) -> type[NumbersConnector]:
    return type(name, (NumbersConnector,), {"__doc__": "Wrong in one way.", **changes})


def too_many(self: NumbersConnector, max_tasks: int) -> Sequence[Mapping[str, str]]:
    return [{}] * (max_tasks + 1)


def numbers_as_values(self: NumbersConnector, max_tasks: int) -> Sequence[Mapping[str, Any]]:
    return [{"share": 0}]


def answers_none(self: object, *_: object) -> None:
    return None


def refuses(self: object, *_: object) -> bool:
    raise ConnectError("not these")


def is_unsupported(self: object, *_: object) -> bool:
    raise UnsupportedOperation("never")


GO_ON = "test_reading_goes_on_where_the_committed_offset_says"
BAD_SOURCES = [
    ("test_the_plugin_is_described", variant("Bad", __doc__="")),
    ("test_every_key_is_documented", variant("Bad", config=ConfigDef(Key("a", STRING)))),
    (
        "test_every_default_is_valid",
        variant("Bad", config=ConfigDef(Key("a", INT, default=0, validator=at_least(1), doc="A."))),
    ),
    (
        "test_every_dependent_key_is_declared",
        variant("Bad", config=ConfigDef(Key("a", STRING, dependents=("b",), doc="A."))),
    ),
    ("test_the_configuration_is_accepted", variant("Bad", config=ConfigDef(Key("other", STRING, doc="O.")))),
    ("test_every_required_key_is_asked_for", variant("Bad", validate=lambda self, config: [])),
    ("test_there_are_at_most_max_tasks", variant("Bad", task_configs=too_many)),
    ("test_there_are_at_most_max_tasks", variant("Bad", task_configs=numbers_as_values)),
    ("test_a_task_that_failed_to_start_can_be_stopped", variant("Bad", task_class=FragileStop)),
    ("test_stopping_twice_is_harmless", variant("Bad", task_class=FragileStop)),
    ("test_tasks_deliver_what_is_there", variant("Bad", task_class=Twice)),
    ("test_tasks_deliver_what_comes_later", variant("Bad", task_class=Twice)),
    ("test_tasks_deliver_what_is_there", variant("Bad", task_configs=lambda self, max_tasks: [])),
    ("test_offsets_are_flat_maps_of_primitive_values", variant("Bad", task_class=DeepOffsets)),
    (GO_ON, variant("Bad", task_class=Doubling)),
    (GO_ON, variant("Bad", task_class=Losing)),
    (GO_ON, variant("Bad", task_class=Forgetful)),
    (GO_ON, variant("Bad", task_class=PlacedAndForgetful)),
    ("test_poll_returns_soon_after_a_stop_is_requested", variant("Bad", task_class=Deaf)),
    ("test_altering_offsets_accepts_what_the_tasks_commit", variant("Bad", alter_offsets=answers_none)),
    ("test_altering_offsets_accepts_what_the_tasks_commit", variant("Bad", alter_offsets=refuses)),
    ("test_altering_offsets_accepts_a_reset", variant("Bad", alter_offsets=refuses)),
    (
        "test_exactly_once_support_is_stated_in_the_api_s_words",
        variant("Bad", exactly_once_support=lambda self, config: True),
    ),
    (
        "test_exactly_once_support_is_stated_in_the_api_s_words",
        variant("Bad", can_define_transaction_boundaries=answers_none),
    ),
]


@pytest.mark.parametrize(("test", "connector"), BAD_SOURCES)
def test_the_suite_catches_a_bad_source(test: str, connector: type[SourceConnector]) -> None:
    suite = type("Suite", (NumbersSuite,), {"connector": connector, "max_tasks": 2})()
    suite.setup_method()
    with pytest.raises((AssertionError, ConnectError, AttributeError)):
        getattr(suite, test)()


def test_a_source_may_say_that_its_offsets_can_never_be_altered() -> None:
    suite = type("Suite", (NumbersSuite,), {"connector": variant("Fixed", alter_offsets=is_unsupported)})()
    suite.setup_method()
    suite.test_altering_offsets_accepts_what_the_tasks_commit()
    suite.setup_method()
    suite.test_altering_offsets_accepts_a_reset()


def test_a_source_without_offsets_has_nothing_to_go_on_from() -> None:
    suite = type("Suite", (NumbersSuite,), {"connector": variant("Plain", task_class=WithoutOffsets)})()
    suite.setup_method()
    with pytest.raises(pytest.skip.Exception):
        suite.test_reading_goes_on_where_the_committed_offset_says()


def test_add_data_must_be_written() -> None:
    with pytest.raises(NotImplementedError, match="override add_data in SourceConnectorSuite"):
        SourceConnectorSuite().add_data(1)


# --- sinks: into a list -----------------------------------------------------------------------------------------------

TARGET: list[Any] = []


class ListTask(SinkTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        TARGET.extend(record.value for record in records)


class ListConnector(SinkConnector):
    """Keeps."""

    task_class: ClassVar[type[Task]] = ListTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{}] * max_tasks


class ListSuite(SinkConnectorSuite):
    connector = ListConnector
    config = {}
    patience = 0.2

    def setup_method(self) -> None:
        TARGET.clear()

    def written(self) -> Sequence[Any]:
        return TARGET


class TestRecordSink(ListSuite):
    patience = 10.0


class JsonTask(TableSinkTask):
    columns = ("topic", "partition", "offset", "timestamp", "key", "value")
    form = Form.JSON

    def put(self, table: pa.Table) -> None:
        assert tuple(table.column_names) == self.columns
        TARGET.extend(table["value"].to_pylist())


class JsonConnector(ListConnector):
    """Keeps JSON."""

    task_class = JsonTask


class TestTableSink(TestRecordSink):
    connector = JsonConnector

    def written(self) -> Sequence[Any]:
        return [value.strip('"') for value in TARGET]


class Busy(ListTask):
    puts = 0

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.puts += 1
        if self.puts % 2:
            raise RetriableError("busy")
        super().put(records)


class BusyConnector(ListConnector):
    """Wants every batch twice."""

    task_class = Busy


class TestRetriedPuts(TestRecordSink):
    connector = BusyConnector


class Lazy(ListTask):
    """Writes at flush, and holds the last record back."""

    def start(self, config: Mapping[str, str]) -> None:
        self.held: list[SinkRecord] = []

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.held.extend(records)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        ready, self.held = self.held[:-1], self.held[-1:]
        TARGET.extend(record.value for record in ready)
        return {partition: offset - 1 for partition, offset in offsets.items()}

    def stop(self) -> None:
        self.held = []


class LazyConnector(ListConnector):
    """Keeps later."""

    task_class = Lazy


class TestLazySink(TestRecordSink):
    connector = LazyConnector


class Eager(ListTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {partition: offset + 1 for partition, offset in offsets.items()}


class Foreign(ListTask):
    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        return {TopicPartition("other", 0): 0}


class Dropping(ListTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        super().put(records[1:])


class Stuck(ListTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        raise RetriableError("for ever")


class NoEmptyPut(ListTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        assert records[0]


class Once(ListTask):
    def put(self, records: Sequence[SinkRecord]) -> None:
        if records[0].value in TARGET:
            raise ConnectError("already there")
        super().put(records)


class NoReturn(ListTask):
    opened = 0

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self.opened += 1
        if self.opened > 1:
            raise ConnectError("only once")


class StopsOnce(ListTask):
    stopped = False

    def stop(self) -> None:
        if self.stopped:
            raise ConnectError("stopped already")
        self.stopped = True


@pytest.mark.parametrize(
    ("test", "changes"),
    [
        ("test_every_batch_can_be_committed", {"task_class": Eager}),
        ("test_every_batch_can_be_committed", {"task_class": Foreign}),
        ("test_records_that_are_put_and_flushed_are_in_the_target", {"task_class": Dropping}),
        ("test_records_that_are_put_and_flushed_are_in_the_target", {"task_class": Stuck}),
        ("test_records_that_are_put_and_flushed_are_in_the_target", {"task_configs": lambda self, n: []}),
        ("test_another_task_goes_on_after_the_first", {"task_class": Dropping}),
        ("test_nothing_can_be_put", {"task_class": NoEmptyPut}),
        ("test_the_same_records_can_be_put_again", {"task_class": Once}),
        ("test_a_partition_can_go_and_come_back", {"task_class": NoReturn}),
        ("test_stopping_twice_is_harmless", {"task_class": StopsOnce}),
        ("test_altering_offsets_is_answered", {"alter_offsets": answers_none}),
        ("test_altering_offsets_is_answered", {"alter_offsets": refuses}),
        ("test_the_configuration_is_accepted", {"config": ConfigDef(Key("url", STRING, doc="Where."))}),
    ],
)
def test_the_suite_catches_a_bad_sink(test: str, changes: dict[str, Any]) -> None:
    connector = type("Bad", (ListConnector,), changes)
    suite = type("Suite", (ListSuite,), {"connector": connector})()
    suite.setup_method()
    with pytest.raises((AssertionError, ConnectError, IndexError)):
        getattr(suite, test)()


def test_a_sink_may_say_that_its_offsets_can_never_be_altered() -> None:
    connector = type("Fixed", (ListConnector,), {"alter_offsets": is_unsupported})
    type("Suite", (ListSuite,), {"connector": connector})().test_altering_offsets_is_answered()


def test_a_required_key_may_be_checked_by_the_connector_itself() -> None:
    def validate(self: SinkConnector, config: Mapping[str, str]) -> list[Any]:
        values = self.config.validate(config)
        if "url" not in config:
            values[0].errors.append(str(ConfigError("a url is like http://host")))
        return values

    changes = {"config": ConfigDef(Key("url", STRING, doc="Where.")), "validate": validate}
    suite = type("Suite", (ListSuite,), {"connector": type("Url", (ListConnector,), changes), "config": {"url": "x"}})()
    suite.test_every_required_key_is_asked_for()
    suite.test_the_configuration_is_accepted()
