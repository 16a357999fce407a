"""The arrows of the architecture: who may import whom, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate

PACKAGE = Path(headgate.__file__).parent
LONGEST = 400

# Which parts of ours a part may import, besides itself. A dotted name is that one module. What is absent may all.
ALLOWED: dict[str, set[str]] = {
    "model": set(),
    "java": set(),
    "kafka": {"model", "java", "api", "pipeline", "producer"},
    "metrics": set(),
    "log": {"model"},
    "producer": {"kafka"},
    "jars": set(),
    "dev": {"jars"},
    "ui": set(),
    "api": {"model"},
    "connectors": {"api", "java", "kafka"},
    "providers": {"api"},
    "pipeline": {"api", "model", "java"},
    "runtime": {"api", "model", "java", "log", "cluster.work", "cluster.protocol", "cluster.leader"},
    "cluster": {"model", "kafka"},
    "storage": {"model", "java", "kafka", "producer", "runtime.view", "runtime.ports"},
    "tasks": {"model", "api", "pipeline", "kafka", "spark", "metrics", "log", "producer"},
    "spark": {"model", "api", "pipeline", "kafka", "tasks"},
    "rest": {"runtime", "model", "api", "metrics", "log"},
    "cli": {"*"},
}


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def part(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


def imported(tree: ast.AST, module: Path) -> Iterator[tuple[int, str]]:
    """Line and name of everything of ours that is imported, without the leading `headgate`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports by a relative name"
            # `from headgate.runtime import offsets` may name a module; the longer name says more.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "headgate" or name.startswith("headgate."):
                yield node.lineno, name.removeprefix("headgate").removeprefix(".")


def allowed(importer: str, name: str) -> bool:
    if name == "__version__":
        return True
    if name.split(".")[0] == importer or "*" in ALLOWED[importer]:
        return True
    return any(name == each or name.startswith(f"{each}.") for each in ALLOWED[importer])


@pytest.mark.parametrize("module", [module for module in modules() if module != Path("__init__.py")], ids=str)
def test_imports_go_one_way(module: Path) -> None:
    importer = part(module)
    assert importer in ALLOWED, f"{importer} has no place in the architecture"
    tree = ast.parse((PACKAGE / module).read_text())
    wrong = [f"line {line}: headgate.{name}" for line, name in imported(tree, module) if not allowed(importer, name)]
    assert wrong == [], f"{importer} may import {sorted(ALLOWED[importer])} of ours"


def test_the_package_itself_imports_nothing_of_ours() -> None:
    assert list(imported(ast.parse((PACKAGE / "__init__.py").read_text()), Path("__init__.py"))) == []


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_is_not_longer_than_one_can_read(module: Path) -> None:
    assert len((PACKAGE / module).read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("module", [module for module in modules() if not module.name.startswith("_")], ids=str)
def test_a_module_says_what_it_is(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse((PACKAGE / module).read_text()))
    assert docstring is not None
    assert docstring.splitlines()[0].endswith((".", ":")), "the first line is a sentence"


@pytest.mark.parametrize(
    ("importer", "name", "fine"),
    [
        ("api", "model.TaskId", True),
        ("api", "runtime.errors.HerderError", False),
        ("api", "__version__", True),
        ("storage", "runtime.view.ClusterView", True),
        ("storage", "runtime.errors.ConnectorNotFound", False),
        ("storage", "runtime.views", False),
        ("runtime", "runtime.errors", True),
        ("runtime", "storage.memory", False),
        ("connectors", "model.TaskId", False),
        ("cli", "tasks.runner", True),
    ],
)
def test_the_rule_itself(importer: str, name: str, fine: bool) -> None:
    assert allowed(importer, name) is fine


def test_the_rule_sees_imports_wherever_they_stand() -> None:
    tree = ast.parse(
        "def f():\n    import headgate.tasks.runner\n    from headgate.rest import app\n    import headgates"
    )
    assert list(imported(tree, Path("x.py"))) == [(2, "tasks.runner"), (3, "rest.app")]
