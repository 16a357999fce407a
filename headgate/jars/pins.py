"""Pins: the SHA-256 of jars, one line each: coordinate, two spaces, digest; `make pins` writes them anew."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate.jars.ivy import FetchFailed

OURS: Final = Path(__file__).with_name("sha256.txt")
"""Of every jar that Headgate fetches by itself."""


def read(pins: Path) -> dict[str, str]:
    """Digests by coordinate, which reads `group:artifact:version`."""
    return dict(line.split("  ") for line in pins.read_text().splitlines())


def write(pins: Path, digests: Mapping[str, str]) -> None:
    pins.write_text("".join(f"{name}  {digest}\n" for name, digest in sorted(digests.items())))


def digest_of(jar: Path) -> str:
    with jar.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(folder: Path, pins: Path) -> None:
    """Every jar in `folder` is pinned and has the digest that it should have, or `FetchFailed`."""
    known = {jar_name(coordinate): digest for coordinate, digest in read(pins).items()}
    for jar in sorted(folder.glob("*.jar")):
        digest = digest_of(jar)
        if digest != known.get(jar.name):
            raise FetchFailed(
                f"{jar.name} is not the jar that Headgate knows, and is not used: its SHA-256 is {digest}, and "
                f"{pins.name} says {known.get(jar.name, 'nothing of it')}. Find out which proxy or repository answered "
                "in Maven Central's place, and try again without it."
            )


def jar_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"
