"""A schema registry for tests: subjects, versions, ids, switches for what goes wrong. It counts what it is asked."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class StandIn:
    """Answers on a free port of the loopback address until `close`."""

    def __init__(self) -> None:
        self.by_id: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.user: str | None = None
        """`name:password` that is asked for."""
        self.incompatible = False
        self.fail_with: int | None = None
        self._lock = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body at once: else TCP waits 40 ms between them

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                with stand_in._lock:
                    status, answer = stand_in.answer(self.command, self.path, body, self.headers.get("Authorization"))
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(self, subject: str, text: str, kind: str = "AVRO", references: Any = ()) -> int:
        """A schema that somebody else registered; its id."""
        return self._register(subject, {"schema": text, "schemaType": kind, "references": list(references)})

    def schema(self, schema_id: int) -> Any:
        return json.loads(self.by_id[schema_id]["schema"])

    def answer(self, method: str, path: str, body: Any, login: str | None) -> tuple[int, Any]:
        self.requests.append(f"{method} {path}")
        if self.user is not None and login != f"Basic {base64.b64encode(self.user.encode()).decode()}":
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        if self.fail_with is not None:
            return self.fail_with, {"error_code": self.fail_with * 100 + 1, "message": "told to fail"}
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match (method, *parts):
            case ("POST", "subjects", subject, "versions"):
                if self.incompatible:
                    message = "Schema being registered is incompatible with an earlier schema"
                    return 409, {"error_code": 409, "message": message}
                return 200, {"id": self._register(subject, body)}
            case ("POST", "subjects", subject):
                return self._lookup(subject, body)
            case ("GET", "subjects", subject, "versions", version):
                return self._version(subject, version)
            case ("GET", "schemas", "ids", number):
                found = self.by_id.get(int(number))
                if found is None:
                    return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
                return 200, found
        return 404, {"error_code": 404, "message": f"HTTP 404 Not Found: {method} {path}"}

    def _register(self, subject: str, body: Any) -> int:
        known = _as_kept(body)
        number = next((each for each, kept in self.by_id.items() if kept == known), len(self.by_id) + 1)
        self.by_id[number] = known
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _lookup(self, subject: str, body: Any) -> tuple[int, Any]:
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        for version, number in enumerate(self.subjects[subject], 1):
            if self.by_id[number] == _as_kept(body):
                return 200, {"subject": subject, "id": number, "version": version, **self.by_id[number]}
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        versions = self.subjects.get(subject)
        if not versions:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        index = len(versions) if version == "latest" else int(version)
        if index > len(versions):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        number = versions[index - 1]
        return 200, {"subject": subject, "id": number, "version": index, **self.by_id[number]}


def _as_kept(body: Any) -> dict[str, Any]:
    kept = {"schema": body["schema"]}
    # As the real one: Avro is what goes without saying.
    if body.get("schemaType", "AVRO") != "AVRO":
        kept["schemaType"] = body["schemaType"]
    if body.get("references"):
        kept["references"] = body["references"]
    return kept
