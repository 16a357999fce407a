from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model import LevelChange, RestartRequest, SessionKey, TargetState, TaskId
from headgate.storage.config_records import (
    CommitRecord,
    ConfigRecord,
    ConnectorRecord,
    TargetStateRecord,
    TaskCountRecord,
    TaskRecord,
    decode,
    encode,
)
from headgate.storage.records import MalformedRecord, NotJson

PROPERTIES = {"name": "a", "connector.class": "FileStreamSource", "topic": "t"}
JAVA_PROPERTIES = b'{"properties":{"name":"a","connector.class":"FileStreamSource","topic":"t"}}'
KEY = SessionKey(bytes(range(32)), "HmacSHA256", 1700000000123)

CREATED = b'"creation-timestamp":1700000000123}'
SAMPLES: list[tuple[ConfigRecord, bytes, bytes | None]] = [
    (ConnectorRecord("a", PROPERTIES), b"connector-a", JAVA_PROPERTIES),
    (ConnectorRecord("a", None), b"connector-a", None),
    (TargetStateRecord("a", TargetState.STARTED), b"target-state-a", b'{"state":"STARTED","state.v2":"STARTED"}'),
    (TargetStateRecord("a", TargetState.PAUSED), b"target-state-a", b'{"state":"PAUSED","state.v2":"PAUSED"}'),
    (TargetStateRecord("a", TargetState.STOPPED), b"target-state-a", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    (TargetStateRecord("a", None), b"target-state-a", None),
    (TaskRecord(TaskId("a", 0), {"task.class": "T"}), b"task-a-0", b'{"properties":{"task.class":"T"}}'),
    (TaskRecord(TaskId("my-conn-2", 13), {}), b"task-my-conn-2-13", b'{"properties":{}}'),
    (CommitRecord("a", 1), b"commit-a", b'{"tasks":1}'),
    (CommitRecord("a", 0), b"commit-a", b'{"tasks":0}'),
    (
        RestartRequest("a", include_tasks=True, only_failed=False),
        b"restart-connector-a",
        b'{"include-tasks":true,"only-failed":false}',
    ),
    (TaskCountRecord("a", 3), b"tasks-fencing-a", b'{"task-count":3}'),
    (TaskCountRecord("a", None), b"tasks-fencing-a", None),
    (
        KEY,
        b"session-key",
        b'{"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","algorithm":"HmacSHA256",%s' % CREATED,
    ),
    (LevelChange("org.apache", "debug"), b"logger-cluster-org.apache", b'{"level":"debug"}'),
]


@pytest.mark.parametrize(
    ("record", "key", "value"), SAMPLES, ids=[f"{s[1].decode()}-{n}" for n, s in enumerate(SAMPLES)]
)
def test_the_bytes_are_those_of_apaches_workers(record: ConfigRecord, key: bytes, value: bytes | None) -> None:
    assert encode(record) == (key, value)
    assert decode(key, value) == record


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CONFIGS = st.dictionaries(TEXTS, TEXTS, max_size=4)
COUNTS = st.integers(0, 2**31 - 1)
RECORDS = st.one_of(
    st.builds(ConnectorRecord, TEXTS, st.none() | CONFIGS),
    st.builds(TargetStateRecord, TEXTS, st.none() | st.sampled_from(TargetState)),
    st.builds(TaskRecord, st.builds(TaskId, TEXTS, COUNTS), CONFIGS),
    st.builds(CommitRecord, TEXTS, COUNTS),
    st.builds(RestartRequest, TEXTS, st.booleans(), st.booleans()),
    st.builds(TaskCountRecord, TEXTS, st.none() | COUNTS),
    st.builds(SessionKey, st.binary(max_size=64), TEXTS, st.integers(0, 2**63 - 1)),
    st.builds(LevelChange, TEXTS, TEXTS),
)


@given(RECORDS)
def test_every_record_survives_the_way_through_the_topic(record: ConfigRecord) -> None:
    assert decode(*encode(record)) == record


@given(RECORDS)
def test_the_order_of_a_configs_keys_is_kept(record: ConfigRecord) -> None:
    found = decode(*encode(record))
    if isinstance(record, ConnectorRecord | TaskRecord) and record.config is not None:
        assert isinstance(found, ConnectorRecord | TaskRecord)
        assert list(found.config or {}) == list(record.config)


@given(st.binary(max_size=40) | TEXTS.map(str.encode), st.none() | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_one_of_two_errors(key: bytes, value: bytes | None) -> None:
    with suppress(MalformedRecord):
        decode(key, value)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (b"connector-target-state-a", ConnectorRecord),
        (b"target-state-connector-a", TargetStateRecord),
        (b"restart-connector-connector-a", RestartRequest),
        (b"tasks-fencing-a", TaskCountRecord),
        (b"connector-", ConnectorRecord),
        (b"connector-a\xc3\xa4/%", ConnectorRecord),
    ],
)
def test_the_prefixes_are_tried_in_their_order(key: bytes, kind: type) -> None:
    value = {ConnectorRecord: JAVA_PROPERTIES, TaskCountRecord: b'{"task-count":1}'}.get(kind, b'{"state":"PAUSED"}')
    assert type(decode(key, value)) is kind


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (b'{"state":"PAUSED"}', TargetState.PAUSED),  # of a worker from before KIP-875
        (b'{"state":"PAUSED","state.v2":null}', TargetState.PAUSED),
        (b'{"state":"STARTED","state.v2":7}', TargetState.STARTED),
        (b'{"state.v2":"STOPPED"}', TargetState.STOPPED),
        (b"null", None),
    ],
)
@pytest.mark.kip(875, "target state records hold both state and state.v2")
def test_the_newer_field_of_a_target_state_counts_if_it_is_text(value: bytes, target: TargetState | None) -> None:
    assert decode(b"target-state-a", value) == TargetStateRecord("a", target)


