"""Writes the map in docs/architecture.md from the first sentences of all modules; with --print, to standard output."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import headgate

PACKAGE = Path(headgate.__file__).parent
PAGE = Path(__file__).parent / "architecture.md"
_START, _END = "## The map\n", "`tests/` has the same tree again"
_HEAD = """
The tree is the architecture: the file can be guessed from the question. Each line is the first sentence of its module.
"""


def drawn() -> str:
    """The tree, folders before the modules in them."""
    return "\n".join(["headgate/", *_lines(PACKAGE, "  ")])


def _lines(folder: Path, indent: str) -> list[str]:
    lines = []
    entries = (each for each in folder.iterdir() if each.suffix == ".py" or (each / "__init__.py").exists())
    for entry in sorted(entries, key=lambda each: (each.is_dir(), each.name)):
        if entry.is_dir():
            lines += [_line(f"{indent}{entry.name}/", entry / "__init__.py"), *_lines(entry, f"{indent}  ")]
        elif not entry.name.startswith("_"):
            lines.append(_line(f"{indent}{entry.name}", entry))
    return lines


def _line(name: str, module: Path) -> str:
    said = ast.get_docstring(ast.parse(module.read_text())) or ""
    return f"{name:<27} {said.splitlines()[0].rstrip('.:')}" if said else name


def page(text: str) -> str:
    """The page with the tree as it is now."""
    before, rest = text.split(_START)
    after = rest[rest.index(_END) :]
    return f"{before}{_START}{_HEAD}\n```\n{drawn()}\n```\n\n{after}"


if __name__ == "__main__":
    made = page(PAGE.read_text())
    if "--print" in sys.argv:
        print(made)
    else:
        PAGE.write_text(made)
