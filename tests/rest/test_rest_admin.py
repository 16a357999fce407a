"""/admin/loggers: `rest.md` section 8."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.rest.app import build_admin_app
from headgate.rest.loggers import LEVELS, Loggers, level_number, level_word
from headgate.rest.settings import RestSettings
from headgate.runtime.errors import HerderError


@pytest.fixture
def loggers(manager: logging.Manager) -> Loggers:
    for name in ("acme", "acme.sink", "acme.source", "other"):
        manager.getLogger(name)
    manager.getLogger("acme.sink").setLevel(logging.DEBUG)
    ticks: Iterator[int] = iter(range(1000, 2000))
    return Loggers(manager, lambda: next(ticks))


def test_loggers_are_listed_by_name_with_root_and_effective_levels(client: TestClient, loggers: Loggers) -> None:
    response = client.get("/admin/loggers")
    assert response.status_code == 200
    assert list(response.json().items()) == [
        ("acme", {"level": "INFO", "last_modified": None}),
        ("acme.sink", {"level": "DEBUG", "last_modified": None}),
        ("acme.source", {"level": "INFO", "last_modified": None}),
        ("other", {"level": "INFO", "last_modified": None}),
        ("root", {"level": "INFO", "last_modified": None}),
    ]


@pytest.mark.parametrize(
    ("name", "level"), [("root", "INFO"), ("ROOT", "INFO"), ("acme.sink", "DEBUG"), ("acme", "INFO")]
)
def test_a_logger_s_level_can_be_read(client: TestClient, loggers: Loggers, name: str, level: str) -> None:
    response = client.get(f"/admin/loggers/{name}")
    assert (response.status_code, response.json()) == (200, {"level": level, "last_modified": None})


def test_an_unknown_logger_is_404(client: TestClient) -> None:
    response = client.get("/admin/loggers/org.apache.kafka.connect")
    expected = {"error_code": 404, "message": "Logger org.apache.kafka.connect not found."}
    assert (response.status_code, response.json()) == (404, expected)


def test_a_level_is_set_for_all_names_that_begin_so_and_only_changes_are_reported(
    client: TestClient, loggers: Loggers
) -> None:
    response = client.put("/admin/loggers/acme?scope=worker", json={"level": "debug"})
    assert (response.status_code, response.json()) == (200, ["acme", "acme.source"])
    after = client.get("/admin/loggers").json()
    assert [after[name]["level"] for name in ("acme", "acme.sink", "acme.source", "other")] == [
        "DEBUG", "DEBUG", "DEBUG", "INFO",
    ]  # fmt: skip
    assert isinstance(after["acme"]["last_modified"], int)
    assert after["acme.sink"]["last_modified"] is None


def test_root_stands_for_all_of_them(loggers: Loggers) -> None:
    assert loggers.set("root", "DEBUG") == ["acme", "acme.source", "other", "root"]
    assert {each.level for each in loggers.all().values()} == {"DEBUG"}


def test_the_time_of_the_last_change_is_shown(loggers: Loggers) -> None:
    loggers.set("acme", "ERROR")
    loggers.set("acme.source", "WARN")
    shown = {name: each.last_modified for name, each in loggers.all().items()}
    assert shown == {"acme": 1000, "acme.sink": 1000, "acme.source": 1001, "other": None, "root": None}


@pytest.mark.parametrize("level", ["INFO", "TRACE"])
def test_a_logger_that_does_not_exist_yet_is_made(client: TestClient, manager: logging.Manager, level: str) -> None:
    response = client.put("/admin/loggers/org.apache.kafka.connect", json={"level": level})
    assert response.json() == ["org.apache.kafka.connect"]
    assert client.get("/admin/loggers/org.apache.kafka.connect").json()["level"] == level


def test_for_the_cluster_the_answer_is_204_and_the_level_is_set(client: TestClient) -> None:
    response = client.put("/admin/loggers/root?scope=cluster", json={"level": "WARN"})
    assert (response.status_code, response.content) == (204, b"")
    assert client.get("/admin/loggers/root").json()["level"] == "WARN"


def test_when_all_workers_are_told_this_one_hears_it_with_them(client: TestClient, herder: FakeHerder) -> None:
    herder.tells_all = True
    assert client.put("/admin/loggers/acme.x?scope=CLUSTER", json={"level": "debug"}).status_code == 204
    assert herder.calls == [("set_level_everywhere", "acme.x", "debug")]
    assert client.get("/admin/loggers/acme.x").status_code == 404


def test_a_worker_alone_sets_the_level_itself(client: TestClient, herder: FakeHerder) -> None:
    assert client.put("/admin/loggers/acme.x?scope=cluster", json={"level": "debug"}).status_code == 204
    assert herder.calls == [("set_level_everywhere", "acme.x", "debug")]
    assert client.get("/admin/loggers/acme.x").json()["level"] == "DEBUG"


def test_nobody_is_told_a_level_that_is_none(client: TestClient, herder: FakeHerder) -> None:
    response = client.put("/admin/loggers/root?scope=cluster", json={"level": "LOUD"})
    assert (response.status_code, response.json()["message"]) == (404, "invalid log level 'LOUD'.")
    assert herder.calls == []


def test_a_level_that_could_not_be_told_to_all_is_not_set(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["set_level_everywhere"] = HerderError("Error writing logger level to Kafka")
    response = client.put("/admin/loggers/acme.x?scope=cluster", json={"level": "DEBUG"})
    assert (response.status_code, response.json()["message"]) == (500, "Error writing logger level to Kafka")
    assert client.get("/admin/loggers/acme.x").status_code == 404


def test_another_scope_is_taken_as_worker_with_a_warning(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    response = client.put("/admin/loggers/root?scope=galaxy", json={"level": "WARN"})
    assert (response.status_code, response.json()) == (200, ["root"])
    assert "galaxy" in caplog.text


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": None}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": ["INFO"]}, 400, '"level" must be a string, not an array'),
        ([], 400, "request body must be an object with a level, not an array"),
        ({"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
        ({"level": 5}, 404, "invalid log level '5'."),
        ({"level": ""}, 404, "invalid log level ''."),
    ],
)
def test_a_wrong_level_changes_nothing(client: TestClient, body: object, status: int, message: str) -> None:
    response = client.put("/admin/loggers/new", json=body)
    assert (response.status_code, response.json()) == (status, {"error_code": status, "message": message})
    assert client.get("/admin/loggers/new").status_code == 404


@pytest.mark.parametrize("word", LEVELS)
def test_every_log4j_level_has_a_python_level_and_back(word: str) -> None:
    assert level_word(level_number(word.lower())) == word


@pytest.mark.parametrize(
    ("number", "word"), [(100, "OFF"), (50, "FATAL"), (35, "WARN"), (25, "INFO"), (7, "TRACE"), (1, "ALL"), (0, "ALL")]
)
def test_a_level_without_a_word_is_shown_as_the_next_one_below(number: int, word: str) -> None:
    assert level_word(number) == word


@pytest.mark.parametrize(("word", "number"), [("WARNING", 30), ("critical", 50)])
def test_python_s_own_words_are_understood(word: str, number: int) -> None:
    assert level_number(word) == number


def test_off_silences_even_critical_messages(manager: logging.Manager) -> None:
    Loggers(manager).set("acme", "OFF")
    assert not manager.getLogger("acme").isEnabledFor(logging.CRITICAL)


@pytest.mark.parametrize(
    ("listeners", "main", "own"), [(None, True, False), ("", False, False), ("http://127.0.0.1:0", False, True)]
)
def test_admin_endpoints_are_where_admin_listeners_says(
    open_client: Callable[..., TestClient], herder: FakeHerder, listeners: str | None, main: bool, own: bool
) -> None:
    settings = RestSettings.parse({} if listeners is None else {"admin.listeners": listeners})
    client = open_client(settings)
    assert (client.get("/admin/loggers").status_code == 200) is main
    assert ("/admin/loggers" in client.get("/openapi.json").json()["paths"]) is main
    assert bool(settings.admin_listeners) is own
    admin = TestClient(build_admin_app(herder.as_herder(), settings))
    assert admin.get("/admin/loggers").status_code == 200
    assert admin.get("/connectors").status_code == 404
    assert list(admin.get("/openapi.json").json()["paths"]) == [
        "/openapi.json", "/admin/loggers", "/admin/loggers/{logger}",
    ]  # fmt: skip
