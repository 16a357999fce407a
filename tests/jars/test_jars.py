import multiprocessing
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.jars import pins
from headgate.jars.jars import (
    DELTA,
    HDFS_SERVERS,
    JDBC_DRIVERS,
    KAFKA_BROKER,
    SPARK_KAFKA,
    FetchFailed,
    JarSet,
    cache_folder,
    fetch,
)
from headgate.jars.lock import FileLock

pytestmark = pytest.mark.process

OURS = (KAFKA_BROKER, SPARK_KAFKA, JDBC_DRIVERS, DELTA, HDFS_SERVERS)
TWO = JarSet("two", ("org.example:one:1.0", "org.example:two:2.0"), transitive=False)
NAMES = ["one-1.0.jar", "two-2.0.jar"]


def write_jar(path: Path) -> None:
    """The same bytes each time: a name alone would be written down with the time of day."""
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(zipfile.ZipInfo("Example.class"), b"code" * 1000)


class FakeIvy:
    """In Ivy's place: writes jars and cuts the one named `broken` short, always or only from what Ivy kept."""

    def __init__(self, names: list[str] = NAMES, broken: str = "", only_kept: bool = False) -> None:
        self.names = names
        self.broken = broken
        self.only_kept = only_kept
        self.caches: list[Path] = []

    def __call__(self, coordinates: Any, *, into: Path, ivy_cache: Path, **rest: Any) -> None:
        self.caches.append(ivy_cache)
        kept = ivy_cache.exists()
        for name in self.names:
            write_jar(into / name)
            if name == self.broken and (kept or not self.only_kept):
                (into / name).write_bytes((into / name).read_bytes()[:100])
        ivy_cache.mkdir(exist_ok=True)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_fetched_is_kept(tmp_path: Path) -> None:
    ivy = FakeIvy()
    jars = fetch(TWO, tmp_path, progress=False, retrieve=ivy)
    assert [jar.name for jar in jars] == NAMES
    assert all(zipfile.is_zipfile(jar) for jar in jars)
    assert fetch(TWO, tmp_path, progress=False, retrieve=ivy) == jars
    assert len(ivy.caches) == 1


def test_another_content_has_another_folder() -> None:
    folders = {TWO.folder, replace(TWO, transitive=True).folder, replace(TWO, excludes=("a:b",)).folder}
    assert len(folders) == 3
    assert replace(TWO, title="Two").folder == TWO.folder


@pytest.mark.parametrize(
    ("ivy", "reason"),
    [
        (FakeIvy(broken="two-2.0.jar"), "two-2.0.jar came broken"),
        (FakeIvy(names=["one-1.0.jar"]), "no jar for org.example:two:2.0"),
    ],
)
def test_a_broken_or_partial_download_is_never_used(tmp_path: Path, ivy: FakeIvy, reason: str) -> None:
    with pytest.raises(FetchFailed, match=reason):
        fetch(TWO, tmp_path, progress=False, retrieve=ivy)
    assert names_in(tmp_path / "jars") == []
    assert len(fetch(TWO, tmp_path, progress=False, retrieve=FakeIvy())) == 2


def test_a_download_that_was_cut_off_leaves_nothing(tmp_path: Path) -> None:
    def cut_off(coordinates: Any, *, into: Path, **rest: Any) -> None:
        write_jar(into / "one-1.0.jar")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(TWO, tmp_path, progress=False, retrieve=cut_off)
    assert names_in(tmp_path / "jars") == []


def test_the_remains_of_a_killed_fetch_are_removed(tmp_path: Path) -> None:
    remains = tmp_path / "jars" / ".partial-abc" / "fresh"
    remains.mkdir(parents=True)
    write_jar(remains / "one-1.0.jar")
    fetch(TWO, tmp_path, progress=False, retrieve=FakeIvy())
    assert names_in(tmp_path / "jars") == [TWO.folder]


@pytest.mark.parametrize("damage", [Path.unlink, lambda jar: jar.write_bytes(b"")])
def test_a_kept_folder_that_lost_something_is_fetched_again(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    ivy = FakeIvy()
    jars = fetch(TWO, tmp_path, progress=False, retrieve=ivy)
    damage(jars[1])
    again = fetch(TWO, tmp_path, progress=False, retrieve=ivy)
    assert again == jars
    assert all(zipfile.is_zipfile(jar) for jar in again)


def test_what_ivy_kept_broken_is_fetched_afresh(tmp_path: Path) -> None:
    (tmp_path / "ivy").mkdir()
    (tmp_path / "ivy" / "spoiled").touch()
    ivy = FakeIvy(broken="one-1.0.jar", only_kept=True)
    assert len(fetch(TWO, tmp_path, progress=False, retrieve=ivy)) == 2
    assert ivy.caches[0] == tmp_path / "ivy"
    assert len(ivy.caches) == 2
    assert not (tmp_path / "ivy" / "spoiled").exists(), "the fresh one takes its place"


def test_ivys_failure_reaches_the_caller(tmp_path: Path) -> None:
    def fail(*args: Any, **rest: Any) -> None:
        raise FetchFailed("Ivy could not fetch it")

    with pytest.raises(FetchFailed, match="Ivy could not fetch it"):
        fetch(TWO, tmp_path, progress=False, retrieve=fail)


def _fetch_slowly(cache: Path, begun: Any, go_on: Any, results: Any) -> None:
    def slow(*args: Any, into: Path, **rest: Any) -> None:
        begun.set()
        assert go_on.wait(30)
        FakeIvy()(*args, into=into, **rest)

    results.put([jar.name for jar in fetch(TWO, cache, progress=False, retrieve=slow)])


def test_two_processes_do_not_fetch_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], eventually: Callable[..., None]
) -> None:
    spawn = multiprocessing.get_context("spawn")
    begun, go_on, results = spawn.Event(), spawn.Event(), spawn.Queue()
    other = spawn.Process(target=_fetch_slowly, args=(tmp_path, begun, go_on, results))
    other.start()
    assert begun.wait(30)
    assert not FileLock(tmp_path / "lock").acquire(wait=False), "the other one holds it"

    # Free the other one only once this one has said that it waits.
    ivy, mine = FakeIvy(), []
    waiting = threading.Thread(target=lambda: mine.extend(fetch(TWO, tmp_path, retrieve=ivy)))
    waiting.start()
    eventually(lambda: f"Waiting for process {other.pid}" in capsys.readouterr().err)
    go_on.set()
    waiting.join(30)
    assert results.get(timeout=30) == NAMES
    other.join(30)
    assert [jar.name for jar in mine] == NAMES
    assert ivy.caches == [], "it used what the other one fetched"


