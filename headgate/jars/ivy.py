"""Apache Ivy as it ships inside PySpark: Maven coordinates in, jars out, with nothing else to install."""

import importlib.util
import os
import re
import select
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from headgate.jars.find import find_java
from headgate.jars.progress import Progress

SILENCE_SECONDS: Final = 120.0
_SHOWN_LINES: Final = 25


class FetchFailed(RuntimeError):
    """Jars could not be fetched; one sentence, then the last lines that Ivy wrote."""


def retrieve(
    coordinates: Sequence[str],
    *,
    transitive: bool,
    excludes: Sequence[str],
    expected: int,
    into: Path,
    ivy_cache: Path,
    lock: int,
    progress: Progress,
) -> None:
    """Put the jars of `coordinates` (`group:artifact:version`) into the folder `into`, or raise `FetchFailed`.

    `lock` is the open file of the caller's lock: Ivy keeps it too, so that nobody shares `ivy_cache` with an Ivy
    that outlives a killed caller. `expected` is the number of jars to announce, 0 when unknown."""
    java = find_java()
    module = into / "ivy.xml"
    module.write_text(_module(coordinates, transitive, excludes))
    pattern = f"{into}/[artifact]-[revision](-[classifier]).[ext]"
    options = ["-cache", str(ivy_cache), "-ivy", str(module), "-confs", "default", "-retrieve", pattern]
    ivy = subprocess.Popen(  # noqa: S603 - coordinates are in a file, not in the command
        [java, "-Xmx256m", "-jar", _ivy_jar(), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
    )
    with ivy:
        try:
            last = _follow(ivy, expected, progress)
        except BaseException:
            ivy.kill()
            raise
    module.unlink()
    if ivy.returncode != 0:
        wanted = ", ".join(coordinates)
        raise FetchFailed(
            f"Ivy could not fetch {wanted}; check that this machine reaches Maven Central (behind a proxy, set Java's "
            "proxy properties in JAVA_TOOL_OPTIONS) and try again. Ivy said last:\n" + "\n".join(last)
        )


def _ivy_jar() -> Path:
    # Not `import pyspark`: that takes half a second.
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    jars = sorted(jar for place in places or () for jar in Path(place, "jars").glob("ivy-*.jar"))
    if not jars:
        raise FetchFailed("PySpark's jars/ivy-*.jar is missing: install pyspark with its jars (pip install pyspark).")
    return jars[-1]


def _module(coordinates: Sequence[str], transitive: bool, excludes: Sequence[str]) -> str:
    follow = str(transitive).lower()
    rows = []
    for coordinate in coordinates:
        group, artifact, version = map(quoteattr, coordinate.split(":"))
        rows.append(
            f'<dependency org={group} name={artifact} rev={version} conf="default->default" transitive="{follow}"/>'
        )
    for exclude in excludes:
        group, artifact = map(quoteattr, exclude.split(":"))
        rows.append(f"<exclude org={group} module={artifact}/>")
    return (
        '<ivy-module version="2.0"><info organisation="headgate" module="jars" revision="1"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(rows)}</dependencies></ivy-module>"
    )


def _follow(ivy: "subprocess.Popen[bytes]", expected: int, progress: Progress) -> list[str]:
    """Show progress from Ivy's output until that ends; the last lines of it."""
    assert ivy.stdout is not None
    last: deque[str] = deque(maxlen=_SHOWN_LINES)
    output = ivy.stdout.fileno()
    rest, found, fetched = "", 0, 0
    heard = time.monotonic()
    while True:
        # Not line by line: during a large download Ivy writes dots and no newline, and a log must still show life.
        if not select.select([output], [], [], 1.0)[0]:
            progress.tick()
            if time.monotonic() - heard > SILENCE_SECONDS:
                raise FetchFailed(f"Ivy has been silent for {SILENCE_SECONDS:.0f} s: check the network and try again.")
            continue
        heard = time.monotonic()
        chunk = os.read(output, 65536)
        *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
        for line in lines:
            if line.startswith("\tfound "):
                found += 1
                progress.update(found, max(expected, found) if expected else 0, "looked up")
            elif line.startswith("\t[SUCCESSFUL ]"):
                fetched += 1
                progress.update(fetched, found, "jars")
            if line.strip() and not re.fullmatch(r"\.+ \(\d+kB\)", line):
                last.append(line.rstrip())
        if not chunk:
            return [*last, rest] if rest else list(last)
