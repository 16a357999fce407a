"""A store of offsets that all tasks share: each task's own view of it, which ends without ending the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from source_fakes import Source

from headgate.model import Offset, Partition
from headgate.tasks.source.offsets import Shared, TaskOffsets, shared


class Plain:
    """A store without transactions; closing it would be told."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Offset | None] = {}
        self.closed = False

    def get(self, connector: str, partitions: list[Partition]) -> list[Offset | None]:
        return [self.kept.get((connector, str(each))) for each in partitions]

    def put(self, connector: str, offsets: list[tuple[Partition, Offset | None]]) -> None:
        self.kept |= {(connector, str(partition)): offset for partition, offset in offsets}

    def close(self) -> None:
        self.closed = True


class InTopic(Plain):
    topic = "offsets"

    def entries(
        self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]
    ) -> list[tuple[bytes, bytes | None]]:
        return [(f"{connector} {partition}".encode(), str(offset).encode()) for partition, offset in offsets]


def test_what_one_task_puts_another_one_gets() -> None:
    store = Plain()
    offsets_for = shared(store)
    one: TaskOffsets = offsets_for(Source().spec())
    one.put("orders", [({"p": 0}, {"n": 1}), ({"p": 1}, {"n": 2})])
    one.close()
    assert not store.closed, "others use it, too"
    other = offsets_for(Source().spec())
    assert other.get("orders", [{"p": 1}, {"p": 0}, {"p": 9}]) == [{"n": 2}, {"n": 1}, None]
    assert other.get("others", [{"p": 0}]) == [None]


def test_transactions_are_told_the_topic_and_its_records() -> None:
    offsets = Shared(InTopic())
    assert offsets.topic == "offsets"
    assert offsets.entries("orders", [({"p": 0}, {"n": 1})]) == [(b"orders {'p': 0}", b"{'n': 1}")]


def test_there_is_no_second_place_to_copy_offsets_to() -> None:
    store = InTopic()
    Shared(store).copy("orders", [({"p": 0}, {"n": 1})])
    assert store.kept == {}


def test_a_store_that_knows_no_topic_cannot_take_part_in_transactions() -> None:
    offsets: Any = Shared(Plain())
    with pytest.raises(AttributeError):
        offsets.topic  # noqa: B018
