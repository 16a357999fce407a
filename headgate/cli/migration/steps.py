"""The steps of a take-over, as they follow from what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headgate.cli.migration.findings import Findings

_SHOWN: Final = 5
"""Of names, of which there may be very many."""


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def steps(findings: Findings) -> list[str]:
    """One sentence or more for each, in their order."""
    return [*_before(findings), *_over(findings), *_after()]


def _before(findings: Findings) -> Iterator[str]:
    if findings.worker.problems:
        yield "Change what is marked with ! in the worker file: a Headgate worker would not start with it."
    stuck = [each.name for each in findings.connectors if not each.runs]
    if stuck:
        yield (
            f"Decide about {_listed(stuck)}: give them what they lack, or stop or delete them (PUT"
            " /connectors/<name>/stop, DELETE /connectors/<name>), before or after the take-over. Started as they are,"
            " they will be FAILED; the others run."
        )
    if not findings.all_can_run:
        yield "Run this check again."


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _all(members: int) -> str:
    return "the worker of the group" if members == 1 else f"the {members} workers of the group"


def _over(findings: Findings) -> Iterator[str]:
    members = () if isinstance(findings.roster, str) else findings.roster.members
    if members:
        yield (
            f"Stop {_all(len(members))} and see by this check that nobody is left. A Headgate worker that is started"
            " before that joins their group: the work is shared, and what comes to a worker that has no class for it is"
            " FAILED there."
        )
    else:
        yield "Keep the old workers stopped: one that is started joins the group and is given a share of the work."
    yield (
        f"`headgate distributed {findings.file}` starts a worker; have as many as you like. Connectors, their wanted"
        " states and their offsets are as they were. REST is where `listeners` says, http://:8083 if it says nothing."
        " In `plugin.path` Python files count, Java archives do not."
    )


def _after() -> Iterator[str]:
    yield "Look: GET /connectors?expand=status shows all connectors and tasks."
    yield (
        "To go back, stop the Headgate workers and start the old ones with the same file. The topics have stayed as"
        " Kafka Connect has them; what was created meanwhile with classes that only Headgate has will be FAILED there."
    )
