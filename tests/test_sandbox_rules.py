"""What connectors may reach: files with their links and dots, hosts, tables, modules and classes, in every mode."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

import headgate
from headgate.api import ConfigError, Plugin, Reach, ReachKind
from headgate.api.reach import client_reaches
from headgate.connectors.file_sink import FileStreamSinkConnector
from headgate.sandbox import Sandbox, warnings

MODES = ("compatible", "strict", "open")
PACKAGE = Path(headgate.__file__).parent

every_mode = pytest.mark.parametrize("mode", MODES)


def may(sandbox: Sandbox, kind: ReachKind, what: str | Path) -> bool:
    return sandbox.problem(Reach(kind, str(what), "key")) is None


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


def made(tmp_path: Path, mode: str, plugins: Path, **more: str) -> Sandbox:
    (tmp_path / "data").mkdir(exist_ok=True)
    raw = {
        "headgate.sandbox": mode,
        "headgate.file.roots": str(tmp_path),
        "plugin.path": str(plugins),
        "offset.storage.file.filename": str(tmp_path / "offsets.json"),
        "ssl.keystore.location": str(tmp_path / "key.pem"),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return Sandbox.of(raw, [str(plugins)], [tmp_path / "cache", tmp_path / "worker.properties"])


# --- what nobody writes into, in any mode -----------------------------------------------------------------------------


@every_mode
@pytest.mark.parametrize(
    "path",
    [
        "plugins/evil.txt",
        "plugins",
        "plugins/deep/er",
        "data/../plugins/evil.txt",
        "data/link/evil.txt",
        "data/file-link",
        "data/module.py",
        "data/module.so",
        "data/site.pth",
        "cache/jars/spark.zip",
        "worker.properties",
        "offsets.json",
        "offsets.json.tmp",
        "key.pem",
        "scratch/headgate-1-abc/shelves/x",
        "scratch/spark-1/y",
        ".",
    ],
)
def test_nothing_lands_in_folders_of_plugins_or_of_the_worker(
    tmp_path: Path, plugins: Path, mode: str, path: str
) -> None:
    sandbox = made(tmp_path, mode, plugins, spark_local_dir=str(tmp_path / "scratch"))
    (tmp_path / "data" / "link").symlink_to(plugins)
    (plugins / "there").touch()
    (tmp_path / "data" / "file-link").symlink_to(plugins / "there")
    assert not may(sandbox, ReachKind.WRITE, tmp_path / path)


@every_mode
@pytest.mark.parametrize("path", [PACKAGE / "x.txt", PACKAGE / "spark" / "log4j2.properties", "/proc/sys/kernel/x"])
def test_nor_in_the_package_nor_in_the_kernel(tmp_path: Path, plugins: Path, mode: str, path: Path | str) -> None:
    assert not may(made(tmp_path, mode, plugins), ReachKind.WRITE, path)
    assert not may(Sandbox(), ReachKind.WRITE, path)


@every_mode
@pytest.mark.parametrize(
    "path",
    [
        "data/out.txt",
        "out.txt",
        "data/plugins",
        "offsets.jsonl",
        "plugins-2/x",
        "scratch/x",
        "scratch/mine-1/x",
        "scratch/headgate-out/x",
        "worker.properties.out",
    ],
)
def test_elsewhere_is_written(tmp_path: Path, plugins: Path, mode: str, path: str) -> None:
    sandbox = made(tmp_path, mode, plugins, spark_local_dir=str(tmp_path / "scratch"))
    assert may(sandbox, ReachKind.WRITE, tmp_path / path)


def test_temporary_files_of_others_are_written(plugins: Path, tmp_path: Path) -> None:
    sandbox = made(tmp_path, "compatible", plugins)
    assert may(sandbox, ReachKind.WRITE, Path(tempfile.gettempdir(), "test.sink.txt"))
    assert not may(sandbox, ReachKind.WRITE, Path(tempfile.gettempdir(), "headgate-1-x", "y"))


def test_a_link_that_changes_after_the_check_is_seen_by_the_next(tmp_path: Path, plugins: Path) -> None:
    sandbox = made(tmp_path, "compatible", plugins)
    link = tmp_path / "data" / "out"
    link.symlink_to(tmp_path / "elsewhere.txt")
    assert may(sandbox, ReachKind.WRITE, link)
    link.unlink()
    link.symlink_to(plugins / "evil.txt")
    assert not may(sandbox, ReachKind.WRITE, link)


def test_a_plugin_folder_that_is_a_link_itself_is_known_by_both_names(tmp_path: Path, plugins: Path) -> None:
    (tmp_path / "linked").symlink_to(plugins)
    sandbox = Sandbox.of({"plugin.path": str(tmp_path / "linked")})
    assert not may(sandbox, ReachKind.WRITE, plugins / "x.txt")
    assert not may(sandbox, ReachKind.WRITE, tmp_path / "linked" / "x.txt")


def test_relative_paths_are_those_of_the_process(
    tmp_path: Path, plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugins)
    sandbox = made(tmp_path, "compatible", plugins)
    assert not may(sandbox, ReachKind.WRITE, "out.txt")
    assert may(sandbox, ReachKind.WRITE, "../out.txt")
    assert not may(sandbox, ReachKind.WRITE, "../x\0/../plugins/out.txt"), "no file has such a name"


# --- roots ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ReachKind.READ, ReachKind.WRITE])
@pytest.mark.parametrize(
    ("path", "strict"),
    [
        ("root/in.txt", True),
        ("root", True),
        ("root/../root/in.txt", True),
        ("root/../other/in.txt", False),
        ("root/link", False),
        ("rooted/in.txt", False),
        ("other/link", True),
        ("other/in.txt", False),
    ],
)
def test_strict_confines_files_to_the_roots(tmp_path: Path, kind: ReachKind, path: str, strict: bool) -> None:
    for folder in ("root", "other", "rooted"):
        (tmp_path / folder).mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "other" / "in.txt")
    (tmp_path / "other" / "link").symlink_to(tmp_path / "root" / "in.txt")
    roots = {"headgate.file.roots": str(tmp_path / "root")}
    assert may(Sandbox.of({"headgate.sandbox": "strict", **roots}), kind, tmp_path / path) is strict
    assert may(Sandbox.of({"headgate.sandbox": "compatible", **roots}), kind, tmp_path / path)
    assert may(Sandbox.of({"headgate.sandbox": "open", **roots}), kind, tmp_path / path)


def test_strict_without_roots_reaches_no_file(tmp_path: Path) -> None:
    assert not may(Sandbox.of({"headgate.sandbox": "strict"}), ReachKind.READ, tmp_path / "x")


def test_a_refusal_says_where_a_link_leads_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    sandbox = Sandbox.of({"headgate.sandbox": "strict", "headgate.file.roots": str(tmp_path)})
    with pytest.raises(ConfigError) as told:
        sandbox.require(Reach(ReachKind.READ, str(tmp_path / "link"), "file"))
    assert str(told.value) == (
        f"Invalid value {tmp_path}/link for configuration file: {tmp_path}/link, which is /etc/passwd, is in none of"
        " the folders that the worker file names: headgate.file.roots"
    )


# --- hosts, tables, classes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "strict"),
    [
        ("kafka-1:9092", True),
        ("kafka-1:1", True),
        ("PLAINTEXT://kafka-1:9092", True),
        ("registry.example.com", True),
        ("http://user:pass@Registry.example.com:8081/path", True),
        ("ports.example.com:9092", True),
        ("ports.example.com:9093", False),
        ("http://registry.example.com.evil.com", False),
        ("http://registry.example.com@evil.com", False),
        ("eu.brokers.example.com:9092", True),
        ("brokers.example.com:9092", False),
        ("169.254.169.254", False),
        ("[::1", False),
        ("http://[fe80::1]:80", False),
    ],
)
def test_strict_confines_hosts_to_those_that_are_named_and_the_workers_own(host: str, strict: bool) -> None:
    raw = {
        "headgate.hosts": "registry.example.com, ports.example.com:9092, *.brokers.example.com",
        "bootstrap.servers": "kafka-1:9092",
    }
    assert may(Sandbox.of({**raw, "headgate.sandbox": "strict"}), ReachKind.HOST, host) is strict
    assert may(Sandbox.of(raw), ReachKind.HOST, host)


@pytest.mark.parametrize(
    ("table", "allowed"),
    [("db.customers", True), ("DB.Customers", True), ("parquet./data/c", True), ("db.other", False)],
)
def test_tables_must_be_named_unless_all_is_open(table: str, allowed: bool) -> None:
    raw = {"headgate.tables": "db.customers, parquet.`/data/c`"}
    for mode in ("compatible", "strict"):
        assert may(Sandbox.of({**raw, "headgate.sandbox": mode}), ReachKind.TABLE, table) is allowed
    assert may(Sandbox.of({"headgate.sandbox": "open"}), ReachKind.TABLE, table)


class Foreign(Plugin):
    aliases = ("com.acme.Foreign",)


class Derived(FileStreamSinkConnector):
    """Its parent's names are not its own."""


