"""JdbcSinkTask without a database: what it does where there is none."""

from __future__ import annotations

import pytest

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.jdbc.database import DatabaseLost
from headgate.connectors.jdbc.sink import JdbcSinkTask

WHERE = TopicPartition("orders", 0)


def task_without_database(monkeypatch: pytest.MonkeyPatch, **more: str) -> JdbcSinkTask:
    def lost(*_: object) -> None:
        raise DatabaseLost("nobody listens")

    monkeypatch.setattr(JdbcSinkTask, "_begin", lost)
    task = JdbcSinkTask()
    task.start({"name": "sink", "connection.url": "jdbc:sqlite:/none", "exactly.once": "true", **more})
    return task


def test_an_open_ends_after_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_without_database(monkeypatch, **{"connection.attempts": "2", "connection.backoff.ms": "1"})
    with pytest.raises(ConnectError, match="After 2 attempts: nobody listens"):
        task.open([WHERE])


def test_a_stop_ends_the_pause_before_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_without_database(monkeypatch, **{"connection.backoff.ms": "3600000"})
    task.stop_requested()
    with pytest.raises(DatabaseLost):
        task.open([WHERE])
