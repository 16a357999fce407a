"""Class data archives: used where there is one, written where there is none, and never half written."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.jars.archive import ClassArchive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    made = tmp_path / "java"
    made.touch()
    return made


def new(archive: ClassArchive) -> Path:
    (option,) = [each for each in archive.options() if each.startswith("-XX:ArchiveClassesAtExit=")]
    return Path(option.partition("=")[2])


def test_the_first_jvm_is_to_write_one_and_the_next_uses_it(tmp_path: Path, java: Path) -> None:
    first = ClassArchive.of(tmp_path, "spark", java, ["a.jar"])
    new(first).write_bytes(b"classes")
    assert not first.file.exists(), "it is not there before the JVM has ended"
    first.keep()
    second = ClassArchive.of(tmp_path, "spark", java, ["a.jar"])
    assert f"-XX:SharedArchiveFile={first.file}" in second.options()
    assert first.file.read_bytes() == b"classes"


def test_a_jvm_that_was_killed_leaves_none(tmp_path: Path, java: Path) -> None:
    archive = ClassArchive.of(tmp_path, "spark", java, ["a.jar"])
    archive.options()
    archive.keep()
    assert not archive.file.exists()


def test_two_that_write_at_once_do_not_meet(tmp_path: Path, java: Path) -> None:
    one, two = (ClassArchive.of(tmp_path, "spark", java, ["a.jar"]) for _ in range(2))
    assert new(one) != new(two)
    assert one.file == two.file


def test_another_java_or_class_path_has_another(tmp_path: Path, java: Path) -> None:
    other = tmp_path / "other-java"
    other.touch()
    files = {
        ClassArchive.of(tmp_path, "spark", java, ["a.jar"]).file,
        ClassArchive.of(tmp_path, "spark", java, ["a.jar", "b.jar"]).file,
        ClassArchive.of(tmp_path, "spark", other, ["a.jar"]).file,
        ClassArchive.of(tmp_path, "kafka", java, ["a.jar"]).file,
    }
    assert len(files) == 4


def test_where_nothing_can_be_written_nothing_is_asked_for(tmp_path: Path, java: Path) -> None:
    (tmp_path / "taken").touch()
    assert ClassArchive.of(tmp_path / "taken", "spark", java, []).options() == []
