from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any

import pytest
from memory_offsets import MemoryOffsetStore
from runtime_fakes import WORKER_FILE, FakeGroups, Script, scripted_plugins

from headgate.api import ConnectError, UnsupportedOperation
from headgate.model import TargetState, TopicPartition
from headgate.runtime import offset_changes
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.errors import BadRequest, NotStopped, OffsetsError, OverridesNotAllowed
from headgate.runtime.offset_changes import OffsetChanges
from headgate.runtime.ports import GroupNotEmpty, KafkaAway, OffsetsLost
from headgate.runtime.view import ConnectorView

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
DEFINITE = "The offsets for this connector have been {} successfully"
UNSUPPORTED = "Failed to modify offsets for connector a because it doesn't support external modification of offsets"
POSSIBLE = "The framework-managed offsets for this connector have been {0} successfully. However, if this connector manages offsets externally, they will need to be manually {0} in the system that the connector uses."  # noqa: E501


def source(target: TargetState = TargetState.STOPPED, **more: Any) -> ConnectorView:
    return ConnectorView("a", {"name": "a", "connector.class": "ScriptedSource"}, target, **more)


def sink(**more: str) -> ConnectorView:
    config = {"name": "a", "connector.class": "ScriptedSink", "topics": "t"}
    return ConnectorView(
        "a", {**config, **{key.replace("_", "."): value for key, value in more.items()}}, TargetState.STOPPED
    )


class Changes(OffsetChanges):
    def __init__(self, **worker: str) -> None:
        self.store, self.groups = MemoryOffsetStore(), FakeGroups()
        config = WorkerConfig.parse({**WORKER_FILE, **{key.replace("_", "."): value for key, value in worker.items()}})
        super().__init__(config, scripted_plugins(), lambda *_, **__: nullcontext(self.store), self.groups)


@pytest.fixture
def changes(script: Script) -> Changes:
    return Changes()


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def fails(coroutine: Coroutine[Any, Any, Any], text: str) -> None:
    with pytest.raises(OffsetsError, match=f"^{re.escape(text)}$"):
        run(coroutine)


def at(partition: int, topic: str = "t") -> dict[str, Any]:
    return {"kafka_topic": topic, "kafka_partition": partition}


class TestPreconditions:
    @pytest.mark.parametrize("target", [TargetState.STARTED, TargetState.PAUSED])
    def test_only_a_stopped_connector(self, changes: Changes, script: Script, target: TargetState) -> None:
        for attempt in (changes.alter(source(target), [({}, {})]), changes.reset(source(target))):
            with pytest.raises(NotStopped):
                run(attempt)
        assert script.plugins == []

    def test_only_one_without_tasks(self, changes: Changes) -> None:
        with pytest.raises(NotStopped):
            run(changes.reset(source(tasks=({},))))

    def test_any_connector_can_be_read(self, changes: Changes) -> None:
        assert run(changes.read(source(TargetState.STARTED, tasks=({},)))) == []


