"""Oversize: which records of a refused batch are sent again, in which groups."""

from __future__ import annotations

import random

from headgate.kafka.native.calls import RECORD_OVERHEAD, Message
from headgate.kafka.native.oversize import Oversize


def message(number: int, size: int, topic: str = "t") -> Message:
    return Message(10, number, topic, 0, None, b"x" * (size - RECORD_OVERHEAD))


def settle(messages: list[Message], most: int) -> tuple[list[int], list[int], Oversize]:
    """What a broker that takes `most` bytes at a time accepted, and what went alone and was refused."""
    oversize = Oversize()
    for each in messages:
        assert oversize.takes(each)
    accepted: list[int] = []
    refused: list[int] = []
    while oversize:
        group = oversize.group()
        if sum(each.size for each in group) <= most:
            accepted += [each.number for each in group]
        else:
            refused += [each.number for each in group if not oversize.takes(each)]
    return accepted, refused, oversize


def test_records_that_are_small_enough_all_go_in_their_order() -> None:
    accepted, refused, oversize = settle([message(number, 100) for number in range(1000)], 1000)
    assert (accepted, refused) == (list(range(1000)), [])
    assert 500 <= (oversize.limit("t") or 0) <= 1000
    assert oversize.limit("other") is None


def test_only_one_that_goes_alone_is_refused() -> None:
    sizes = {3: 1001, 4: 5000, 9: 1000}
    accepted, refused, _ = settle([message(number, sizes.get(number, 200)) for number in range(10)], 1000)
    assert refused == [3, 4]
    assert accepted == [0, 1, 2, 5, 6, 7, 8, 9]


def test_what_the_broker_says_is_the_limit_whatever_goes_alone() -> None:
    oversize = Oversize()
    oversize.learn("t", 1000)
    assert oversize.takes(message(0, 1001))
    assert oversize.returned == ("t",)
    assert not oversize.takes(oversize.group()[0])
    assert oversize.limit("t") == 1000
    for number in (1, 2):
        assert oversize.takes(message(number, 400))  # then it takes less by now
    assert len(oversize.group()) == 1
    assert oversize.limit("t") == 400


def test_any_sizes_and_topics() -> None:
    lot = random.Random(7)
    for _ in range(50):
        messages = [message(number, lot.randint(71, 1500), lot.choice("ab")) for number in range(60)]
        lot.shuffle(messages)
        accepted, refused, _ = settle(messages, 1000)
        by_number = {each.number: each for each in messages}
        assert sorted(refused) == sorted(each.number for each in messages if each.size > 1000)
        for topic in "ab":
            mine = [number for number in accepted if by_number[number].topic == topic]
            assert mine == sorted(mine)
        assert sorted(accepted + refused) == list(range(60))


def test_a_topic_that_does_not_say_what_it_takes_gets_twice_as_much_each_time() -> None:
    oversize = Oversize()
    oversize.feel("t", 100)
    for size, limit in [(40, 100), (60, 200), (200, 400), (350, 800), (800, None), (800, None)]:
        oversize.taken("t", size, 1000)
        assert oversize.limit("t") == limit


def test_but_no_more_than_it_took() -> None:
    oversize = Oversize()
    oversize.feel("t", 400)
    for number in (1, 2):
        assert oversize.takes(message(number, 200))
    oversize.group()
    oversize.taken("t", 400, 1000)
    assert oversize.limit("t") == 200
