"""Secrets over REST: as they were sent, or as masks if the worker file wants it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.api.config import ConfigValue
from headgate.model import Config, TaskId
from headgate.rest.settings import RestSettings
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos

CONFIG = {"name": "a", "connector.class": "acme.Source", "db.password": "hunter22", "db.user": "${env:USER}"}
SHOWN = {**CONFIG, "db.password": "${masked}"}
KEY = "producer.override.sasl.jaas.config"
FILE = {"bootstrap.servers": "b:9092", "key.converter": "K", "value.converter": "V"}


class Herder(FakeHerder):
    def task_configs(self, name: str) -> list[tuple[TaskId, Config]]:
        return [(TaskId(name, 0), {"task.class": "acme.Task", "login": "hunter22"})]

    async def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        return ConfigInfos("c", 0, [], [ConfigInfo(None, ConfigValue(name, value)) for name, value in config.items()])


@pytest.fixture
def herder() -> FakeHerder:
    made = Herder("a")
    made.configs["a"] = dict(CONFIG)
    return made


@pytest.fixture(params=[False, True], ids=["shown", "masked"])
def masked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def client(open_client: Callable[..., TestClient], masked: bool) -> TestClient:
    return open_client(RestSettings(mask_secrets=masked))


ANSWERS: dict[str, Callable[[TestClient], Any]] = {
    "config": lambda client: client.get("/connectors/a/config").json(),
    "connector": lambda client: client.get("/connectors/a").json()["config"],
    "list": lambda client: client.get("/connectors?expand=info").json()["a"]["info"]["config"],
    "create": lambda client: client.post("/connectors", json={"name": "a", "config": CONFIG}).json()["config"],
    "put": lambda client: client.put("/connectors/a/config", json=CONFIG).json()["config"],
    "patch": lambda client: client.patch("/connectors/a/config", json={}).json()["config"],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_answer_with_a_config(
    client: TestClient, herder: FakeHerder, masked: bool, answer: Callable[[TestClient], Any], request: Any
) -> None:
    if "create" in request.node.name:
        herder.configs.clear()
    assert answer(client) == (SHOWN if masked else CONFIG)


def test_task_configs(client: TestClient, masked: bool) -> None:
    ((task,), login) = client.get("/connectors/a/tasks").json(), "${masked}" if masked else "hunter22"
    assert task["config"] == {"task.class": "acme.Task", "login": login}


def test_validation(client: TestClient, masked: bool) -> None:
    sent = {KEY: "PlainLoginModule required;", "db.password": "${env:PASSWORD}", "topic": "t"}
    configs = client.put("/connector-plugins/x/config/validate", json=sent).json()["configs"]
    shown = {each["value"]["name"]: each["value"]["value"] for each in configs}
    assert shown == {**sent, **({KEY: "${masked}"} if masked else {})}


def test_what_is_sent_reaches_the_herder_as_it_is(client: TestClient, herder: FakeHerder) -> None:
    client.put("/connectors/a/config", json=SHOWN)
    client.patch("/connectors/a/config", json={"db.password": "other"})
    assert [call[2]["db.password"] for call in herder.calls if len(call) == 3] == ["${masked}", "other"]


def test_the_key_of_the_worker_file() -> None:
    assert not RestSettings.parse(FILE).mask_secrets
    assert RestSettings.parse({**FILE, "headgate.mask.secrets": "true"}).mask_secrets
