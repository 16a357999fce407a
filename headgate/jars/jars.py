"""Jars by fixed Maven coordinates, fetched once and kept in a cache folder."""

import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.jars import ivy, pins
from headgate.jars.ivy import FetchFailed
from headgate.jars.lock import FileLock
from headgate.jars.progress import Progress

__all__ = [
    "DELTA",
    "HDFS_SERVERS",
    "JDBC_DRIVERS",
    "KAFKA_BROKER",
    "SPARK_KAFKA",
    "FetchFailed",
    "JarSet",
    "cache_folder",
    "fetch",
]

_LIST: Final = "jars.txt"  # names and sizes; without it, or at odds with it, a folder is not a jar set


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched together. Coordinates read `group:artifact:version`, excludes `group:artifact`."""

    name: str
    coordinates: tuple[str, ...]
    transitive: bool
    excludes: tuple[str, ...] = ()
    title: str = ""  # for people; the name when empty
    expected: int = 0  # number of jars, for the progress bar only
    pins: Path | None = None  # the file of their digests; without one they are believed

    def __post_init__(self) -> None:
        for parts, texts in ((3, self.coordinates), (2, self.excludes)):
            for text in texts:
                if len(text.split(":")) != parts or not all(text.split(":")):
                    raise ValueError(f"{text!r} is not a coordinate of {parts} parts joined by colons")

    @property
    def folder(self) -> str:
        """Name of its folder; another one as soon as what is fetched changes."""
        content = repr((self.coordinates, self.transitive, self.excludes))
        return f"{self.name}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


KAFKA_BROKER: Final = JarSet(
    "kafka-4.3.1",
    # Kafka's jar brings log4j2 but nothing that leads slf4j there: without the second one, there is no server log.
    ("org.apache.kafka:kafka_2.13:4.3.1", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"),
    transitive=True,
    title="Apache Kafka 4.3.1",
    expected=46,
    pins=pins.OURS,
)
SPARK_KAFKA: Final = JarSet(
    "spark-kafka-4.2.0",
    (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
        # Its 4.2.0 is not on every mirror; this one works with 4.2.0, which is why nothing here is transitive.
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    ),
    transitive=False,
    title="Spark's Kafka reader 4.2.0",
    expected=4,
    pins=pins.OURS,
)
JDBC_DRIVERS: Final = JarSet(
    "jdbc-drivers-1",
    ("org.postgresql:postgresql:42.7.14", "org.xerial:sqlite-jdbc:3.54.1.0"),
    transitive=False,
    title="JDBC drivers of PostgreSQL and SQLite",
    expected=2,
    pins=pins.OURS,
)
"""For examples and tests: users bring those of their databases."""
DELTA: Final = JarSet(
    "delta-4.3.1",
    ("io.delta:delta-spark_2.13:4.3.1", "io.delta:delta-storage:4.3.1"),
    transitive=False,
    title="Delta Lake 4.3.1",
    expected=2,
    pins=pins.OURS,
)
"""For examples and tests, too."""
HDFS_SERVERS: Final = JarSet(
    "hdfs-3.5.0",
    ("org.apache.hadoop:hadoop-client-minicluster:3.5.0",),
    transitive=False,
    title="the servers of HDFS 3.5.0",
    expected=1,
    pins=pins.OURS,
)
"""For tests: of the version of Hadoop that PySpark brings, and without what it brings already."""


def cache_folder() -> Path:
    """$HEADGATE_CACHE, else $XDG_CACHE_HOME/headgate, else ~/.cache/headgate."""
    if own := os.environ.get("HEADGATE_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "headgate").absolute()


def fetch(
    jar_set: JarSet, cache: Path | None = None, progress: bool = True, *, retrieve: Callable[..., None] = ivy.retrieve
) -> list[Path]:
    """The jars of `jar_set`, from the cache or else from Maven; always all of them, or `FetchFailed`.

    Safe to call from several processes at once: one fetches, the others wait for it. A download that was cut off
    leaves nothing that a later call would take for a jar. `JavaMissing` when there is no Java to run Ivy with.
    Digests are compared right after a download and not again: that would cost every start what it takes to read all."""
    cache = (cache or cache_folder()).absolute()
    home = cache / "jars" / jar_set.folder
    if jars := _kept(home):
        return jars
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchFailed(
            f"The cache folder {cache} cannot be made ({error.strerror}): set HEADGATE_CACHE to a folder of yours."
        ) from error

    shown = Progress(f"Fetching {jar_set.title or jar_set.name}", progress)
    lock = FileLock(cache / "lock")
    if not lock.acquire(wait=False):
        shown.say(f"Waiting for process {lock.owner()}, which is fetching jars into {cache}")
        lock.acquire(wait=True)
    try:
        if jars := _kept(home):
            return jars
        return _fetch(jar_set, cache, home, lock, shown, retrieve)
    finally:
        lock.release()


def _fetch(
    jar_set: JarSet, cache: Path, home: Path, lock: FileLock, progress: Progress, retrieve: Callable[..., None]
) -> list[Path]:
    began = time.monotonic()
    for leftover in home.parent.glob(".partial-*"):  # whoever made it is dead, for we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=home.parent))
    try:

        def attempt(name: str, ivy_cache: Path) -> Path:
            folder = partial / name
            folder.mkdir()
            retrieve(
                jar_set.coordinates,
                transitive=jar_set.transitive,
                excludes=jar_set.excludes,
                expected=jar_set.expected,
                into=folder,
                ivy_cache=ivy_cache,
                lock=lock.fileno(),
                progress=progress,
            )
            _verify(jar_set, folder)
            return folder

        shared = cache / "ivy"
        try:
            fetched = attempt("first", shared) if shared.exists() else None
        except FetchFailed:
            # What Ivy kept from earlier may be broken, and Ivy never looks twice at what it keeps.
            fetched = None
        if fetched is None:
            fetched = attempt("fresh", partial / "ivy")
            shutil.rmtree(shared, ignore_errors=True)
            if (partial / "ivy").exists() and not shared.exists():
                (partial / "ivy").rename(shared)
        shutil.rmtree(home, ignore_errors=True)  # there only when it is at odds with its list
        fetched.rename(home)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    jars = _kept(home)
    progress.say(f"Fetched {jar_set.title or jar_set.name}: {len(jars)} jars in {time.monotonic() - began:.0f} s")
    return jars


def _verify(jar_set: JarSet, folder: Path) -> None:
    """Every jar is whole and the right one, and none of those asked for is absent; then write the list that says so."""
    jars = sorted(folder.glob("*.jar"))
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                damaged = archive.testzip()
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise FetchFailed(f"{jar.name} came broken ({error}): try again.") from error
        if damaged:
            raise FetchFailed(f"{jar.name} came broken ({damaged} in it has a wrong checksum): try again.")
    if jar_set.pins:
        # Ivy compares with .sha1 only, which comes from where the jar comes from.
        pins.check(folder, jar_set.pins)
    names = {jar.name for jar in jars}
    for coordinate in jar_set.coordinates:
        if pins.jar_name(coordinate) not in names:
            raise FetchFailed(f"Ivy fetched no jar for {coordinate}: check the coordinate.")
    (folder / _LIST).write_text("".join(f"{jar.stat().st_size} {jar.name}\n" for jar in jars))


def _kept(home: Path) -> list[Path]:
    """The jars in a finished folder; none when it is not there or not as its list says."""
    try:
        rows = [line.split(" ", 1) for line in (home / _LIST).read_text().splitlines()]
        whole = all((home / name).stat().st_size == int(size) for size, name in rows)
    except (OSError, ValueError):
        return []
    return [home / name for _, name in rows] if whole else []
