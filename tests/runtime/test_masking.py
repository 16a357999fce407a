"""Secrets that stand in a config as they are: what is shown instead, and what comes of it when it is sent back."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_fakes import Group
from runtime_fakes import Script, ScriptedSourceTask, World

from headgate.api import PASSWORD, STRING, ConfigDef, Converter, Key, Record, SourceConnector, Transform
from headgate.api.config import ConfigValue
from headgate.log import LineFormatter
from headgate.model import TaskId
from headgate.pipeline.dead_letter import DeadLetter
from headgate.pipeline.failure import ConsumedRecord, Failure, Stage
from headgate.runtime.config.masking import MASKED, literals, masked, masked_task, unmasked
from headgate.runtime.config.secrets import resolve_worker
from headgate.runtime.config.validator import Validator
from headgate.runtime.errors import BadRequest, Elsewhere, InvalidConfig
from headgate.runtime.plugins import Plugins

LOGIN = 'PlainLoginModule required username="u" password="jaas-inner-1";'


class Banking(SourceConnector):
    config = ConfigDef(Key("pin", PASSWORD, None), Key("token.field", STRING, None), Key("url", STRING, None))
    task_class = ScriptedSourceTask

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        found = super().validate(config)
        found[2].errors.append(f"Cannot log in with {config.get('pin')} at {config.get('url')}")
        return found


class Hash(Transform[Record]):
    config = ConfigDef(Key("salt", PASSWORD), Key("password.field", STRING, None))

    def apply(self, record: Record) -> Record | None:
        return record


class Sealed(Converter):
    config = ConfigDef(Key("seal", PASSWORD, None))

    def from_connect(self, topic: str, schema: Any, value: Any) -> bytes | None:
        return None

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Any, Any]:
        return None, None


PLUGINS = Plugins([Banking, Hash, Sealed])
CONFIG = {
    "name": "orders",
    "connector.class": "Banking",
    "pin": "1234",
    "url": "db://host",
    "token.field": "declared, and no password",
    "transforms": "tokens",
    "transforms.tokens.type": "Hash",
    "transforms.tokens.salt": "salt-1",
    "transforms.tokens.password.field": "pw",
    "transforms.tokens.unheard": "of",
    "transforms.tokens.api.key": "k",
    "value.converter": "Sealed",
    "value.converter.seal": "wax",
    "producer.override.sasl.jaas.config": LOGIN,
    "producer.override.ssl.key.password": "${file:/secrets:key}",
    "producer.override.acks": "all",
    "topic.creation.tokens.include": ".*",
    "unknown.secret": "",
}
SECRET = {
    "pin", "transforms.tokens.salt", "transforms.tokens.api.key", "value.converter.seal",
    "producer.override.sasl.jaas.config",
}  # fmt: skip


def test_passwords_are_masked_by_what_plugins_declare_and_the_rest_by_name() -> None:
    shown = masked(CONFIG, PLUGINS)
    assert {key for key, value in shown.items() if value == MASKED} == SECRET
    assert {key: value for key, value in shown.items() if key not in SECRET} == {
        key: value for key, value in CONFIG.items() if key not in SECRET
    }


def test_without_its_plugins_names_are_all_that_is_known() -> None:
    shown = masked({**CONFIG, "db.password": "x"}, Plugins([]))
    assert {"db.password", "producer.override.sasl.jaas.config", "transforms.tokens.api.key", "token.field"} == {
        key for key, value in shown.items() if value == MASKED and key != "transforms.tokens.password.field"
    }


def test_a_task_shows_no_secret_of_its_connector_under_any_key() -> None:
    task = {"task.class": "T", "pin": "9999", "copy": "1234", "url": "db://host", "session.token": "t"}
    assert masked_task(task, CONFIG, PLUGINS) == {
        "task.class": "T", "pin": MASKED, "copy": MASKED, "url": "db://host", "session.token": MASKED,
    }  # fmt: skip


def test_what_was_shown_means_what_is_stored() -> None:
    assert unmasked(masked(CONFIG, PLUGINS), CONFIG, PLUGINS) == CONFIG
    changed = {**masked(CONFIG, PLUGINS), "pin": "5678", "url": "db://other"}
    assert unmasked(changed, CONFIG, PLUGINS) == {**CONFIG, "pin": "5678", "url": "db://other"}


@pytest.mark.parametrize(
    "sent",
    [
        {"name": "orders", "connector.class": "Banking", "db.password": MASKED},
        {"name": "orders", "connector.class": "Banking", "url": MASKED},
        {"name": "orders", "connector.class": "Other", "pin": MASKED},  # for everybody's eyes there
    ],
)
def test_a_mask_without_a_secret_behind_it_is_refused(sent: dict[str, str]) -> None:
    with pytest.raises(BadRequest, match=rf"\${{masked}} stands for .* none for {list(sent)[-1]}: send the value"):
        unmasked(sent, CONFIG, PLUGINS)


# --- messages of validation -------------------------------------------------------------------------------------------


def test_validation_tells_no_secret_that_was_sent() -> None:
    config = {**CONFIG, "pin": "12", "value.converter": "Sealed"}
    infos = Validator(PLUGINS, {"key.converter": "Sealed"}).validate(config)
    (url,) = (info.value for info in infos.configs if info.value and info.value.name == "url")
    assert url.errors == ["Cannot log in with 12 at db://host"], "too short to be told from other texts"
    infos = Validator(PLUGINS, {"key.converter": "Sealed"}).validate(CONFIG)
    (url,) = (info.value for info in infos.configs if info.value and info.value.name == "url")
    assert (url.value, url.errors) == ("db://host", ["Cannot log in with [hidden] at db://host"])


def test_a_config_without_a_class_is_told_without_its_secrets() -> None:
    with pytest.raises(BadRequest) as caught:
        Validator(PLUGINS, {}).validate({"a": None, "db.password": "hunter2", "b": "c"})
    told = "Connector config {a=null, db.password=${masked}, b=c} contains no connector type"
    assert str(caught.value) == told


# --- on a whole herder ------------------------------------------------------------------------------------------------


def test_a_mask_keeps_what_is_stored(world: World, script: Script) -> None:
    world.create(db_password="stored-pass-1", color="red")
    _, info = world.put(db_password=MASKED, color="blue")
    assert (info.config["db.password"], info.config["color"]) == ("stored-pass-1", "blue")
    assert script.plugins[-1].settings["db.password"] == "stored-pass-1"
    info = world.patch({"db.password": MASKED, "color": "green"})
    assert (info.config["db.password"], info.config["color"]) == ("stored-pass-1", "green")
    assert world.do(lambda: world.herder.validate(world.config(db_password=MASKED))).error_count == 0


def test_a_mask_for_nothing_is_refused_and_changes_nothing(world: World) -> None:
    with pytest.raises(BadRequest, match=r"none for db\.password"):
        world.create(db_password=MASKED)
    world.create(color="red")
    for change in (
        lambda: world.put(db_password=MASKED),
        lambda: world.patch({"db.password": MASKED, "color": "blue"}),
        lambda: world.do(lambda: world.herder.validate(world.config(db_password=MASKED))),
    ):
        with pytest.raises(BadRequest, match=r"none for db\.password") as caught:
            change()
        assert not isinstance(caught.value, InvalidConfig)
    assert "db.password" not in world.herder.connector_info("orders").config
    assert world.herder.connector_info("orders").config["color"] == "red"


def test_in_a_group_the_leader_knows_what_a_mask_stands_for(group: Group) -> None:
    group.connector(db_password="stored-pass-2")
    sent = World.config(db_password=MASKED)
    with pytest.raises(Elsewhere):
        group.nodes[1].do(lambda: group.nodes[1].herder.put_config("new", {**sent, "name": "new"}))
    _, info = group.nodes[0].do(lambda: group.nodes[0].herder.put_config("orders", sent))
    assert info.config["db.password"] == "stored-pass-2"


# --- what nobody sees of a connector that runs ------------------------------------------------------------------------


def test_traces_lines_and_dead_letters_do_not_tell(world: World, script: Script) -> None:
    script.tasks = [{}]
    world.create(db_password="literal-pass-3", producer_override_sasl_jaas_config=LOGIN.replace("inner-1", "inner-3"))
    said = "cannot log in with literal-pass-3, nor jaas-inner-3"
    world.runner.task().listener.on_failed(f"Traceback\nValueError: {said}")
    assert world.status().tasks[0].status.trace == "Traceback\nValueError: cannot log in with [hidden], nor [hidden]"
    failure = Failure(Stage.TASK_PUT, "T", "E", said, (f"Traceback\nE: {said}\n",), ConsumedRecord("t", 0, 1))
    letter = DeadLetter.of(failure, TaskId("orders", 0), with_context=True)
    assert not any(b"literal-pass-3" in (value or b"") for _, value in letter.headers)
    assert dict(letter.headers)["__connect.errors.exception.message"] == b"cannot log in with [hidden], nor [hidden]"
    line = logging.LogRecord("x", logging.ERROR, "", 0, failure.report(TaskId("orders", 0), True), (), None)
    assert "literal-pass-3" not in LineFormatter("%(message)s").format(line)


def test_a_secret_that_is_only_asked_about_hides_nothing_elsewhere(world: World) -> None:
    """Whoever may ask for a validation could blind the log."""
    world.do(lambda: world.herder.validate(world.config(db_password="just-a-word")))
    line = logging.LogRecord("x", logging.ERROR, "", 0, "just-a-word", (), None)
    assert LineFormatter("%(message)s").format(line) == "just-a-word"


def test_secrets_that_are_variables_are_nobodys_literals() -> None:
    assert literals({"db.password": "${file:/a:b}", "token": "", "pwd": "x"}, PLUGINS) == {"pwd": "x"}


def test_no_line_of_the_log_tells_a_secret_of_the_worker_file() -> None:
    raw = {"producer.ssl.key.password": "worker-file-pass", "listeners": "worker-file-host"}
    resolve_worker(raw, PLUGINS, ["listeners"])
    line = logging.LogRecord("x", logging.ERROR, "", 0, "worker-file-pass at worker-file-host", (), None)
    assert LineFormatter("%(message)s").format(line) == "[hidden] at worker-file-host"
