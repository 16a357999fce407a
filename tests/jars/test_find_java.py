from pathlib import Path

import pytest

from headgate.jars.find import JavaMissing, find_java


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither JAVA_HOME nor a PATH with Java; `sh` is called by its full name in the fakes."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def fake_java(home: Path, *, says: str | None = None, release: str | None = None, code: int = 0) -> Path:
    """A `java` that says its version, or fails the test's expectation loudly when it should not be run at all."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    line = f"""echo 'openjdk version "{says}" 2025-04-15' >&2; exit {code}""" if says else "echo broken >&2; exit 7"
    java.write_text(f"#!/bin/sh\n{line}\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{release}"\nOS_ARCH="x86_64"\n')
    return java


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = fake_java(tmp_path / "home", release="21.0.2")
    other = fake_java(tmp_path / "other", release="17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_java() == wanted


def test_the_version_is_read_without_starting_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "home", release="17.0.15")  # run, it would answer "broken"
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(java)
    monkeypatch.setenv("PATH", str(link.parent))
    assert find_java() == link


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "26-ea"])
def test_without_a_release_file_java_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    java = fake_java(tmp_path / "home", says=version)
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.21", "16"])
@pytest.mark.parametrize("written", [True, False])
def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, written: bool) -> None:
    fake_java(tmp_path / "home", says=version, release=version if written else None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(JavaMissing, match=f"Java {version}, which is too old.*17 or newer"):
        find_java()


def test_no_java_says_what_to_install() -> None:
    with pytest.raises(JavaMissing) as raised:
        find_java()
    assert str(raised.value).startswith("Java is missing: install a JDK or JRE of version 17 or newer")
    assert str(raised.value).count(". ") == 0, "one sentence"


def test_a_java_home_without_java_is_not_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "good", release="17")
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*nowhere, which holds no bin/java"):
        find_java()


def test_a_java_that_does_not_run_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "home")
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(JavaMissing, match="does not run as Java"):
        find_java()
