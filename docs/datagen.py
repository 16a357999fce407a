"""Writes the tables of generators and schemas in docs/datagen.md from the code; with --print, to standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from headgate.connectors.datagen.compact import described, read_compact
from headgate.connectors.datagen.quickstarts import QUICKSTARTS

PAGE = Path(__file__).parent / "datagen.md"


def generators() -> Iterable[str]:
    yield "| Generator | Type | What it makes |"
    yield "|---|---|---|"
    for name, arguments, said in described():
        kind, _, what = " ".join(said.split()).partition(": ")
        yield f"| `{name}({', '.join(arguments)})` | {kind} | {what} |"


def quickstarts() -> Iterable[str]:
    yield "| `quickstart` | Key | Fields | What it is |"
    yield "|---|---|---|---|"
    for name, each in QUICKSTARTS.items():
        fields = ", ".join(f"`{field.name}`" for field in read_compact(each.schema).schema.fields)
        yield f"| `{name}` | `{each.key}` | {fields} | {each.doc} |"


def page(text: str) -> str:
    """The page with the tables as they are now."""
    return _with_table(_with_table(text, "Generators", generators()), "Quickstarts", quickstarts())


def _with_table(text: str, title: str, rows: Iterable[str]) -> str:
    """Instead of the first one behind the heading."""
    table = "\n".join(rows)
    return re.sub(rf"(\n## {title}\n[^|]*)(?:\|[^\n]*\n)+", lambda found: f"{found[1]}{table}\n", text)


if __name__ == "__main__":
    made = page(PAGE.read_text())
    if "--print" in sys.argv:
        print(made, end="")
    else:
        PAGE.write_text(made)
