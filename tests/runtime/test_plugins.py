from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from textwrap import dedent

import pytest

from headgate import __version__
from headgate.api import ConfigDef, Plugin, SinkConnector, SourceConnector, SourceTask, Transform
from headgate.model import ConnectorType, PluginRef
from headgate.pipeline.converters.json import JsonConverter
from headgate.runtime.errors import PluginNotFound
from headgate.runtime.plugins import PluginKind, Plugins

SOURCE = """
    from headgate.api import SourceConnector, SourceTask

    class {name}Task(SourceTask):
        def poll(self):
            return None

    class {name}(SourceConnector):
        task_class = {name}Task

        def task_configs(self, max_tasks):
            return []
"""


@pytest.fixture(scope="module", autouse=True)
def _built_ins_are_imported() -> None:
    """Once: tests forget the modules that they were the first to import."""
    Plugins.discover()


@pytest.fixture(autouse=True)
def _clean_modules() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))


def discover(*folders: Path) -> Plugins:
    return Plugins.discover([str(folder) for folder in folders])


def _both(name: str) -> list[str]:
    return [f"{name}Key", f"{name}Value"] if name.endswith("$") else [name]


class TestInstalled:
    def test_the_built_ins_are_found_by_entry_point(self) -> None:
        found = Plugins.discover()
        assert found.broken == ()
        names = {(each.kind, each.name.rpartition(".")[2]) for each in found.all}
        assert {
            (PluginKind.SOURCE, "FileStreamSourceConnector"),
            (PluginKind.SINK, "FileStreamSinkConnector"),
            (PluginKind.CONVERTER, "JsonConverter"),
            (PluginKind.HEADER_CONVERTER, "JsonConverter"),
            (PluginKind.CONVERTER, "StringConverter"),
            (PluginKind.CONVERTER, "ByteArrayConverter"),
            (PluginKind.HEADER_CONVERTER, "SimpleHeaderConverter"),
        } <= names
        assert {each.version for each in found.all} == {__version__}

    def test_they_are_listed_by_kind_then_by_name(self) -> None:
        listed = [(list(PluginKind).index(each.kind), each.name) for each in Plugins.discover().all]
        assert listed == sorted(listed)
        assert [kind.value for kind in PluginKind] == [
            "sink", "source", "transformation", "predicate", "converter", "header_converter", "config_provider",
            "override_policy",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("apache", "kind"),
        [
            ("org.apache.kafka.connect.file.FileStreamSourceConnector", PluginKind.SOURCE),
            ("org.apache.kafka.connect.file.FileStreamSinkConnector", PluginKind.SINK),
            ("org.apache.kafka.connect.json.JsonConverter", PluginKind.CONVERTER),
            ("org.apache.kafka.connect.storage.StringConverter", PluginKind.HEADER_CONVERTER),
            ("org.apache.kafka.connect.converters.ByteArrayConverter", PluginKind.CONVERTER),
            ("org.apache.kafka.connect.storage.SimpleHeaderConverter", PluginKind.HEADER_CONVERTER),
        ],
    )
    def test_apaches_class_names_mean_ours(self, apache: str, kind: PluginKind) -> None:
        found = Plugins.discover()
        ours = found.find(apache, kind)
        assert (ours.name, ours.ref.module.partition(".")[0]) == (apache, "headgate")
        assert found.find(str(ours.ref), kind) is ours
        assert found.find(apache.rpartition(".")[2], kind) is ours

    @pytest.mark.parametrize(
        ("kind", "package", "names"),
        [
            (
                PluginKind.TRANSFORMATION,
                "org.apache.kafka.connect.transforms",
                ["Cast$", "DropHeaders", "ExtractField$", "Filter", "Flatten$", "HeaderFrom$", "HoistField$",
                 "InsertField$", "InsertHeader", "MaskField$", "RegexRouter", "ReplaceField$", "SetSchemaMetadata$",
                 "TimestampConverter$", "TimestampRouter", "ValueToKey"],
            ),
            (
                PluginKind.PREDICATE,
                "org.apache.kafka.connect.transforms.predicates",
                ["HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"],
            ),
            (
                PluginKind.CONVERTER,
                "org.apache.kafka.connect.converters",
                ["BooleanConverter", "ByteArrayConverter", "DoubleConverter", "FloatConverter", "IntegerConverter",
                 "LongConverter", "ShortConverter"],
            ),
        ],
    )  # fmt: skip
    def test_all_that_apaches_workers_list_are_listed_by_the_same_names(
        self, kind: PluginKind, package: str, names: list[str]
    ) -> None:
        theirs = {f"{package}.{name}" for each in names for name in _both(each)}
        assert theirs <= {each.name for each in Plugins.discover().all if each.kind is kind}

    def test_who_derives_from_a_plugin_goes_by_another_name(self) -> None:
        class Mine(JsonConverter):
            pass

        found = Plugins([JsonConverter, Mine])
        mine = found.find("Mine", PluginKind.CONVERTER)
        assert mine.name == f"{__name__}.{Mine.__qualname__}"
        assert found.find("org.apache.kafka.connect.json.JsonConverter", PluginKind.CONVERTER).cls is JsonConverter

    def entry_points(self, monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
        points = [metadata.EntryPoint(name, value, "headgate.plugins") for name, value in targets.items()]
        monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == "headgate.plugins" else [])

    def test_an_entry_point_may_name_a_class_or_a_module(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        write(tmp_path / "acme_lib.py", SOURCE.format(name="Acme"))
        sys.path.append(str(tmp_path))
        self.entry_points(monkeypatch, one="acme_lib:Acme", all="acme_lib")
        found = Plugins.discover()
        assert [each.name for each in found.all] == ["acme_lib.Acme"]
        assert found.folders == ()

    def test_one_that_cannot_be_loaded_stops_nothing(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(tmp_path / "acme_lib.py", SOURCE.format(name="Acme") + "\n    number = 5\n    def function(): pass\n")
        write(tmp_path / "acme_exit.py", "raise SystemExit(1)")
        sys.path.append(str(tmp_path))
        self.entry_points(
            monkeypatch,
            gone="acme_lost:Acme", number="acme_lib:number", function="acme_lib:function", leaving="acme_exit",
            other="pathlib:Path", base="headgate.api:SourceConnector", task="acme_lib:AcmeTask", good="acme_lib:Acme",
        )  # fmt: skip
        with caplog.at_level(logging.ERROR):
            found = Plugins.discover()
        assert [each.name for each in found.all] == ["acme_lib.Acme"]
        reasons = {each.where.split()[2]: each.reason for each in found.broken}
        assert list(reasons) == ["gone", "number", "function", "leaving", "other", "base", "task"]
        assert reasons["gone"] == "ModuleNotFoundError: No module named 'acme_lost'"
        assert reasons["number"] == "TypeError: 5 is not a plugin that could be built"
        assert len(caplog.records) == 7


class TestPluginPath:
    def test_one_file_is_enough(self, tmp_path: Path) -> None:
        write(tmp_path / "acme_tool.py", SOURCE.format(name="AcmeSourceConnector"))
        found = discover(tmp_path)
        assert (found.broken, found.folders) == ((), (str(tmp_path.resolve()),))
        plugin = found.find_connector("AcmeSource")
        assert (plugin.name, plugin.kind) == ("acme_tool.AcmeSourceConnector", PluginKind.SOURCE)
        assert plugin.ref == PluginRef("acme_tool", "AcmeSourceConnector")
        assert str(plugin.ref) == "acme_tool.AcmeSourceConnector"
        assert plugin.connector_type is ConnectorType.SOURCE
        assert plugin.connector is plugin.cls

    def test_a_package_gives_what_it_offers(self, tmp_path: Path) -> None:
        write(tmp_path / "acme_pack" / "inner.py", SOURCE.format(name="AcmeSource"))
        write(tmp_path / "acme_pack" / "hidden.py", SOURCE.format(name="Hidden"))
        write(tmp_path / "acme_pack" / "__init__.py", "from acme_pack.inner import AcmeSource")
        found = discover(tmp_path)
        assert found.find_connector("AcmeSource").name == "acme_pack.inner.AcmeSource"
        assert found.find_any("Hidden") is None

    def test_a_folder_of_files_is_one_more_folder(self, tmp_path: Path) -> None:
        write(tmp_path / "vendor-1.0" / "acme_nested.py", SOURCE.format(name="Nested"))
        (tmp_path / "docs").mkdir()
        found = discover(tmp_path)
        assert found.find_connector("Nested").name == "acme_nested.Nested"
        assert found.folders == (str(tmp_path.resolve()), str((tmp_path / "vendor-1.0").resolve()))

    def test_what_is_hidden_or_no_python_is_left_alone(self, tmp_path: Path) -> None:
        for name in (".acme_dot.py", "_acme_private.py", "acme.txt"):
            write(tmp_path / name, "raise RuntimeError")
        assert discover(tmp_path).broken == ()

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("import acme_missing", "ModuleNotFoundError: No module named 'acme_missing'"),
            ("raise SystemExit(2)", "SystemExit: 2"),
            ("def (:", "SyntaxError: "),
        ],
    )
    def test_a_broken_file_is_reported_and_the_others_are_found(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, reason: str
    ) -> None:
        write(tmp_path / "acme_broken.py", text)
        write(tmp_path / "acme_good.py", SOURCE.format(name="Good"))
        with caplog.at_level(logging.ERROR):
            found = discover(tmp_path)
        assert found.find_connector("Good")
        (broken,) = found.broken
        assert broken.where == str(tmp_path / "acme_broken.py")
        assert broken.reason.startswith(reason)
        assert f"Plugin {broken.where} could not be loaded and is left out: {broken.reason}" in caplog.text
        with pytest.raises(PluginNotFound, match=r"; could not be loaded: .*acme_broken\.py"):
            found.find_connector("Lost")

    def test_a_folder_that_is_not_there_is_reported(self, tmp_path: Path) -> None:
        (broken,) = discover(tmp_path / "nowhere").broken
        assert broken.where == f"folder {tmp_path / 'nowhere'} of plugin.path"
        assert broken.reason == "No such file or directory"

    @pytest.mark.parametrize(
        ("name", "owner"),
        [
            ("json", "json/__init__.py"),
            ("colorsys", "colorsys.py"),
            ("sys", "a module of Python itself"),
        ],
    )
    def test_a_file_may_not_take_the_name_of_somebody_elses_module(self, tmp_path: Path, name: str, owner: str) -> None:
        write(tmp_path / f"{name}.py", SOURCE.format(name="Thief"))
        before = sys.modules.get(name)
        found = discover(tmp_path)
        (broken,) = found.broken
        assert broken.reason.startswith(f"ImportError: the module name {name} is already taken by ")
        assert broken.reason.endswith(f"{owner}: rename the file")
        assert found.find_any("Thief") is None
        assert before is None or sys.modules[name] is before
        assert str(tmp_path.resolve()) not in sys.modules[name].__spec__.origin  # type: ignore[union-attr, operator]

    def test_two_files_of_one_name_are_one_and_a_report(self, tmp_path: Path) -> None:
        write(tmp_path / "one" / "acme_same.py", SOURCE.format(name="First"))
        write(tmp_path / "two" / "acme_same.py", SOURCE.format(name="Second"))
        found = discover(tmp_path / "one", tmp_path / "two")
        assert found.find_connector("First")
        assert [each.where for each in found.broken] == [str(tmp_path / "two" / "acme_same.py")]

    def test_a_home_folder_can_be_written_short(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        write(tmp_path / "plugins" / "acme_home.py", SOURCE.format(name="Home"))
        assert Plugins.discover(["~/plugins"]).find_connector("Home")

    def test_what_a_file_imports_or_leaves_abstract_is_none_of_its_plugins(self, tmp_path: Path) -> None:
        write(
            tmp_path / "acme_mixed.py",
            """
            from headgate.connectors.file_source import FileStreamSourceConnector
            from headgate.api import SourceConnector

            class Unfinished(SourceConnector):
                pass
            """,
        )
        found = discover(tmp_path)
        assert found.broken == ()
        assert not [each for each in found.all if each.name.startswith("acme_mixed")]
        assert len([each for each in found.all if each.name.endswith("FileStreamSourceConnector")]) == 1


def make(
    module: str, name: str, base: type[Plugin] = SourceConnector, aliases: tuple[str, ...] = (), **more: object
) -> type[Plugin]:
    members = {
        "__module__": module,
        "__qualname__": name,
        "aliases": aliases,
        "task_configs": lambda self, max_tasks: [],
        "task_class": SourceTask,
        "apply": lambda self, record: record,
        "config": ConfigDef(),
    }
    return type(name, (base,), {**members, **more})


class TestNames:
    @pytest.mark.parametrize("name", ["acme.EchoConnector", "EchoConnector", "Echo", "org.acme.LoudConnector", "Loud"])
    def test_full_names_aliases_and_short_names(self, name: str) -> None:
        echo = make("acme", "EchoConnector", aliases=("org.acme.LoudConnector",))
        assert Plugins([echo]).find_connector(name).cls is echo

    @pytest.mark.parametrize("name", ["", "echo", "acme", "EchoConn", "other.EchoConnector"])
    def test_other_names(self, name: str) -> None:
        with pytest.raises(PluginNotFound):
            Plugins([make("acme", "EchoConnector")]).find_connector(name)

    def test_an_ambiguous_short_name_means_nobody(self) -> None:
        one, two, three = (make(module, "EchoConnector") for module in ("a", "b", "c"))
        found = Plugins([one, two, three])
        for name in ("EchoConnector", "Echo"):
            with pytest.raises(PluginNotFound):
                found.find_connector(name)
            assert found.find_any(name) is None
        assert found.find_connector("b.EchoConnector").cls is two

    def test_a_source_and_a_sink_of_one_short_name(self) -> None:
        source, sink = make("a", "Echo"), make("b", "Echo", SinkConnector)
        found = Plugins([source, sink])
        assert found.find("Echo", PluginKind.SOURCE).cls is source
        assert found.find("Echo", PluginKind.SINK).cls is sink

    def test_one_class_given_twice_is_one(self) -> None:
        echo = make("a", "Echo")
        assert len(Plugins([echo, echo]).all) == 1
        assert Plugins([echo, echo]).find_connector("Echo").cls is echo

    def test_the_suffix_is_that_of_the_kind(self) -> None:
        mask = make("a", "MaskTransformation", Transform)
        assert Plugins([mask]).find("Mask", PluginKind.TRANSFORMATION).cls is mask
        assert Plugins([make("a", "Connector")]).find_any("") is None

    def test_what_is_asked_for_is_of_its_kind(self) -> None:
        found = Plugins([make("a", "Echo"), make("a", "Mask", Transform)])
        text = (
            "^Failed to find any class that implements Transformation and which name matches Echo, available"
            " transformations are: a.Mask$"
        )
        with pytest.raises(PluginNotFound, match=text):
            found.find("Echo", PluginKind.TRANSFORMATION)

    def test_blanks_around_a_name_do_no_harm(self) -> None:
        assert Plugins([make("a", "Echo")]).find_connector(" Echo ")

    @pytest.mark.parametrize(
        ("name", "kind"),
        [("Echo", ConnectorType.SOURCE), ("Nobody", ConnectorType.UNKNOWN), (None, ConnectorType.UNKNOWN)],
    )
    def test_the_type_of_a_class_name(self, name: str | None, kind: ConnectorType) -> None:
        assert Plugins([make("a", "Echo")]).connector_type(name) is kind


def failing_version() -> Callable[[type], str]:
    def version(cls: type) -> str:
        raise RuntimeError("no version file")

    return version


def test_a_plugin_that_cannot_tell_its_version_has_none(caplog: pytest.LogCaptureFixture) -> None:
    echo = make("a", "Echo", version=classmethod(failing_version()))
    assert Plugins([echo]).find_connector("Echo").version is None
    assert "Plugin a.Echo does not tell its version" in caplog.text
