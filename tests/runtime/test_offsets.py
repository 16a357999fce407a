from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import ConfigError, ConnectError, UnsupportedOperation
from headgate.model import TargetState, TopicPartition
from headgate.runtime import offsets
from headgate.runtime.errors import BadRequest, NotStopped, OffsetsError
from headgate.runtime.view import ConnectorView

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


def sink(partition: Any, offset: Any = None) -> dict[TopicPartition, int | None]:
    return offsets.parse_sink_changes([(partition, offset)])


def at(topic: Any = "t", partition: Any = 0) -> dict[str, Any]:
    return {"kafka_topic": topic, "kafka_partition": partition}


def exactly(text: str) -> str:
    return f"^{re.escape(text)}$"


class TestPreconditions:
    @pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
    @pytest.mark.parametrize("target", [TargetState.STARTED, TargetState.PAUSED])
    def test_a_connector_that_is_not_stopped_is_refused(self, target: TargetState) -> None:
        text = (
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            "specified connector by issuing a 'PUT' request to the '/connectors/a/stop' endpoint"
        )
        with pytest.raises(NotStopped, match=exactly(text)):
            offsets.require_stopped(ConnectorView("a", {}, target))

    def test_a_stopped_connector_that_still_has_tasks_is_refused(self) -> None:
        with pytest.raises(NotStopped):
            offsets.require_stopped(ConnectorView("a", {}, TargetState.STOPPED, ({"task": "0"},)))

    def test_a_stopped_connector_without_tasks_is_fine(self) -> None:
        offsets.require_stopped(ConnectorView("a", {}, TargetState.STOPPED))


class TestGroup:
    @pytest.mark.kip(
        875, "Can view/alter/reset the offsets for a sink connector that uses an overridden consumer group ID"
    )
    def test_the_connector_then_the_worker_then_the_name_say_which_group(self) -> None:
        own, worker = {"consumer.override.group.id": "own"}, {"group.id": "worker"}
        assert offsets.group_of("a", own, worker) == "own"
        assert offsets.group_of("a", {}, worker) == "worker"
        assert offsets.group_of("a", {}, {}) == "connect-a"

    def test_offsets_of_a_group_are_shown_sorted(self) -> None:
        read = {TopicPartition("t", 10): 1, TopicPartition("t", 9): 2, TopicPartition("s", 0): 3}
        assert offsets.sink_entries(read) == [
            ({"kafka_partition": 0, "kafka_topic": "s"}, {"kafka_offset": 3}),
            ({"kafka_partition": 9, "kafka_topic": "t"}, {"kafka_offset": 2}),
            ({"kafka_partition": 10, "kafka_topic": "t"}, {"kafka_offset": 1}),
        ]


NO_INTEGERS: list[tuple[Any, str]] = [
    ("1.0", "1.0"), (1.5, "1.5"), (1.0, "1.0"), ("", ""), ("x", "x"), (" 1", " 1"), ("1 ", "1 "), ("1_0", "1_0"),
    ("0x1", "0x1"), ("--1", "--1"), ("+", "+"), ("\u0661", "\u0661"), ([1], "[1]"), (True, "true"), (False, "false"),
]  # fmt: skip


