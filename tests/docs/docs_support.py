"""Reads the documentation as its readers do: code blocks, commands, links; and a worker to try its requests on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from memory_offsets import MemoryOffsetStore
from starlette.testclient import TestClient

from headgate.model import TaskFacts, TaskSpec
from headgate.rest.app import build_app
from headgate.rest.settings import RestSettings
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.herder_ports import HerderPorts, offsets_in
from headgate.runtime.plugins import Plugins
from headgate.runtime.ports import TaskListener
from headgate.runtime.standalone import StandaloneHerder
from headgate.storage.group_offsets import KafkaGroupOffsets
from headgate.storage.memory import MemoryConfigStore, MemoryStatusStore

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(page.read_text()) if kind == language]


def prose(page: Path) -> str:
    return _BLOCK.sub("", page.read_text())


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def section(page: Path, title: str) -> str:
    """From a heading to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", prose(page), re.MULTILINE | re.DOTALL)
    assert found, f"{page_name(page)} has no section {title!r}"
    return found[1]


def first_column(text: str) -> list[str]:
    """The cells in backticks that begin the rows of tables."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def commands(block: str) -> list[list[str]]:
    """The commands of a shell block, split into words; one may go over several lines."""
    found: list[list[str]] = []
    waiting = ""
    for line in block.splitlines():
        waiting += line + "\n"
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a quotation is still open
            continue
        waiting = ""
        if words:
            found.append(words)
    assert not waiting, f"a quotation without end: {waiting}"
    return found


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: str | None
    content_type: str | None


def curl(words: list[str]) -> Request:
    """What a curl command asks for."""
    assert words[0] == "curl"
    method, body, kind, url = "GET", None, None, ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-d":
            body = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(":")
            assert name == "Content-Type"
            kind = value.strip()
        else:
            assert word.startswith("http://127.0.0.1:8083/"), f"an option that this test does not know: {word}"
            url = word
    parts = urlsplit(url)
    return Request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, kind)


# --- a worker without Kafka and Spark ---------------------------------------------------------------------------------


class Running:
    """A task that does nothing but obey."""

    def __init__(self, listener: TaskListener) -> None:
        self._listener = listener
        self._ended: list[Callable[[], None]] = []

    def pause(self) -> None:
        self._listener.on_paused()

    def resume(self) -> None:
        self._listener.on_running()

    def stop(self) -> None:
        self._listener.on_stopped()
        for callback in self._ended:
            callback()

    def cancel(self) -> None:
        self.stop()

    def facts(self) -> TaskFacts:
        return TaskFacts("poll()", 0)

    def when_ended(self, callback: Callable[[], None]) -> None:
        self._ended.append(callback)


class Runner:
    def start(self, spec: TaskSpec, listener: TaskListener) -> Running:
        listener.on_running()
        return Running(listener)


@contextmanager
def worker(plugin_path: Path) -> Iterator[TestClient]:
    """The REST API of a real herder whose tasks do nothing."""
    config = WorkerConfig.parse(
        {
            "bootstrap.servers": "nowhere:9092",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "offset.storage.file.filename": "unused",
        }
    )
    ports = HerderPorts(
        config=config,
        plugins=Plugins.discover([str(plugin_path)]),
        configs=MemoryConfigStore(),
        statuses=MemoryStatusStore(),
        open_offsets=offsets_in(MemoryOffsetStore()),
        groups=KafkaGroupOffsets(),
        runner=Runner(),
        worker_id="127.0.0.1:8083",
    )
    herder = StandaloneHerder(ports)
    herder.start()
    try:
        with TestClient(build_app(herder, RestSettings(), metrics=lambda: b"")) as client:
            yield client
    finally:
        herder.shutdown(10)


def ask(client: TestClient, request: Request) -> int:
    headers = {"Content-Type": request.content_type} if request.content_type else {}
    answer = client.request(request.method, request.path, content=request.body, headers=headers)
    assert answer.status_code < 300, f"{request.method} {request.path}: {answer.status_code} {answer.text}"
    return answer.status_code
