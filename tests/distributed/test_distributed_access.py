"""Logins, rights and audit in a cluster: who was asked first says who it was."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bcrypt
import httpx2
import pytest
from authority import Authority
from cluster_harness import Cluster, Worker, await_, source_config
from confluent_kafka import Consumer, TopicPartition

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

RIGHTS = """
[[grant]]
to = ["editor", "CN=editor"]
role = "editor"
connectors = "orders-*"
[[grant]]
to = "viewer"
role = "viewer"
[[grant]]
to = "admin"
role = "admin"
"""
GROUP, AUDIT = "guarded", "guarded-audit"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guarded")
    users = [f"{name}:{bcrypt.hashpw(name.encode(), bcrypt.gensalt(4)).decode()}\n" for name in ("admin", "viewer")]
    (made / "htpasswd").write_text("".join(users))
    (made / "rights.toml").write_text(RIGHTS)
    return made


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def guarded(broker: Broker, folder: Path, authority: Authority) -> Iterator[Cluster]:
    """Two workers that know each other by certificates, and everybody else by one or by a password."""
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("worker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        "ssl.client.auth": "requested",
        "headgate.login.htpasswd": str(folder / "htpasswd"),
        "headgate.login.certificates": "true",
        "headgate.rights.file": str(folder / "rights.toml"),
        "headgate.audit.topic": AUDIT,
        "headgate.require.login": "true",
        "spark.master": "local[1,4]",
    }
    made = Cluster(folder, broker.bootstrap, GROUP, settings, "https")
    try:
        for number in range(2):
            made.add(headgate_audit_file=str(folder / f"audit{number}"))
        for worker in made.workers:
            worker.http = client(worker, authority, auth=("admin", "admin"))
        made.await_ready()
        yield made
    finally:
        made.close()


def client(worker: Worker, authority: Authority, who: Path | None = None, **options: Any) -> httpx2.Client:
    context = ssl.create_default_context(cafile=authority.ca)
    if who is not None:
        context.load_cert_chain(who)
    return httpx2.Client(base_url=worker.url, verify=context, timeout=100, trust_env=False, **options)


def audited(folder: Path, number: int) -> list[dict[str, Any]]:
    file = folder / f"audit{number}"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_certificate_counts_on_the_worker_that_carries_the_request_out(
    guarded: Cluster, authority: Authority, folder: Path, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    name, other = unique("orders-"), unique("other")
    follower = guarded.followers()[0]
    number = guarded.workers.index(follower)
    (tmp_path / "in.txt").write_text("line\n")
    config = source_config(tmp_path / "in.txt", unique("topic"))
    before = [len(audited(folder, each)) for each in range(2)]
    with client(follower, authority, authority.issue("editor")) as editor:
        headers = {"X-Request-Id": f"create-{name}"}
        created = editor.post("/connectors", json={"name": name, "config": config}, headers=headers)
        assert created.status_code == 201, created.text
        assert created.headers["X-Request-Id"] == f"create-{name}"
        refused = editor.post("/connectors", json={"name": other, "config": config})
        assert refused.status_code == 403
        assert "'CN=editor'" in refused.json()["message"]
        await_(lambda: editor.get(f"/connectors/{name}").status_code == 200, "it is known")
        assert editor.get("/admin/loggers").status_code == 403
    mine = audited(folder, number)[before[number] :]
    assert [(each["principal"], each["login"], each["connector"], each["status"]) for each in mine] == [
        ("CN=editor", "certificate", name, 201),
        ("CN=editor", "certificate", other, 403),
        ("CN=editor", "certificate", None, 403),
    ]
    assert len(audited(folder, 1 - number)) == before[1 - number], "only who was asked writes it down"
    assert f"request create-{name}" in follower.log.read_text()


def test_a_password_counts_and_a_wrong_one_does_not(guarded: Cluster, authority: Authority) -> None:
    for worker in guarded.workers:
        assert worker.call("GET", "/connectors", 200) is not None
        with client(worker, authority) as nobody:
            assert nobody.get("/health").status_code == 200
            assert nobody.get("/connectors").status_code == 401
            assert nobody.get("/connectors", auth=("admin", "wrong")).status_code == 401
            assert nobody.get("/connectors", auth=("viewer", "viewer")).status_code == 200
            assert nobody.put("/connectors/x/pause", auth=("viewer", "viewer")).status_code == 403


def test_whoever_says_for_whom_he_asks_is_not_believed(guarded: Cluster, authority: Authority) -> None:
    for worker in guarded.workers:
        with client(worker, authority) as nobody:
            forged = {"X-Headgate-Caller": '["admin", "basic", []]', "X-Headgate-Authorization": "1-2 AAAA"}
            answer = nobody.get("/connectors?forward=false", headers=forged)
            assert answer.status_code == 401
            algorithm = {"X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
            assert nobody.get("/connectors", headers={**forged, **algorithm}).status_code == 401


def test_the_audit_is_in_the_topic_too(guarded: Cluster, broker: Broker) -> None:
    worker = guarded.workers[0]
    worker.http.put("/connectors/nobody/pause", headers={"X-Request-Id": "to-the-topic"})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "auditor", "log_level": 0})
    try:
        consumer.assign([TopicPartition(AUDIT, 0, 0)])

        def found() -> bool:
            message = consumer.poll(1)
            value = message.value() if message is not None and message.error() is None else None
            return value is not None and json.loads(value)["request_id"] == "to-the-topic"

        await_(found, "the record comes")
    finally:
        consumer.close()


def test_files_that_change_count_at_once(guarded: Cluster, folder: Path, authority: Authority) -> None:
    rights = folder / "rights.toml"
    worker = guarded.workers[0]
    with client(worker, authority, auth=("viewer", "viewer")) as viewer:
        assert viewer.get("/connectors").status_code == 200
        try:
            rights.write_text(RIGHTS.replace('to = "viewer"', 'to = "nobody"'))
            await_(lambda: viewer.get("/connectors").status_code == 403, "the viewer is none any more", 10)
            rights.write_text("[[grant")
            await_(lambda: "rights.toml" in worker.tail(10), "the log says what is wrong", 10)
            assert viewer.get("/connectors").status_code == 403
        finally:
            rights.write_text(RIGHTS)
        await_(lambda: viewer.get("/connectors").status_code == 200, "the viewer is one again", 10)
