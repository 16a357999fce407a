"""Read, process, write in one cluster: records, source offsets and the group's offsets in one transaction (KIP-691)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from checks import position, read_committed
from confluent_kafka import Producer
from exactly_once_support import HEADERS, Bench, Running
from harness import await_
from proxy import ALWAYS, Action, Proxy
from spoken import Api

from headgate.connectors.mirror.task import MirrorTask
from headgate.model import Boundary, PluginRef, PluginSpec, StepSpec, TaskSpec

pytestmark = [pytest.mark.spark, pytest.mark.kip(691, "consume, transform, produce")]

BYTES = PluginSpec(PluginRef("headgate.pipeline.converters.byte_array", "ByteArrayConverter"))


class Copy:
    """A topic of numbers, and its copy."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.source, self.group = f"{bench.name}-read", f"{bench.name}-group"
        bench.create(self.source)
        self.count = 0
        self._producer = Producer({"bootstrap.servers": bench.bootstrap, "log_level": 0})

    def write(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            self._producer.produce(self.source, str(number), partition=0)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0
        self.count += count

    def spec(
        self,
        boundary: Boundary = Boundary.POLL,
        interval_ms: int = 200,
        steps: Iterable[StepSpec] = (),
        **producer: Any,
    ) -> TaskSpec:
        bench = self.bench
        made = bench.spec(boundary, interval_ms, steps=steps, **producer)
        config = {
            "name": bench.name,
            "topics": self.source,
            "topic.format": bench.target,
            "group": self.group,
            "mirror.one.cluster": "true",
            "mirror.partitions": json.dumps({self.source: [0]}),
        }
        return replace(
            made,
            task_class=MirrorTask,
            config=config,
            cluster={"bootstrap.servers": bench.bootstrap},
            chain=replace(made.chain, key_converter=BYTES, value_converter=BYTES, header_converter=HEADERS),
        )

    def start(self, spec: TaskSpec | None = None, **options: Any) -> Running:
        return self.bench.start(spec or self.spec(), **options)

    # --- what came of it ----------------------------------------------------------------------------------------------

    def copied(self) -> list[int]:
        return [int(value) for value in read_committed(self.bench.bootstrap, self.bench.target)]

    def group_offset(self) -> int:
        return position(self.bench.bootstrap, self.group, self.source)

    def source_offset(self) -> int:
        place = {"cluster": "source", "topic": self.source, "partition": 0}
        (found,) = self.bench.log.get(self.bench.name, [place])
        return int(found["offset"]) if found else -1

    def check(self, count: int | None = None) -> None:
        """Everything exactly once, and both offsets behind it."""
        count = self.count if count is None else count
        await_(lambda: self.source_offset() >= count, f"offset {count}", 90)
        found = self.copied()
        assert found == list(range(count)), f"{len(found)} of {count}; doubled: {len(found) - len(set(found))}"
        assert (self.source_offset(), self.group_offset()) == (count, count)


@pytest.fixture
def copy(bench: Bench) -> Copy:
    return Copy(bench)


def first_ten(copy: Copy, proxy: Proxy, **producer: Any) -> Running:
    """A task behind the proxy that has committed one transaction, and waits."""
    copy.write(10)
    running = copy.start(copy.spec(bootstrap_servers=proxy.address, **producer))
    copy.check()
    return running


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.INTERVAL])
def test_everything_is_copied_once_and_the_group_is_as_far(copy: Copy, boundary: Boundary) -> None:
    copy.write(5_000)
    running = copy.start(copy.spec(boundary))
    running.await_event("running", seconds=150)
    copy.check()
    copy.write(5)
    copy.check()
    running.stop()
    copy.write(10)
    again = copy.start()
    copy.check()
    again.stop()


def test_where_it_begins_is_committed_before_any_record(copy: Copy) -> None:
    copy.write(3)
    made = copy.spec()
    running = copy.start(replace(made, config={**made.config, "offset.policy": "latest"}))
    await_(lambda: copy.source_offset() == 3, "the beginning", 60)
    assert (copy.group_offset(), copy.copied()) == (3, [])
    running.stop()
    copy.write(2)  # nobody reads now
    again = copy.start(replace(made, config={**made.config, "offset.policy": "latest"}))
    await_(lambda: copy.source_offset() == 5, "the end", 60)
    assert copy.copied() == [3, 4]
    again.stop()


def test_what_transforms_leave_out_has_been_consumed(copy: Copy) -> None:
    copy.write(50)
    step = StepSpec("drop", PluginSpec(PluginRef("headgate.pipeline.transforms.filter", "Filter"), {}))
    running = copy.start(copy.spec(steps=[step]))
    await_(lambda: copy.source_offset() == 50, "the offset", 60)
    assert (copy.group_offset(), copy.copied()) == (50, [])
    running.stop()


# --- transactions that fail -------------------------------------------------------------------------------------------


def test_what_is_aborted_moves_neither_records_nor_offsets(copy: Copy, proxy: Proxy) -> None:
    running = first_ten(copy, proxy)
    proxy.before(Api.PRODUCE, Action.CODE, 87, count=ALWAYS)
    copy.write(30)
    assert "INVALID_RECORD" in running.await_failure(90)
    proxy.clear()
    copy.check(10)
    again = copy.start()
    copy.check()
    again.stop()


@pytest.mark.parametrize(
    ("api", "code"),
    [(Api.ADD_OFFSETS, 49), (Api.TXN_OFFSET_COMMIT, 12), (Api.TXN_OFFSET_COMMIT, 120), (Api.PRODUCE, 45)],
    ids=["offsets not added", "offsets not committed", "abortable", "records"],
)
def test_what_an_abort_puts_right_is_copied_once(copy: Copy, proxy: Proxy, api: Api, code: int) -> None:
    running = first_ten(copy, proxy)
    proxy.before(api, Action.CODE, code)
    copy.write(30)
    copy.check()
    running.stop()
    assert running.desk.events.count("running") == 1


def test_a_commit_without_an_answer_is_not_written_again(copy: Copy, proxy: Proxy) -> None:
    running = first_ten(copy, proxy, request_timeout_ms=3_000)
    proxy.after(Api.END_TXN, Action.SWALLOW, kind="commit")
    copy.write(30)
    copy.check()
    running.stop()
    assert proxy.requests(Api.END_TXN, "abort") == 0


def test_failures_all_the_time_lose_and_double_nothing(copy: Copy, proxy: Proxy) -> None:
    running = first_ten(copy, proxy)
    troubles = [(Api.PRODUCE, 87), (Api.TXN_OFFSET_COMMIT, 12), (Api.ADD_PARTITIONS, 49), (Api.PRODUCE, 13)]
    for api, code in troubles:
        proxy.before(api, Action.CODE, code)
        copy.write(200)
        copy.check()
    running.stop()


def test_a_group_that_may_not_be_used_is_told(copy: Copy, proxy: Proxy) -> None:
    running = first_ten(copy, proxy)
    proxy.before(Api.TXN_OFFSET_COMMIT, Action.CODE, 30)
    copy.write(1)
    trace = running.await_failure()
    assert "Allow the user of the connector's producer to commit offsets of the connector's consumer group" in trace
    copy.check(10)


# --- two of them ------------------------------------------------------------------------------------------------------


def test_a_second_instance_of_the_task_fences_the_first(copy: Copy) -> None:
    copy.write(10)
    first = copy.start()
    copy.check()
    second = copy.start()
    second.await_event("running")
    copy.write(100)
    copy.check()
    assert "Something else took the transactional id" in first.await_failure()
    copy.write(10)
    copy.check()
    second.stop()
