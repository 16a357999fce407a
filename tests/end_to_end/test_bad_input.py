"""Bad input over REST: the right code, a clear message, nothing half created, and the worker goes on."""

from __future__ import annotations

import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from harness import Client, sink_config, source_config

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"", 400, ""),
        (b"{", 400, ""),
        (b"null", 400, ""),
        (b"[]", 400, ""),
        (b'"text"', 400, ""),
        (b"{}", 400, "config"),
        (b'{"name":"x"}', 400, "config"),
        (b'{"name":"x","config":null}', 400, "config"),
        (b'{"name":"x","config":[]}', 400, "config"),
        (b'{"name":"x","config":{},"extra":1}', 400, "extra"),
        (b'{"name":"x","config":{"a":{"b":1}}}', 400, "a"),
        (b'{"name":"x","config":{}}', 400, "contains no connector type"),
        (b'{"name":"x","config":{"connector.class":"Nobody"}}', 400, "Nobody"),
        (b'{"name":"","config":{"connector.class":"FileStreamSource","topic":"t"}}', 400, "String may not be empty"),
        (b'{"name":"a\\u0007b","config":{"connector.class":"FileStreamSource","topic":"t"}}', 400, "control sequences"),
        (b'{"name":"x","config":{"name":"y","connector.class":"FileStreamSource","topic":"t"}}', 400, "doesn't match"),
        (
            b'{"name":"x","config":{"connector.class":"FileStreamSource"}}',
            400,
            'Missing required configuration "topic"',
        ),
        (
            b'{"name":"x","config":{"connector.class":"FileStreamSource","topic":"t","tasks.max":"0"}}',
            400,
            "at least 1",
        ),
        (b'{"name":"x","config":{"connector.class":"FileStreamSink"}}', 400, "Must configure one of topics"),
        (
            b'{"name":"x","config":{"connector.class":"FileStreamSink","topics":"t","value.converter":"No"}}',
            400,
            "Class No could not be found",
        ),
        (b'{"name":"x","config":{"connector.class":"broken.Nothing"}}', 400, "broken on purpose"),
        (b"\xff\xfe", 400, ""),
        (b"[" * 100_000, 400, ""),
    ],
)
def test_a_create_request_that_cannot_be(client: Client, body: bytes, code: int, text: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.http.post("/connectors", content=body, headers=headers)
    assert answer.status_code == code, answer.text
    assert answer.json()["error_code"] == code
    assert text in answer.json()["message"]
    assert client.call("GET", "/connectors", 200) == []
    assert client.call("GET", "/health", 200)["status"] == "healthy"


def test_what_exists_cannot_be_created_again(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    client.create(name, source_config(tmp_path / "in.txt", topic), state="STOPPED")
    answer = client.create(name, source_config(tmp_path / "in.txt", topic), 409)
    assert answer["message"] == f"Connector {name} already exists"


@pytest.mark.parametrize("odd", ["with/slash", "with blank", "100%", "ünïcödé", "a+b", "q?x", "#1"])
def test_odd_names_can_be_created_addressed_and_deleted(client: Client, odd: str, topic: str, tmp_path: Path) -> None:
    path = "/connectors/" + urllib.parse.quote(odd, safe="")
    created = client.http.post("/connectors", json={"name": odd, "config": source_config(tmp_path / "no.txt", topic)})
    assert created.status_code == 201
    assert client.call("GET", path, 200)["name"] == odd
    assert client.http.get(created.headers["Location"]).json()["name"] == odd
    client.call("PUT", f"{path}/stop", 204)
    client.call("GET", f"{path}/status", 200)
    client.call("DELETE", path, 204)


def test_a_body_of_a_megabyte(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    config = {**source_config(tmp_path / "in.txt", topic), "note": "x" * 1_000_000}
    client.create(name, config, state="STOPPED")
    assert client.call("GET", f"/connectors/{name}/config", 200)["note"] == "x" * 1_000_000
    answer = client.http.post("/connectors", content=b"x" * 12_000_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_an_unreachable_broker_of_a_connector_harms_nobody_else(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    nowhere = {f"{kind}.override.bootstrap.servers": "127.0.0.1:1" for kind in ("producer", "consumer", "admin")}
    client.create(name, sink_config(tmp_path / "out.txt", topic, **nowhere))
    client.await_states(name, "RUNNING", "RUNNING")
    client.put(name, "stop", 204)
    answer: Any = client.http.get(f"/connectors/{name}/offsets", timeout=100)
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("Kafka does not answer at 127.0.0.1:1 ")
    client.delete(name)


def test_validate_tells_all_that_is_wrong(client: Client) -> None:
    config = {"connector.class": "FileStreamSource", "name": "x", "tasks.max": "no", "batch.size": "0"}
    infos = client.call("PUT", "/connector-plugins/FileStreamSource/config/validate", 200, json=config)
    errors = {each["value"]["name"]: each["value"]["errors"] for each in infos["configs"] if each["value"]["errors"]}
    assert set(errors) == {"tasks.max", "topic", "batch.size"}
    assert infos["error_count"] == sum(map(len, errors.values()))
    bad = {"connector.class": "FileStreamSink"}
    client.call("PUT", "/connector-plugins/FileStreamSource/config/validate", 400, json=bad)


def test_a_broken_plugin_is_reported_and_stops_nothing(client: Client) -> None:
    plugins = {each["class"] for each in client.call("GET", "/connector-plugins?connectorsOnly=false", 200)}
    assert {"faulty.FaultySource", "faulty.FaultySink", "faulty.CrashingTransform"} <= plugins
    assert not any("broken" in each for each in plugins)
