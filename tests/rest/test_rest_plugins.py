"""/connector-plugins: `rest.md` section 7 and `config.md` section 6, as changed by `decisions.md`."""

from __future__ import annotations

from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.api.config import HIGH, INT, LIST, PASSWORD, STRING, ConfigValue, Key, Width
from headgate.log import hide
from headgate.rest import entities
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos, UnknownKey
from headgate.runtime.errors import BadRequest, PluginNotFound, RequestTimeout

CONNECTORS = [{"class": "acme.Sink", "type": "sink", "version": "1.0"}, {"class": "acme.Source", "type": "source"}]
ALL_TYPES = ["sink", "source", "transformation", "predicate", "converter", "header_converter"]


@pytest.mark.parametrize("query", ["", "?connectorsOnly=true", "?connectorsOnly=TRUE", "?connectorsOnly="])
def test_connectors_alone_are_listed_by_default_sinks_first(client: TestClient, query: str) -> None:
    response = client.get(f"/connector-plugins{query}")
    assert (response.status_code, response.json()) == (200, CONNECTORS)


@pytest.mark.parametrize("query", ["false", "no", "0"])
def test_all_plugins_are_listed_when_asked_for(client: TestClient, query: str) -> None:
    found = client.get(f"/connector-plugins?connectorsOnly={query}").json()
    assert [each["type"] for each in found] == ALL_TYPES


def test_a_plugin_s_keys_are_described(client: TestClient) -> None:
    response = client.get("/connector-plugins/acme.Source/config")
    assert response.status_code == 200
    assert response.json()[0] == {
        "name": "tasks.max",
        "type": "INT",
        "required": False,
        "default_value": "1",
        "importance": "MEDIUM",
        "documentation": "",
        "group": None,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": "tasks.max",
        "dependents": [],
    }
    secret, topic = response.json()[1:]
    assert (secret["default_value"], secret["group"]) == ("[hidden]", "Access")
    assert (topic["default_value"], topic["required"]) == (None, True)


@pytest.mark.parametrize(("query", "version"), [("", None), ("?version=1.0", "1.0"), ("?version=", None)])
def test_a_plugin_s_version_can_be_chosen(
    client: TestClient, herder: FakeHerder, query: str, version: str | None
) -> None:
    client.get(f"/connector-plugins/acme.Source/config{query}")
    assert herder.calls == [("plugin_config", "acme.Source", version)]


def test_an_unknown_plugin_is_404_with_a_full_stop(client: TestClient) -> None:
    response = client.get("/connector-plugins/nope/config")
    assert (response.status_code, response.json()["message"]) == (404, "Unknown plugin nope.")


