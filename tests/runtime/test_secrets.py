from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping, Set

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate.api import ConfigData, ConfigError, ConfigProvider
from headgate.log import masked
from headgate.providers.file import FileConfigProvider
from headgate.runtime.config import secrets as module
from headgate.runtime.config.secrets import Resolved, Secrets, Variable, has_variables, parse, put_back, resolve_worker
from headgate.runtime.errors import ProviderFailed
from headgate.runtime.plugins import Plugins

APACHES = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


class Vault(ConfigProvider):
    """What a test says is in it; remembers what it was asked for."""

    def __init__(self, values: Mapping[tuple[str, str], str] | None = None, ttl_ms: int | None = None) -> None:
        self.content = dict(values or {})
        self.ttl_ms = ttl_ms
        self.asked: list[tuple[str, Set[str]]] = []
        self.failing: Exception | None = None
        self.params: Mapping[str, str] = {}
        self.closed = False

    def configure(self, params: Mapping[str, str]) -> None:
        self.params = params
        if "wrong" in params:
            raise ValueError("that is wrong")

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        self.asked.append((path, keys))
        if self.failing:
            raise self.failing
        return ConfigData({key: self.content[path, key] for key in keys if (path, key) in self.content}, self.ttl_ms)

    def close(self) -> None:
        self.closed = True
        raise RuntimeError("closing failed too")


VAULT = Vault({("", "short"): "S-1", ("db", "user"): "alice-123", ("db", "password"): "p4ss-word", ("a:b", "c"): "no"})
KNOWN = Secrets({"vault": VAULT, "v2": Vault({("", "k"): "second-one"})})


class TestThePattern:
    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("", []),
            ("plain", ["plain"]),
            ("${vault:key}", [Variable("vault", "", "key", "${vault:key}")]),
            ("${vault:path:key}", [Variable("vault", "path", "key", "${vault:path:key}")]),
            ("${vault:path:k:e:y}", [Variable("vault", "path", "k:e:y", "")]),
            ("${vault::key}", [Variable("vault", "", "key", "")]),
            ("${vault:}", [Variable("vault", "", "", "")]),
            ("${:}", [Variable("", "", "", "")]),
            ("a${v:k}b${v:l}", ["a", Variable("v", "", "k", ""), "b", Variable("v", "", "l", "")]),
            ("${none}", ["${none}"]),
            ("${none}${v:k}", ["${none}", Variable("v", "", "k", "")]),
            ("${never ends", ["${never ends"]),
            ("${v:k", ["${v:k"]),
            ("$${v:k}}", ["$", Variable("v", "", "k", ""), "}"]),
            ("${outer:${inner:k}}", [Variable("outer", "${inner", "k", ""), "}"]),
            ("$ {v:k}", ["$ {v:k}"]),
        ],
    )
    def test_text_and_variables(self, text: str, parts: list[str | Variable]) -> None:
        assert parse(text) == parts

    @given(st.text("${}:ab\n", max_size=30))
    @example("${${a:b}:c}")
    def test_it_is_apaches(self, text: str) -> None:
        variables = [part for part in parse(text) if isinstance(part, Variable)]
        expected = [(found[0], found[1], found[3] or "", found[4]) for found in APACHES.finditer(text)]
        assert [(each.text, each.provider, each.path, each.key) for each in variables] == expected
        assert "".join(part if isinstance(part, str) else part.text for part in parse(text)) == text

    @pytest.mark.timeout(10)
    def test_it_takes_one_pass_however_long_the_text(self) -> None:
        assert not has_variables("${:" * 500_000)


