"""Audit records: one line of JSON each, without secrets; those that cannot be written are told of."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headgate import log
from headgate.access.audit import Audit, AuditRecord
from headgate.access.principal import Principal


def event(**more: Any) -> AuditRecord:
    alice = Principal("alice", "basic")
    told = {"principal": alice, "address": "10.0.0.7", "method": "PUT", "path": "/connectors/a/pause", "status": 202}
    return AuditRecord(**{**told, "request_id": "r-1", "ms": 3, "connector": "a", "time": 1_700_000_000.5, **more})


def write(audit: Audit, *events: AuditRecord) -> None:
    async def all_of_them() -> None:
        for each in events:
            await audit.write(each)

    asyncio.run(all_of_them())


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_record_says_who_from_where_what_and_what_came_of_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    write(Audit(str(file)), event(), event(status=403, error="no", principal=None), event(status=500))
    first, second, third = lines(file)
    assert first == {
        "time": "2023-11-14T22:13:20.500Z", "request_id": "r-1", "principal": "alice", "login": "basic",
        "address": "10.0.0.7", "method": "PUT", "path": "/connectors/a/pause", "connector": "a", "change": None,
        "outcome": "done", "status": 202, "error": None, "ms": 3,
    }  # fmt: skip
    assert (second["principal"], second["outcome"], second["error"]) == (None, "refused", "no")
    assert third["outcome"] == "failed"
    assert file.stat().st_mode & 0o777 == 0o600


def test_names_of_others_end_no_line_and_secrets_do_not_come_out(tmp_path: Path) -> None:
    log.hide(["hunter2-is-secret"])
    file = tmp_path / "audit.jsonl"
    change = {"config": {"k": {"from": None, "to": "hunter2-is-secret"}}}
    write(Audit(str(file)), event(connector='a\n{"principal": "root"}', change=change))
    (only,) = lines(file)
    assert only["connector"] == 'a\n{"principal": "root"}'
    assert only["change"] == {"config": {"k": {"from": None, "to": "[hidden]"}}}


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = Audit(str(file))
    write(audit, event())
    file.rename(tmp_path / "audit.jsonl.1")
    write(audit, event(request_id="r-2"))
    assert [each["request_id"] for each in lines(file)] == ["r-2"]


def test_a_file_that_cannot_be_written_is_told_of_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "gone" / "audit.jsonl"
    audit = Audit(str(file))
    with pytest.raises(OSError, match="No such file"):
        audit.check()
    write(audit, event(), event())
    assert audit.failed == 2
    assert str(file) in (audit.trouble or "")
    assert "An audit record was not written" in caplog.text
    file.parent.mkdir()
    audit.check()
    write(audit, event())
    assert audit.trouble is None
    assert len(lines(file)) == 1


def test_a_topic_gets_the_same_and_what_kafka_refuses_is_told_of() -> None:
    sent: list[tuple[bytes, bytes, Future[Any]]] = []

    def send(key: bytes, value: bytes) -> Future[Any]:
        sent.append((key, value, Future()))
        return sent[-1][2]

    audit = Audit(send=send)
    write(audit, event(), event(connector=None))
    assert [key for key, _, _ in sent] == [b"a", b""]
    assert json.loads(sent[0][1])["principal"] == "alice"
    assert audit.trouble is None
    sent[0][2].set_exception(RuntimeError("topic authorization failed"))
    assert audit.trouble == "Audit records cannot be written to the topic: RuntimeError: topic authorization failed"
    sent[1][2].set_result(7)
    assert audit.trouble is None
    assert audit.failed == 1


def test_no_room_for_a_record_is_told_of() -> None:
    def full(key: bytes, value: bytes) -> Future[Any]:
        raise BufferError("no room")

    audit = Audit(send=full)
    write(audit, event())
    assert "no room" in (audit.trouble or "")
