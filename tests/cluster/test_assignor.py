"""Who does what, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from headgate.cluster.assignor import Decision, Memory, Round, Share, assign, assign_eagerly
from headgate.cluster.work import NOTHING, Work
from headgate.model import TaskId

DELAY = 300_000
NOW = 1_000_000


def work(text: str) -> Work:
    """Connectors by their name, tasks as name-number: "a a-0 a-1"."""
    words = text.split()
    tasks = (word.rsplit("-", 1) for word in words if "-" in word)
    return Work.of((word for word in words if "-" not in word), (TaskId(name, int(number)) for name, number in tasks))


def works(texts: Mapping[str, str]) -> dict[str, Work]:
    return {member: work(text) for member, text in texts.items()}


def remembered(given: Mapping[str, str], **more: object) -> Memory:
    return replace(Memory(generation=4, given=works(given)), **more)  # type: ignore[arg-type]


def decide(held: Mapping[str, str], configured: str, memory: Memory, **more: object) -> Decision:
    given: dict[str, object] = {"generation": 5, "last_generation": 4, "now_ms": NOW, "max_delay_ms": DELAY} | more
    return assign(Round(held=works(held), configured=work(configured), **given), memory)  # type: ignore[arg-type]


def shares(decision: Decision) -> dict[str, tuple[str, str]]:
    """What is assigned and revoked, by member, of those for whom anything changes."""
    told = {member: (text(share.assigned), text(share.revoked)) for member, share in decision.shares.items()}
    return {member: each for member, each in told.items() if any(each)}


def text(some: Work) -> str:
    return " ".join([*sorted(some.connectors), *(str(task) for task in sorted(some.tasks))])


# --- eagerly ----------------------------------------------------------------------------------------------------------


def test_eagerly_all_is_dealt_like_cards() -> None:
    given = assign_eagerly(["w2", "w1", "w3"], work("a b a-0 a-1 b-0 b-10 b-9"))
    assert given == works({"w1": "a a-1 b-10", "w2": "b b-0", "w3": "a-0 b-9"})


def test_eagerly_members_without_work_are_told_so() -> None:
    assert assign_eagerly(["w1", "w2"], work("a")) == works({"w1": "a", "w2": ""})
    assert assign_eagerly(["w1"], NOTHING) == works({"w1": ""})


# --- what is fresh ----------------------------------------------------------------------------------------------------


def test_the_first_round_deals_evenly() -> None:
    decision = decide({"w1": "", "w2": ""}, "a b a-0 a-1 a-2 b-0", Memory())
    assert shares(decision) == {"w1": ("a a-0 a-2", ""), "w2": ("b a-1 b-0", "")}
    assert decision.delay_ms == 0


@pytest.mark.parametrize(
    ("held", "configured", "expected"),
    [
        ({"w1": "a", "w2": ""}, "a b", {"w2": ("b", "")}),
        ({"w1": "a a-0", "w2": "a-1"}, "a a-0 a-1 a-2", {"w1": ("a-2", "")}),
        ({"w1": "a a-0 a-1", "w2": "a-2"}, "a a-0 a-1 a-2 a-3", {"w2": ("a-3", "")}),
        ({"w1": "a", "w2": "b-0"}, "a b b-0", {"w2": ("b", "")}),
        ({"w1": "a", "w2": "b"}, "a b", {}),
        ({"w1": ""}, "", {}),
    ],
    ids=["to who has none", "even: the first", "to who has least", "kinds are counted apart", "nothing new", "nothing"],
)
def test_fresh_work_goes_to_who_has_least(
    held: Mapping[str, str], configured: str, expected: Mapping[str, tuple[str, str]]
) -> None:
    assert shares(decide(held, configured, remembered(held))) == expected


def test_a_member_is_told_only_what_changes_and_the_leader_remembers_all() -> None:
    decision = decide({"w1": "a a-0", "w2": "a-1 b-7"}, "a a-0 a-1 c", remembered({"w1": "a a-0", "w2": "a-1 b-7"}))
    assert decision.shares == {"w1": Share(), "w2": Share(work("c"), work("b-7"))}
    assert decision.memory == Memory(generation=5, given=works({"w1": "a a-0", "w2": "a-1 c"}))


# --- what is gone, and what is doubled --------------------------------------------------------------------------------


def test_what_was_deleted_is_given_up() -> None:
    held = {"w1": "a a-0", "w2": "a-1 b"}
    assert shares(decide(held, "b", remembered(held))) == {"w1": ("", "a a-0"), "w2": ("", "a-1")}


def test_even_when_the_leader_has_forgotten_or_never_knew() -> None:
    assert shares(decide({"w1": "a a-0"}, "a", Memory())) == {"w1": ("", "a-0")}


def test_what_was_deleted_while_it_waited_is_forgotten() -> None:
    memory = remembered({"w1": "a"}, waiting=work("b b-0"), deadline_ms=NOW + 5)
    decision = decide({"w1": "a"}, "a", memory)
    assert (shares(decision), decision.delay_ms, decision.memory.waiting) == ({}, 0, NOTHING)


def test_what_two_hold_is_given_up_by_both_and_then_given_to_one() -> None:
    held = {"w1": "a a-0", "w2": "a-0 a-1"}
    first = decide(held, "a a-0 a-1", Memory())
    assert shares(first) == {"w1": ("", "a-0"), "w2": ("", "a-0")}
    second = decide({"w1": "a", "w2": "a-1"}, "a a-0 a-1", first.memory, generation=6, last_generation=5)
    assert shares(second) == {"w1": ("a-0", "")}


# --- what is lost -----------------------------------------------------------------------------------------------------


def test_work_whose_owner_vanished_waits() -> None:
    memory = remembered({"w1": "a a-0", "w2": "a-1 a-2"})
    decision = decide({"w1": "a a-0"}, "a a-0 a-1 a-2", memory)
    assert (shares(decision), decision.delay_ms) == ({}, DELAY)
    later = decide({"w1": "a a-0"}, "a a-0 a-1 a-2", decision.memory, generation=6, last_generation=5, now_ms=NOW + 100)
    assert (shares(later), later.delay_ms) == ({}, DELAY - 100)
    end = decide({"w1": "a a-0"}, "a a-0 a-1 a-2", later.memory, generation=7, last_generation=6, now_ms=NOW + DELAY)
    assert (shares(end), end.delay_ms) == ({"w1": ("a-1 a-2", "")}, 0)
    assert end.memory == Memory(generation=7, given=works({"w1": "a a-0 a-1 a-2"}))


def test_it_does_not_wait_when_no_delay_is_wanted() -> None:
    decision = decide({"w1": "a"}, "a b", remembered({"w1": "a", "w2": "b"}), max_delay_ms=0)
    assert (shares(decision), decision.delay_ms) == ({"w1": ("b", "")}, 0)


def test_it_does_not_wait_for_who_took_its_leave() -> None:
    decision = decide({"w1": "a"}, "a b", remembered({"w1": "a", "w2": "b"}), leaving=frozenset({"w2"}))
    assert (shares(decision), decision.delay_ms) == ({"w1": ("b", "")}, 0)


def test_who_vanished_is_waited_for_and_who_took_its_leave_is_not() -> None:
    memory = remembered({"w1": "a", "w2": "b", "w3": "c"})
    decision = decide({"w1": "a"}, "a b c", memory, leaving=frozenset({"w2"}))
    assert (shares(decision), decision.delay_ms) == ({"w1": ("b", "")}, DELAY)
    assert decision.memory.waiting == work("c")


def test_it_does_not_wait_when_its_owner_is_there_and_only_did_not_hear_of_it() -> None:
    decision = decide({"w1": "a", "w2": ""}, "a b b-0", remembered({"w1": "a", "w2": "b b-0"}))
    assert (shares(decision), decision.delay_ms) == ({"w2": ("b b-0", "")}, 0)


def test_who_vanished_with_empty_hands_is_not_waited_for() -> None:
    decision = decide({"w1": "a"}, "a", remembered({"w1": "a", "w2": ""}))
    assert (shares(decision), decision.delay_ms) == ({}, 0)


def test_an_owner_that_comes_back_with_its_work_ends_the_waiting() -> None:
    memory = remembered({"w1": "a"}, waiting=work("b b-0"), deadline_ms=NOW + 5)
    decision = decide({"w1": "a", "w3": "b b-0"}, "a b b-0", memory)
    assert (shares(decision), decision.delay_ms, decision.memory.deadline_ms) == ({}, 0, None)


def test_an_owner_that_comes_back_with_empty_hands_has_to_wait_and_gets_all_of_it() -> None:
    memory = remembered({"w1": "a a-0", "w2": "b a-1 a-2"})
    configured = "a b a-0 a-1 a-2"
    first = decide({"w1": "a a-0", "w9": ""}, configured, memory)
    assert (shares(first), first.delay_ms) == ({}, DELAY)
    end = decide(
        {"w1": "a a-0", "w9": ""}, configured, first.memory, generation=6, last_generation=5, now_ms=NOW + DELAY
    )
    assert (shares(end), end.delay_ms) == ({"w9": ("b a-1 a-2", "")}, 0)


@pytest.mark.parametrize("back", ["w0", "w9"], ids=["first by its name", "last by its name"])
def test_who_came_with_empty_hands_gets_the_odd_one(back: str) -> None:
    memory = remembered({"w1": "a-0"}, waiting=work("a-1 a-2"), deadline_ms=NOW)
    decision = decide({"w1": "a-0", back: ""}, "a-0 a-1 a-2", memory)
    assert shares(decision) == {back: ("a-1 a-2", "")}


def test_several_that_come_back_share_it() -> None:
    memory = remembered({"w1": "a-0 a-1"}, waiting=work("a-2 a-3 a-4 a-5"), deadline_ms=NOW)
    decision = decide({"w1": "a-0 a-1", "w7": "", "w8": ""}, "a-0 a-1 a-2 a-3 a-4 a-5", memory)
    assert shares(decision) == {"w7": ("a-2 a-4", ""), "w8": ("a-3 a-5", "")}


def test_while_work_waits_fresh_work_is_given_and_nothing_is_balanced() -> None:
    memory = remembered({"w1": "a a-0 a-1 a-2"}, waiting=work("b"), deadline_ms=NOW + 9)
    decision = decide({"w1": "a a-0 a-1 a-2", "w2": ""}, "a a-0 a-1 a-2 b c", memory)
    assert (shares(decision), decision.delay_ms) == ({"w2": ("c", "")}, 9)


def test_a_second_one_that_vanishes_is_waited_for_until_the_same_end() -> None:
    memory = remembered({"w1": "a", "w3": "c"}, waiting=work("b"), deadline_ms=NOW + 9)
    decision = decide({"w1": "a"}, "a b c", memory)
    assert (shares(decision), decision.delay_ms, decision.memory.waiting) == ({}, 9, work("b c"))


def test_one_that_vanishes_at_the_very_end_is_waited_for_anew() -> None:
    memory = remembered({"w1": "a", "w3": "c"}, waiting=work("b"), deadline_ms=NOW)
    decision = decide({"w1": "a"}, "a b c", memory)
    assert (shares(decision), decision.delay_ms, decision.memory.waiting) == ({"w1": ("b", "")}, DELAY, work("c"))


def test_a_leader_that_did_not_lead_the_last_time_knows_of_no_loss() -> None:
    memory = remembered({"w1": "a", "w2": "b"})
    decision = decide({"w1": "a"}, "a b", memory, generation=9, last_generation=8)
    assert (shares(decision), decision.delay_ms) == ({"w1": ("b", "")}, 0)


# --- balance ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "revoked"),
    [
        ({"w1": "a b c d", "w2": ""}, {"w1": "c d"}),
        ({"w1": "a b c", "w2": ""}, {"w1": "c"}),
        ({"w1": "a b", "w2": "c"}, {}),
        ({"w1": "a", "w2": "b", "w3": ""}, {}),
        ({"w1": "a b", "w2": "c d", "w3": ""}, {"w2": "d"}),
        ({"w1": "a b c", "w2": "d e", "w3": "f"}, {"w1": "c"}),
        ({"w1": "a b c d e", "w2": "f"}, {"w1": "d e"}),
        ({"w1": "a-0 a-1 b", "w2": "c d"}, {"w1": "a-1"}),
    ],
)
def test_only_what_is_beyond_the_fair_part_moves(held: Mapping[str, str], revoked: Mapping[str, str]) -> None:
    decision = decide(held, " ".join(held.values()), remembered(held))
    assert shares(decision) == {member: ("", each) for member, each in revoked.items()}
    assert decision.memory.revoked_before is bool(revoked)


def test_what_is_about_to_be_given_counts() -> None:
    held = {"w1": "a b c", "w2": ""}
    assert shares(decide(held, "a b c d e f", remembered(held))) == {"w2": ("d e f", "")}


def test_what_was_given_up_is_given_in_the_next_round() -> None:
    first = decide({"w1": "a b c d", "w2": ""}, "a b c d", remembered({"w1": "a b c d"}))
    second = decide({"w1": "a b", "w2": ""}, "a b c d", first.memory, generation=6, last_generation=5)
    assert shares(second) == {"w2": ("c d", "")}
    assert (second.memory.revoked_before, second.memory.revocations) == (False, 0)


@pytest.mark.parametrize(
    ("postponed", "pause"), [(0, 40), (1, 1_600), (2, 64_000), (3, DELAY), (9, DELAY)], ids=lambda value: str(value)
)
def test_a_revocation_after_a_revocation_is_postponed(postponed: int, pause: int) -> None:
    held = {"w1": "a b", "w2": ""}
    memory = remembered(held, revoked_before=True, revocations=postponed)
    decision = decide(held, "a b", memory)
    assert (shares(decision), decision.delay_ms) == ({}, pause)
    assert (decision.memory.revocations, decision.memory.pause_until_ms) == (postponed + 1, NOW + pause)


def test_until_its_pause_is_over() -> None:
    held = {"w1": "a b", "w2": ""}
    memory = remembered(held, revoked_before=True, revocations=1, pause_until_ms=NOW + 40)
    early = decide(held, "a b", memory, now_ms=NOW + 39)
    assert (shares(early), early.delay_ms) == ({}, 1)
    late = decide(held, "a b", early.memory, generation=6, last_generation=5, now_ms=NOW + 40)
    assert (shares(late), late.delay_ms) == ({"w1": ("", "b")}, 0)
    assert (late.memory.revoked_before, late.memory.revocations) == (True, 1)


def test_without_a_delay_there_is_no_pause() -> None:
    held = {"w1": "a b", "w2": ""}
    decision = decide(held, "a b", remembered(held, revoked_before=True), max_delay_ms=0)
    assert (shares(decision), decision.delay_ms) == ({"w1": ("", "b")}, 0)


def test_a_revocation_that_had_no_effect_is_repeated_after_the_pause() -> None:
    held = {"w1": "a b", "w2": ""}
    first = decide(held, "a b", remembered(held))
    assert shares(first) == {"w1": ("", "b")}
    second = decide(held, "a b", first.memory, generation=6, last_generation=5)
    assert (shares(second), second.delay_ms) == ({}, 40)
    third = decide(held, "a b", second.memory, generation=7, last_generation=6, now_ms=NOW + 40)
    assert shares(third) == {"w1": ("", "b")}


def test_balance_ends_the_counting() -> None:
    held = {"w1": "a", "w2": "b"}
    memory = remembered(held, revoked_before=True, revocations=3, pause_until_ms=NOW + 40)
    decision = decide(held, "a b", memory)
    assert (decision.delay_ms, decision.memory) == (0, Memory(generation=5, given=works(held)))


def test_waiting_for_lost_work_is_pause_enough() -> None:
    held = {"w1": "a b", "w2": ""}
    memory = remembered({**held, "w3": "c"}, revoked_before=True, revocations=1, pause_until_ms=NOW + 40)
    first = decide(held, "a b c", memory)
    assert (shares(first), first.delay_ms) == ({}, DELAY)
    end = decide(held, "a b c", first.memory, generation=6, last_generation=5, now_ms=NOW + DELAY)
    assert shares(end) == {"w2": ("c", "")}
