"""The findings as JSON, for machines."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from headgate.cli.migration.findings import ConnectorFinding, Findings, Problem
from headgate.cli.migration.steps import steps
from headgate.model import ConnectorType


def json_text(findings: Findings) -> str:
    return _dumped(_tree(findings))


def failure(problem: str) -> str:
    """When there is nothing to report."""
    return _dumped({"error": problem})


def _dumped(tree: dict[str, Any]) -> str:
    return json.dumps(tree, indent=2, ensure_ascii=False, default=lambda each: each.value) + "\n"


def _tree(findings: Findings) -> dict[str, Any]:
    roster, worker = findings.roster, findings.worker
    return {
        "file": findings.file,
        "bootstrap_servers": findings.bootstrap_servers,
        "cluster_id": findings.cluster_id,
        "all_can_run": findings.all_can_run,
        "group": {
            "id": findings.group,
            "members": None
            if isinstance(roster, str)
            else [{"client_id": each.client_id, "host": each.host, "url": each.url} for each in roster.members],
            "problem": roster if isinstance(roster, str) else None,
        },
        "worker": {
            "known_keys": list(worker.known),
            "keys_without_effect": dict(worker.without_effect),
            "unknown_keys": list(worker.unknown),
            "problems": [_problem(each) for each in worker.problems],
            "notes": list(worker.notes),
        },
        "topics": [asdict(each) for each in findings.topics],
        "connectors": [_connector(each) for each in findings.connectors],
        "steps": steps(findings),
    }


def _connector(found: ConnectorFinding) -> dict[str, Any]:
    offsets = found.offsets
    place = "group" if found.type is ConnectorType.SINK else "topic"
    return {
        "name": found.name,
        "can_run": found.runs,
        "class": found.connector_class or None,
        "type": found.type,
        "target_state": found.target,
        "tasks": found.tasks,
        "consistent": found.consistent,
        "status": None if found.status is None else asdict(found.status),
        "task_statuses": [{"id": number, **asdict(each)} for number, each in (found.task_statuses or {}).items()],
        "offsets": None
        if offsets is None
        else {place: offsets.where, "partitions": offsets.partitions, "problem": offsets.problem},
        "problems": [_problem(each) for each in found.problems],
        "notes": list(found.notes),
    }


def _problem(problem: Problem) -> dict[str, str]:
    return {"problem": problem.what, "remedy": problem.remedy}
