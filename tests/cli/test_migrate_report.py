"""What `headgate migrate` prints of its findings, for people and for machines."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headgate.cli.migration.findings import (
    ConnectorFinding,
    Findings,
    OffsetsFinding,
    Problem,
    StatusFinding,
    WorkerFinding,
)
from headgate.cli.migration.machine import failure, json_text
from headgate.cli.migration.report import printable, text
from headgate.cli.migration.steps import steps
from headgate.cluster.roster import Roster, RosterMember
from headgate.model import ConnectorType, State, TargetState
from headgate.storage.snapshot import Topic

LINES = ConnectorFinding(
    name="lines",
    connector_class="FileStreamSource",
    type=ConnectorType.SOURCE,
    target=TargetState.STARTED,
    tasks=2,
    status=StatusFinding(State.RUNNING, "w:1"),
    task_statuses={0: StatusFinding(State.RUNNING, "w:1"), 1: StatusFinding(State.FAILED, "w:2", "it broke")},
    offsets=OffsetsFinding("offsets", 3),
)
JDBC = ConnectorFinding(
    name="jdbc",
    connector_class="io.acme.Jdbc",
    type=ConnectorType.SINK,
    target=TargetState.STOPPED,
    tasks=0,
    offsets=OffsetsFinding("connect-jdbc", 0),
    problems=(Problem("connector.class: io.acme.Jdbc is not installed here.", "Install it."),),
)
FOUND = Findings(
    file="worker.properties",
    bootstrap_servers="kafka:9092",
    cluster_id="c1",
    group="etl",
    roster=Roster("connect"),
    worker=WorkerFinding(("group.id", "topic"), {"plugin.discovery": "not here"}, ("lisseners",), (), ("a note",)),
    topics=(
        Topic("configs", "config.storage.topic", 1, 9, tuple(f"record {each}" for each in range(5))),
        Topic("offsets", "offset.storage.topic", 25, 1),
    ),
    connectors=(LINES,),
)


def lines(findings: Findings) -> list[str]:
    return text(findings).splitlines()


class TestText:
    def test_it_begins_with_what_was_looked_at(self) -> None:
        assert lines(FOUND)[:2] == [
            "worker.properties: group etl, Kafka at kafka:9092 (cluster c1)",
            "Only read: nothing was written, created or joined.",
        ]

    def test_keys_and_topics(self) -> None:
        printed = lines(FOUND)
        assert "  2 keys taken as in Kafka Connect" in printed
        assert "  without effect here: plugin.discovery (not here)" in printed
        assert "  unknown, ignored: lisseners" in printed
        assert "  a note" in printed
        assert "  configs  1 partition, 9 records, 5 of them ignored" in printed
        assert printed[printed.index("    record 2") + 1] == "    and 2 more"
        assert "  offsets  25 partitions, 1 record" in printed

    def test_a_connector_that_can_run(self) -> None:
        printed = lines(FOUND)
        begin = printed.index("Connectors: 1 of 1 can run")
        assert printed[begin + 1 : begin + 6] == [
            "  can run     lines",
            "              FileStreamSource",
            "              source, to be STARTED, 2 tasks",
            "              last status: RUNNING at w:1, 1 task RUNNING, 1 task FAILED; task 1: it broke",
            "              offsets: of 3 partitions, in topic offsets",
        ]

    def test_one_that_cannot_says_why_and_what_to_do(self) -> None:
        printed = lines(replace(FOUND, connectors=(LINES, JDBC)))
        assert "Connectors: 1 of 2 can run" in printed
        assert printed[printed.index("  CANNOT RUN  jdbc") :][:7] == [
            "  CANNOT RUN  jdbc",
            "              io.acme.Jdbc",
            "              sink, to be STOPPED, 0 tasks",
            "              last status: none",
            "              offsets: none in group connect-jdbc: it begins as a new one does",
            "              ! connector.class: io.acme.Jdbc is not installed here.",
            "                Install it.",
        ]

    def test_tasks_that_are_lost_and_offsets_that_are_not_known(self) -> None:
        odd = replace(LINES, consistent=False, offsets=OffsetsFinding("offsets", None, "no answer"), notes=("hm",))
        printed = text(replace(FOUND, connectors=(odd,)))
        assert "2 tasks, of which some are lost: they are generated anew" in printed
        assert "offsets: not known; topic offsets: no answer" in printed
        assert "note: hm" in printed

    @pytest.mark.parametrize(
        ("roster", "told"),
        [
            (Roster("connect"), "  none: the cluster is stopped"),
            (
                Roster("connect", (RosterMember("m", "connect-w", "10.0.0.1", "http://w:8083/"),)),
                "  http://w:8083/ (10.0.0.1)",
            ),
            (Roster("connect", (RosterMember("m", "connect-w", "10.0.0.1", None),)), "  connect-w (10.0.0.1)"),
            ("no answer", "  not known: no answer"),
        ],
    )
    def test_who_is_in_the_group(self, roster: Roster | str, told: str) -> None:
        printed = lines(replace(FOUND, roster=roster))
        assert printed[printed.index("Workers in the group") + 1] == told

    def test_no_connectors(self) -> None:
        assert "Connectors: none" in lines(replace(FOUND, connectors=()))

    def test_lines_stay_readable(self) -> None:
        problem = Problem("what " * 60, "remedy " * 60)
        printed = lines(replace(FOUND, connectors=(replace(JDBC, problems=(problem,)),)))
        assert max(map(len, printed)) <= 100

    def test_no_name_moves_the_cursor(self) -> None:
        assert "\x1b" not in text(replace(FOUND, connectors=(replace(LINES, name="\x1b[2Jlines"),)))
        assert printable("a\x1b[2J\nü") == r"a\x1b[2J\nü"


class TestSteps:
    def test_a_stopped_cluster_that_can_run(self) -> None:
        keep, start, look, back = steps(FOUND)
        assert keep.startswith("Keep the old workers stopped")
        assert "`headgate distributed worker.properties`" in start
        assert "listeners" in start
        assert "plugin.path" in start
        assert "expand=status" in look
        assert back.startswith("To go back")

    def test_old_workers_come_first(self) -> None:
        members = tuple(RosterMember(str(number), "c", "h", None) for number in range(2))
        first, second, *_ = steps(replace(FOUND, roster=Roster("connect", members)))
        assert first.startswith("Stop the 2 workers of the group")
        assert "joins their group" in first
        assert "headgate distributed" in second

    def test_what_cannot_run_is_decided_about_before_that(self) -> None:
        wrong = replace(FOUND.worker, problems=(Problem("x", "y"),))
        first, second, third, *_ = steps(replace(FOUND, worker=wrong, connectors=(JDBC, LINES)))
        assert "worker file" in first
        assert second.startswith("Decide about jdbc: ")
        assert third == "Run this check again."

    def test_many_names_are_not_all_listed(self) -> None:
        many = tuple(replace(JDBC, name=f"c{number}") for number in range(9))
        assert steps(replace(FOUND, connectors=many))[0].startswith("Decide about c0, c1, c2, c3, c4 and 4 more:")


class TestVerdict:
    def test_all_can_run(self) -> None:
        assert FOUND.all_can_run

    def test_a_connector_or_the_worker_file_can_be_in_the_way(self) -> None:
        assert not replace(FOUND, connectors=(LINES, JDBC)).all_can_run
        assert not replace(FOUND, worker=replace(FOUND.worker, problems=(Problem("x", "y"),))).all_can_run

    def test_notes_and_members_are_not(self) -> None:
        members = (RosterMember("m", "c", "h", None),)
        noted = replace(LINES, notes=("hm",), consistent=False)
        assert replace(FOUND, roster=Roster("connect", members), connectors=(noted,)).all_can_run


class TestJson:
    def test_it_has_all_that_the_text_has(self) -> None:
        tree = json.loads(json_text(replace(FOUND, connectors=(LINES, JDBC))))
        assert tree["all_can_run"] is False
        assert tree["group"] == {"id": "etl", "members": [], "problem": None}
        assert tree["worker"] == {
            "known_keys": ["group.id", "topic"],
            "keys_without_effect": {"plugin.discovery": "not here"},
            "unknown_keys": ["lisseners"],
            "problems": [],
            "notes": ["a note"],
        }
        assert tree["topics"][1] == {
            "name": "offsets",
            "property": "offset.storage.topic",
            "partitions": 25,
            "records": 1,
            "ignored": [],
            "refusal": None,
        }
        good, bad = tree["connectors"]
        assert good == {
            "name": "lines",
            "can_run": True,
            "class": "FileStreamSource",
            "type": "source",
            "target_state": "STARTED",
            "tasks": 2,
            "consistent": True,
            "status": {"state": "RUNNING", "worker_id": "w:1", "trace": None},
            "task_statuses": [
                {"id": 0, "state": "RUNNING", "worker_id": "w:1", "trace": None},
                {"id": 1, "state": "FAILED", "worker_id": "w:2", "trace": "it broke"},
            ],
            "offsets": {"topic": "offsets", "partitions": 3, "problem": None},
            "problems": [],
            "notes": [],
        }
        assert bad["offsets"] == {"group": "connect-jdbc", "partitions": 0, "problem": None}
        assert bad["problems"] == [
            {"problem": "connector.class: io.acme.Jdbc is not installed here.", "remedy": "Install it."}
        ]
        assert tree["steps"] == steps(replace(FOUND, connectors=(LINES, JDBC)))

    def test_members_that_are_not_known(self) -> None:
        assert json.loads(json_text(replace(FOUND, roster="no answer")))["group"] == {
            "id": "etl",
            "members": None,
            "problem": "no answer",
        }

    def test_a_failure_is_json_too(self) -> None:
        assert json.loads(failure("no broker")) == {"error": "no broker"}