class TestResolve:
    @pytest.mark.parametrize(
        ("text", "resolved"),
        [
            ("plain", "plain"),
            ("${vault:db:password}", "p4ss-word"),
            ("${vault:short}", "S-1"),
            ("jdbc://${vault:db:user}:${vault:db:password}@db", "jdbc://alice-123:p4ss-word@db"),
            ("${vault:db:user}${v2:k}", "alice-123second-one"),
            ("${vault:db:nobody}", "${vault:db:nobody}"),
            ("${vault:db:nobody}-${vault:db:user}", "${vault:db:nobody}-alice-123"),
            ("${other:db:user}", "${other:db:user}"),
            ("${vault}", "${vault}"),
            ("${vault:other:password}", "${vault:other:password}"),
        ],
    )
    def test_values_in_their_places(self, text: str, resolved: str) -> None:
        assert KNOWN.resolve({"key": text, "plain": "x"}).config == {"key": resolved, "plain": "x"}

    @given(st.dictionaries(st.text(max_size=5), st.text("${}:a")))
    def test_without_variables_nothing_changes(self, config: dict[str, str]) -> None:
        plain = {key: text for key, text in config.items() if not APACHES.search(text)}
        assert KNOWN.resolve(plain) == Resolved(plain)

    @given(st.lists(st.sampled_from(["${vault:db:user}", "${vault:short}", "${v2:k}", "text", "$", "{", "}", ":"])))
    def test_several_in_one_value(self, parts: list[str]) -> None:
        values = {"${vault:db:user}": "alice-123", "${vault:short}": "S-1", "${v2:k}": "second-one"}
        text = " ".join(parts)
        assert KNOWN.resolve({"k": text}).config["k"] == " ".join(values.get(part, part) for part in parts)

    def test_a_value_is_not_looked_at_again(self) -> None:
        secrets = Secrets({"v": Vault({("", "a"): "${v:b}", ("", "b"): "deep"})})
        assert secrets.resolve({"k": "${v:a}"}).config == {"k": "${v:b}"}

    def test_each_provider_is_asked_once_for_each_path(self) -> None:
        vault = Vault({("p", "a"): "1"})
        config = {"x": "${v:p:a}${v:p:b}", "y": "${v:p:a}", "z": "${v:c}", "other": "${w:p:a}"}
        Secrets({"v": vault}).resolve(config)
        assert vault.asked == [("p", {"a", "b"}), ("", {"c"})]

    def test_what_a_provider_raises_is_the_message(self) -> None:
        vault = Vault()
        vault.failing = RuntimeError("the vault is shut")
        with pytest.raises(ProviderFailed, match=r"^the vault is shut$"):
            Secrets({"v": vault}).resolve({"k": "${v:a}"})

    @pytest.mark.parametrize(("ttls", "shortest"), [((None, None), None), ((9, None), 9), ((9, 5), 5), ((0, 7), 7)])
    def test_it_is_good_for_as_long_as_all_of_it(self, ttls: tuple[int | None, ...], shortest: int | None) -> None:
        first, second = (Vault({("", "k"): "v"}, ttl) for ttl in ttls)
        assert Secrets({"a": first, "b": second}).resolve({"x": "${a:k}${b:k}"}).ttl_ms == shortest


class TestHiding:
    def test_what_was_looked_up_is_hidden_from_then_on(self) -> None:
        Secrets({"v": Vault({("", "k"): "hush-hush-1"})}).resolve({"password": "x${v:k}"})
        assert masked("it is hush-hush-1!") == "it is [hidden]!"

    @pytest.mark.parametrize("value", ["abc", "true", "False"])
    def test_what_is_too_common_is_not(self, value: str) -> None:
        resolved = Secrets({"v": Vault({("", "k"): value})}).resolve({"password": "${v:k}"})
        assert resolved.secrets == {}
        assert masked(f"{value}!") == f"{value}!"

    def test_the_frameworks_keys_hold_no_secrets(self) -> None:
        secrets = Secrets({"v": Vault({("", "t"): "orders-topic-1", ("", "p"): "orders-secret-1"})})
        resolved = secrets.resolve({"topics": "${v:t}", "name": "${v:p}", "password": "${v:p}"})
        assert masked("orders-topic-1 orders-secret-1") == "orders-topic-1 [hidden]"
        assert resolved.secrets == {"${v:p}": "orders-secret-1"}


class TestTaskConfigs:
    """lifecycle.md 3.5: what is published has the variables, not what they stand for."""

    SECRETS = {"${v:p}": "s3cr3t-text", "${v:u}": "root"}

    @pytest.mark.parametrize(
        ("key", "value", "stored"),
        [
            ("password", "s3cr3t-text", "${v:p}"),
            ("password", "changed by the connector", "${v:p}"),
            ("url", "db://root:s3cr3t-text@host", "db://${v:u}:${v:p}@host"),
            ("plain", "as it is", "as it is"),
            ("copy", "s3cr3t-text", "${v:p}"),
            ("copy", "root", "${v:u}"),
            ("derived", "password=s3cr3t-text;", "password=${v:p};"),
            ("path", "/root/data", "/root/data"),
        ],
    )
    def test_variables_come_back(self, key: str, value: str, stored: str) -> None:
        connector = {"password": "${v:p}", "url": "db://${v:u}:${v:p}@host", "plain": "as it is"}
        assert put_back({key: value}, connector, self.SECRETS) == {key: stored}

    def test_what_comes_back_is_found_again(self) -> None:
        secrets = Secrets({"v": Vault({("", "p"): "s3cr3t-text"})})
        stored = put_back({"derived": "a s3cr3t-text b"}, {}, secrets.resolve({"x": "${v:p}"}).secrets)
        assert secrets.resolve(stored).config == {"derived": "a s3cr3t-text b"}


