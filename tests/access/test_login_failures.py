"""How failed logins are slowed down: by whom they were for, by the address, and with bounded memory."""

from __future__ import annotations

import pytest

from headgate.access.failures import Failures


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def failures(clock: Clock) -> Failures:
    return Failures(clock)


def wait(failures: Failures, clock: Clock, address: str = "1.2.3.4", who: str = "alice") -> float:
    """For one who waits for the answer."""
    seconds = failures.failed(address, who).wait_s
    clock.s += seconds
    return round(seconds, 3)


def test_each_failure_takes_longer_up_to_five_seconds(failures: Failures, clock: Clock) -> None:
    assert [wait(failures, clock) for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_others_are_not_slowed_down_with_it(failures: Failures, clock: Clock) -> None:
    for _ in range(6):
        wait(failures, clock)
    assert wait(failures, clock, who="bob") == 0.2
    assert wait(failures, clock, address="1.2.3.5") == 0.2


def test_a_success_is_forgiveness(failures: Failures, clock: Clock) -> None:
    for _ in range(6):
        wait(failures, clock)
    failures.succeeded("1.2.3.4", "bob")
    assert wait(failures, clock) == 5.0
    failures.succeeded("1.2.3.4", "alice")
    assert wait(failures, clock) == 0.2


def test_failures_are_forgotten(failures: Failures, clock: Clock) -> None:
    for _ in range(6):
        wait(failures, clock)
    clock.s += 590
    assert wait(failures, clock) == 5.0
    clock.s += 601
    assert wait(failures, clock) == 0.2


def test_those_at_once_wait_one_after_the_other_and_then_none_is_tried(failures: Failures, clock: Clock) -> None:
    waits = []
    while not failures.refused_s("1.2.3.4", "alice"):
        waits.append(round(failures.failed("1.2.3.4", "alice").wait_s, 3))
    assert waits == [0.2, 0.6, 1.4, 3.0, 6.2, 11.2, 16.2, 21.2]
    assert failures.refused_s("1.2.3.4", "alice") == 22
    assert failures.refused_s("1.2.3.4", "bob") == 0
    clock.s += 2
    assert failures.refused_s("1.2.3.4", "alice") == 0


def test_who_does_not_wait_gets_no_more_tries(failures: Failures, clock: Clock) -> None:
    tried = 0
    for _ in range(6000):
        clock.s += 0.1  # ten minutes, ten a second
        if not failures.refused_s("1.2.3.4", "alice"):
            failures.failed("1.2.3.4", "alice")
            tried += 1
    assert tried <= 600 / 5 + 10


def test_many_at_once_do_not_wait_for_ever(failures: Failures, clock: Clock) -> None:
    for _ in range(1000):  # all were admitted before the first failed
        failures.failed("1.2.3.4", "alice")
    assert failures.refused_s("1.2.3.4", "alice") == 25
    clock.s += 6
    assert failures.refused_s("1.2.3.4", "alice") == 0


def test_who_tries_many_names_is_slowed_down_by_the_address(failures: Failures, clock: Clock) -> None:
    waits = [wait(failures, clock, who=f"user{number}") for number in range(12)]
    assert waits == [0.2] * 10 + [1.0, 1.0]
    tried = 0
    for number in range(6000):
        clock.s += 0.1
        if not failures.refused_s("1.2.3.4", f"name{number}"):
            failures.failed("1.2.3.4", f"name{number}")
            tried += 1
    assert 500 <= tried <= 650  # one a second
    assert failures.refused_s("1.2.3.4", "alice") > 0
    assert failures.refused_s("1.2.3.4", "alice", guessed=False) == 0  # signatures are not guessed
    assert failures.failed("1.2.3.4", "alice", guessed=False).wait_s == pytest.approx(0.2)
    assert failures.refused_s("1.2.3.5", "alice") == 0


def test_what_nobody_guesses_does_not_slow_down_the_address(failures: Failures, clock: Clock) -> None:
    for number in range(50):
        failures.failed("1.2.3.4", f"token{number}", guessed=False)
    assert failures.refused_s("1.2.3.4", "alice") == 0
    clock.s += 1
    assert wait(failures, clock) == 1.0  # the one more after those


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:1.2.3.4", "1.2.3.4", True),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.5", False),
        ("somebody", "somebody", True),
        ("somebody", "1.2.3.4", False),
    ],
)
def test_which_addresses_are_one(failures: Failures, clock: Clock, one: str, other: str, same: bool) -> None:
    wait(failures, clock, one)
    assert wait(failures, clock, other) == (0.4 if same else 0.2)


def test_memory_is_bounded(failures: Failures, clock: Clock) -> None:
    for number in range(11_000):
        failures.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x" * 1000 + str(number))
    assert len(failures._traces) == len(failures._addresses) == 10_000
    assert not any(isinstance(key, str) for key in failures._traces)  # nor does it hold long names
    clock.s += 1
    assert wait(failures, clock, "10.0.42.247", "x" * 1000 + "10999") == 0.4  # the last one is still known


def test_a_flood_of_failures_is_no_flood_of_lines(failures: Failures, clock: Clock) -> None:
    told = [failures.failed("1.2.3.4", f"user{number}").worth_telling for number in range(1000)]
    assert [number for number, each in enumerate(told, 1) if each] == [*range(1, 11), 16, 32, 64, 128, 256, 512]
