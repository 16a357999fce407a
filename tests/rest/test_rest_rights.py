"""Every route with every role, and what is seen by those who may not see everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from named_logins import RIGHTS, NamedLogins
from rest_fakes import FakeHerder
from starlette.testclient import TestClient
from straight_client import StraightClient

from headgate.access.audit import Audit
from headgate.access.logins import Logins
from headgate.access.rights import Rights, Role
from headgate.rest.access import Access
from headgate.rest.app import build_app
from headgate.rest.guard import NOTHING, SIGNED, Guarded
from headgate.rest.routing import Resource
from headgate.rest.settings import RestSettings
from headgate.runtime.ports import PeerRequest

Client = Callable[..., TestClient]


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder("orders-eu", "stock")


@pytest.fixture
def as_user(herder: FakeHerder, tmp_path: Path) -> Client:
    """A client that has logged in as this one."""

    def make(name: str | None, rights: Rights | None = RIGHTS) -> TestClient:
        access = Access(
            cast(Logins, NamedLogins()), None if rights is None else lambda: rights, Audit(str(tmp_path / "audit"))
        )
        app = build_app(herder.as_herder(), RestSettings(), metrics=lambda: b"up 1\n", access=access)
        headers = {} if name is None else {"Authorization": name}
        return StraightClient(app, base_url="http://worker:8083", headers=headers)

    return make


CONFIG = {"connector.class": "acme.Source"}
OFFSETS = {"offsets": [{"partition": {"p": 1}, "offset": {"o": 1}}]}
ROUTES: dict[tuple[str, str], tuple[Role | None, object]] = {
    ("GET", "/"): (Role.VIEWER, None),
    ("GET", "/health"): (None, None),
    ("GET", "/connectors"): (Role.VIEWER, None),
    ("POST", "/connectors"): (Role.EDITOR, {"name": "new", "config": CONFIG}),
    ("GET", "/connectors/{connector}"): (Role.VIEWER, None),
    ("DELETE", "/connectors/{connector}"): (Role.EDITOR, None),
    ("GET", "/connectors/{connector}/config"): (Role.VIEWER, None),
    ("PUT", "/connectors/{connector}/config"): (Role.EDITOR, CONFIG),
    ("PATCH", "/connectors/{connector}/config"): (Role.EDITOR, {"a": "b"}),
    ("GET", "/connectors/{connector}/status"): (Role.VIEWER, None),
    ("GET", "/connectors/{connector}/tasks"): (Role.VIEWER, None),
    ("GET", "/connectors/{connector}/tasks/{task}/status"): (Role.VIEWER, None),
    ("POST", "/connectors/{connector}/tasks/{task}/restart"): (Role.OPERATOR, None),
    ("PUT", "/connectors/{connector}/pause"): (Role.OPERATOR, None),
    ("PUT", "/connectors/{connector}/resume"): (Role.OPERATOR, None),
    ("PUT", "/connectors/{connector}/stop"): (Role.OPERATOR, None),
    ("POST", "/connectors/{connector}/restart"): (Role.OPERATOR, None),
    ("GET", "/connectors/{connector}/offsets"): (Role.VIEWER, None),
    ("PATCH", "/connectors/{connector}/offsets"): (Role.OPERATOR, OFFSETS),
    ("DELETE", "/connectors/{connector}/offsets"): (Role.OPERATOR, None),
    ("GET", "/connectors/{connector}/topics"): (Role.VIEWER, None),
    ("PUT", "/connectors/{connector}/topics/reset"): (Role.OPERATOR, None),
    ("GET", "/connector-plugins"): (Role.VIEWER, None),
    ("GET", "/connector-plugins/{plugin}/config"): (Role.VIEWER, None),
    ("PUT", "/connector-plugins/{plugin}/config/validate"): (Role.EDITOR, {"name": "x", **CONFIG}),
    ("GET", "/admin/loggers"): (Role.ADMIN, None),
    ("GET", "/admin/loggers/{logger}"): (Role.ADMIN, None),
    ("PUT", "/admin/loggers/{logger}"): (Role.ADMIN, {"level": "INFO"}),
    ("GET", "/metrics"): (Role.VIEWER, None),
    ("GET", "/openapi.json"): (Role.VIEWER, None),
}
SIGNED_BY_WORKERS = {
    ("POST", "/connectors/{connector}/tasks"),
    ("PUT", "/connectors/{connector}/fence"),
    ("DELETE", "/internal/members/{member}"),
}


def filled(path: str) -> str:
    return path.format(connector="stock", task=0, plugin="acme.Source", logger="root", member="m")


def test_every_route_is_in_the_table_and_behind_a_guard(as_user: Client) -> None:
    app = cast(Any, as_user("admin").app)
    found = {}
    for route in app.routes:
        assert isinstance(route, Resource)
        for method, endpoint in route.endpoints.items():
            assert isinstance(endpoint, Guarded), f"{method} {route.path} has no guard"
            found[method, route.path] = endpoint.needs
    assert {call: needs.role for call, needs in found.items() if needs != SIGNED} == {
        call: role for call, (role, _) in ROUTES.items()
    }
    assert {call for call, needs in found.items() if needs == SIGNED} == SIGNED_BY_WORKERS
    assert [call for call, needs in found.items() if needs == NOTHING] == [("GET", "/health")]


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(("method", "path"), list(ROUTES))
def test_who_has_the_role_may_and_who_has_it_not_learns_which(
    as_user: Client, herder: FakeHerder, method: str, path: str, role: Role
) -> None:
    needed, body = ROUTES[method, path]
    before = list(herder.calls)
    answer = as_user(role.word).request(method, filled(path), json=body)
    if needed is None or role >= needed:
        assert answer.status_code < 400, answer.text
    else:
        assert answer.status_code == 403
        assert f"the role {needed.word} for" in answer.json()["message"]
        assert f"'{role.word}' is {role.word}" in answer.json()["message"]
        assert [call for call in herder.calls if call[0] != "connector_info"] == before


@pytest.mark.parametrize(("method", "path"), list(ROUTES))
def test_whoever_has_not_logged_in_is_nobody(as_user: Client, method: str, path: str) -> None:
    for name in (None, "wrong"):
        answer = as_user(name).request(method, filled(path), json=ROUTES[method, path][1])
        if path == "/health":
            assert answer.status_code == 200
        else:
            assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
            assert answer.headers["WWW-Authenticate"] == "Basic"


def test_without_a_file_of_rights_whoever_logged_in_may_do_everything(as_user: Client) -> None:
    client = as_user("somebody", None)
    for (method, path), (_, body) in ROUTES.items():
        if method != "DELETE":
            assert client.request(method, filled(path), json=body).status_code < 400, (method, path)


def test_lists_have_only_what_may_be_seen(as_user: Client) -> None:
    client = as_user("orders")
    assert client.get("/connectors").json() == ["orders-eu"]
    assert list(client.get("/connectors?expand=info&expand=status&expand=health").json()) == ["orders-eu"]
    assert client.get("/connectors/stock").status_code == 403
    assert client.get("/connectors/orders-eu").status_code == 200


def test_what_is_not_there_and_may_not_be_seen_looks_the_same(as_user: Client) -> None:
    client = as_user("orders")
    there, not_there = (client.get(f"/connectors/{name}/status").json() for name in ("stock", "stack"))
    assert there["error_code"] == not_there["error_code"] == 403
    assert there["message"].replace(" of class acme.Source", "").replace("stock", "stack") == not_there["message"]


def test_an_admin_of_some_connectors_is_none_of_the_worker(as_user: Client) -> None:
    client = as_user("orders")
    assert client.get("/admin/loggers").status_code == 403
    assert "for all connectors" in client.put("/admin/loggers/root", json={"level": "DEBUG"}).json()["message"]
    assert client.get("/metrics").status_code == 403
    assert client.get("/connector-plugins").status_code == 200


def test_names_in_bodies_count_as_those_in_paths(as_user: Client, herder: FakeHerder) -> None:
    client = as_user("orders")
    assert client.post("/connectors", json={"name": "orders-us", "config": CONFIG}).status_code == 201
    assert client.post("/connectors", json={"name": "other", "config": CONFIG}).status_code == 403
    assert client.put("/connectors/other/config", json=CONFIG).status_code == 403
    validate = "/connector-plugins/acme.Source/config/validate"
    assert client.put(validate, json={"name": "orders-us", **CONFIG}).status_code == 200
    assert client.put(validate, json={"name": "other", **CONFIG}).status_code == 403
    assert "other" not in herder.configs


@pytest.mark.parametrize("named", ["acme.Sink", "theirs.Sink"])
def test_an_editor_of_one_class_makes_no_connector_of_another(as_user: Client, herder: FakeHerder, named: str) -> None:
    client = as_user("sources")
    other = {"connector.class": named}
    assert client.post("/connectors", json={"name": "n", "config": CONFIG}).status_code == 201
    assert client.post("/connectors", json={"name": "m", "config": other}).status_code == 403
    assert client.put("/connectors/stock/config", json=other).status_code == 403
    assert client.patch("/connectors/stock/config", json=other).status_code == 403
    assert client.patch("/connectors/stock/config", json={"a": "b"}).status_code == 200
    herder._put("sink", other)
    assert client.put("/connectors/sink/config", json=CONFIG).status_code == 403  # what it is counts, too
    assert client.delete("/connectors/sink").status_code == 403
    assert "sink" not in client.get("/connectors").json()


def test_secrets_are_for_admins(as_user: Client, herder: FakeHerder) -> None:
    secret = {**CONFIG, "database.password": "hunter2", "name": "stock"}
    herder._put("stock", secret)
    assert as_user("admin").get("/connectors/stock/config").json()["database.password"] == "hunter2"
    assert as_user("somebody", None).get("/connectors/stock/config").json()["database.password"] == "hunter2"
    for name in ("viewer", "operator", "editor"):
        client = as_user(name)
        assert client.get("/connectors/stock/config").json()["database.password"] == "${masked}"
        assert "hunter2" not in client.get("/connectors?expand=info").text
        assert "hunter2" not in client.get("/connectors/stock/tasks").text


# --- what another worker tells ----------------------------------------------------------------------------------------


def passed_on(herder: FakeHerder, caller: str, path: str) -> dict[str, str]:
    asked = PeerRequest("PUT", path, f"{caller}\nr-1\n".encode())
    return {"X-Headgate-Caller": caller, "X-Request-Id": "r-1", **herder.sign(asked)}


def test_whom_another_worker_vouches_for_need_not_log_in_again(as_user: Client, herder: FakeHerder) -> None:
    client, path = as_user(None), "/connectors/stock/pause?forward=false"
    assert client.put(path, headers=passed_on(herder, '["operator", "jwt", []]', path)).status_code == 202
    assert client.put(path, headers=passed_on(herder, '["viewer", "jwt", []]', path)).status_code == 403
    other = passed_on(herder, '["operator", "jwt", []]', "/connectors/stock/resume")
    assert client.put(path, headers=other).status_code == 401, "the proof is for another request"
    forged = {**passed_on(herder, '["viewer", "jwt", []]', path), "X-Headgate-Caller": '["admin", "jwt", []]'}
    assert client.put(path, headers=forged).status_code == 401


def test_a_worker_that_asks_nobody_vouches_for_nobody(as_user: Client, herder: FakeHerder) -> None:
    path = "/connectors/stock/pause"
    headers = passed_on(herder, '["anybody", "none", []]', path)
    assert as_user(None, None).put(path, headers=headers).status_code == 401
    assert as_user("operator").put(path, headers=headers).status_code == 202


def test_what_was_passed_on_is_written_down_where_it_was_asked(
    as_user: Client, herder: FakeHerder, tmp_path: Path
) -> None:
    path = "/connectors/stock/pause"
    as_user(None).put(path, headers=passed_on(herder, '["operator", "jwt", []]', path))
    assert not (tmp_path / "audit").exists()


# --- what is written down ---------------------------------------------------------------------------------------------


def audited(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]


def test_commands_and_refusals_are_written_down_and_reads_are_not(as_user: Client, tmp_path: Path) -> None:
    client = as_user("operator")
    client.get("/connectors/stock")
    client.put("/connectors/stock/pause", headers={"X-Request-Id": "mine-1"})
    client.delete("/connectors/stock")
    client.post("/connectors/stock/restart?includeTasks=true&password=hunter2")
    as_user("wrong").get("/connectors")
    client.get("/admin/loggers")
    pause, delete, restart, stranger, loggers = audited(tmp_path)
    assert (pause["principal"], pause["path"], pause["connector"]) == ("operator", "/connectors/stock/pause", "stock")
    assert (pause["request_id"], pause["outcome"], pause["status"]) == ("mine-1", "done", 202)
    assert (delete["outcome"], delete["status"]) == ("refused", 403)
    assert "the role editor" in delete["error"]
    assert restart["path"] == "/connectors/stock/restart?includeTasks=true"
    assert (stranger["principal"], stranger["status"], stranger["method"]) == (None, 401, "GET")
    assert (loggers["principal"], loggers["status"]) == ("operator", 403)


def test_changes_are_written_down_without_secrets(as_user: Client, tmp_path: Path) -> None:
    client = as_user("admin")
    config = {**CONFIG, "a": "1", "my.password": "hunter2"}
    client.post("/connectors", json={"name": "n", "config": config, "initial_state": "STOPPED"})
    client.put("/connectors/n/config", json={**CONFIG, "b": "2", "my.password": "hunter3"})
    client.patch("/connectors/n/config", json={"b": None, "c": "3"})
    client.patch("/connectors/n/offsets", json=OFFSETS)
    client.put("/admin/loggers/root", json={"level": "INFO"})
    created, put, patched, offsets, level = (each["change"] for each in audited(tmp_path))
    assert created["initial_state"] == "STOPPED"
    assert created["config"]["a"] == {"from": None, "to": "1"}
    assert created["config"]["my.password"] == {"from": None, "to": "${masked}"}
    assert put["config"] == {
        "a": {"from": "1", "to": None},
        "my.password": {"from": "${masked}", "to": "${masked}"},
        "b": {"from": None, "to": "2"},
    }
    assert patched["config"] == {"b": {"from": "2", "to": None}, "c": {"from": None, "to": "3"}}
    assert offsets == OFFSETS
    assert level == {"level": "INFO"}
    assert "hunter" not in (tmp_path / "audit").read_text()


def test_every_answer_has_an_id_that_is_fit_for_a_log(as_user: Client) -> None:
    client = as_user("admin")
    assert client.get("/", headers={"X-Request-Id": "from-a-proxy:7"}).headers["X-Request-Id"] == "from-a-proxy:7"
    for sent in ("a b", "x" * 101, "ä", ""):
        made = client.get("/connectors", headers=[(b"X-Request-Id", sent.encode("latin-1"))]).headers["X-Request-Id"]
        assert len(made) == 16
        assert made != sent
    assert client.get("/", headers={}).headers["X-Request-Id"] != client.get("/").headers["X-Request-Id"]


def test_roles_and_logins_are_described(as_user: Client) -> None:
    described = as_user("admin").get("/openapi.json").json()
    pause = described["paths"]["/connectors/{connector}/pause"]["put"]
    assert pause["x-headgate-role"] == "operator"
    assert pause["security"] == [{"basic": []}]
    assert {"401", "403", "429"} <= pause["responses"].keys()
    assert described["paths"]["/health"]["get"]["security"] == []
    assert described["components"]["securitySchemes"] == {"basic": {"type": "http", "scheme": "basic"}}
    assert described["paths"]["/admin/loggers"]["get"]["x-headgate-for-all-connectors"] is True
