"""The arrows of the architecture: who may import whom, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import headgate

PACKAGE = Path(headgate.__file__).parent
LONGEST = 400

# Which parts of ours a part may import, besides itself. A dotted name is that one module.
EVERYBODY: set[str] = {"model", "backoff", "metrics", "log"}
ALLOWED: dict[str, set[str]] = {
    "model": set(),
    "backoff": set(),
    "metrics": set(),
    "log": {"model"},
    "sandbox": {"api", "model"},
    "java": set(),
    "jars": set(),
    "api": {"java", "model"},
    "pipeline": {"api", "java", *EVERYBODY},
    "kafka": {"java", *EVERYBODY},
    "producer": {"kafka", *EVERYBODY},
    "tasks": {"api", "pipeline", "producer.errors", *EVERYBODY},
    "spark": {"api", "pipeline", "kafka", "jars", "sandbox", *EVERYBODY},
    "connectors": {"api", "backoff", "kafka", "java", "log", "pipeline.converters.json"},
    "providers": {"api"},
    "runtime": {"api", "java", "sandbox", "cluster.work", "cluster.protocol", "cluster.leader", *EVERYBODY},
    "cluster": {"kafka", *EVERYBODY},
    "storage": {"kafka", "java", "producer", "runtime.view", "runtime.ports", *EVERYBODY},
    "access": {"api", "java", *EVERYBODY},
    "rest": {"access", "runtime", "api", *EVERYBODY},
    "dev": {"jars", "model"},
    "cli": {"*"},
}

# Which packages of others a part may import: nobody else does what they do.
OTHERS: dict[str, set[str]] = {
    "api": {"pyarrow", "pytest"},
    "java": {"orjson"},
    "pipeline": {"pyarrow", "numpy", "orjson", "fastavro", "google", "jsonschema", "referencing"},
    "kafka": {"confluent_kafka", "kafka", "pyarrow", "numpy"},
    "producer": {"confluent_kafka", "pyarrow"},
    "tasks": {"pyarrow"},
    "spark": {"pyspark", "py4j", "pyarrow", "cryptography", "confluent_kafka", "javaproperties"},
    "connectors": {"pyarrow", "numpy", "confluent_kafka", "httpx2"},
    "providers": {"javaproperties"},
    "cluster": {"kafka", "confluent_kafka"},
    "storage": {"confluent_kafka"},
    "access": {"argon2", "bcrypt", "httpx2", "javaproperties", "joserfc", "orjson"},
    "rest": {"starlette", "uvicorn", "h11", "cryptography", "httpx2", "orjson", "prometheus_client"},
    "dev": {"confluent_kafka", "javaproperties"},
    "cli": {"javaproperties"},
}
# Exceptions, by module: type hints of frames, connectors that use Spark, and the client of schema registries.
OTHERS_OF_MODULES: dict[str, set[str]] = {
    "api/context.py": {"pyspark"},
    "api/task.py": {"pyspark"},
    "api/testing/doubles.py": {"pyspark"},
    "connectors/spark": {"pyspark", "py4j"},
    "connectors/spark/sink/iceberg": {"pyiceberg"},
    "connectors/jdbc": {"py4j", "pyspark"},
    "pipeline/converters/registry": {"confluent_kafka"},
}

# `headgate.producer` is usable alone, and its State is part of its API.
TWINS: set[str] = {"State"}


def modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules are about. Whole syntax trees of all modules would keep the garbage collector busy."""

    imported: Sequence[tuple[int, str]]
    classes: Sequence[str]
    docstring: str | None


@cache
def facts(module: Path) -> Facts:
    tree = ast.parse((PACKAGE / module).read_text())
    return Facts([*imported(tree, module)], [*public_classes(tree, module)], ast.get_docstring(tree))


