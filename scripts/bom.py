"""Writes the bill of materials, in CycloneDX's JSON: what is installed for Headgate, and the jars that it fetches.

Offline, and the same for the same versions: it tells neither when nor where it was made.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headgate.jars import pins


def packages(extras: frozenset[str] = frozenset({"registry", "iceberg"})) -> dict[str, Distribution]:
    """Headgate and all that it needs at run time, by name."""
    found: dict[str, Distribution] = {}
    met: set[tuple[str, frozenset[str]]] = set()
    waiting = [("headgate", extras)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in met:
            continue
        met.add((name, wanted))
        found[name] = distribution(name)
        for needed in map(Requirement, found[name].requires or ()):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                waiting.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    return dict(sorted(found.items()))


def bom() -> dict[str, Any]:
    found = packages()
    itself = _package("headgate", found.pop("headgate")) | {"type": "application"}
    components = [_package(name, package) for name, package in found.items()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": itself},
        "components": components + [_jar(jar, digest) for jar, digest in pins.read(pins.OURS).items()],
    }


def _package(name: str, package: Distribution) -> dict[str, Any]:
    known = package.metadata.json
    license_ = str(known.get("license_expression") or known.get("license") or "")
    licenses = [{"license": {"name": license_}}] if license_ and "\n" not in license_ else []
    version = package.version
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": licenses}


def _jar(coordinate: str, digest: str) -> dict[str, Any]:
    group, name, version = coordinate.split(":")
    purl = f"pkg:maven/{group}/{name}@{version}"
    named = {"type": "library", "bom-ref": purl, "group": group, "name": name, "version": version, "purl": purl}
    return named | {"hashes": [{"alg": "SHA-256", "content": digest}]}


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    made = bom()
    file.write_text(json.dumps(made, indent=2) + "\n")
    print(f"{len(made['components'])} components are in {file}")
