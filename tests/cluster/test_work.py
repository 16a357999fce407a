"""Connectors and tasks, taken together and apart."""

from __future__ import annotations

from headgate.cluster.work import NOTHING, Work, union
from headgate.model import TaskId

A, TASK = Work.of(["a"]), Work.of([], [TaskId("a", 0)])


def test_work_is_counted_and_may_be_none() -> None:
    assert (len(list(A | TASK)), bool(A), bool(TASK), bool(NOTHING), list(NOTHING)) == (2, True, True, False, [])


def test_work_is_taken_together_and_apart() -> None:
    both = A | TASK
    assert both - A == TASK == both & TASK
    assert A & TASK == NOTHING == A - both
    assert union([A, TASK, A]) == both
    assert union([]) == NOTHING
