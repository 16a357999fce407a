"""Asks the database of osv.dev what is known against our pins: those of Python packages, and those of jars.

It needs the internet, and its answer changes while the pins do not: so it is for people, and not for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from headgate.jars import pins

CONSTRAINTS: Final = Path(__file__).parents[1] / "constraints.txt"
_URL: Final = "https://api.osv.dev/v1/querybatch"


def pinned() -> list[str]:
    """Package URLs."""
    packages = [line.split("==") for line in CONSTRAINTS.read_text().splitlines()]
    jars = [coordinate.split(":") for coordinate in pins.read(pins.OURS)]
    return [
        *(f"pkg:pypi/{name.lower().replace('_', '-')}@{version}" for name, version in packages),
        *(f"pkg:maven/{group}/{name}@{version}" for group, name, version in jars),
    ]


def known(purls: Sequence[str], ask: Callable[[Any], Any]) -> Iterable[tuple[str, str]]:
    """What is pinned, and the name of what is known against it."""
    asked = [{"package": {"purl": purl}} for purl in purls]
    while asked:
        results = ask({"queries": asked})["results"]
        more = []
        for query, result in zip(asked, results, strict=True):
            for found in result.get("vulns", ()):
                yield str(query["package"]["purl"]), str(found["id"])
            if token := result.get("next_page_token"):
                more.append({**query, "page_token": token})
        asked = more


def _ask(question: Any) -> Any:
    return httpx2.post(_URL, json=question, timeout=60).raise_for_status().json()


if __name__ == "__main__":
    purls = pinned()
    try:
        found = sorted(known(purls, _ask))
    except httpx2.HTTPError as error:
        sys.exit(f"osv.dev cannot be asked, so nothing is known of {len(purls)} pins: {error!r}")
    for purl, name in found:
        print(f"{purl}: https://osv.dev/{name}")
    print(f"{len(purls)} pins, {len(found)} known vulnerabilities")
    sys.exit(1 if found else 0)
