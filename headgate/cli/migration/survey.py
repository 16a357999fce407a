"""The whole cluster, surveyed: its worker file, its group, its topics, and each of its connectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from headgate.cli.migration.connector import ConnectorCheck
from headgate.cli.migration.findings import ConnectorFinding, Findings, Problem, StatusFinding
from headgate.cli.migration.hiding import shown
from headgate.cli.migration.offsets import Places
from headgate.cli.migration.worker import CheckedWorker, check_worker
from headgate.cluster.roster import Roster, RosterUnknown, roster
from headgate.kafka.settings import ClientConfigError
from headgate.model import Config, Status
from headgate.runtime.config.connector_config import CONNECTOR_CLASS
from headgate.runtime.plugins import Plugins
from headgate.storage.snapshot import Snapshot, SnapshotReader, Topic, UnreadableTopic


def survey(file: str, raw: Config, plugins: Plugins, timeout: float, warnings: Sequence[str] = ()) -> Findings:
    """`raw` is the worker file as it stands, `warnings` what was said when it was read, `timeout` for each thing that
    is asked of Kafka. Raises NotAWorkerFile, UnreadableTopic."""
    worker = check_worker(raw, plugins)
    config = worker.config.raw
    with closing(worker.secrets):
        reader, snapshot = _read(worker, timeout)
        found, problems = _roster(config, timeout)
        problems += [_refused(topic, topic.refusal) for topic in snapshot.topics if topic.refusal is not None]
        with closing(Places(reader, snapshot.offsets, worker.config, timeout)) as places:
            connectors = tuple(_connectors(snapshot, ConnectorCheck(plugins, worker), places))
    return Findings(
        file=file,
        bootstrap_servers=config["bootstrap.servers"],
        cluster_id=snapshot.cluster_id,
        group=config["group.id"].strip(),
        roster=found,
        worker=replace(
            worker.finding, problems=(*worker.finding.problems, *problems), notes=(*warnings, *worker.finding.notes)
        ),
        topics=snapshot.topics,
        connectors=connectors,
    )


def _read(worker: CheckedWorker, timeout: float) -> tuple[SnapshotReader, Snapshot]:
    try:
        reader = SnapshotReader(worker.config.raw, timeout)
        return reader, reader.read()
    except (UnreadableTopic, ClientConfigError) as error:
        # What is wrong in the file may be why.
        told = [str(error), *(f"{each.what} {each.remedy}" for each in worker.finding.problems)]
        raise UnreadableTopic(shown("\n".join(told))) from error


def _roster(config: Config, timeout: float) -> tuple[Roster | str, list[Problem]]:
    group = config["group.id"].strip()
    try:
        found = roster(group, config, timeout)
    except RosterUnknown as error:
        return shown(str(error)), []
    except ClientConfigError as error:
        told = f"A worker could not join the group with these settings: {shown(str(error))}"
        return told, [Problem(told, "Change the sasl.* or ssl.* keys of the worker file.")]
    if found.of_others:
        told = f"Group {group} is not one of workers: its members speak the protocol {found.protocol_type}."
        return found, [Problem(told, "Set group.id to the group of the old workers.")]
    return found, []


def _refused(topic: Topic, why: str) -> Problem:
    if "cleanup.policy" in why:
        command = f"kafka-configs --alter --entity-type topics --entity-name {topic.name}"
        return Problem(why, f"Set it: {command} --add-config cleanup.policy=compact")
    if "single partition" in why:
        return Problem(
            why, f"Copy its records, in their order, to a topic of one partition; name it in {topic.property}."
        )
    return Problem(why, "Give the worker's user the right to describe this topic.")


def _connectors(snapshot: Snapshot, check: ConnectorCheck, places: Places) -> Iterator[ConnectorFinding]:
    state = snapshot.configs
    for name, connector in sorted(state.view.connectors.items()):
        checked = check.check(connector.config)
        status = snapshot.statuses.status(name)
        yield ConnectorFinding(
            name=name,
            connector_class=connector.config.get(CONNECTOR_CLASS, ""),
            type=checked.type,
            target=connector.target,
            tasks=state.task_counts.get(name, 0),
            consistent=name not in state.inconsistent,
            status=None if status is None else _status(status),
            task_statuses={number: _status(each) for number, each in snapshot.statuses.tasks(name).items()},
            offsets=places.of(name, checked.type, checked.config),
            problems=checked.problems,
            notes=checked.notes,
        )


def _status(status: Status) -> StatusFinding:
    lines = (status.trace or "").strip().splitlines() or [""]
    # Java's traces begin with what was wrong, Python's end with it.
    told = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return StatusFinding(status.state, status.worker_id, shown(told.strip()) or None)