@pytest.mark.parametrize("value", [b"{}", b'{"include-tasks":"true"}', b'{"include-tasks":1,"only-failed":null}'])
def test_what_a_restart_request_does_not_say_is_false(value: bytes) -> None:
    assert decode(b"restart-connector-a", value) == RestartRequest("a", False, False)


def test_properties_without_a_value_are_left_out() -> None:
    assert decode(b"connector-a", b'{"properties":{"a":"1","b":null}}') == ConnectorRecord("a", {"a": "1"})


@pytest.mark.parametrize("value", [b"", b"{", b"\xff\xfe", b"hello", b'{"properties":NaN}', b"[" * 50_000])
def test_a_value_that_is_not_json_is_an_error_of_its_own(value: bytes) -> None:
    with pytest.raises(NotJson):
        decode(b"connector-a", value)


MALFORMED: list[tuple[bytes | None, Any]] = [
    (None, b"{}"),
    (b"", b"{}"),
    (b"unknown-a", b"{}"),
    (b"session-key-2", b"{}"),
    (b"connector-a", b"[]"),
    (b"connector-a", b'{"properties":"x"}'),
    (b"connector-a", b'{"properties":{"a":1}}'),
    (b"target-state-a", b'{"state":"DANCING","state.v2":"DANCING"}'),
    (b"target-state-a", b"7"),
    (b"target-state-a", b"{}"),
    (b"task-a-0", None),
    (b"task-a-x", b'{"properties":{}}'),
    (b"task-0", b'{"properties":{}}'),
    (b"task-a--", b'{"properties":{}}'),
    (b"commit-a", None),
    (b"commit-a", b'{"tasks":"1"}'),
    (b"commit-a", b'{"tasks":true}'),
    (b"commit-a", b'{"tasks":-1}'),
    (b"restart-connector-a", None),
    (b"tasks-fencing-a", b"{}"),
    (b"session-key", None),
    (b"session-key", b'{"key":"%%%","algorithm":"x","creation-timestamp":1}'),
    (b"session-key", b'{"key":"AA==","algorithm":"x","creation-timestamp":"1"}'),
    (b"logger-cluster-a", None),
    (b"logger-cluster-a", b'{"level":5}'),
]


@pytest.mark.parametrize(("key", "value"), MALFORMED)
def test_what_no_worker_writes_is_malformed(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedRecord):
        decode(key, value)


def test_a_session_key_is_not_shown() -> None:
    assert "AAEC" not in repr(KEY)
    assert repr(KEY.key) not in repr(KEY)