def test_strict_takes_only_classes_that_are_ours_or_named() -> None:
    named = f"com.acme.Foreign,{FileStreamSinkConnector.aliases[0]}"
    strict = Sandbox.of({"headgate.sandbox": "strict", "headgate.classes": named})
    assert strict.class_problem(Foreign) is None
    assert strict.class_problem(FileStreamSinkConnector) is None
    assert "headgate.classes" in str(strict.class_problem(Derived))
    assert Sandbox().class_problem(Derived) is None


def test_what_the_worker_file_uses_itself_may_be_used() -> None:
    strict = Sandbox.of({"headgate.sandbox": "strict", "value.converter": "com.acme.Foreign"})
    assert strict.class_problem(Foreign) is None


# --- code -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def importable(plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (plugins / "acme_transforms.py").write_text("raise AssertionError('nobody may import it to look at it')")
    (plugins / "acme_space").mkdir()
    (plugins / "acme_space" / "part.py").touch()
    (plugins / "json.py").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "acme_elsewhere.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(plugins), str(tmp_path / "elsewhere")])
    return plugins


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("acme_transforms", True),
        ("acme_transforms.deeper", True),
        ("acme_space.part", True),
        ("acme_elsewhere", False),
        ("os", False),
        ("posix", False),
        ("json", False),
        ("__main__", False),
        ("headgate.cli.main", False),
        ("no_such_module", False),
        ("", False),
    ],
)
def test_functions_come_from_folders_of_plugins(importable: Path, module: str, allowed: bool) -> None:
    assert may(Sandbox(plugin_folders=(str(importable),)), ReachKind.CODE, module) is allowed
    assert may(Sandbox(mode="strict", plugin_folders=(str(importable),)), ReachKind.CODE, module) is allowed
    assert may(Sandbox(mode="open"), ReachKind.CODE, module)


