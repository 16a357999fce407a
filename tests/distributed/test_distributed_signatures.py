"""Requests that only workers may make (KIP-507): who signs them with the group's key is one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Faulty, Worker, await_
from topic_reader import read_topic

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

SIGNATURE, ALGORITHM = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"


def keys(broker: Broker, group: str) -> list[dict[str, Any]]:
    """In the order they were made."""
    return [each.value for each in read_topic(broker.bootstrap, f"{group}-configs") if each.key == "session-key"]


def signed(key: dict[str, Any], body: bytes) -> dict[str, str]:
    made = hmac.digest(base64.b64decode(key["key"]), body, hashlib.sha256)
    return {SIGNATURE: base64.b64encode(made).decode(), ALGORITHM: "HmacSHA256", "Content-Type": "application/json"}


def ask(worker: Worker, path: str, expected: int, headers: dict[str, str], body: bytes = b"[]") -> Any:
    method = {"tasks": "POST", "fence": "PUT"}.get(path.rsplit("/", 1)[1], "DELETE")
    return worker.call(method, path, expected, headers=headers, content=body if method == "POST" else b"")


PATHS = ("/connectors/nobody/tasks", "/connectors/nobody/fence", "/internal/members/somebody")


def test_a_request_without_signature_is_refused_by_every_worker(three: Cluster) -> None:
    for worker in three.workers:
        for path in PATHS:
            answer = ask(worker, path, 400, {"Content-Type": "application/json"})
            assert answer["message"] == "Internal request missing required signature"


def test_a_wrong_signature_is_refused_by_every_worker(three: Cluster, broker: Broker) -> None:
    key = keys(broker, three.group)[-1]
    others = {**key, "key": base64.b64encode(b"x" * 32).decode()}
    for worker in three.workers:
        for path in PATHS:
            answer = ask(worker, path, 403, signed(others, b"[]"))
            assert answer == {"error_code": 403, "message": "Internal request contained invalid signature."}
        # The right key, but for other bytes.
        ask(worker, PATHS[0], 403, signed(key, b"[ ]"))
        answer = ask(worker, PATHS[0], 400, {**signed(key, b"[]"), ALGORITHM: "HmacSHA1"})
        assert "does not support the 'HmacSHA1' key signing algorithm" in answer["message"]


def test_what_is_signed_is_done(three: Cluster, broker: Broker, faulty: Faulty) -> None:
    name = faulty.create(tasks=1, tasks_max="2")
    three.workers[0].await_states(name, "RUNNING", "RUNNING")
    key, leader = keys(broker, three.group)[-1], three.leader()
    answer = ask(leader, "/connectors/nobody/tasks", 404, signed(key, b"[]"))
    assert answer["message"] == "Connector nobody not found"
    (task,) = leader.call("GET", f"/connectors/{name}/tasks", 200)
    body = json.dumps([task["config"], {**task["config"], "number": "1"}]).encode()
    ask(leader, f"/connectors/{name}/tasks", 204, signed(key, body), body)
    leader.await_states(name, "RUNNING", "RUNNING", "RUNNING")
    leader.put(name, "stop")
    answer = ask(leader, f"/connectors/{name}/tasks", 400, signed(key, body), body)
    assert answer["message"] == f"Cannot submit non-empty set of task configs for stopped connector {name}"


def test_a_key_does_not_live_longer_than_it_may(two: Cluster, broker: Broker, tmp_path: Path, name: str) -> None:
    """While keys change, workers still believe each other: owners hand their task configs to the leader."""
    first = await_(lambda: keys(broker, two.group), "a key")[0]
    assert first["algorithm"] == "HmacSHA256"
    assert len(base64.b64decode(first["key"])) == 32
    faulty = Faulty(two, tmp_path, name, name)
    names = [faulty.create(tasks=2, name=faulty.named(str(number))) for number in range(4)]
    asked, answering = two.alive
    for size in (3, 1):
        seen = len(keys(broker, two.group))
        for each in names:
            asked.settle("PUT", f"/connectors/{each}/config", 200, json=faulty.config(tasks=size))
        for each in names:
            await_(
                lambda of=each, wanted=size: (  # type: ignore[misc]
                    len(answering.call("GET", f"/connectors/{of}/tasks", 200)) == wanted
                ),
                f"{size} tasks of {each}",
            )
        await_(lambda more=seen: len(keys(broker, two.group)) > more, "a new key")  # type: ignore[misc]
    made = keys(broker, two.group)
    assert len({each["key"] for each in made}) == len(made)
    times = [each["creation-timestamp"] for each in made]
    assert all(later - earlier >= 1400 for earlier, later in pairwise(times))
    owners = {asked.status(each)["connector"]["worker_id"] for each in names}
    assert owners == {worker.id for worker in two.alive}, "no connector but on the leader"
