from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headgate.runtime.stage import HerderStage, Stages

BEGAN = datetime(2024, 5, 6, 7, 8, 9, 12_000, tzinfo=UTC)
ENDED = datetime(2024, 5, 6, 7, 8, 10, tzinfo=UTC)


def test_what_goes_on() -> None:
    assert HerderStage("doing this", BEGAN).summary() == (
        "The worker is currently doing this, which began at 2024-05-06T07:08:09.012Z."
    )


def test_what_is_over() -> None:
    assert HerderStage("doing this", BEGAN, ENDED).summary() == (
        "The last operation the worker completed was doing this, which began at 2024-05-06T07:08:09.012Z and completed"
        " at 2024-05-06T07:08:10.000Z."
    )


def test_of_several_the_one_that_has_lasted_longest_is_named() -> None:
    stages = Stages()
    assert stages.summary is None
    with stages.doing("first"):
        with stages.doing("second"):
            assert "currently first," in (stages.summary or "")
        assert "currently first," in (stages.summary or "")
    assert "completed was first," in (stages.summary or "")


def test_the_next_is_named_when_the_first_ends_before_it() -> None:
    stages = Stages()
    first, second = stages.doing("first"), stages.doing("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert "currently second," in (stages.summary or "")
    second.__exit__(None, None, None)
    assert "completed was second," in (stages.summary or "")


def test_two_of_the_same_name_are_two() -> None:
    stages = Stages()
    with stages.doing("same"):
        with stages.doing("same"):
            pass
        assert "currently same," in (stages.summary or "")


def test_a_failure_ends_it_too() -> None:
    stages = Stages()
    with pytest.raises(OSError, match="no"), stages.doing("this"):
        raise OSError("no")
    assert "completed was this," in (stages.summary or "")
