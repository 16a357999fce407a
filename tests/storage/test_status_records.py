from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model import Health, State, Status, TaskId, Verdict
from headgate.storage.records import MalformedRecord
from headgate.storage.status_records import (
    StatusId,
    StatusValue,
    TopicId,
    TopicStatus,
    decode,
    encode,
)

SAMPLES: list[tuple[StatusId, StatusValue | None, bytes, bytes | None]] = [
    (
        "a",
        Status(State.RUNNING, "h:8083", None, "4.3.1", 5),
        b"status-connector-a",
        b'{"state":"RUNNING","trace":null,"worker_id":"h:8083","generation":5,"version":"4.3.1"}',
    ),
    (
        TaskId("my-conn", 12),
        Status(State.FAILED, "h:8083", "boom\n\tat x", None, -1),
        b"status-task-my-conn-12",
        b'{"state":"FAILED","trace":"boom\\n\\tat x","worker_id":"h:8083","generation":-1,"version":null}',
    ),
    (
        TopicId("c:x", "orders"),
        TopicStatus(3, 1700000000123),
        b"status-topic-orders:connector-c:x",
        b'{"topic":{"name":"orders","connector":"c:x","task":3,"discoverTimestamp":1700000000123}}',
    ),
    ("a", None, b"status-connector-a", None),
    (TaskId("a", 0), None, b"status-task-a-0", None),
    (TopicId("a", "t"), None, b"status-topic-t:connector-a", None),
]


@pytest.mark.parametrize(("whose", "status", "key", "value"), SAMPLES)
def test_the_bytes_are_those_of_apaches_workers(
    whose: StatusId, status: StatusValue | None, key: bytes, value: bytes | None
) -> None:
    assert encode(whose, status) == (key, value)
    assert decode(key, value) == (whose, status)


def test_records_from_before_4_1_have_no_version() -> None:
    value = b'{"state":"PAUSED","trace":null,"worker_id":"h:8083","generation":2}'
    assert decode(b"status-connector-a", value) == ("a", Status(State.PAUSED, "h:8083", generation=2))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
STATUSES = st.builds(
    Status, st.sampled_from(State), TEXTS, st.none() | TEXTS, st.none() | TEXTS, st.integers(-1, 2**31)
)
TOPICS = st.text("abcABC019._-", min_size=1, max_size=12)


@given(TEXTS, st.integers(0, 2**31), STATUSES | st.none())
def test_statuses_survive_the_way_through_the_topic(name: str, number: int, status: Status | None) -> None:
    assert decode(*encode(name, status)) == (name, status)
    assert decode(*encode(TaskId(name, number), status)) == (TaskId(name, number), status)


@given(TEXTS, TOPICS, st.integers(0, 100), st.integers(0, 2**62))
def test_topics_survive_the_way_through_the_topic(name: str, topic: str, task: int, time: int) -> None:
    whose = TopicId(name, topic)
    assert decode(*encode(whose, TopicStatus(task, time))) == (whose, TopicStatus(task, time))


@given(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_status_or_malformed(key: bytes | None, value: bytes | None) -> None:
    with suppress(MalformedRecord):
        decode(key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"state-connector-a", b"{}"),
        (b"status-task-a-x", None),
        (b"status-task-1", None),
        (b"status-topic-t", None),
        (b"status-topic-t:a", None),
        (b"status-connector-a", b"nonsense"),
        (b"status-connector-a", b"[]"),
        (b"status-connector-a", b'{"state":"DANCING","trace":null,"worker_id":"w","generation":1}'),
        (b"status-connector-a", b'{"state":"RUNNING","trace":null,"generation":1}'),
        (b"status-connector-a", b'{"state":"RUNNING","trace":1,"worker_id":"w","generation":1}'),
        (b"status-connector-a", b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":"1"}'),
        (b"status-connector-a", b'{"state":[],"trace":null,"worker_id":"w","generation":1}'),
        (b"status-topic-t:connector-a", b'{"topic":7}'),
        (b"status-topic-t:connector-a", b'{"topic":{"task":0}}'),
    ],
)
def test_what_no_worker_writes_is_malformed(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedRecord):
        decode(key, value)


# --- verdicts ---------------------------------------------------------------------------------------------------------

HEALTH = Health(Verdict.RETRYING, 5, "put(): locked", "put(): locked", 4)


def test_a_verdict_stands_in_a_field_of_its_own_behind_those_that_apaches_workers_read() -> None:
    _, value = encode(TaskId("c", 0), Status(State.RUNNING, "w:1", version="1", generation=3, health=HEALTH))
    assert value == (
        b'{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"version":"1","health":{"verdict":"retrying",'
        b'"since":5,"reason":"put(): locked","last_error":"put(): locked","last_progress":4}}'
    )


@pytest.mark.parametrize("health", [None, HEALTH, Health(Verdict.OK, 0)])
def test_a_verdict_is_read_as_it_was_written(health: Health | None) -> None:
    _, found = decode(*encode(TaskId("c", 0), Status(State.RUNNING, "w:1", health=health)))
    assert isinstance(found, Status)
    assert found.health == health


@pytest.mark.parametrize("health", [b"7", b"{}", b'{"verdict":"superb","since":1}', b'{"verdict":"ok","since":"1"}'])
def test_a_verdict_that_cannot_be_read_does_not_cost_the_state(health: bytes) -> None:
    value = b'{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"health":' + health + b"}"
    assert decode(b"status-task-c-0", value) == (TaskId("c", 0), Status(State.RUNNING, "w:1", generation=3))
    _, found = decode(b"status-task-c-0", value)
    assert isinstance(found, Status)
    assert found.health is None