def part(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


def ours(names: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Of what is imported what is of this package, without the leading `headgate`."""
    for line, name in names:
        if name == "headgate" or name.startswith("headgate."):
            yield line, name.removeprefix("headgate").removeprefix(".")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All that stand in it, however deep."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, field, ()):
            yield each
            yield from statements(each)


def imported(tree: ast.Module, module: Path) -> Iterator[tuple[int, str]]:
    """Line and name of everything."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports by a relative name"
            # `from headgate.runtime import offsets` may name a module; the longer name says more.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield node.lineno, name


def allowed(importer: str, name: str) -> bool:
    if name == "__version__":
        return True
    if name.split(".")[0] == importer or "*" in ALLOWED[importer]:
        return True
    return any(name == each or name.startswith(f"{each}.") for each in ALLOWED[importer])


def test_imports_go_one_way() -> None:
    wrong = []
    for module in modules():
        if module != Path("__init__.py"):
            importer = part(module)
            assert importer in ALLOWED, f"{importer} has no place in the architecture"
            found = ours(facts(module).imported)
            wrong += [f"{module}:{line}: headgate.{name}" for line, name in found if not allowed(importer, name)]
    assert wrong == []


def test_packages_of_others_stay_in_their_rooms() -> None:
    wrong = []
    for module in modules():
        may = OTHERS.get(part(module), set()).union(
            *(names for path, names in OTHERS_OF_MODULES.items() if str(module).startswith(path))
        )
        tops = {(line, name.split(".")[0]) for line, name in facts(module).imported}
        foreign = [(line, top) for line, top in sorted(tops) if top not in {*sys.stdlib_module_names, "headgate", *may}]
        wrong += [f"{module}:{line}: {top}" for line, top in foreign]
    assert wrong == []


def test_the_package_itself_imports_nothing_of_ours() -> None:
    assert list(ours(facts(Path("__init__.py")).imported)) == []


def test_a_module_is_not_longer_than_one_can_read() -> None:
    lines = {module: len((PACKAGE / module).read_text().splitlines()) for module in modules()}
    assert {str(module): count for module, count in lines.items() if count > LONGEST} == {}


def test_a_module_says_what_it_is() -> None:
    for module in modules():
        if not module.name.startswith("_"):
            docstring = facts(module).docstring
            assert docstring is not None, module
            assert docstring.splitlines()[0].endswith((".", ":")), f"the first line of {module} is a sentence"


def public_classes(tree: ast.Module, module: Path) -> Iterator[str]:
    """But for Protocols of a ports.py: they have the names of the classes that fit them."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
            if module.name != "ports.py" or "Protocol" not in bases:
                yield node.name


def test_a_class_name_means_one_thing() -> None:
    where: dict[str, list[str]] = {}
    for module in modules():
        for name in facts(module).classes:
            where.setdefault(name, []).append(str(module))
    assert {name: found for name, found in where.items() if len(found) > 1 and name not in TWINS} == {}


@pytest.mark.parametrize(("module", "found"), [("ports.py", ["A", "D"]), ("shape.py", ["A", "B", "C", "D"])])
def test_only_protocols_among_ports_may_share_a_name(module: str, found: list[str]) -> None:
    tree = ast.parse(
        "class A:\n    class Inner: ...\nclass B(Protocol): ...\nclass C(Protocol[T]): ...\nclass D(A): ...\n"
        "class _E: ..."
    )
    assert list(public_classes(tree, Path("x") / module)) == found


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
        ("tasks", "producer.errors.ProducerError", True),
        ("tasks", "producer.producer", False),
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
    assert list(ours(imported(tree, Path("x.py")))) == [(2, "tasks.runner"), (3, "rest.app")]


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    async def f(self):\n        import a",
        "if x:\n    import a\nelif y:\n    import b\nelse:\n    import c",
        "for x in y:\n    import a\nelse:\n    import b",
        "while x:\n    import a\nelse:\n    import b",
        "try:\n    import a\nexcept E:\n    import b\nelse:\n    import c\nfinally:\n    import d",
        "try:\n    import a\nexcept* E:\n    import b",
        "with x:\n    import a",
        "match x:\n    case 1:\n        import a\n    case _:\n        import b",
    ],
)
def test_all_statements_are_looked_at(text: str) -> None:
    tree = ast.parse(text)
    walked = [node.names[0].name for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert sorted(name for _, name in imported(tree, Path("x.py"))) == sorted(walked) != []