class TestTheWorkerFile:
    PLUGINS = Plugins([Vault, FileConfigProvider])

    def test_providers_are_built_with_their_params(self) -> None:
        worker = {
            "config.providers": " a, b,",
            "config.providers.a.class": "Vault",
            "config.providers.a.param.some.key": "x",
            "config.providers.b.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        }
        built = Secrets.of(worker, self.PLUGINS)._providers
        assert {alias: type(provider) for alias, provider in built.items()} == {"a": Vault, "b": FileConfigProvider}
        assert isinstance(built["a"], Vault)
        assert built["a"].params == {"some.key": "x"}

    @pytest.mark.parametrize(
        ("worker", "message"),
        [
            ({}, 'Missing required configuration "config.providers.a.class" which has no default value.'),
            (
                {"config.providers.a.class": "Nobody"},
                "Invalid value Nobody for configuration config.providers.a.class: Class Nobody could not be found.",
            ),
            ({"config.providers.a.class": "Vault", "config.providers.a.param.wrong": "x"}, "that is wrong"),
            ({"config.providers.a.class": "File", "config.providers.a.param.allowed.paths": "x"}, "is not absolute"),
        ],
    )
    def test_what_cannot_be_built(self, worker: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError, match=re.escape(message)):
            Secrets.of({"config.providers": "a", **worker}, self.PLUGINS)

    def test_it_is_resolved_with_its_own_providers(self, tmp_path: str) -> None:
        file = f"{tmp_path}/worker.properties"
        with open(file, "w") as opened:
            opened.write("host=kafka-host-1\npassword=kafka-pass-1\n")
        raw = {
            "config.providers": "f",
            "config.providers.f.class": "FileConfigProvider",
            "bootstrap.servers": f"${{f:{file}:host}}:9092",
            "producer.sasl.password": f"${{f:{file}:password}}",
        }
        resolved, secrets = resolve_worker(raw, self.PLUGINS, {"bootstrap.servers"})
        assert resolved == {**raw, "bootstrap.servers": "kafka-host-1:9092", "producer.sasl.password": "kafka-pass-1"}
        assert masked("kafka-host-1 kafka-pass-1") == "kafka-host-1 [hidden]"
        assert secrets.resolve({"x": f"${{f:{file}:host}}"}).config == {"x": "kafka-host-1"}

    def test_what_cannot_be_looked_up_stops_it(self) -> None:
        raw = {"config.providers": "f", "config.providers.f.class": "File", "x": "${f:/no/such:k}"}
        with pytest.raises(ConfigError, match=r"^Could not read properties from file /no/such$"):
            resolve_worker(raw, self.PLUGINS, ())

    def test_closing_goes_on_when_one_fails(self) -> None:
        first, second = Vault(), Vault()
        Secrets({"a": first, "b": second}).close()
        assert (first.closed, second.closed) == (True, True)


class TestWithoutBlocking:
    def test_values_come_from_another_thread(self) -> None:
        seen: list[str] = []

        class Where(Vault):
            def get(self, path: str, keys: Set[str]) -> ConfigData:
                seen.append(threading.current_thread().name)
                return ConfigData({"k": "v"})

        found = asyncio.run(Secrets({"v": Where()}).look_up({"x": "${v:k}"}))
        assert found.config == {"x": "v"}
        assert seen == ["config-providers"]

    def test_a_provider_that_hangs_is_given_up_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_PATIENCE_S", 0.05)
        released = threading.Event()

        class Hanging(Vault):
            def get(self, path: str, keys: Set[str]) -> ConfigData:
                released.wait(10)
                return ConfigData({})

        with pytest.raises(ProviderFailed, match="did not answer within"):
            asyncio.run(Secrets({"v": Hanging()}).look_up({"x": "${v:k}"}))
        released.set()
