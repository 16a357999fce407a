"""A broker that is away for an hour is not an hour of log lines."""

from __future__ import annotations

import logging

import pytest

from headgate.log import Complaints


def test_what_is_said_again_and_again_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    complaints = Complaints(logging.getLogger("t"), "Consumer", lambda: now[0])
    for number in range(100):
        complaints.say(f"connection refused (after {number}ms in state CONNECT)")
        now[0] += 0.1
    assert len(caplog.records) == 1
    complaints.say("authentication failed")
    assert len(caplog.records) == 2
    now[0] += 60
    complaints.say("connection refused (after 7ms in state CONNECT)")
    assert caplog.records[-1].getMessage().endswith("(and 99 times more)")


def test_what_does_not_pass_is_said_once_and_still_known(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    complaints = Complaints(logging.getLogger("t"), "Consumer", lambda: now[0])
    for _ in range(3):
        now[0] += 600
        complaints.say("Subscribed topic not available: t", once=True)
    assert len(caplog.records) == 1
    assert complaints.since(now[0] - 1) == "Subscribed topic not available: t"
