"""Attacks: what bad clients send, and what they are answered by the book."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cluster_harness import sink_config, source_config

_HOST: Final = "Host: localhost"
_JSON: Final = "Content-Type: application/json"
_CHUNKED: Final = "Transfer-Encoding: chunked"
_HELLO: Final = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
_LARGE: Final = 11 * 1024 * 1024
_SQL: Final = "headgate.transforms.Sql"
EVIL: Final = "evil"
"""Begins the names of connectors that must never be."""


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    pieces: tuple[bytes, ...]
    answers: frozenset[int]
    replies: int = 1
    """How many answers are waited for; 0: the connection is broken off."""
    pause_s: float = 0.0
    """Between the pieces."""
    silent: bool = False
    """Who is still sending may see no more than the end."""
    placed: bool = False
    """It is passed on to who has to do it: 409 while that changes."""
    in_trouble: frozenset[int] = frozenset()
    """Answers that are fine while something is broken, besides those that always are then."""

    @property
    def expected(self) -> set[int | None]:
        return {*self.answers, *((None,) if self.silent or not self.replies else ()), *((409,) if self.placed else ())}


def _head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", *headers, "", "")).encode("latin-1")


def _request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    return _head(method, path, _HOST, _JSON, f"Content-Length: {len(body)}", *headers) + body


def _refused(name: str, sent: bytes, *answers: int, silent: bool = False) -> Attack:
    return Attack(name, (sent,), frozenset(answers), silent=silent)


def quick(folder: Path, plugins: Path, victim: str) -> list[Attack]:
    """`victim` is a connector that they must not get at."""
    begun = _head("PUT", f"/connectors/{EVIL}/config", _HOST, "Content-Length: 99")
    verdicts = _request("GET", "/connectors?expand=health")
    return [
        *_malformed(),
        *_large(),
        *_bodies(),
        *_pages(victim),
        *_paths(),
        *_creates(folder, plugins),
        *_internal(victim),
        Attack("pipelining", (_request("GET", "/connectors") * 20,), frozenset({200}), replies=20),
        Attack("reset midway", (begun,), frozenset(), replies=0),
        Attack("reset at once", (), frozenset(), replies=0),
        Attack("all verdicts", (verdicts,) * 3, frozenset({200}), replies=3),
    ]


def slow() -> list[Attack]:
    """They take their time, or do not read."""
    get = f"GET / HTTP/1.1\r\n{_HOST}\r\n".encode()
    put = _head("PUT", f"/connectors/{EVIL}/config", _HOST, _JSON, "Content-Length: 1000")
    chunked = _head("PUT", f"/connectors/{EVIL}/config", _HOST, _JSON, _CHUNKED)
    late, deaf = frozenset({408}), _request("GET", "/connectors?expand=status&expand=info") * 10
    return [
        Attack("slow headers", (get, *(b"X: y\r\n",) * 30), late, pause_s=1.0, silent=True),
        Attack("slow body", (put, *(b"x",) * 30), late, pause_s=1.0, silent=True),
        Attack("slow chunks", (chunked, *(b"1\r\nx\r\n",) * 30), late, pause_s=1.0, silent=True),
        Attack("deaf", (deaf, b""), frozenset(), replies=0, pause_s=8.0),
    ]


def _malformed() -> list[Attack]:
    put = f"PUT /connectors/{EVIL}/config HTTP/1.1\r\n{_HOST}\r\n".encode()
    get = f"GET /connectors HTTP/1.1\r\n{_HOST}\r\n".encode()
    chunked = put + f"{_CHUNKED}\r\n\r\n".encode()
    return [
        _refused("words", b"nonsense\r\n\r\n", 400),
        _refused("tls", _HELLO, 400),
        _refused("no host", b"GET /connectors HTTP/1.1\r\n\r\n", 400),
        _refused("two hosts", get + b"Host: y\r\n\r\n", 400),
        _refused("nul in a header", get + b"X: \x00\r\n\r\n", 400),
        _refused("blank before the colon", get + b"X : y\r\n\r\n", 400),
        _refused("utf-8 in the path", b"GET /\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        _refused("negative length", put + b"Content-Length: -1\r\n\r\n", 400),
        _refused("two lengths", put + b"Content-Length: 9\r\nContent-Length: 8\r\n\r\n", 400),
        _refused("chunk without a size", chunked + b"nine\r\n", 400),
        _refused("chunk without an end", chunked + b"2\r\n{}x", 400),
        _refused("broken body of a GET", get + f"{_CHUNKED}\r\n\r\nnine\r\n".encode(), 400),
        _refused("gzip", put + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        _refused("unknown method", _request("BREW", "/connectors"), 405),
        _refused("trace", _request("TRACE", "/connectors"), 405),
        _refused("connect", _head("CONNECT", "127.0.0.1:9", _HOST), 400, 404, 405),
    ]


def _large() -> list[Attack]:
    long = "y" * 9000
    chunk = f"{_LARGE:x}\r\n".encode() + bytes(_LARGE) + b"\r\n0\r\n\r\n"
    large = _head("POST", "/connectors", _HOST, _JSON, f"Content-Length: {_LARGE}")
    return [
        # 408: on a machine that has much else to do, the time may be over before all of it is there.
        Attack("11 MB", (large, bytes(_LARGE)), frozenset({408, 413}), silent=True),
        Attack("11 MB in a chunk", (_head("POST", "/connectors", _HOST, _JSON, _CHUNKED), chunk),
               frozenset({408, 413}), silent=True),
        _refused("header of 1 MB", _head("GET", "/connectors", _HOST, "X: " + "y" * 2**20), 431, silent=True),
        _refused("line of 1 MB", _head("GET", "/" + "y" * 2**20, _HOST), 414, silent=True),
        _refused("150 headers", _head("GET", "/connectors", _HOST, *("X: y",) * 150), 431),
        _refused("40 kB of headers", _head("GET", "/connectors", _HOST, *("X: " + "y" * 8000,) * 5), 431, silent=True),
        _refused("long name", _request("GET", f"/connectors/{long}/status"), 414),
        _refused("long query", _request("GET", f"/connectors?expand={long}"), 414),
    ]  # fmt: skip


def _bodies() -> list[Attack]:
    def post(name: str, body: bytes, *answers: int, kind: str = _JSON) -> Attack:
        head = _head("POST", "/connectors", _HOST, kind, f"Content-Length: {len(body)}")
        return Attack(name, (head + body,), frozenset(answers), placed=True)

    return [
        post("half of JSON", b'{"name":', 400),
        post("no body", b"", 400),
        post("no UTF-8", b'{"name": "\xff"}', 400),
        post("deep nesting", b"[" * 5000 + b"]" * 5000, 400),
        post("list", b"[]", 400),
        post("number for a name", b'{"name": 7, "config": []}', 400),
        post("unknown field", b'{"name": "evil", "config": {}, "run": "it"}', 400),
        post("half of a pair", rb'{"name": "\ud800", "config": {}}', 400),
        post("text", b"name=evil", 415, kind="Content-Type: text/plain"),
        post("form", b"name=evil", 415, kind="Content-Type: application/x-www-form-urlencoded"),
    ]


def _pages(victim: str) -> list[Attack]:
    create = json.dumps({"name": EVIL, "config": {"connector.class": "FileStreamSource", "topic": EVIL}}).encode()
    rebound = _head("POST", "/connectors", "Host: evil.example:8083", _JSON, f"Content-Length: {len(create)}")
    return [
        _refused("foreign origin", _request("POST", "/connectors", create, "Origin: http://evil.example"), 403),
        _refused("no origin of ours", _request("DELETE", f"/connectors/{victim}", b"", "Origin: null"), 403),
        _refused("cross-site", _request("PUT", f"/connectors/{victim}/stop", b"", "Sec-Fetch-Site: cross-site"), 403),
        _refused("wrong host", rebound + create, 421),
        _refused("wrong host that reads", _head("GET", "/connectors?expand=info", "Host: evil.example"), 421),
    ]


def _paths() -> list[Attack]:
    names = {
        "dots": "/connectors/../../etc/passwd",
        "encoded dots": "/connectors/%2e%2e/%2e%2e/etc/passwd",
        "dots for a name": "/connectors/%2e%2e/config",
        "nul for a name": "/connectors/%00/status",
        "line ends": "/connectors/x%0d%0aSet-Cookie:%20a=b/status",
        "no text": "/connectors/%ff%fe/status",
        "half encoded": "/connectors/%2/status",
        "name of 2000": f"/connectors/{'n' * 2000}/status",
        "slashes": "//connectors//",
        "task without number": "/connectors/x/tasks/%2e%2e/status",
        "huge task": "/connectors/x/tasks/99999999999999999999/status",
        "static files": "/static/..%2f..%2f..%2fetc/passwd",
    }
    return [_refused(name, _request("GET", path), 404) for name, path in names.items()]


def _creates(folder: Path, plugins: Path) -> list[Attack]:
    """What configurations may not do; `canary` is where it would be seen."""
    file, canary = folder / "nothing.txt", folder / "canary"

    def create(name: str, config: Mapping[str, str]) -> Attack:
        body: dict[str, Any] = {"name": f"{EVIL}-{name.replace(' ', '-')}", "config": config}
        # Only Spark knows what a statement does. While none can be had, its task refuses it instead.
        trouble = frozenset({201}) if _SQL in config.values() else frozenset()
        sent = _request("POST", "/connectors", json.dumps(body).encode())
        return Attack(name, (sent,), frozenset({400}), placed=True, in_trouble=trouble)

    def transformed(kind: str, key: str, value: str) -> dict[str, str]:
        return source_config(file, EVIL, **{"transforms": "t", "transforms.t.type": kind, f"transforms.t.{key}": value})

    def sql(statement: str) -> dict[str, str]:
        return transformed(_SQL, "statement", statement)

    return [
        create("command", sql(f"SELECT TRANSFORM(key) USING 'touch {canary}' AS (x STRING) FROM records")),
        create("reflect", sql("SELECT reflect('java.lang.System', 'exit', 1) FROM records")),
        create("file in SQL", sql("SELECT * FROM records JOIN text.`/etc/passwd`")),
        create("written by SQL", sql(f"FROM records INSERT OVERWRITE DIRECTORY '{canary}' USING text SELECT value")),
        create("two statements", sql("SELECT * FROM records; DROP TABLE records")),
        create("function", transformed("headgate.transforms.Python", "function", "os.system")),
        create("function of a plugin", transformed("headgate.transforms.Python", "function", "faulty.os.system")),
        create("into plugins", sink_config(plugins / "evil.txt", EVIL)),
        create("around into plugins", sink_config(folder / ".." / folder.name / plugins.name / "x", EVIL)),
        create("code", sink_config(folder / "evil.py", EVIL)),
        create("no class", {"topic": EVIL}),
        create("unknown class", {"connector.class": "os.system", "topic": EVIL}),
        create("other name", {**source_config(file, EVIL), "name": "somebody"}),
        create("tasks", {**source_config(file, EVIL), "tasks.max": "-1"}),
    ]


def _internal(victim: str) -> list[Attack]:
    """Requests that only workers may make."""
    wrong = "X-Connect-Authorization: AAAA", "X-Connect-Request-Signature-Algorithm: HmacSHA256"
    strict = "X-Headgate-Authorization: 0-0 AAAA"
    asked = {"tasks": ("POST", f"/connectors/{victim}/tasks"), "fence": ("PUT", f"/connectors/{victim}/fence"),
             "member": ("DELETE", "/internal/members/somebody")}  # fmt: skip
    return [
        Attack(f"{how} {name}", (_request(method, path, b"[]", *headers),), frozenset(answers), placed=True)
        for name, (method, path) in asked.items()
        for how, headers, answers in (("unsigned", (), {400}), ("forged", (*wrong, strict), {403}))
    ]
