"""Where Java is: the one thing that pip cannot bring."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

OLDEST: Final = 17
_ADVICE: Final = f"install a JDK or JRE of version {OLDEST} or newer and put it on the PATH or name it in JAVA_HOME"


class JavaMissing(RuntimeError):
    """No usable Java; the message is one sentence that says what to install."""


def find_java() -> Path:
    """The `java` executable of JAVA_HOME or, when that is not set, of the PATH; its version is at least 17.

    A JAVA_HOME that is set decides, even when the PATH holds a better Java: Spark's own scripts obey it too, so
    going around it here would only move the failure to a worse place. Raises `JavaMissing`. Starts a JVM only when
    the installation has no `release` file to read the version from."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaMissing(f"JAVA_HOME is {home}, which holds no bin/java: {_ADVICE}.")
    else:
        found = shutil.which("java")
        if found is None:
            raise JavaMissing(f"Java is missing: {_ADVICE}.")
        java = Path(found)

    version = _written_version(java) or _asked_version(java)
    if version is None:
        # macOS has a /usr/bin/java that only says where to download one.
        raise JavaMissing(f"{java} does not run as Java: {_ADVICE}.")
    if _major(version) < OLDEST:
        raise JavaMissing(f"{java} is Java {version}, which is too old: {_ADVICE}.")
    return java


def _written_version(java: Path) -> str | None:
    """The version in the `release` file of the installation that `java` belongs to, if there is one."""
    try:
        text = (java.resolve().parent.parent / "release").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?(\d[^"\s]*)', text, re.MULTILINE)
    return match[1] if match else None


def _asked_version(java: Path) -> str | None:
    try:
        answer = subprocess.run(  # noqa: S603 - the Java of this machine's own environment
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # With JAVA_TOOL_OPTIONS set, another line comes before this one.
    match = re.search(r'version "(\d[^"]*)"', answer.stderr + answer.stdout)
    return match[1] if match and answer.returncode == 0 else None


def _major(version: str) -> int:
    first, *rest = (int(number) for number in re.findall(r"\d+", version))
    return rest[0] if first == 1 and rest else first  # until Java 8 the version read 1.8.0