class TestSinkRequests:
    def test_a_partition_must_be_there(self) -> None:
        text = "The partition for a sink connector offset cannot be null or missing"
        with pytest.raises(BadRequest, match=exactly(text)):
            sink(None)

    @pytest.mark.parametrize("partition", [{}, {"kafka_topic": "t"}, {"kafka_partition": 0}, {"topic": "t"}])
    def test_a_partition_has_both_keys(self, partition: dict[str, Any]) -> None:
        text = "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
        with pytest.raises(BadRequest, match=exactly(text)):
            sink(partition)

    def test_a_topic_is_not_null(self) -> None:
        with pytest.raises(BadRequest, match=exactly("Kafka topic names must be valid strings and may not be null")):
            sink(at(topic=None, partition=None))

    def test_a_partition_number_is_not_null(self) -> None:
        with pytest.raises(BadRequest, match=exactly("Kafka partitions must be valid numbers and may not be null")):
            sink(at(partition=None))

    @pytest.mark.parametrize(
        ("number", "shown"), [*NO_INTEGERS, (INT_MAX + 1, "2147483648"), ("-2147483649", "-2147483649")]
    )
    def test_a_partition_number_is_a_32_bit_integer(self, number: Any, shown: str) -> None:
        text = (
            f"Failed to parse the following Kafka partition value in the provided offsets: '{shown}'. Partition values"
            " for sink connectors need to be integers."
        )
        with pytest.raises(BadRequest, match=exactly(text)):
            sink(at(partition=number))

    @pytest.mark.parametrize("offset", [{}, {"offset": 1}])
    def test_an_offset_has_its_key(self, offset: dict[str, Any]) -> None:
        text = "The offset for a sink connector should either be null or contain the key 'kafka_offset'"
        with pytest.raises(BadRequest, match=exactly(text)):
            sink(at(), offset)

    @pytest.mark.parametrize(
        ("number", "shown"), [*NO_INTEGERS, (None, "null"), (LONG_MAX + 1, str(2**63)), (10**30, "1" + 30 * "0")]
    )
    def test_an_offset_is_a_64_bit_integer(self, number: Any, shown: str) -> None:
        text = (
            f"Failed to parse the following Kafka offset value in the provided offsets: '{shown}'. Offset values for"
            " sink connectors need to be integers."
        )
        with pytest.raises(BadRequest, match=exactly(text)):
            sink(at(), {"kafka_offset": number})

    def test_the_partition_is_looked_at_before_the_offset(self) -> None:
        with pytest.raises(BadRequest, match="partition value"):
            sink(at(partition="x"), {"kafka_offset": "x"})

    @pytest.mark.parametrize(("given", "parsed"), [("2", 2), ("+2", 2), ("007", 7), (INT_MAX, INT_MAX), ("-1", -1)])
    def test_numbers_may_come_as_text(self, given: Any, parsed: int) -> None:
        assert sink(at(partition=given), {"kafka_offset": given}) == {TopicPartition("t", parsed): parsed}

    @pytest.mark.parametrize("number", [LONG_MAX, str(LONG_MAX), -(2**63)])
    def test_offsets_may_be_as_big_as_kafkas(self, number: Any) -> None:
        assert sink(at(), {"kafka_offset": number}) == {TopicPartition("t", 0): int(number)}

    def test_a_null_offset_resets_the_partition(self) -> None:
        assert sink(at(), None) == {TopicPartition("t", 0): None}

    def test_a_topic_is_shown_as_text_and_other_keys_are_ignored(self) -> None:
        assert sink({**at(topic=5), "more": 1}, {"kafka_offset": 3, "more": 2}) == {TopicPartition("5", 0): 3}

    def test_of_two_changes_of_one_partition_the_last_wins(self) -> None:
        changes = [(at(), {"kafka_offset": 1}), (at(partition="0"), {"kafka_offset": 2})]
        assert offsets.parse_sink_changes(changes) == {TopicPartition("t", 0): 2}

    @given(st.integers(-(2**63), LONG_MAX), st.integers(0, INT_MAX), st.booleans())
    def test_what_is_shown_can_be_sent_back(self, offset: int, partition: int, as_text: bool) -> None:
        group = {TopicPartition("t", partition): offset}
        ((shown, value),) = offsets.sink_entries(group)
        changed = {"kafka_offset": str(value["kafka_offset"]) if as_text else value["kafka_offset"]}
        assert offsets.parse_sink_changes([(shown, changed)]) == group


