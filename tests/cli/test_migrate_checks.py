"""What `headgate migrate` says of a worker file and of connectors: judged without Kafka."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from headgate.api import PASSWORD, ConfigDef, Key, SourceConnector, SourceTask
from headgate.api.config import ConfigValue
from headgate.api.errors import ConfigError
from headgate.cli.migration.connector import Checked, ConnectorCheck
from headgate.cli.migration.hiding import hide_secrets, shown, without
from headgate.cli.migration.worker import CheckedWorker, NotAWorkerFile, check_worker
from headgate.log import is_secret_key
from headgate.model import ConnectorType
from headgate.runtime.plugins import Plugins

FILE = {
    "bootstrap.servers": "127.0.0.1:9092",
    "group.id": "etl",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "status",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
SOURCE = {"name": "in", "connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}
SINK = {
    "name": "out",
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "file": "out.txt",
    "topics": "lines",
}


class Task(SourceTask):
    def poll(self) -> None:
        return None


class Slow(SourceConnector):
    """Its validation waits for something that never comes."""

    task_class = Task
    never = threading.Event()

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        self.never.wait()
        return []


class Broken(Slow):
    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        raise RuntimeError(f"cannot log in with {config['login']}\nand more")


def _seven(name: str, value: object) -> None:
    if value != "seven":
        raise ConfigError.invalid(name, value, "Must be seven")


class Keyed(Slow):
    config = ConfigDef(Key("door", PASSWORD, default=None, validator=_seven))

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return self.config.validate(config)


PLUGINS = Plugins([*(each.cls for each in Plugins.discover().all), Slow, Broken, Keyed])


def worker(**more: str) -> CheckedWorker:
    return check_worker({**FILE, **{key.replace("_", "."): value for key, value in more.items()}}, Plugins.discover())


def checked(config: Mapping[str, str], file: Mapping[str, str] | None = None) -> Checked:
    plugins = Plugins.discover()
    return ConnectorCheck(plugins, check_worker({**FILE, **(file or {})}, plugins)).check(config)


def whats(found: Checked) -> list[str]:
    return [problem.what for problem in found.problems]


class TestWorkerFile:
    def test_a_file_as_apaches_has_nothing_to_complain_about(self) -> None:
        found = worker().finding
        assert (found.problems, found.notes, found.unknown, dict(found.without_effect)) == ((), (), (), {})
        assert found.known == tuple(FILE)

    @pytest.mark.parametrize("key", ["bootstrap.servers", "group.id", "config.storage.topic", "status.storage.topic"])
    def test_without_these_keys_there_is_nothing_to_read(self, key: str) -> None:
        with pytest.raises(NotAWorkerFile, match=f"lacks {key}, "):
            check_worker({**FILE, key: " "}, Plugins.discover())

    def test_all_missing_keys_are_told_at_once(self) -> None:
        with pytest.raises(NotAWorkerFile, match=r"group.id, config.storage.topic, offset.storage.topic, status"):
            check_worker({"bootstrap.servers": "x:1"}, Plugins.discover())

    def test_keys_are_told_apart(self) -> None:
        file = {
            **FILE,
            "plugin.discovery": "hybrid_warn",
            "internal.key.converter.schemas.enable": "false",
            "producer.interceptor.classes": "com.acme.Spy",
            "producer.linger.ms": "5",
            "admin.listeners": "http://127.0.0.1:0",
            "offset.flush.intervall.ms": "1",
            "spark.master": "local",
        }
        found = check_worker(file, Plugins.discover()).finding
        assert list(found.without_effect) == [
            "plugin.discovery",
            "internal.key.converter.schemas.enable",
            "producer.interceptor.classes",
        ]
        assert found.unknown == ("offset.flush.intervall.ms (did you mean offset.flush.interval.ms?)",)
        assert found.known == (*FILE, "producer.linger.ms", "admin.listeners", "spark.master")
        assert found.problems == ()

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"value.converter": "com.acme.Thrift"}, "value.converter: com.acme.Thrift is not installed here."),
            ({"offset.flush.interval.ms": "soon"}, "offset.flush.interval.ms: Not a number of type LONG"),
            ({"connector.client.config.override.policy": "com.acme.Policy"}, "com.acme.Policy"),
            ({"offset.storage.partitions": "0"}, "offset.storage.partitions must be positive"),
            ({"listeners": "ftp://x:1"}, "ftp://x:1"),
            ({"listeners": "https://x:1", "ssl.keystore.location": "a.jks"}, "PEM"),
            ({"consumer.partition.assignment.strategy": "com.acme.Mine"}, "consumer.*: partition.assignment.strategy"),
            ({"config.providers": "v", "config.providers.v.class": "com.acme.Vault"}, "Config provider v: "),
            ({"heartbeat.interval.ms": "10000"}, "heartbeat.interval.ms must be less than session.timeout.ms"),
            ({"inter.worker.signature.algorithm": "HmacSHA512"}, "inter.worker.signature.algorithm"),
            ({"config.providers": "v"}, 'Missing required configuration "config.providers.v.class"'),
            ({"rest.extension.classes": "com.acme.Kerberos"}, "headgate.ignore.rest.extensions=true starts the worker"),
            ({"rest.extension.classes": "BasicAuthSecurityRestExtension"}, "java.security.auth.login.config"),
        ],
    )
    def test_what_a_headgate_worker_would_not_start_with_is_a_problem(
        self, change: Mapping[str, str], told: str
    ) -> None:
        found = check_worker({**FILE, **change}, Plugins.discover())
        (problem,) = found.finding.problems
        assert told in problem.what
        assert problem.remedy
        assert "available" not in problem.what, "a list of all that there is helps nobody"
        assert found.config.bootstrap_servers == FILE["bootstrap.servers"], "the rest can still be looked at"

    def test_a_missing_converter_is_a_problem_and_not_the_end(self) -> None:
        found = check_worker({key: value for key, value in FILE.items() if key != "key.converter"}, Plugins.discover())
        assert [problem.what for problem in found.finding.problems] == [
            'Missing required configuration "key.converter" which has no default value.'
        ]

    def test_folders_of_java_archives_are_pointed_out(self, tmp_path: Path) -> None:
        (tmp_path / "jdbc").mkdir()
        (tmp_path / "jdbc" / "jdbc.jar").touch()
        plugins = Plugins.discover([str(tmp_path), str(tmp_path / "gone")])
        path = f"{tmp_path},{tmp_path / 'gone'}"
        missing, archives = check_worker({**FILE, "plugin.path": path}, plugins).finding.notes
        assert f"{tmp_path / 'gone'} of plugin.path" in missing
        assert archives == f"Java archives are not used here: {tmp_path} of plugin.path"

    def test_values_from_elsewhere_are_used_and_not_shown(self, tmp_path: Path) -> None:
        secrets = tmp_path / "secrets.properties"
        secrets.write_text("servers=kafka:9092\ninterval=unspeakable-value\n")
        file = {
            **FILE,
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "bootstrap.servers": f"${{file:{secrets}:servers}}",
            "producer.linger.ms": f"${{file:{secrets}:interval}}",
        }
        found = check_worker(file, Plugins.discover())
        assert found.config.bootstrap_servers == "kafka:9092"
        (problem,) = found.finding.problems
        assert problem.what == "producer.*: linger.ms must be a whole number, not '[hidden]'."


class TestConnectors:
    @pytest.mark.parametrize("config", [SOURCE, SINK])
    def test_what_headgate_has_can_run(self, config: Mapping[str, str]) -> None:
        found = checked(config)
        assert (found.problems, found.notes) == ((), ())
        assert found.type is (ConnectorType.SINK if "topics" in config else ConnectorType.SOURCE)

    @pytest.mark.parametrize(
        ("more", "kind"), [({"topics": "t"}, "sink"), ({"topics.regex": "t.*"}, "sink"), ({"topic": "t"}, "source")]
    )
    def test_an_unknown_class_is_told_by_its_keys_and_needs_a_plugin(self, more: Mapping[str, str], kind: str) -> None:
        found = checked({"name": "jdbc", "connector.class": "io.acme.Jdbc", **more})
        assert whats(found) == ["connector.class: io.acme.Jdbc is not installed here."]
        assert "aliases" in found.problems[0].remedy
        assert "delete" in found.problems[0].remedy
        assert found.type.value == kind

    def test_no_class_at_all(self) -> None:
        found = checked({"name": "x", "password": "not-in-any-message"})
        assert whats(found) == ["connector.class is not set: no worker can run it."]

    def test_every_missing_class_is_told_once(self) -> None:
        found = checked(
            {
                **SINK,
                "transforms": "mask,spy",
                "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
                "transforms.mask.fields": "f",
                "transforms.spy.type": "com.acme.Spy",
                "transforms.spy.depth": "3",
                "predicates": "p",
                "predicates.p.type": "com.acme.Full",
                "key.converter": "com.acme.Thrift",
                "header.converter": "com.acme.Headers",
            }
        )
        assert whats(found) == [
            "transforms.spy.type: com.acme.Spy is not installed here.",
            "predicates.p.type: com.acme.Full is not installed here.",
            "key.converter: com.acme.Thrift is not installed here.",
            "header.converter: com.acme.Headers is not installed here.",
        ]

    def test_the_workers_converter_counts_where_there_is_no_other(self) -> None:
        lost = {"value.converter": "com.acme.Thrift"}
        assert whats(checked(SINK, lost)) == ["value.converter: com.acme.Thrift, the worker's, is not installed here."]
        own = {**SINK, "value.converter": "org.apache.kafka.connect.storage.StringConverter"}
        assert checked(own, lost).problems == ()

    def test_validation_errors_name_their_keys(self) -> None:
        found = checked({**SINK, "topics": "", "tasks.max": "many", "errors.tolerance": "some"})
        assert {problem.what: problem.remedy.partition(" of")[0] for problem in found.problems} == {
            "Must configure one of topics or topics.regex": "Change topics or topics.regex",
            "Invalid value many for configuration tasks.max: Not a number of type INT": "Change tasks.max",
            "Invalid value null for configuration tasks.max: Value must be non-null": "Change tasks.max",
            "Invalid value some for configuration errors.tolerance: String must be one of: none, all": (
                "Change errors.tolerance"
            ),
        }

    def test_a_version_that_only_java_has(self) -> None:
        (problem,) = checked({**SOURCE, "connector.plugin.version": "[3.9,4.0)"}).problems
        assert "version range [3.9,4.0)" in problem.what
        assert "connector.plugin.version" in problem.remedy

    def test_client_settings_that_cannot_be_done(self) -> None:
        (problem,) = checked({**SOURCE, "producer.override.partitioner.class": "com.acme.Mine"}).problems
        assert "com.acme.Mine" in problem.what
        assert "producer.override.partitioner.class" in problem.remedy

    def test_what_is_only_worth_knowing_is_a_note(self) -> None:
        config = {key: value for key, value in SINK.items() if key != "topics"}
        found = checked(
            {**config, "topics.regex": r"(?<x>orders)-\p{Digit}++", "fille": "x", "flush.size": "${vault:path:key}"}
        )
        assert found.problems == ()
        assert found.notes == (
            "flush.size: the worker file has no config provider vault, so the text stays as it is",
            "nobody reads these of its keys: fille (did you mean file?), flush.size",
        )

    def test_a_provider_that_headgate_lacks_is_a_problem_of_the_connectors_that_use_it(self) -> None:
        lost = {"config.providers": "v", "config.providers.v.class": "com.acme.Vault"}
        assert whats(checked({**SOURCE, "file": "${v:a:b}"}, lost)) == [
            "file: config provider v is not available here."
        ]
        assert checked(SOURCE, lost).problems == ()

    def test_a_provider_that_fails_is_told_once(self, tmp_path: Path) -> None:
        file = {
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
        found = checked({**SOURCE, "file": f"${{file:{tmp_path / 'gone'}:key}}"}, file)
        (told,) = whats(found)
        assert told.startswith("A value could not be looked up: ")
        assert str(tmp_path / "gone") in told

    def test_a_plugin_whose_validation_hangs_does_not_hold_up_the_check(self) -> None:
        check = ConnectorCheck(PLUGINS, check_worker(FILE, PLUGINS), patience=0.2)
        (problem,) = check.check({"name": "s", "connector.class": "Slow"}).problems
        assert problem.what == "Its class did not finish the validation within 0.2 s."

    def test_a_plugin_whose_validation_fails_tells_no_secrets(self) -> None:
        check = ConnectorCheck(PLUGINS, check_worker(FILE, PLUGINS))
        config = {"name": "b", "connector.class": "Broken", "login": "u:xyzzy-4711", "password": "xyzzy-4711"}
        (problem,) = check.check(config).problems
        assert "cannot log in with u:[hidden]" in problem.what
        assert "xyzzy-4711" not in problem.what

    def test_the_value_of_a_password_is_in_no_message(self) -> None:
        check = ConnectorCheck(PLUGINS, check_worker(FILE, PLUGINS))
        (problem,) = check.check({"name": "k", "connector.class": "Keyed", "door": "open-sesame"}).problems
        assert problem.what == "Invalid value [hidden] for configuration door: Must be seven"


class TestHiding:
    @pytest.fixture(autouse=True)
    def _hidden(self) -> None:
        hide_secrets(
            {
                "connection.password": "correct-horse",
                "sasl.jaas.config": 'Plain required username="u" password="battery staple";',
                "aws.secret.access.key": "${file:path:key-to-the-safe}",
                "topic": "public-topic",
            },
            ["door"],
        )

    def test_values_of_secret_keys_are_hidden_in_all_texts(self) -> None:
        assert shown("tried correct-horse on public-topic") == "tried [hidden] on public-topic"
        assert shown("tried battery staple") == "tried [hidden]"

    def test_where_a_secret_is_may_be_seen(self) -> None:
        assert shown("not in key-to-the-safe") == "not in key-to-the-safe"

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("jdbc:pg://h/db?user=u&password=abc&x=1", "jdbc:pg://h/db?user=u&password=[hidden]&x=1"),
            ("http://user:abc@host:80/", "http://user:[hidden]@host:80/"),
            ('{"token": "abc"}', '{"token": "[hidden]"}'),
            ("for configuration db.password: Must be long", "for configuration db.password: Must be long"),
            (
                'Missing required configuration "db.password" which',
                'Missing required configuration "db.password" which',
            ),
        ],
    )
    def test_what_looks_like_a_secret_in_a_text(self, text: str, told: str) -> None:
        assert shown(text) == told

    def test_short_secrets_are_left_out_of_messages_about_them(self) -> None:
        text = "Invalid value ab for configuration db.password: abba"
        assert without(text, "db.password", "ab") == "Invalid value [hidden] for configuration db.password: abba"
        assert without(text, "db.user", "ab") == text

    @pytest.mark.parametrize("key", ["ssl.key.password", "basic.auth.user.info", "github.api-key", "AUTH_TOKEN"])
    def test_keys_of_secrets(self, key: str) -> None:
        assert is_secret_key(key)

    @pytest.mark.parametrize("key", ["key.converter", "transforms.k.type", "topics", "tasks.max", "ssl.keystore.type"])
    def test_keys_that_may_be_seen(self, key: str) -> None:
        assert not is_secret_key(key)
