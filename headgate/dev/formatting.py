"""Formats the folder of a new Kafka node: the first by Kafka's own tool, others as copies of it with their own ids.

Which features a new cluster has is in what the tool writes, and a JVM of its own takes a second or two to write it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import javaproperties

from headgate.dev import server_config

_META: Final = "meta.properties"


def format_folder(tool: Sequence[str], data: Path, cache: Path, alike: Mapping[str, str]) -> str | None:
    """Of `kafka` below `data`, where `server.properties` lies beside it. `tool` is the command line up to the class;
    `alike` is what nodes have in common whose folders begin the same. Returns what Kafka has against it."""
    known = "\n".join([*tool[:3], *(f"{key}={value}" for key, value in sorted(alike.items()))])
    kept = cache / "formatted" / hashlib.sha256(known.encode()).hexdigest()[:16]
    if not kept.exists():
        order = ["format", "-t", server_config.new_cluster_id(), "-c", str(data / "server.properties")]
        command = [*tool, "kafka.tools.StorageTool", *order]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")  # noqa: S603 - ours
        if done.returncode != 0:
            return f"{done.stdout}{done.stderr}"
        with suppress(OSError):  # then the next one is formatted by the tool, too
            _keep(data / "kafka", kept)
        return None
    shutil.copytree(kept, data / "kafka", dirs_exist_ok=True)
    _write_ids(data / "kafka" / _META)
    return None


def _keep(formatted: Path, kept: Path) -> None:
    """Whole, or not at all; another process may do the same."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=kept.parent))
    try:
        shutil.copytree(formatted, made, dirs_exist_ok=True)
        made.rename(kept)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write_ids(meta: Path) -> None:
    properties = javaproperties.loads(meta.read_text())
    new = {"cluster.id": server_config.new_cluster_id(), "directory.id": server_config.new_cluster_id()}
    with meta.open("w") as file:
        javaproperties.dump({**properties, **new}, file, timestamp=False)