class TestSourceRequests:
    def test_an_entry_needs_a_partition(self) -> None:
        text = "The partition for a source connector offset cannot be null or missing"
        with pytest.raises(BadRequest, match=exactly(text)):
            offsets.parse_source_changes([(None, {"position": 1})])

    @pytest.mark.parametrize(("value", "kind"), [([1], "ARRAY"), ({"a": 1}, "MAP"), ([], "ARRAY"), ({}, "MAP")])
    def test_values_are_primitive(self, value: Any, kind: str) -> None:
        text = f"Offsets may only contain primitive types as values, but field f contains {kind}"
        with pytest.raises(BadRequest, match=exactly(text)):
            offsets.parse_source_changes([({"f": value}, None)])
        with pytest.raises(BadRequest, match=exactly(text)):
            offsets.parse_source_changes([({"p": 1}, {"f": value})])

    def test_all_primitive_values_pass_as_they_are(self) -> None:
        changes: list[offsets.Change] = [
            ({"a": 1, "b": "x", "c": None, "d": True}, {"n": 1.5, "big": 2**62}),
            ({"a": 2}, None),
            ({}, {}),
        ]
        assert offsets.parse_source_changes(changes) == changes

    def test_of_two_changes_of_one_partition_the_last_wins(self) -> None:
        changes = [({"a": 1, "b": 2}, {"n": 1}), ({"c": 1}, {"n": 2}), ({"b": 2, "a": 1}, {"n": 3})]
        assert offsets.parse_source_changes(changes) == [({"b": 2, "a": 1}, {"n": 3}), ({"c": 1}, {"n": 2})]

    def test_a_number_and_the_same_number_as_text_are_two_partitions(self) -> None:
        assert len(offsets.parse_source_changes([({"a": 1}, None), ({"a": "1"}, None), ({"a": True}, None)])) == 3


@pytest.mark.kip(
    875,
    "Send the appropriate REST response when altering a connector's offsets depending on whether its `alterOffsets` "
    "method is not implemented, throws an `UnsupportedOperationException`, throws a different exception, or is "
    "implemented and returns successfully",
)
class TestAnswers:
    @pytest.mark.parametrize("verb", ["altered", "reset"])
    def test_the_connector_knows_that_all_is_done(self, verb: str) -> None:
        assert offsets.success(verb, True) == f"The offsets for this connector have been {verb} successfully"

    @pytest.mark.parametrize("verb", ["altered", "reset"])
    def test_the_connector_does_not_know(self, verb: str) -> None:
        assert offsets.success(verb, False) == (
            f"The framework-managed offsets for this connector have been {verb} successfully. However, if this "
            f"connector manages offsets externally, they will need to be manually {verb} in the system that the "
            "connector uses."
        )

    @pytest.mark.parametrize(
        ("error", "more"),
        [(UnsupportedOperation("no"), ": no"), (UnsupportedOperation(), ""), (NotImplementedError(), "")],
    )
    def test_never_possible(self, error: Exception, more: str) -> None:
        told = offsets.hook_failure(error, "sink", "a")
        assert isinstance(told, OffsetsError)
        why = "because it doesn't support external modification of offsets"
        assert str(told) == f"Failed to modify offsets for connector a {why}{more}"

    @pytest.mark.parametrize("error", [ConnectError("not these"), ConfigError("not these")])
    def test_not_these_offsets(self, error: Exception) -> None:
        assert str(offsets.hook_failure(error, "source", "a")) == "not these"

    @pytest.mark.parametrize("kind", ["source", "sink"])
    def test_anything_else(self, kind: str) -> None:
        told = offsets.hook_failure(KeyError("x"), kind, "a")
        assert str(told) == f"Failed to modify offsets for {kind} connector a: KeyError: 'x'"
        assert str(offsets.hook_failure(OSError(), kind, "a")).endswith("connector a: OSError")

    @pytest.mark.parametrize("verb", ["alter", "reset"])
    def test_the_group_still_has_members(self, verb: str) -> None:
        assert str(offsets.group_not_empty("a", verb)) == (
            f"Failed to {verb} consumer group offsets for connector a either because its tasks haven't stopped "
            f"completely yet or the connector was resumed before the request to {verb} its offsets could be "
            "successfully completed. If the connector is in a stopped state, this operation can be safely retried. If "
            "it doesn't eventually succeed, the Connect cluster may need to be restarted to get rid of the zombie sink "
            "tasks."
        )