def test_a_lock_ends_with_its_holder(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire(wait=False)
    assert not second.acquire(wait=False)
    first.release()
    assert second.acquire(wait=True)
    second.release()
    with pytest.raises(ValueError, match="not held"):
        second.fileno()


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HEADGATE_CACHE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "headgate"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "headgate"
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_a_log_file_sees_whole_lines_of_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ivy(*args: Any, progress: Any, **rest: Any) -> None:
        for done in range(1, 21):
            progress.update(done, 20, "jars")
        FakeIvy()(*args, **rest)

    fetch(TWO, tmp_path, retrieve=ivy)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Fetching two [##########----------] 10/20 jars")
    assert lines[1].startswith("Fetching two [####################] 20/20 jars")
    assert lines[2].startswith("Fetched two: 2 jars")
    assert len(lines) == 3


def test_a_coordinate_has_three_parts() -> None:
    with pytest.raises(ValueError, match=r"'org\.example:one' is not a coordinate"):
        JarSet("bad", ("org.example:one",), transitive=False)


@pytest.fixture
def pinned(tmp_path: Path) -> JarSet:
    """With the digests of what FakeIvy writes."""
    write_jar(tmp_path / "any.jar")
    digest = pins.digest_of(tmp_path / "any.jar")
    pins.write(tmp_path / "pins.txt", dict.fromkeys(TWO.coordinates, digest))
    return replace(TWO, pins=tmp_path / "pins.txt")


def tampered(coordinates: Any, *, into: Path, ivy_cache: Path, **rest: Any) -> None:
    """A whole jar, as its own checksums are; with one class more."""
    FakeIvy()(coordinates, into=into, ivy_cache=ivy_cache)
    with zipfile.ZipFile(into / "two-2.0.jar", "a") as jar:
        jar.writestr("Evil.class", b"code")


def test_a_jar_that_is_not_the_pinned_one_is_never_used(tmp_path: Path, pinned: JarSet) -> None:
    with pytest.raises(FetchFailed, match=r"two-2\.0\.jar is not the jar that Headgate knows.*pins\.txt says \w{64}\."):
        fetch(pinned, tmp_path, progress=False, retrieve=tampered)
    assert names_in(tmp_path / "jars") == []
    assert not (tmp_path / "ivy").exists(), "nor does Ivy keep it"
    assert len(fetch(pinned, tmp_path, progress=False, retrieve=FakeIvy())) == 2


def test_a_jar_that_nobody_pinned_is_never_used(tmp_path: Path, pinned: JarSet) -> None:
    with pytest.raises(FetchFailed, match=r"more-3\.0\.jar is not .* says nothing of it"):
        fetch(pinned, tmp_path, progress=False, retrieve=FakeIvy([*NAMES, "more-3.0.jar"]))


def test_what_ivy_kept_is_compared_too(tmp_path: Path, pinned: JarSet) -> None:
    def spoiled(coordinates: Any, *, ivy_cache: Path, **rest: Any) -> None:
        (tampered if ivy_cache.exists() else FakeIvy())(coordinates, ivy_cache=ivy_cache, **rest)

    (tmp_path / "ivy").mkdir()
    jars = fetch(pinned, tmp_path, progress=False, retrieve=spoiled)
    assert {pins.digest_of(jar) for jar in jars} == set(pins.read(tmp_path / "pins.txt").values())


def test_the_pins_are_of_the_versions_that_are_fetched() -> None:
    listed = list(pins.read(pins.OURS))
    assert listed == sorted(listed)
    assert {each.pins for each in OURS} == {pins.OURS}
    assert {name for each in OURS for name in each.coordinates} <= set(listed), "make pins"
    assert len(listed) == sum(each.expected for each in OURS)


@pytest.mark.broker
@pytest.mark.parametrize("jar_set", OURS, ids=lambda jar_set: jar_set.name)
def test_the_real_sets_are_complete(jar_set: JarSet) -> None:
    jars = fetch(jar_set)
    assert len(jars) == jar_set.expected
    pins.check(jars[0].parent, pins.OURS)
