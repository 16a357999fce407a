from __future__ import annotations

import pytest
from runtime_fakes import World

from headgate.runtime.config.validation import ConfigInfos
from headgate.runtime.errors import BadRequest, PluginNotFound


class TestPluginConfig:
    """What a plugin can be configured with."""

    def test_a_connectors_own_keys_come_first_and_the_frameworks_follow(self, world: World) -> None:
        names = [key.name for key in world.herder.plugin_config("ScriptedSource", None)]
        assert names[:4] == ["color", "size", "name", "connector.class"]
        assert names[-1] == "offsets.storage.topic"
        assert len(names) == len(set(names))

    def test_the_version_that_is_there_is_the_default(self, world: World) -> None:
        keys = {key.name: key for key in world.herder.plugin_config("ScriptedSink", None)}
        assert keys["connector.plugin.version"].default == world.herder.plugins.find_connector("ScriptedSink").version
        assert keys["key.converter.plugin.version"].default is None

    def test_a_sink_has_its_topics(self, world: World) -> None:
        assert "topics.regex" in [key.name for key in world.herder.plugin_config("ScriptedSink", None)]

    def test_another_plugin_has_its_own_keys_only(self, world: World) -> None:
        keys = world.herder.plugin_config("org.apache.kafka.connect.storage.StringConverter", None)
        assert [key.name for key in keys] == ["converter.type", "converter.encoding"]

    def test_an_unknown_plugin(self, world: World) -> None:
        with pytest.raises(PluginNotFound, match=r"^Unknown plugin Nobody\.$"):
            world.herder.plugin_config("Nobody", None)

    def test_a_version(self, world: World) -> None:
        assert world.herder.plugin_config("ScriptedSource", "7.1")
        with pytest.raises(BadRequest, match=r"matches the version range \[8,8\], available versions: \[7\.1\]$"):
            world.herder.plugin_config("ScriptedSource", "8")


def test_a_config_can_be_validated_without_being_used(world: World) -> None:
    infos = world.do(lambda: world.herder.validate({"name": "a", "connector.class": "ScriptedSource", "size": "x"}))
    assert isinstance(infos, ConfigInfos)
    assert infos.error_count == 1
    assert world.herder.connector_names() == []


def test_a_valid_config_comes_back(world: World) -> None:
    config = {"name": "a", "connector.class": "ScriptedSource", "more": "x"}
    assert world.do(lambda: world.herder.require_valid(config)) == config
