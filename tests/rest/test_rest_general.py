"""What holds for every path: `rest.md` section 1, as changed by `decisions.md`."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from rest_fakes import FakeHerder
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from headgate.rest.app import build_app
from headgate.rest.routing import accepts, location
from headgate.rest.settings import RestSettings
from headgate.runtime.errors import (
    AlreadyExists,
    AlreadyRestarting,
    BadRequest,
    ConnectorNotFound,
    Forbidden,
    HerderError,
    InvalidConfig,
    NotStopped,
    OffsetsError,
    PluginNotFound,
    RequestTimeout,
    ShuttingDown,
    StartFailed,
    StatusNotFound,
    Superseded,
    TooManyTasks,
)

JSON = "application/json"


# --- routing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/", "/health", "/connectors", "/connectors/a", "/connectors/a/config", "/connectors/a/status",
        "/connectors/a/tasks", "/connectors/a/tasks/0/status", "/connectors/a/offsets", "/connectors/a/topics",
        "/connector-plugins", "/connector-plugins/acme.Source/config", "/admin/loggers", "/admin/loggers/root",
        "/metrics", "/openapi.json",
    ],
)  # fmt: skip
def test_a_trailing_slash_makes_no_difference_and_head_answers_as_get_without_a_body(
    client: TestClient, path: str
) -> None:
    plain = client.get(path)
    slashed = client.get(path.rstrip("/") + "/", follow_redirects=False)
    assert (plain.status_code, slashed.status_code) == (200, 200)
    assert slashed.content == plain.content
    head = client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    for each in (head, plain):
        del each.headers["x-request-id"]
    assert head.headers == plain.headers


@pytest.mark.parametrize(
    "path", ["/nowhere", "/connectors/a/nowhere", "/connectors/a/status/x", "//connectors", "/connectors//", "/a/%FF"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_an_unknown_path_is_404_in_json(client: TestClient, method: str, path: str) -> None:
    response = client.request(method, f"http://worker:8083{path}")
    assert (response.status_code, response.json()) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert response.headers["content-type"] == JSON


def test_an_encoded_segment_of_the_path_itself_is_decoded_too(client: TestClient) -> None:
    assert client.get("/%63onnectors/%61").json()["name"] == "a"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/connectors", "HEAD,GET,POST,OPTIONS"),
        ("PUT", "/connectors/a", "HEAD,GET,DELETE,OPTIONS"),
        ("GET", "/connectors/a/pause", "PUT,OPTIONS"),
        ("HEAD", "/connectors/a/pause", "PUT,OPTIONS"),
        ("TRACE", "/", "HEAD,GET,OPTIONS"),
        ("BREW", "/health", "HEAD,GET,OPTIONS"),
    ],
)
def test_a_wrong_method_is_405_and_says_which_are_right(client: TestClient, method: str, path: str, allow: str) -> None:
    response = client.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == allow
    assert response.headers["content-type"] == JSON
    if method != "HEAD":
        assert response.json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}


def test_options_tells_the_methods(client: TestClient) -> None:
    response = client.options("/connectors/", headers={"accept": "text/html"})
    assert (response.status_code, response.text) == (200, "HEAD, GET, POST, OPTIONS")
    assert response.headers["allow"] == "HEAD,GET,POST,OPTIONS"
    assert response.headers["content-type"] == "text/plain"


def test_without_a_host_header_the_location_has_the_server_s_address() -> None:
    scope = {
        "type": "http", "scheme": "http", "path": "/connectors", "query_string": b"", "headers": [],
        "server": ("::1", 8083),
    }  # fmt: skip
    assert location(Request(scope), "a") == "http://[::1]:8083/connectors/a"


def test_a_nonsensical_host_header_does_no_harm(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["pause"] = RuntimeError("m")
    assert client.get("/connectors", headers={"host": "[bad"}).status_code == 200
    assert client.put("/connectors/a/pause", headers={"host": "[bad"}).json()["message"] == "m"
    created = client.post("/connectors", json={"name": "b", "config": {}}, headers={"host": "[bad"})
    assert created.status_code == 201


# --- media types ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "fine"),
    [
        ([], True),
        ([""], True),
        (["*/*"], True),
        (["application/*"], True),
        (["application/json"], True),
        (["APPLICATION/JSON; charset=utf-8"], True),
        (["text/html, application/json;q=0.1"], True),
        (["text/html", "application/json"], True),
        (["text/html, image/gif, *; q=.2, */*; q=.2"], True),
        (["application/json;q=nonsense"], True),
        (["text/html"], False),
        (["application/xml, text/*"], False),
        (["application/json;q=0"], False),
        (["application/json;q=0, */*"], False),
        (["*/*;q=0"], False),
        (["nonsense"], False),
    ],
)
def test_an_accept_header_excludes_json_only_if_nothing_in_it_lets_json_in(accept: list[str], fine: bool) -> None:
    assert accepts(accept, JSON) is fine


@pytest.mark.parametrize(("method", "path"), [("GET", "/connectors"), ("PUT", "/connectors/a/pause"), ("GET", "/")])
def test_a_client_that_takes_no_json_gets_406_and_nothing_is_done(
    client: TestClient, herder: FakeHerder, method: str, path: str
) -> None:
    response = client.request(method, path, headers={"accept": "text/html"})
    assert (response.status_code, response.json()) == (406, {"error_code": 406, "message": "HTTP 406 Not Acceptable"})
    assert response.headers["content-type"] == JSON
    assert herder.calls == []


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("Application/JSON;charset=UTF-8", 201),
        (None, 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/xml", 415),
        ("", 415),
    ],
)
def test_a_body_is_json_or_says_nothing_about_its_type(client: TestClient, kind: str | None, status: int) -> None:
    headers = {} if kind is None else {"content-type": kind}
    response = client.post("/connectors", content='{"name":"b","config":{}}', headers=headers)
    assert response.status_code == status
    if status == 415:
        why = f"HTTP 415 Unsupported Media Type: Content-Type is '{kind}', expected 'application/json'"
        assert response.json() == {"error_code": 415, "message": why}
        assert response.headers["content-type"] == JSON


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "Malformed JSON in request body: "),
        (b'{"a":1,}', "Malformed JSON in request body: trailing comma is not allowed: line 1 column 7 (char 6)"),
        (b"{'a':1}", "Malformed JSON in request body: "),
        (b'{"a":NaN}', "Malformed JSON in request body: "),
        (b'{"a":-Infinity}', "Malformed JSON in request body: "),
        (b'{"a":01}', "Malformed JSON in request body: "),
        (b'{"a":"\xff"}', "Malformed JSON in request body: "),
        (b'{"a":"\\ud800"}', "Malformed JSON in request body: "),
        (b'{"a":1} {"b":2}', "Malformed JSON in request body: "),
        ('{"a":1}'.encode("utf-16"), "Malformed JSON in request body: "),
        (b"[" * 100_000, "Malformed JSON in request body: "),
        (b"[" * 100_000 + b"]" * 100_000, "Malformed JSON in request body: "),
        (b'{"a":' * 1000 + b"1" + b"}" * 1000, "Malformed JSON in request body: "),
        (b"[" * 200 + b"]" * 200, "Malformed JSON in request body: nested more than 100 levels deep"),
    ],
    ids=range(14),
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/connectors"),
        ("PUT", "/connectors/a/config"),
        ("PATCH", "/connectors/a/config"),
        ("PATCH", "/connectors/a/offsets"),
        ("POST", "/connectors/a/tasks"),
        ("PUT", "/connector-plugins/x/config/validate"),
        ("PUT", "/admin/loggers/x"),
    ],
)
def test_malformed_json_is_400_and_says_where(
    client: TestClient, method: str, path: str, raw: bytes, message: str
) -> None:
    response = client.request(method, path, content=raw)
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)


def test_a_byte_order_mark_is_no_mistake(client: TestClient) -> None:
    assert client.put("/connectors/a/config", content=b'\xef\xbb\xbf{"k":"v"}').status_code == 200


def test_a_body_of_a_megabyte_is_fine_and_one_over_the_limit_is_413(client: TestClient, herder: FakeHerder) -> None:
    big = "x" * 1_000_000
    assert client.put("/connectors/a/config", json={"k": big}).json()["config"]["k"] == big
    response = client.put("/connectors/a/config", json={"k": "x" * 10 * 1024 * 1024})
    assert response.status_code == 413
    assert response.json() == {"error_code": 413, "message": "Request body is larger than 10485760 bytes"}
    assert len(herder.calls) == 1


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadRequest("m"), 400),
        (InvalidConfig("m"), 400),
        (NotStopped("a"), 400),
        (Forbidden("m"), 403),
        (ConnectorNotFound("a"), 404),
        (StatusNotFound("m"), 404),
        (AlreadyExists("a"), 409),
        (AlreadyRestarting("m"), 409),
        (Superseded("m"), 409),
        (StartFailed("m"), 500),
        (TooManyTasks("m"), 500),
        (OffsetsError("m"), 500),
        (ShuttingDown(), 500),
        (RequestTimeout("Request timed out"), 500),
        (HerderError("m"), 500),
        (RuntimeError("m"), 500),
    ],
)
def test_every_error_has_its_status_and_its_message(
    client: TestClient, herder: FakeHerder, error: Exception, status: int
) -> None:
    herder.errors["delete"] = error
    response = client.delete("/connectors/a")
    assert (response.status_code, response.json()) == (status, {"error_code": status, "message": str(error)})
    assert response.headers["content-type"] == JSON


def test_an_unknown_plugin_is_a_missing_resource_only_where_it_is_the_resource(
    client: TestClient, herder: FakeHerder
) -> None:
    herder.errors["patch_config"] = PluginNotFound("Failed to find any class")
    assert client.get("/connector-plugins/x/config").status_code == 404
    assert client.patch("/connectors/a/config", json={}).status_code == 400


def test_an_unexpected_error_is_logged_once_with_its_traceback_and_answered_without(
    client: TestClient, herder: FakeHerder, caplog: pytest.LogCaptureFixture
) -> None:
    herder.errors["pause"] = KeyError()
    response = client.put("/connectors/a/pause")
    assert (response.status_code, response.json()) == (500, {"error_code": 500, "message": "KeyError"})
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "PUT /connectors/a/pause failed"
    assert record.exc_info is not None


def test_a_path_cannot_put_lines_into_the_log(
    client: TestClient, herder: FakeHerder, caplog: pytest.LogCaptureFixture
) -> None:
    herder.errors["pause"] = RequestTimeout("Request timed out")
    client.put("/connectors/a%0Ab/pause")
    assert caplog.messages == ["PUT /connectors/a%0Ab/pause answered 500: Request timed out"]


def test_an_expected_failure_is_logged_in_one_line_and_a_mistake_of_the_caller_not_at_all(
    client: TestClient, herder: FakeHerder, caplog: pytest.LogCaptureFixture
) -> None:
    herder.errors["pause"] = RequestTimeout("Request timed out")
    client.put("/connectors/a/pause")
    client.put("/connectors/x/stop")
    client.get("/nowhere")
    assert [(record.levelno, record.exc_info) for record in caplog.records] == [(logging.WARNING, None)]
    assert caplog.messages == ["PUT /connectors/a/pause answered 500: Request timed out"]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_cors_is_off_unless_origins_are_set(client: TestClient) -> None:
    response = client.get("/", headers={"origin": "http://ui.example"})
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("allowed", "origin", "answered"),
    [
        ("*", "http://ui.example", "*"),
        ("http://ui.example", "http://ui.example", "http://ui.example"),
        ("http://a.example, http://ui.example", "http://ui.example", "http://ui.example"),
        ("http://*.example", "http://ui.example", "http://ui.example"),
        ("http://ui.example", "http://uixexample", None),
        ("http://ui.example", "http://other.example", None),
    ],
)
def test_cors_answers_the_origins_that_are_set(
    open_client: Callable[..., TestClient], allowed: str, origin: str, answered: str | None
) -> None:
    config = {"access.control.allow.origin": allowed, "access.control.allow.methods": "GET,PUT"}
    client = open_client(RestSettings.parse(config))
    assert client.get("/", headers={"origin": origin}).headers.get("access-control-allow-origin") == answered
    preflight = client.options("/connectors", headers={"origin": origin, "access-control-request-method": "PUT"})
    assert preflight.headers.get("access-control-allow-origin") == answered
    if answered is not None:
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-methods"] == "GET, PUT"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/connectors/x"])
def test_header_rules_apply_to_every_response(
    open_client: Callable[..., TestClient], herder: FakeHerder, path: str
) -> None:
    client = open_client(RestSettings.parse({"response.http.headers.config": "set X-Frame-Options: DENY"}))
    assert client.get(path).headers["x-frame-options"] == "DENY"
    herder.ready = False
    assert client.get(path).headers["x-frame-options"] == "DENY"


def test_extra_routes_come_after_ours(herder: FakeHerder) -> None:
    async def page(request: Request) -> Response:
        if "fail" in request.query_params:
            raise RuntimeError("boom")
        return Response("page")

    app = build_app(herder.as_herder(), RestSettings(), extra=[Route("/ui", page), Route("/connectors", page)])
    client = TestClient(app, raise_server_exceptions=False)
    assert client.get("/ui").text == "page"
    assert client.get("/connectors").json() == ["a"]
    assert client.get("/ui?fail").json() == {"error_code": 500, "message": "boom"}
    assert client.get("/metrics").status_code == 404
