"""What end-to-end tests talk to a worker with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from confluent_kafka import Message

from headgate.dev.broker import Broker

T = TypeVar("T")

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


PLUGINS = Path(__file__).parent.parent / "plugins"


def worker_settings(broker: Broker, folder: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": str(folder / "offsets.json"),
        "offset.flush.interval.ms": "1000",
        "listeners": "http://127.0.0.1:0",
        "plugin.path": str(PLUGINS),
        "task.shutdown.graceful.timeout.ms": "5000",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }


WATCHED = {"spark.hadoop.fs.s3a.secret.key": "a-key-of-s3", "spark.ui.enabled": "true", "spark.ui.port": "0"}
"""What `test_privacy.py` looks at: a Spark of its own would take longer than all of its tests."""


def await_(condition: Callable[[], T], what: str, seconds: float = 30.0) -> T:
    """Until `condition` gives something true; fails the test with `what` and the last value when it does not."""
    deadline = time.monotonic() + seconds
    value = condition()
    while not value:
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s; last: {value!r}"
        time.sleep(0.02)
        value = condition()
    return value


Headers = list[tuple[str, str | bytes | None]]
"""As confluent-kafka names their types."""


def headers_of(message: Message) -> Headers:
    found = message.headers() or []
    assert isinstance(found, list)
    return found


class Client:
    """The REST API, as a user calls it."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.http = httpx2.Client(base_url=self.url, timeout=100)

    def close(self) -> None:
        self.http.close()

    def call(self, method: str, path: str, expected: int, **options: Any) -> Any:
        answer = self.http.request(method, path, **options)
        assert answer.status_code == expected, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def create(self, name: str, config: Mapping[str, Any], expected: int = 201, state: str | None = None) -> Any:
        body = {"name": name, "config": dict(config), **({"initial_state": state} if state else {})}
        return self.call("POST", "/connectors", expected, json=body)

    def delete(self, name: str) -> None:
        self.call("DELETE", f"/connectors/{name}", 204)

    def put(self, name: str, verb: str, expected: int | None = None) -> Any:
        return self.call("PUT", f"/connectors/{name}/{verb}", expected or (204 if verb == "stop" else 202))

    def status(self, name: str) -> Any:
        return self.call("GET", f"/connectors/{name}/status", 200)

    def states(self, name: str) -> tuple[str, list[str]]:
        status = self.status(name)
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def await_states(self, name: str, connector: str, *tasks: str, seconds: float = 40.0) -> Any:
        def reached() -> bool:
            return self.states(name) == (connector, list(tasks))

        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, f"{name} is not {connector} {tasks} but {self.status(name)}"
            time.sleep(0.02)
        return self.status(name)

    def offsets(self, name: str) -> Any:
        return self.call("GET", f"/connectors/{name}/offsets", 200)["offsets"]


def lines(path: Path) -> list[str]:
    """The whole lines of a file; none while it does not exist."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return text.splitlines() if text.endswith("\n") or not text else text.splitlines()[:-1]


def source_config(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SOURCE, "file": str(file), "topic": topic, "value.converter": STRING, **more}


def sink_config(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SINK, "file": str(file), "topics": topic, "value.converter": STRING, **more}