def test_modules_that_are_named_are_all_there_is(importable: Path) -> None:
    sandbox = Sandbox.of({"headgate.python.modules": "acme_elsewhere, acme.enrich"}, [str(importable)])
    assert may(sandbox, ReachKind.CODE, "acme_elsewhere")
    assert may(sandbox, ReachKind.CODE, "acme.enrich.deeper")
    assert not may(sandbox, ReachKind.CODE, "acme.enriched")
    assert not may(sandbox, ReachKind.CODE, "acme_transforms")
    assert not may(Sandbox.of({"headgate.python.modules": ""}, [str(importable)]), ReachKind.CODE, "acme_transforms")


# --- the worker file, and what clients reach --------------------------------------------------------------------------


def test_a_mode_that_there_is_not_and_a_root_that_is_nowhere_are_errors() -> None:
    with pytest.raises(ConfigError, match=r"headgate\.sandbox: String must be one of: compatible, strict, open"):
        Sandbox.of({"headgate.sandbox": "stricter"})
    with pytest.raises(ConfigError, match=r"headgate\.file\.roots: It must be an absolute path"):
        Sandbox.of({"headgate.file.roots": "/data,data"})


def test_whoever_runs_the_worker_is_told_what_is_open_and_what_has_no_effect() -> None:
    assert list(warnings({"headgate.sandbox": "strict", "headgate.hosts": "x"})) == []
    assert list(warnings({"headgate.hosts": "x"})) == ["headgate.hosts has no effect without headgate.sandbox=strict"]
    (said,) = warnings({"headgate.sandbox": "open"})
    assert said.startswith("headgate.sandbox=open: ")


def test_clients_reach_their_brokers_their_files_and_whom_they_ask_for_tokens() -> None:
    jaas = 'com.sun.security.auth.module.Krb5LoginModule required keyTab="/etc/key.tab" principal="x";'
    config = {
        "source.bootstrap.servers": "a:1, b:2",
        "source.ssl.keystore.location": "/k.p12",
        "source.sasl.jaas.config": jaas,
        "source.sasl.oauthbearer.token.endpoint.url": "https://login/",
        "source.acks": "all",
        "bootstrap.servers": "not this one",
    }
    assert list(client_reaches(config, "source.")) == [
        Reach(ReachKind.HOST, "a:1", "source.bootstrap.servers"),
        Reach(ReachKind.HOST, "b:2", "source.bootstrap.servers"),
        Reach(ReachKind.READ, "/k.p12", "source.ssl.keystore.location"),
        Reach(ReachKind.READ, "/etc/key.tab", "source.sasl.jaas.config"),
        Reach(ReachKind.HOST, "https://login/", "source.sasl.oauthbearer.token.endpoint.url"),
    ]


def test_standard_output_is_no_file_of_the_workers() -> None:
    assert may(Sandbox.of({}), ReachKind.WRITE, os.devnull)
