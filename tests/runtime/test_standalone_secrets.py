"""Variables in a connector's config, on a whole herder: who gets the values, and who never sees them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from runtime_fakes import Script, World, eventually
from test_secrets import Vault

from headgate.api import ConnectError
from headgate.model import State, TargetState
from headgate.runtime.config.secrets import Secrets
from headgate.runtime.errors import BadRequest, HerderError, OffsetsError, ProviderFailed

SECRET = "correct-horse-battery"
VARIABLE = "${vault:db:password}"


@pytest.fixture
def vault() -> Vault:
    return Vault({("db", "password"): SECRET, ("", "tasks"): "1", ("", "class"): "ScriptedSource"})


@pytest.fixture
def world(script: Script, vault: Vault) -> Iterator[World]:
    world = World(script, secrets=Secrets({"vault": vault}))
    yield world
    script.released.set()
    world.herder.shutdown(timeout=5)


class TestWhoGetsTheValue:
    def test_the_connector_and_its_tasks(self, world: World, script: Script) -> None:
        script.tasks = [{"color": SECRET, "part": 0}, {"url": f"db:{SECRET}@host"}]
        world.create(color=VARIABLE)
        assert script.plugins[-1].settings["color"] == SECRET
        first, second = world.runner.task(0).spec, world.runner.task(1).spec
        assert first.config["color"] == SECRET
        assert second.config["url"] == f"db:{SECRET}@host"
        assert first.connector_config["color"] == SECRET

    def test_converters_and_clients(self, world: World, script: Script) -> None:
        script.tasks = [{}]
        more = {"value.converter": "StringConverter", "value.converter.converter.encoding": "${vault:db:password}"}
        config = {**world.config(), **more, "producer.override.client.id": VARIABLE}
        world.do(lambda: world.herder.create("orders", config, None))
        spec = world.runner.task().spec
        assert spec.chain.value_converter.config == {"converter.encoding": SECRET}
        assert spec.producer["client.id"] == SECRET

    def test_the_frameworks_own_keys_may_be_variables(self, world: World, script: Script) -> None:
        script.tasks = [{}]
        world.create(tasks_max="${vault:tasks}", connector_class="${vault:class}")
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING])
        assert "task_configs 1" in script.journal

    def test_validation(self, world: World, script: Script) -> None:
        config = {**world.config(), "size": "${vault:tasks}"}
        infos = world.do(lambda: world.herder.validate(config))
        (size,) = (info.value for info in infos.configs if info.value and info.value.name == "size")
        assert (infos.error_count, size.value) == (0, "${vault:tasks}")

    def test_the_hook_for_offsets(self, world: World, script: Script) -> None:
        seen: list[Any] = []

        def alter(config: Mapping[str, str], offsets: object) -> bool:
            seen.append(config["color"])
            return True

        script.on_alter = alter
        world.create(color=VARIABLE, initial=TargetState.STOPPED)
        world.do(lambda: world.herder.reset_offsets("orders"))
        world.do(lambda: world.herder.alter_offsets("orders", [({"p": 1}, {"o": 2})]))
        assert seen == [SECRET, SECRET]

    def test_a_resumed_or_restarted_connector_gets_the_latest(self, world: World, script: Script, vault: Vault) -> None:
        world.create(color=VARIABLE)
        vault.content["db", "password"] = "the-next-one"
        world.restart()
        assert script.plugins[-1].settings["color"] == "the-next-one"
        vault.content["db", "password"] = "the-third-one"
        world.stop()
        world.resume()
        assert script.plugins[-1].settings["color"] == "the-third-one"

    def test_a_restarted_task_too(self, world: World, script: Script, vault: Vault) -> None:
        script.tasks = [{"color": SECRET}]
        world.create(color=VARIABLE)
        vault.content["db", "password"] = "the-next-one"
        world.restart_task(0)
        assert world.runner.task(0).spec.config["color"] == "the-next-one"

    def test_new_values_alone_are_no_new_task_configs(self, world: World, script: Script, vault: Vault) -> None:
        script.tasks = [{"color": SECRET}]
        world.create(color=VARIABLE)
        script.tasks = [{"color": "the-next-one"}]
        vault.content["db", "password"] = "the-next-one"
        world.forget_history()
        world.restart()
        assert "stop task orders-0" not in script.journal


class TestWhoNeverSeesIt:
    def test_stored_and_shown_configs_have_the_variable(self, world: World, script: Script) -> None:
        script.tasks = [{"color": SECRET, "copy": SECRET, "inside": f"<{SECRET}>"}]
        info = world.create(color=VARIABLE)
        assert info.config["color"] == VARIABLE
        ((_, task),) = world.herder.task_configs("orders")
        assert task == {
            "color": VARIABLE,
            "copy": VARIABLE,
            "inside": f"<{VARIABLE}>",
            "task.class": "runtime_fakes.ScriptedSourceTask",
        }
        assert SECRET not in str(world.configs.view())

    @pytest.mark.parametrize("where", ["on_start", "on_task_configs"])
    def test_a_connector_that_tells_it_in_its_exception(
        self, world: World, script: Script, where: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def tell(_: object) -> None:
            raise ConnectError(f"login failed with {SECRET!r}")

        setattr(script, where, tell)
        with pytest.raises(HerderError):
            world.create(color=VARIABLE)
        status = world.status().connector
        assert status.state is State.FAILED
        assert status.trace is not None
        assert status.trace.endswith("login failed with '[hidden]'")
        assert SECRET not in caplog.text

    def test_a_task_that_tells_it(self, world: World, script: Script, caplog: pytest.LogCaptureFixture) -> None:
        script.tasks = [{}]
        world.create(color=VARIABLE)
        world.runner.task().listener.on_failed(f"Traceback\nValueError: {SECRET}")
        assert world.status().tasks[0].status.trace == "Traceback\nValueError: [hidden]"
        assert SECRET not in caplog.text

    def test_a_validation_error_that_tells_it(self, world: World) -> None:
        config = {**world.config(), "size": VARIABLE}
        infos = world.do(lambda: world.herder.validate(config))
        (size,) = (info.value for info in infos.configs if info.value and info.value.name == "size")
        assert size.errors == ["Invalid value [hidden] for configuration size: Not a number of type INT"]
        assert size.value == VARIABLE
        with pytest.raises(BadRequest) as caught:
            world.do(lambda: world.herder.create("orders", config, None))
        assert SECRET not in str(caught.value)


class TestAProviderThatFails:
    @pytest.fixture(autouse=True)
    def _created(self, world: World, vault: Vault, script: Script) -> None:
        script.tasks = [{"color": SECRET}]
        world.create(color=VARIABLE)
        vault.failing = RuntimeError("the vault is shut")

    def test_a_request_fails_with_its_message(self, world: World) -> None:
        with pytest.raises(BadRequest, match=r"^the vault is shut$"):
            world.put(color="x${vault:db:password}")
        assert world.state() is State.RUNNING

    def test_a_connector_that_is_restarted_is_failed(self, world: World, vault: Vault) -> None:
        with pytest.raises(ProviderFailed, match=r"^the vault is shut$"):
            world.restart()
        assert world.state() is State.FAILED
        assert "the vault is shut" in (world.status().connector.trace or "")
        vault.failing = None
        world.restart()
        assert world.state() is State.RUNNING

    def test_a_task_that_is_restarted_is_failed(self, world: World) -> None:
        with pytest.raises(HerderError, match="Failed to start task: orders-0"):
            world.restart_task(0)
        assert "the vault is shut" in (world.status().tasks[0].status.trace or "")

    def test_stopping_wins_and_resuming_looks_again(self, world: World, vault: Vault) -> None:
        world.stop()
        assert world.state() is State.STOPPED
        world.resume()
        assert world.state() is State.FAILED
        vault.failing = None
        world.stop()
        world.resume()
        assert world.state() is State.RUNNING

    def test_offsets_are_not_touched(self, world: World) -> None:
        world.stop()
        with pytest.raises((OffsetsError, ProviderFailed), match=r"^the vault is shut$"):
            world.do(lambda: world.herder.reset_offsets("orders"))


class TestValuesThatExpire:
    def test_the_connector_is_restarted(self, world: World, script: Script, vault: Vault) -> None:
        vault.ttl_ms = 50
        world.create(color=VARIABLE)
        eventually(lambda: script.count("start orders") >= 3, "restarted, and again")
        assert world.task_history() == [State.UNASSIGNED, State.RUNNING], "tasks run on"

    @pytest.mark.parametrize("action", ["none"])
    def test_it_is_not_if_it_shall_not(self, world: World, script: Script, vault: Vault, action: str) -> None:
        vault.ttl_ms = 1
        world.create(color=VARIABLE, config_action_reload=action)
        assert world.herder.actor._reloads == {}

    def test_a_deleted_connector_stays_deleted(self, world: World, script: Script, vault: Vault) -> None:
        vault.ttl_ms = 60_000
        world.create(color=VARIABLE)
        assert list(world.herder.actor._reloads) == ["orders"]
        world.delete()
        assert world.herder.actor._reloads == {}

    def test_values_that_do_not_expire(self, world: World) -> None:
        world.create(color=VARIABLE)
        assert world.herder.actor._reloads == {}


class TestTopicCreation:
    MISSING = 'Missing required configuration "topic.creation.default.replication.factor" which has no default value.'

    def test_a_default_group_without_its_factor_fails_the_connector(self, world: World) -> None:
        """Validation does not look at it, as Apache's."""
        config = {**world.config(), "topic.creation.default.partitions": "1"}
        assert world.do(lambda: world.herder.validate(config)).error_count == 0
        with pytest.raises(HerderError) as caught:
            world.do(lambda: world.herder.create("orders", config, None))
        assert str(caught.value) == self.MISSING
        assert world.state() is State.FAILED
        assert self.MISSING in (world.status().connector.trace or "")
        assert world.task_states() == []

    def test_a_worker_that_creates_no_topics_does_not_look(self, script: Script) -> None:
        world = World(script, {"topic.creation.enable": "false"})
        world.create(topic_creation_default_partitions="1")
        assert world.state() is State.RUNNING
        assert world.runner.task().spec.topic_groups == ()
        world.herder.shutdown(timeout=5)

    def test_tasks_are_told(self, world: World) -> None:
        world.create(topic_creation_default_partitions="1", topic_creation_default_replication_factor="1")
        assert [group.name for group in world.runner.task().spec.topic_groups] == ["default"]


class TestUnknownKeys:
    def test_a_new_connector_warns_once(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            world.create(colour="red", sizes="3", zzz="4", tasks_maxi="1")
        (warning,) = (record.getMessage() for record in caplog.records if "nobody declared" in record.getMessage())
        assert warning == (
            "Keys that nobody declared: colour (did you mean color?), sizes (did you mean size?), zzz,"
            " tasks.maxi (did you mean tasks.max?)"
        )

    def test_a_good_one_does_not(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        world.create(color="red")
        assert "nobody declared" not in caplog.text
