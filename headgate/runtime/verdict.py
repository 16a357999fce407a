"""Verdicts: how a connector or a task fares, from its state and from what is known of it; pure.

States are Kafka Connect's closed set, and RUNNING says no more than that a thread is there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from headgate.model import Health, State, Status, TaskFacts, Verdict

IGNORES_MS: Final = 10_000
"""Who was asked to pause or to stop so long ago, and has not, is stalled."""
STUCK_MS: Final = 60_000
"""Who has records under way, and has done none of them for so long, is stalled: a put may well take half a minute."""
RECENT_MS: Final = 30_000
"""Who got something done within this time is ok, and not idle."""
_AGAIN_MS: Final = 10_000
"""Another reason for the same verdict is written no more often than that."""
_NAMED_MS: Final = 5_000
"""An idle task that has been in one call for so long says in which."""

_OF_STATE: Final = {
    State.UNASSIGNED: (Verdict.STARTING, None),
    State.RESTARTING: (Verdict.STARTING, None),
    State.RUNNING: (Verdict.STARTING, None),  # until its worker has looked at it
    State.PAUSED: (Verdict.HELD, "paused"),
    State.STOPPED: (Verdict.HELD, "stopped"),
    State.FAILED: (Verdict.FAILED, None),
}
_WORST: Final = (
    Verdict.FAILED, Verdict.STALLED, Verdict.RETRYING, Verdict.STARTING, Verdict.OK, Verdict.IDLE, Verdict.HELD,
)  # fmt: skip


def of_state(state: State, now_ms: int, trace: str | None = None) -> Health:
    """What a state says by itself."""
    verdict, reason = _OF_STATE[state]
    error = cause(trace) if trace else None
    return Health(verdict, now_ms, reason or error, error)


def of_task(before: Health | None, state: State, facts: TaskFacts, now_ms: int) -> Health:
    """Of a task that runs here, or is about to. The time since when is kept while the verdict stays."""
    verdict, reason = _judge(state, facts, now_ms)
    since = before.since_ms if before is not None and before.verdict is verdict else now_ms
    return Health(verdict, since, reason, facts.last_error, facts.last_progress_ms, facts.lag, facts.rate)


def news(told: Health | None, now: Health, told_ms: int, now_ms: int) -> bool:
    """Whether others are to be told, who were told something at that time. Figures, and where a healthy task is just
    now, change all the time; they are asked for."""
    if told is None or told.verdict is not now.verdict:
        return True
    unwell = now.verdict in (Verdict.RETRYING, Verdict.STALLED)
    return unwell and told.reason != now.reason and now_ms - told_ms >= _AGAIN_MS


def of_connector(connector: Status, tasks: Iterable[Status]) -> Health | None:
    """Its own, unless a task fares worse; one that runs fares as its tasks do, and one without tasks has nothing to
    do. None when workers without verdicts wrote it."""
    own, theirs = connector.health, [task.health for task in tasks]
    known = [each for each in theirs if each is not None]
    if own is None or len(known) < len(theirs):
        return None
    if connector.state is State.RUNNING:
        if not known:
            return replace(own, verdict=Verdict.IDLE, reason="it has no tasks")
        own = None
    worst = min([*([own] if own else []), *known], key=lambda each: _WORST.index(each.verdict))
    lags = [each.lag for each in known if each.lag is not None]
    rates = [each.rate for each in known if each.rate is not None]
    progress = [each.last_progress_ms for each in known if each.last_progress_ms is not None]
    return replace(
        worst,
        last_progress_ms=max(progress, default=None),
        lag=max(lags, default=None),
        rate=sum(rates) if rates else None,
    )


def cause(trace: str) -> str:
    """In one line: traces begin with it. What Apache's workers wrote begins with the exception, too."""
    return trace.strip().partition("\n")[0].strip()


def _judge(state: State, facts: TaskFacts, now_ms: int) -> tuple[Verdict, str | None]:
    if facts.asked_ms is not None and now_ms - facts.asked_ms >= IGNORES_MS:
        return Verdict.STALLED, f"asked at {at(facts.asked_ms)} to pause or to stop, and still {_where(facts)}"
    if facts.trouble is not None:
        return Verdict.RETRYING, facts.trouble
    if state is not State.RUNNING:
        return Verdict.STARTING, _where(facts)
    last = max(facts.last_progress_ms or 0, facts.under_way_since_ms or 0)
    if facts.under_way_since_ms is not None and now_ms - last >= STUCK_MS:
        return Verdict.STALLED, f"records are under way and none was done since {at(last)}: {_where(facts)}"
    if facts.last_progress_ms is not None and now_ms - facts.last_progress_ms < RECENT_MS:
        return Verdict.OK, None
    if facts.under_way_since_ms is not None:
        return Verdict.OK, _where(facts)
    return Verdict.IDLE, _where(facts) if now_ms - facts.doing_since_ms >= _NAMED_MS else None


def _where(facts: TaskFacts) -> str:
    return f"in {facts.doing} since {at(facts.doing_since_ms)}"


def at(ms: int) -> str:
    """A time as people and programs read it."""
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