class TestSources:
    def test_named_partitions_change_and_others_stay(self, changes: Changes) -> None:
        changes.store.put("a", [({"f": 1}, {"n": 1}), ({"f": 2}, {"n": 2})])
        told = run(changes.alter(source(), [({"f": 2}, None), ({"f": 3}, {"n": 3})]))
        assert told == POSSIBLE.format("altered")
        assert run(changes.read(source())) == [({"f": 1}, {"n": 1}), ({"f": 3}, {"n": 3})]

    def test_a_reset_is_for_all_of_the_connector_and_only_for_it(self, changes: Changes, script: Script) -> None:
        changes.store.put("a", [({"f": 1}, {"n": 1}), ({"f": 2}, {"n": 2})])
        changes.store.put("b", [({"f": 1}, {"n": 1})])
        asked: list[Any] = []
        script.on_alter = lambda config, offsets: asked.append((dict(config), offsets)) or True  # type: ignore[func-returns-value]
        assert run(changes.reset(source())) == DEFINITE.format("reset")
        assert asked == [(source().config, [({"f": 1}, None), ({"f": 2}, None)])]
        assert (changes.store.all("a"), len(changes.store.all("b"))) == ([], 1)

    def test_the_connector_is_asked_also_when_there_is_nothing_to_reset(self, changes: Changes, script: Script) -> None:
        asked: list[Any] = []
        script.on_alter = lambda config, offsets: bool(asked.append(offsets))  # type: ignore[func-returns-value]
        assert run(changes.reset(source())) == POSSIBLE.format("reset")
        assert asked == [[]]

    def test_the_connector_is_asked_before_anything_is_written_on_an_object_of_its_own(
        self, changes: Changes, script: Script
    ) -> None:
        seen: list[Any] = []
        script.on_alter = lambda config, offsets: bool(seen.append(changes.store.all("a")))  # type: ignore[func-returns-value]
        run(changes.alter(source(), [({"f": 1}, {"n": 1})]))
        assert (seen, script.journal, len(script.plugins)) == ([[]], [], 1)
        assert changes.store.all("a") == [({"f": 1}, {"n": 1})]

    def test_a_wrong_shape_is_refused_before_the_connector_is_asked(self, changes: Changes, script: Script) -> None:
        with pytest.raises(BadRequest, match="Offsets may only contain primitive types as values"):
            run(changes.alter(source(), [({"f": []}, None)]))
        assert script.plugins == []

    def test_a_store_that_fails(self, changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> Any:
            raise OSError("disk full")

        monkeypatch.setattr(changes.store, "put", fail)
        text = "Failed to modify offsets for source connector a"
        fails(changes.alter(source(), [({"f": 1}, {"n": 1})]), text)
        monkeypatch.setattr(changes.store, "all", fail)
        fails(changes.read(source()), "Failed to retrieve offsets for source connector a")
        fails(changes.reset(source()), text)


class TestSinks:
    def test_the_group_is_read(self, changes: Changes) -> None:
        changes.groups.groups["connect-a"] = {P1: 4, P0: 3}
        assert run(changes.read(sink())) == [(at(0), {"kafka_offset": 3}), (at(1), {"kafka_offset": 4})]

    def test_named_partitions_change_and_others_stay(self, changes: Changes, script: Script) -> None:
        changes.groups.groups["connect-a"] = {P0: 3, P1: 4}
        asked: list[Any] = []
        script.on_alter = lambda config, offsets: not asked.append(offsets)  # type: ignore[func-returns-value]
        requested = [(at(1), None), (at(2), {"kafka_offset": "9"})]
        assert run(changes.alter(sink(), requested)) == DEFINITE.format("altered")
        assert asked == [{P1: None, TopicPartition("t", 2): 9}]
        assert changes.groups.groups["connect-a"] == {P0: 3, TopicPartition("t", 2): 9}

    @pytest.mark.kip(875, "Second follow-up requests to reset offsets ... are also successful")
    def test_a_reset_deletes_the_group_and_can_be_repeated(self, changes: Changes, script: Script) -> None:
        changes.groups.groups["connect-a"] = {P0: 3}
        asked: list[Any] = []
        script.on_alter = lambda config, offsets: bool(asked.append(offsets))  # type: ignore[func-returns-value]
        for _ in range(2):
            assert run(changes.reset(sink())) == POSSIBLE.format("reset")
        assert changes.groups.groups == {}
        assert asked == [{P0: None}, {}]

    @pytest.mark.kip(
        875, "Can view/alter/reset the offsets for a sink connector that uses an overridden consumer group ID"
    )
    def test_another_group(self, changes: Changes) -> None:
        view = ConnectorView("a", {**sink().config, "consumer.override.group.id": "mine"}, TargetState.STOPPED)
        run(changes.alter(view, [(at(0), {"kafka_offset": 1})]))
        assert changes.groups.groups == {"mine": {P0: 1}}
        assert run(changes.read(view)) == [(at(0), {"kafka_offset": 1})]
        run(changes.reset(view))
        assert changes.groups.groups == {}

    @pytest.mark.kip(
        875,
        "Can view/alter/reset the offsets for a sink and source connector that targets a different Kafka cluster than"
        " the one used for the internal topics of the Kafka Connect cluster",
    )
    def test_another_cluster(self, changes: Changes) -> None:
        view = ConnectorView(
            "a", {**sink().config, "admin.override.bootstrap.servers": "far:9092"}, TargetState.STOPPED
        )
        run(changes.read(view))
        run(changes.alter(view, [(at(0), {"kafka_offset": 1})]))
        run(changes.reset(view))
        assert {admin["bootstrap.servers"] for admin in changes.groups.admins} == {"far:9092"}
        assert changes.groups.admins[0]["client.id"] == "connector-worker-adminclient-a"

    def test_a_negative_offset_is_refused_before_the_connector_is_asked(self, changes: Changes, script: Script) -> None:
        fails(changes.alter(sink(), [(at(0), {"kafka_offset": -1})]), "Failed to modify offsets for sink connector a")
        assert (script.plugins, changes.groups.admins) == ([], [])

    @pytest.mark.parametrize("verb", ["alter", "reset"])
    def test_tasks_that_have_not_left_yet(self, changes: Changes, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> Any:
            raise GroupNotEmpty

        monkeypatch.setattr(changes.groups, "alter", fail)
        monkeypatch.setattr(changes.groups, "delete", fail)
        attempt = changes.alter(sink(), [(at(0), None)]) if verb == "alter" else changes.reset(sink())
        text = f"^Failed to {verb} consumer group offsets for connector a either because its tasks haven't stopped"
        with pytest.raises(OffsetsError, match=text):
            run(attempt)

    def test_a_broker_that_fails(self, changes: Changes, monkeypatch: pytest.MonkeyPatch) -> None:
        changes.groups.failing = OSError("no broker")
        fails(changes.read(sink()), "Failed to retrieve consumer group offsets for sink connector a")
        fails(changes.alter(sink(), [(at(0), None)]), "Failed to alter consumer group offsets for connector a")
        fails(changes.reset(sink()), "Failed to list offsets prior to resetting offsets for sink connector a")
        monkeypatch.setattr(changes.groups, "read", lambda admin, group: {})
        fails(changes.reset(sink()), "Failed to reset consumer group offsets for sink connector a")


@pytest.mark.kip(
    875,
    "Send the appropriate REST response when resetting a connector's offsets depending on whether its `alterOffsets`"
    " method is not implemented, throws an `UnsupportedOperationException`, throws a different exception, or is"
    " implemented and returns successfully",
)
class TestHook:
    def test_the_connector_has_its_name_and_spark(self, changes: Changes, script: Script) -> None:
        changes._session = lambda: "the session"
        seen: list[tuple[str, object]] = []

        def look(*_: object) -> bool:
            context = script.plugins[-1].context
            seen.append((context.name, context.spark()))
            return True

        script.on_alter = look
        run(changes.alter(sink(), [(at(0), {"kafka_offset": 1})]))
        run(changes.reset(sink()))
        assert seen == [("a", "the session")] * 2

    def test_a_worker_without_spark_says_so(self, changes: Changes, script: Script) -> None:
        script.on_alter = lambda *_: bool(script.plugins[-1].context.spark())
        with pytest.raises(OffsetsError, match="This worker has no Spark"):
            run(changes.reset(sink()))

    @pytest.mark.parametrize(
        ("error", "text"),
        [
            (UnsupportedOperation(), UNSUPPORTED),
            (UnsupportedOperation("they are in the data"), f"{UNSUPPORTED}: they are in the data"),
            (ConnectError("not these"), "not these"),
            (ConnectError(), "Failed to modify offsets for {} connector a: ConnectError"),
            (ValueError("no such file"), "Failed to modify offsets for {} connector a: ValueError: no such file"),
            (TimeoutError("the database"), "Failed to modify offsets for {} connector a: TimeoutError: the database"),
        ],
    )  # fmt: skip
    def test_one_that_refuses_leaves_everything_as_it_was(
        self, changes: Changes, script: Script, error: Exception, text: str
    ) -> None:
        def refuse(*_: object) -> bool:
            raise error

        script.on_alter = refuse
        changes.store.put("a", [({"f": 1}, {"n": 1})])
        changes.groups.groups["connect-a"] = {P0: 3}
        fails(changes.alter(source(), [({"f": 1}, None)]), text.format("source"))
        fails(changes.reset(source()), text.format("source"))
        fails(changes.alter(sink(), [(at(0), None)]), text.format("sink"))
        fails(changes.reset(sink()), text.format("sink"))
        assert changes.store.all("a") == [({"f": 1}, {"n": 1})]
        assert changes.groups.groups == {"connect-a": {P0: 3}}

    @pytest.mark.parametrize("kind", ["source", "sink"])
    def test_one_that_takes_too_long(
        self, changes: Changes, script: Script, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        assert offset_changes._HOOK_TIMEOUT_S == 90
        monkeypatch.setattr(offset_changes, "_HOOK_TIMEOUT_S", 0.02)
        script.on_alter = lambda config, offsets: bool(script.hang())  # type: ignore[func-returns-value]
        view = source() if kind == "source" else sink()
        began = time.monotonic()
        fails(changes.reset(view), f"Timed out while calling the 'alterOffsets' method for {kind} connector a")
        assert time.monotonic() - began < 5


class TestMissingClass:
    """The class of connector a is not installed."""

    @staticmethod
    def view(**config: str) -> ConnectorView:
        return ConnectorView("a", {"connector.class": "com.acme.Lost", **config}, TargetState.STOPPED)

    @pytest.mark.kip(875, "It will automatically deduce whether the connector is a source or sink based on its config")
    @pytest.mark.parametrize("config", [{}, {"topics": "t"}, {"topics.regex": "t.*"}], ids=str)
    def test_offsets_are_read_by_what_the_config_says(self, changes: Changes, config: dict[str, str]) -> None:
        changes.store.put("a", [({"f": 1}, {"n": 1})])
        changes.groups.groups["connect-a"] = {P0: 3}
        of_source, of_sink = [({"f": 1}, {"n": 1})], [(at(0), {"kafka_offset": 3})]
        assert run(changes.read(self.view(**config))) == (of_sink if config else of_source)

    def test_they_are_not_changed_and_the_class_is_named(self, changes: Changes) -> None:
        changes.store.put("a", [({"f": 1}, {"n": 1})])
        changes.groups.groups["connect-a"] = {P0: 3}
        text = "^Failed to modify offsets for connector a: .*matches com.acme.Lost,"
        for config, entry in (({}, ({"f": 1}, None)), ({"topics": "t"}, (at(0), None))):
            for attempt in (changes.alter(self.view(**config), [entry]), changes.reset(self.view(**config))):
                with pytest.raises(OffsetsError, match=text):
                    run(attempt)
        assert (changes.store.all("a"), changes.groups.groups["connect-a"]) == ([({"f": 1}, {"n": 1})], {P0: 3})


class TestUnavailable:
    """What the store itself says to people is what they are told."""

    @pytest.fixture
    def asked(self, script: Script) -> list[Any]:
        asked: list[Any] = []
        script.on_alter = lambda config, offsets: bool(asked.append(offsets))  # type: ignore[func-returns-value]
        return asked

    @staticmethod
    def failing(changes: Changes, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> Any:
            raise error

        monkeypatch.setattr(changes.store, "all", fail)

    def test_a_topic_that_was_deleted_lets_nothing_be_changed(
        self, changes: Changes, monkeypatch: pytest.MonkeyPatch, asked: list[Any]
    ) -> None:
        self.failing(changes, OffsetsLost("connect-offsets", [({"f": 1}, {"n": 1})]), monkeypatch)
        with pytest.raises(OffsetsLost) as told:
            run(changes.read(source()))
        assert told.value.known == [({"f": 1}, {"n": 1})]
        for attempt in (changes.alter(source(), [({"f": 1}, {"n": 2})]), changes.reset(source())):
            with pytest.raises(OffsetsError, match=r"^Topic connect-offsets of source offsets was deleted"):
                run(attempt)
        assert asked == []

    def test_a_kafka_that_is_away_is_named(
        self, changes: Changes, monkeypatch: pytest.MonkeyPatch, asked: list[Any]
    ) -> None:
        changes.groups.failing = KafkaAway("far:9092", "refused")
        self.failing(changes, changes.groups.failing, monkeypatch)
        attempts = [changes.alter(source(), [({"f": 1}, {"n": 2})]), changes.reset(source()), changes.reset(sink())]
        for attempt in (changes.read(source()), changes.read(sink()), *attempts):
            with pytest.raises(OffsetsError, match=r"^Kafka does not answer at far:9092 \(refused\): see that it runs"):
                run(attempt)
        assert asked == []


class TestPolicies:
    def test_a_sinks_group_is_reached_with_allowed_settings_only(self, script: Script) -> None:
        changes = Changes(connector_client_config_override_policy="None")
        with pytest.raises(OverridesNotAllowed, match=r"Client Config Overrides not allowed \[retries\]"):
            run(changes.read(sink(admin_override_retries="3")))
        assert run(changes.read(sink())) == []
