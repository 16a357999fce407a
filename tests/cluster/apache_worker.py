"""A worker of Apache Kafka Connect 4.3.1 in distributed mode: the other side of the group's protocol."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

import headgate
from headgate.dev.ports import pick_free
from headgate.jars.find import find_java
from headgate.jars.jars import JarSet, cache_folder, fetch

_ROOT = Path(headgate.__file__).parents[1]


def jars() -> JarSet:
    """The same that the benchmark measures against."""
    spec = importlib.util.spec_from_file_location("peer", _ROOT / "bench" / "peer.py")
    assert spec is not None
    assert spec.loader is not None
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    found: JarSet = peer.CONNECT
    return found


def fetched() -> bool:
    return (cache_folder() / "jars" / jars().folder).is_dir()


class ApacheWorker:
    """Runs from `with` to its end, in which it takes its leave."""

    def __init__(self, bootstrap: str, group: str, folder: Path) -> None:
        (port,) = pick_free(1)
        self.id = f"127.0.0.1:{port}"
        self.url = f"http://{self.id}/"
        self._folder = folder
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "listeners": self.url.rstrip("/"),
            "plugin.discovery": "service_load",
            "scheduled.rebalance.max.delay.ms": "500",
            "heartbeat.interval.ms": "300",
        }

    def __enter__(self) -> Self:
        worker, logging = self._folder / "apache.properties", self._folder / "apache-log4j2.properties"
        worker.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        logging.write_text("status = error\nrootLogger.level = error\n")
        command = [str(find_java()), "-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging}"]
        command += ["-cp", f"{fetch(jars())[0].parent}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
        with (self._folder / "apache.log").open("wb") as output:
            self._process = subprocess.Popen([*command, str(worker)], stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 90
        while self.get("connectors") is None:
            ended = self._process.poll() is not None
            assert not ended, (self._folder / "apache.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the worker of Apache's does not answer"
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def get(self, path: str) -> Any:
        """None when it does not answer, or not with 200."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def create(self, name: str, config: dict[str, str]) -> None:
        body = json.dumps({"name": name, "config": config}).encode()
        request = urllib.request.Request(self.url + "connectors", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 201
