"""ErrorPolicy: the errors.* keys, and Apache's pauses between two tries."""

from __future__ import annotations

import pytest

from headgate.pipeline.policy import ErrorPolicy

pytestmark = pytest.mark.kip(298, "error handling in Connect")


def test_nothing_said_is_apaches_default() -> None:
    assert ErrorPolicy.of({}) == ErrorPolicy()
    assert ErrorPolicy().plain


def test_every_key_is_read() -> None:
    policy = ErrorPolicy.of(
        {
            "errors.retry.timeout": " 5000 ",
            "errors.retry.delay.max.ms": "700",
            "errors.tolerance": "all",
            "errors.log.enable": "True",
            "errors.log.include.messages": "true",
            "errors.deadletterqueue.topic.name": "dead",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    )
    assert policy == ErrorPolicy(5000, 700, True, True, True, "dead", 1, True)


@pytest.mark.parametrize(
    ("policy", "plain", "reports", "keeps_records", "keeps_traces"),
    [
        (ErrorPolicy(), True, False, False, False),
        (ErrorPolicy(tolerant=True), False, False, False, False),
        (ErrorPolicy(retry_timeout_ms=-1), False, False, False, False),
        (ErrorPolicy(log=True), False, True, False, True),
        (ErrorPolicy(log_records=True), True, False, False, False),
        (ErrorPolicy(log=True, log_records=True), False, True, True, True),
        (ErrorPolicy(dead_letter_topic="d"), False, True, True, False),
        (ErrorPolicy(dead_letter_topic="d", dead_letter_headers=True), False, True, True, True),
        (ErrorPolicy(dead_letter_headers=True), True, False, False, False),
    ],
)
def test_what_a_policy_wants_of_a_failure(
    policy: ErrorPolicy, plain: bool, reports: bool, keeps_records: bool, keeps_traces: bool
) -> None:
    assert (policy.plain, policy.reports, policy.keeps_records, policy.keeps_traces) == (
        plain,
        reports,
        keeps_records,
        keeps_traces,
    )


def pauses(policy: ErrorPolicy, most: int = 10) -> list[float]:
    """All pauses of an operation that never succeeds and takes no time itself."""
    made: list[float] = []
    while len(made) < most:
        delay = policy.delay_ms(len(made) + 1, sum(made), lambda limit: limit - 1)
        if delay is None:
            break
        made.append(delay)
    return made


@pytest.mark.parametrize(
    ("timeout", "longest", "expected"),
    [
        (0, 60_000, []),
        (1, 60_000, [1]),
        (300, 60_000, [300]),
        (1000, 60_000, [300, 600, 100]),
        (2100, 60_000, [300, 600, 1200]),
        (2000, 700, [300, 600, 699, 401]),
        (-1, 1000, [300, 600, 999, 999, 999, 999, 999, 999, 999, 999]),
        (-1, 0, [0] * 10),
        (-1, -5, [0] * 10),
        (-1, 300, [300, 299, 299, 299, 299, 299, 299, 299, 299, 299]),
    ],
)
def test_pauses_double_are_drawn_by_lot_above_the_longest_and_end_with_the_time(
    timeout: int, longest: int, expected: list[float]
) -> None:
    assert pauses(ErrorPolicy(timeout, longest)) == expected


def test_a_pause_by_lot_lies_below_the_longest() -> None:
    drawn = {ErrorPolicy(-1, 5).delay_ms(9, 0) for _ in range(300)}
    assert drawn == {0, 1, 2, 3, 4}


def test_no_pause_is_too_late_to_count() -> None:
    assert ErrorPolicy(1000).delay_ms(2, 1000) is None
    assert ErrorPolicy(1000).delay_ms(2, 999.5) == 0.5
    assert ErrorPolicy(-1).delay_ms(100, 1e12) is not None
