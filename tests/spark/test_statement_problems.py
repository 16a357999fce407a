"""What is against a statement is found also while Spark is being started, or dies meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.api.errors import ConnectError
from headgate.model import EngineUnavailable
from headgate.pipeline.transforms.sql import Sql
from headgate.sandbox import Sandbox
from headgate.spark import statements
from headgate.spark.statements import problems

BAD = {"statement": "SELECT reflect('java.lang.System', 'exit', 1) FROM records"}


class Spark:
    """Stands in for Session: what becomes of each call of `context` in turn, then there is one."""

    def __init__(self, *starts: Exception | None) -> None:
        self.starts = list(starts)
        self.waited: list[bool] = []

    def context(self, cancelled: Callable[[], bool]) -> object:
        self.waited.append(cancelled())
        problem = self.starts.pop(0) if self.starts else None
        if problem is not None:
            raise problem
        return object()

    def session(self) -> Any:
        return None

    def explain(self, error: Exception) -> Exception:
        return error


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the checks of a statement raise, one after the other."""
    raised: list[Exception] = []

    def check(*_: object) -> None:
        raise raised.pop(0)

    monkeypatch.setattr(statements, "check_text", check)
    monkeypatch.setattr(statements, "_apart", lambda base: base)
    monkeypatch.setattr(statements, "_NOTICED_S", 0.0)
    return raised


def found(spark: Any, cls: type = Sql, settings: dict[str, str] | None = None) -> dict[str, str]:
    return problems(spark, cls, BAD if settings is None else settings, Sandbox())


def test_a_session_that_dies_while_it_is_asked_is_not_the_last_word(checks: list[Exception]) -> None:
    checks += [EngineUnavailable("died"), EngineUnavailable("died"), ConnectError("no such function here")]
    spark = Spark()
    assert found(spark) == {"statement": "no such function here"}
    assert spark.waited == [False, False, False]


def test_where_there_is_no_spark_no_statement_runs_and_nothing_is_known(checks: list[Exception]) -> None:
    checks += [ConnectError("no such function here")]
    assert found(Spark(EngineUnavailable("there is no Java"))) == {}
    assert len(checks) == 1


def test_one_that_does_not_come_in_time_is_not_waited_for_any_longer(
    checks: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_SESSION_S", -1.0)
    assert found(Spark()) == {}


def test_others_need_no_spark(checks: list[Exception]) -> None:
    spark = Spark()
    assert found(spark, object) == {}
    assert found(spark, Sql, {"statement": ""}) == {}
    assert spark.waited == []
