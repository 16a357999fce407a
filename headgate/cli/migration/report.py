"""The report of a check, for people."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from headgate.cli.migration.findings import ConnectorFinding, Findings, OffsetsFinding, Problem, StatusFinding
from headgate.cli.migration.steps import counted, steps
from headgate.model import ConnectorType
from headgate.storage.snapshot import Topic

_WIDTH: Final = 100
_SHOWN: Final = 3
"""Of things of which there may be very many."""


def text(findings: Findings) -> str:
    lines = [
        f"{findings.file}: group {findings.group}, Kafka at {findings.bootstrap_servers}"
        + (f" (cluster {findings.cluster_id})" if findings.cluster_id else ""),
        "Only read: nothing was written, created or joined.",
    ]
    for title, body in (
        ("Worker file", _worker(findings)),
        ("Workers in the group", _members(findings)),
        ("Internal topics", _topics(findings.topics)),
        (_headline(findings.connectors), _connectors(findings.connectors)),
        ("What to do", _steps(findings)),
    ):
        lines += ["", title, *body]
    return "\n".join(map(printable, lines)) + "\n"


def printable(line: str) -> str:
    """Names and messages are others': they may not move the cursor of a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def _wrapped(text: str, indent: str = "  ", hanging: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _problem(problem: Problem, indent: str) -> list[str]:
    return _wrapped(f"! {problem.what}", indent) + _wrapped(problem.remedy, f"{indent}  ", "")


# --- the cluster ------------------------------------------------------------------------------------------------------


def _worker(findings: Findings) -> Iterator[str]:
    worker = findings.worker
    yield f"  {counted(len(worker.known), 'key')} taken as in Kafka Connect"
    for key, why in worker.without_effect.items():
        yield from _wrapped(f"without effect here: {key} ({why})")
    for key in worker.unknown:
        yield from _wrapped(f"unknown, ignored: {key}")
    for note in worker.notes:
        yield from _wrapped(note)
    for problem in worker.problems:
        yield from _problem(problem, "  ")


def _members(findings: Findings) -> Iterator[str]:
    if isinstance(findings.roster, str):
        yield from _wrapped(f"not known: {findings.roster}")
        return
    for member in findings.roster.members:
        yield f"  {member.url or member.client_id} ({member.host})"
    if not findings.roster.members:
        yield "  none: the cluster is stopped"


def _topics(topics: Iterable[Topic]) -> Iterator[str]:
    width = max((len(each.name) for each in topics), default=0)
    for topic in topics:
        size = f"{counted(topic.partitions, 'partition')}, {counted(topic.records, 'record')}"
        yield f"  {topic.name:{width}}  {size}" + (f", {len(topic.ignored)} of them ignored" if topic.ignored else "")
        for why in topic.ignored[:_SHOWN]:
            yield from _wrapped(why, "    ")
        if len(topic.ignored) > _SHOWN:
            yield f"    and {len(topic.ignored) - _SHOWN} more"


# --- connectors -------------------------------------------------------------------------------------------------------


def _headline(connectors: tuple[ConnectorFinding, ...]) -> str:
    if not connectors:
        return "Connectors: none"
    return f"Connectors: {sum(each.runs for each in connectors)} of {len(connectors)} can run"


def _connectors(connectors: Iterable[ConnectorFinding]) -> Iterator[str]:
    for number, each in enumerate(connectors):
        if number:
            yield ""
        yield from _connector(each)


def _connector(found: ConnectorFinding) -> Iterator[str]:
    yield f"  {'can run   ' if found.runs else 'CANNOT RUN'}  {found.name}"
    indent = " " * 14
    yield f"{indent}{found.connector_class or '(no class)'}"
    kind = found.type.value
    yield f"{indent}{kind}, to be {found.target.value}, {_tasks(found)}"
    yield from _wrapped(f"last status: {_statuses(found)}", indent)
    if found.offsets is not None:
        yield from _wrapped(f"offsets: {_offsets(found.offsets, found.type)}", indent)
    for note in found.notes:
        yield from _wrapped(f"note: {note}", indent)
    for problem in found.problems:
        yield from _problem(problem, indent)


def _tasks(found: ConnectorFinding) -> str:
    tasks = counted(found.tasks, "task")
    if found.consistent:
        return tasks
    return f"{tasks}, of which some are lost: they are generated anew when the connector starts"


def _statuses(found: ConnectorFinding) -> str:
    if found.status is None and not found.task_statuses:
        return "none"
    connector = "none" if found.status is None else f"{found.status.state.value} at {found.status.worker_id}"
    tasks = found.task_statuses or {}
    states = Counter(each.state.value for each in tasks.values())
    parts = [connector, *(f"{counted(number, 'task')} {state}" for state, number in states.items())]
    failed: list[tuple[str, StatusFinding | None]] = [("connector", found.status)]
    failed += [(f"task {number}", each) for number, each in tasks.items()]
    traces = [f"{who}: {each.trace}" for who, each in failed if each is not None and each.trace]
    return "; ".join([", ".join(parts), *traces[:_SHOWN]])


def _offsets(offsets: OffsetsFinding, kind: ConnectorType) -> str:
    where = f"group {offsets.where}" if kind is ConnectorType.SINK else f"topic {offsets.where}"
    if offsets.partitions is None:
        return f"not known; {where}: {offsets.problem}"
    if offsets.partitions == 0:
        return f"none in {where}: it begins as a new one does"
    return f"of {counted(offsets.partitions, 'partition')}, in {where}"


# --- steps ------------------------------------------------------------------------------------------------------------


def _steps(findings: Findings) -> Iterator[str]:
    for number, step in enumerate(steps(findings), 1):
        yield from _wrapped(f"{number}. {step}", "  ", "   ")