def test_a_version_that_is_not_there_is_400_with_the_herder_s_words(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["plugin_config"] = BadRequest("Invalid version specification: x")
    response = client.get("/connector-plugins/acme.Source/config?version=x")
    assert (response.status_code, response.json()["message"]) == (400, "Invalid version specification: x")


# --- validate ---------------------------------------------------------------------------------------------------------


def test_validation_answers_200_even_with_errors(client: TestClient, herder: FakeHerder) -> None:
    response = client.put(
        "/connector-plugins/Source/config/validate", json={"connector.class": "acme.Source", "tasks.max": 2, "n": None}
    )
    assert response.status_code == 200
    assert herder.calls == [("validate", {"connector.class": "acme.Source", "tasks.max": "2", "n": None})]
    found = response.json()
    assert list(found) == ["name", "error_count", "groups", "configs", "unknown_keys"]
    assert (found["name"], found["error_count"], found["groups"]) == ("acme.Source", 1, ["Common"])
    assert found["configs"][0]["value"] == {
        "name": "tasks.max",
        "value": "2",
        "recommended_values": ["1", "2"],
        "errors": ["too many"],
        "visible": True,
    }


@pytest.mark.parametrize(
    ("plugin", "included"),
    [
        ("FileStreamSource", "org.apache.kafka.connect.file.FileStreamSourceConnector"),
        ("FileStreamSourceConnector", "FileStreamSource"),
        ("org.acme.FileStreamSourceConnector", "org.acme.FileStreamSource"),
        ("Source", "FileStreamSource"),
        ("anything", None),
        ("Connector", "acme.MyConnectorConnector"),
        ("acme.Source", "theirs.Source"),
    ],
)
def test_the_class_may_be_named_in_full_or_in_short(client: TestClient, plugin: str, included: str | None) -> None:
    config = {} if included is None else {"connector.class": included}
    assert client.put(f"/connector-plugins/{plugin}/config/validate", json=config).status_code == 200


def test_a_class_of_another_name_is_refused(client: TestClient, herder: FakeHerder) -> None:
    response = client.put("/connector-plugins/Sink/config/validate", json={"connector.class": "acme.Source"})
    assert response.status_code == 400
    assert response.json()["message"] == "Included connector type acme.Source does not match request type Sink"
    assert herder.calls == []


@pytest.mark.parametrize(
    "error", [PluginNotFound("Failed to find any class"), BadRequest("contains no connector type")]
)
def test_a_missing_or_unknown_class_is_400(client: TestClient, herder: FakeHerder, error: Exception) -> None:
    herder.errors["validate"] = error
    response = client.put("/connector-plugins/x/config/validate", json={})
    assert (response.status_code, response.json()["message"]) == (400, str(error))


def test_a_validation_that_takes_too_long_is_reported_without_the_last_full_stop(
    client: TestClient, herder: FakeHerder
) -> None:
    herder.errors["validate"] = RequestTimeout("Request timed out. The worker is currently busy.")
    response = client.put("/connector-plugins/x/config/validate", json={})
    expected = "Request timed out. The worker is currently busy"
    assert (response.status_code, response.json()["message"]) == (500, expected)


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        (Key("k", LIST), ["a", "b"], "a,b"),
        (Key("k", PASSWORD), "secret", "[hidden]"),
        (Key("k", INT), None, None),
        (Key("k", STRING), "", ""),
        (None, 5, "5"),
        (None, None, None),
    ],
)
def test_values_are_shown_as_text(key: Key | None, value: Any, shown: str | None) -> None:
    body = entities.config_infos(ConfigInfos("c", 0, [], [ConfigInfo(key, ConfigValue("k", value))]))
    assert body["configs"][0]["value"]["value"] == shown


def test_a_key_may_lack_a_definition_or_a_value() -> None:
    infos = ConfigInfos("c", 0, [], [ConfigInfo(None, ConfigValue("k")), ConfigInfo(Key("k", INT), None)])
    first, second = entities.config_infos(infos)["configs"]
    assert first["definition"] is None
    assert second["value"] is None


def test_a_definition_shows_all_that_was_declared() -> None:
    key = Key("k", INT, 1, None, HIGH, "Doc.", "G", 3, Width.SHORT, "K", ("x",))
    assert entities.definition(key) == {
        "name": "k", "type": "INT", "required": False, "default_value": "1", "importance": "HIGH",
        "documentation": "Doc.", "group": "G", "order_in_group": 3, "width": "SHORT", "display_name": "K",
        "dependents": ["x"],
    }  # fmt: skip


def test_keys_that_nobody_declared_are_told_apart() -> None:
    unknown = [UnknownKey("task.max", "tasks.max"), UnknownKey("zzz")]
    body = entities.config_infos(ConfigInfos("c", 0, [], [], unknown))
    assert body["unknown_keys"] == [
        {"name": "task.max", "did_you_mean": "tasks.max"},
        {"name": "zzz", "did_you_mean": None},
    ]


@pytest.mark.parametrize("error", [RuntimeError("it is rest-secret-1"), BadRequest("it is rest-secret-1")])
def test_an_error_tells_no_secret(client: TestClient, herder: FakeHerder, error: Exception) -> None:
    hide(["rest-secret-1"])
    herder.errors["validate"] = error
    response = client.put("/connector-plugins/x/config/validate", json={})
    assert response.json()["message"] == "it is [hidden]"
