"""The built-in config providers: where they look, what they find, what they say when they cannot."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headgate.api import ConfigData, ConfigError, ConfigProvider
from headgate.providers.directory import DirectoryConfigProvider
from headgate.providers.env_var import EnvVarConfigProvider
from headgate.providers.file import FileConfigProvider
from headgate.runtime.plugins import PluginKind, Plugins

APACHE = "org.apache.kafka.common.config.provider"


def made(provider: ConfigProvider, **params: str) -> ConfigProvider:
    provider.configure({key.replace("_", "."): value for key, value in params.items()})
    return provider


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("FileConfigProvider", FileConfigProvider),
        ("DirectoryConfigProvider", DirectoryConfigProvider),
        ("EnvVarConfigProvider", EnvVarConfigProvider),
    ],
)
def test_they_are_installed_under_apaches_names(name: str, cls: type[ConfigProvider]) -> None:
    plugins = Plugins.discover()
    assert plugins.find(f"{APACHE}.{name}", PluginKind.CONFIG_PROVIDER).cls is cls
    assert plugins.find(name, PluginKind.CONFIG_PROVIDER).cls is cls
    assert cls not in {each.cls for each in plugins.all}, "Apache's list of plugins has no config providers"
    assert plugins.find_any(name) is None


class TestFile:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "secrets.properties"
        file.write_text("user=alice\npassword = p\\u00e4ss=w:ord \nempty=\n# no=comment\nlong=a\\\n  b\n", "utf-8")
        return file

    @pytest.mark.parametrize(
        ("keys", "values"),
        [
            ({"user"}, {"user": "alice"}),
            ({"password", "user"}, {"user": "alice", "password": "päss=w:ord "}),
            ({"empty", "long"}, {"empty": "", "long": "ab"}),
            ({"nobody"}, {}),
            ({"# no", "no"}, {}),
            (set(), {}),
        ],
    )
    def test_properties(self, file: Path, keys: set[str], values: dict[str, str]) -> None:
        assert made(FileConfigProvider()).get(str(file), keys) == ConfigData(values)

    def test_no_path_is_nowhere(self) -> None:
        assert made(FileConfigProvider()).get("", {"user"}) == ConfigData({})

    @pytest.mark.parametrize("what", ["missing", "folder", "not UTF-8"])
    def test_what_cannot_be_read(self, tmp_path: Path, what: str) -> None:
        path = tmp_path / "x"
        if what == "folder":
            path.mkdir()
        elif what == "not UTF-8":
            path.write_bytes(b"a=\xff\n")
        with pytest.raises(ConfigError, match=f"^Could not read properties from file {path}$"):
            made(FileConfigProvider()).get(str(path), {"a"})

    def test_a_change_of_the_file_is_seen(self, file: Path) -> None:
        provider = made(FileConfigProvider())
        provider.get(str(file), {"user"})
        file.write_text("user=bob\n")
        assert provider.get(str(file), {"user"}).values == {"user": "bob"}


class TestDirectory:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "password").write_bytes("gehéim\r\n".encode())
        (tmp_path / "inner").mkdir()
        (tmp_path / "linked").symlink_to(tmp_path / "password")
        (tmp_path.parent / "outside").write_text("no")
        return tmp_path

    @pytest.mark.parametrize(
        ("keys", "values"),
        [
            ({"password"}, {"password": "gehéim\r\n"}),
            ({"linked"}, {"linked": "gehéim\r\n"}),
            ({"inner"}, {}),
            ({"nobody"}, {}),
            ({"../outside"}, {}),
            ({"inner/../password"}, {}),
        ],
    )
    def test_the_content_of_files_unmodified(self, folder: Path, keys: set[str], values: dict[str, str]) -> None:
        assert made(DirectoryConfigProvider()).get(str(folder), keys) == ConfigData(values)

    @pytest.mark.parametrize("path", ["password", "missing"])
    def test_what_is_no_directory_is_empty(self, folder: Path, path: str, caplog: pytest.LogCaptureFixture) -> None:
        assert made(DirectoryConfigProvider()).get(str(folder / path), {"password"}) == ConfigData({})
        assert f"The path {folder / path} is not a directory" in caplog.text

    def test_what_cannot_be_listed(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: Path) -> None:
            raise PermissionError("no")

        monkeypatch.setattr(Path, "iterdir", refuse)
        with pytest.raises(ConfigError, match=f"^Could not list directory {folder}$"):
            made(DirectoryConfigProvider()).get(str(folder), {"password"})

    def test_what_is_no_text(self, folder: Path) -> None:
        (folder / "bad").write_bytes(b"\xff")
        with pytest.raises(ConfigError, match=f"^Could not read file {folder}/bad for property bad$"):
            made(DirectoryConfigProvider()).get(str(folder), {"bad"})


class TestAllowedPaths:
    """Of files and directories alike."""

    @pytest.mark.parametrize(
        ("path", "allowed"),
        [
            ("a/file", True),
            ("a/../a/file", True),
            ("a/../b/file", False),
            ("b/file", False),
            ("ab/file", False),
            ("c", True),
        ],
    )
    def test_a_path_outside_is_empty(
        self, tmp_path: Path, path: str, allowed: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        for folder in ("a", "b", "ab"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "file").write_text("k=v")
        (tmp_path / "c").write_text("k=v")
        provider = made(FileConfigProvider(), allowed_paths=f"{tmp_path}/a, {tmp_path}/b/../c")
        with caplog.at_level(logging.WARNING):
            assert provider.get(f"{tmp_path}/{path}", {"k"}) == ConfigData({"k": "v"} if allowed else {})
        assert (f"The path {tmp_path}/{path} is not allowed to be accessed" in caplog.text) is not allowed

    def test_a_folder_outside_is_empty(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "k").write_text("v")
        provider = made(DirectoryConfigProvider(), allowed_paths=f"{tmp_path}/a")
        assert provider.get(str(tmp_path), {"k"}) == ConfigData({})

    @pytest.mark.parametrize("path", ["in/out", "in/deep", "in/up/secret"])
    def test_a_link_does_not_lead_out(self, tmp_path: Path, path: str) -> None:
        for folder in ("in", "out"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "secret").write_text("k=v")
        (tmp_path / "in" / "out").symlink_to(tmp_path / "out" / "secret")
        (tmp_path / "in" / "deep").symlink_to(tmp_path / "in" / "out")
        (tmp_path / "in" / "up").symlink_to(tmp_path / "out")
        provider = made(FileConfigProvider(), allowed_paths=f"{tmp_path}/in")
        assert provider.get(f"{tmp_path}/{path}", {"k"}) == ConfigData({})
        assert provider.get(f"{tmp_path}/in/up/../in/secret", {"k"}) == ConfigData({"k": "v"})
        listed = made(DirectoryConfigProvider(), allowed_paths=f"{tmp_path}/in")
        assert listed.get(f"{tmp_path}/in", {"secret", "out", "deep"}) == ConfigData({"secret": "k=v"})
        assert listed.get(f"{tmp_path}/in/up", {"secret"}) == ConfigData({})

    def test_an_allowed_folder_may_be_a_link_and_secrets_may_be_mounted_as_links(self, tmp_path: Path) -> None:
        (tmp_path / "real" / "..2024").mkdir(parents=True)
        (tmp_path / "real" / "..2024" / "key").write_text("v")
        (tmp_path / "real" / "..data").symlink_to("..2024")
        (tmp_path / "real" / "key").symlink_to("..data/key")
        (tmp_path / "secrets").symlink_to(tmp_path / "real")
        provider = made(DirectoryConfigProvider(), allowed_paths=f"{tmp_path}/secrets")
        assert provider.get(f"{tmp_path}/secrets", {"key"}) == ConfigData({"key": "v"})

    @pytest.mark.parametrize(
        ("listed", "message"), [("a/b", "Path a/b is not absolute"), ("/no/such", "Path /no/such does not exist")]
    )
    def test_what_cannot_be_meant(self, listed: str, message: str) -> None:
        for provider in (FileConfigProvider(), DirectoryConfigProvider()):
            with pytest.raises(ConfigError, match=f"^{message}$"):
                made(provider, allowed_paths=listed)


class TestEnvironment:
    @pytest.mark.parametrize(
        ("pattern", "values"),
        [
            (None, {"HG_USER": "alice", "HG_PASSWORD": "s3cret", "XHG_USER": "bob"}),
            ("HG_.*", {"HG_USER": "alice", "HG_PASSWORD": "s3cret"}),
            ("HG_", {}),
            ("HG_USER|XHG_USER", {"HG_USER": "alice", "XHG_USER": "bob"}),
        ],
    )
    def test_variables_that_match(
        self, monkeypatch: pytest.MonkeyPatch, pattern: str | None, values: dict[str, str]
    ) -> None:
        for name, value in {"HG_USER": "alice", "HG_PASSWORD": "s3cret", "XHG_USER": "bob"}.items():
            monkeypatch.setenv(name, value)
        provider = made(EnvVarConfigProvider(), **({"allowlist_pattern": pattern} if pattern else {}))
        keys = {"HG_USER", "HG_PASSWORD", "XHG_USER", "HG_NOBODY"}
        assert provider.get("", keys) == ConfigData(values)

    def test_it_has_no_paths(self) -> None:
        with pytest.raises(
            ConfigError, match=r"^Path is not supported for EnvVarConfigProvider, invalid value 'some/path'$"
        ):
            made(EnvVarConfigProvider()).get("some/path", {"PATH"})

    def test_a_pattern_that_is_none(self) -> None:
        with pytest.raises(ConfigError, match="Invalid regular expression"):
            made(EnvVarConfigProvider(), allowlist_pattern="(")
