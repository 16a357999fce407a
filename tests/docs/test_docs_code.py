"""What the pages say of the code: modules, imports, dependencies, keys, paths, tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from docs_support import DOCS, ROOT, first_column, page_name, prose, section

from headgate.cli import migrate, standalone
from headgate.jars.jars import DELTA, HDFS_SERVERS, JDBC_DRIVERS, KAFKA_BROKER, SPARK_KAFKA
from headgate.producer import FatalProducerError, Operation, codes
from headgate.producer.classify import Situation, classify
from headgate.rest.app import admin_routes, main_routes
from headgate.rest.loggers import Loggers
from headgate.rest.settings import RestSettings
from headgate.runtime.config.worker_config import DISTRIBUTED, STANDALONE
from headgate.spark.settings import DEFAULTS

pytestmark = pytest.mark.process

PACKAGE = ROOT / "headgate"
ARCHITECTURE = DOCS / "architecture.md"
CONFIGURATION = DOCS / "configuration.md"
WORKER_CODES = (standalone.WORKER_FAILED, standalone.CONNECTOR_FAILED)
MIGRATE_CODES = (migrate.ALL_CAN_RUN, migrate.SOME_CANNOT, migrate.UNREADABLE)
MODULES = sorted(file for file in PACKAGE.rglob("*.py") if file.name != "__init__.py")


def test_the_lifecycle_page_is_what_the_script_prints() -> None:
    script = [sys.executable, str(DOCS / "diagrams.py"), "--print"]
    printed = subprocess.run(script, capture_output=True, text=True, check=True)
    assert printed.stdout == (DOCS / "lifecycle.md").read_text(), "run: make docs"


# --- architecture.md --------------------------------------------------------------------------------------------------


def test_the_map_is_what_the_script_prints() -> None:
    printed = subprocess.run(
        [sys.executable, str(DOCS / "map.py"), "--print"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == ARCHITECTURE.read_text() + "\n", "run: make docs"


def _imports() -> dict[str, set[str]]:
    """Which package imports which, by the code."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        own = file.relative_to(PACKAGE).with_suffix("").parts[0]
        imported = found.setdefault(own, set())
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "headgate":
                names = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Import):
                names = [each.name for each in node.names if each.name.split(".")[0] == "headgate"]
            else:
                continue
            parts = {name.split(".")[1] for name in names if "." in name}
            imported |= {part for part in parts if part != own and not part.startswith("__")}
    return {name: imports for name, imports in found.items() if not name.startswith("__")}


def test_the_table_of_imports_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", section(ARCHITECTURE, "Who imports whom"), re.MULTILINE)
    told = {name: set(re.findall(r"`(\w+)`", imports)) for name, imports in rows}
    assert told == _imports()


def test_modules_named_in_the_text_exist() -> None:
    for page in [ARCHITECTURE, *sorted((DOCS / "decisions").glob("*.md"))]:
        for name in re.findall(r"`((?:\w+/)+\w+\.py)`", prose(page)):
            candidates = (ROOT / name, PACKAGE / name)
            assert any(each.is_file() for each in candidates), f"{page_name(page)} names {name}"


def test_source_files_named_by_any_page_exist() -> None:
    for page in sorted(DOCS.glob("*.md")):
        for name in re.findall(r"`(headgate/[\w/]+\.py)`", prose(page)):
            assert (ROOT / name).is_file(), f"{page_name(page)} names {name}"


# --- exit codes, fatal errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "title", "codes"),
    [
        (CONFIGURATION, "Exit codes of `headgate standalone` and `headgate distributed`", (0, 1, *WORKER_CODES)),
        (DOCS / "migrating.md", "The check", MIGRATE_CODES),
    ],
)
def test_exit_codes_are_those_of_the_code(page: Path, title: str, codes: tuple[int, ...]) -> None:
    assert tuple(map(int, re.findall(r"^\| (\d+) \|", section(page, title), re.MULTILINE))) == codes


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["nothing"], 1), (["standalone", "--nothing"], 2)])
def test_a_command_line_that_is_wrong_has_the_exit_code_of_the_page(arguments: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-m", "headgate.cli.main", *arguments], capture_output=True, check=False)
    assert done.returncode == code


# What brokers may answer to each request, by Kafka's own descriptions of them.
FIND_COORDINATOR = {14, 15, 16, 35, 53, 58}
INIT_PRODUCER_ID = {14, 15, 16, 31, 35, 47, 49, 50, 51, 53, 58, 90}
ADD_PARTITIONS = {3, 14, 15, 16, 29, 35, 47, 48, 49, 51, 53, 55, 58, 90, 120}
PRODUCE = {2, 3, 6, 7, 10, 17, 18, 19, 20, 21, 29, 31, 35, 43, 45, 47, 53, 58, 59, 87, 90, 120}
OFFSETS = {3, 7, 12, 14, 15, 16, 22, 25, 28, 29, 30, 35, 43, 47, 48, 49, 51, 53, 58, 82, 90, 120}
END_TXN = {14, 15, 16, 35, 47, 48, 49, 51, 53, 58, 90, 120}
RECORDS = ADD_PARTITIONS | PRODUCE
ID = FIND_COORDINATOR | INIT_PRODUCER_ID
ANSWERS = {
    Operation.INIT: ID,
    Operation.BEGIN: ID,
    Operation.SEND: RECORDS,
    Operation.FLUSH: RECORDS,
    Operation.COMMIT: RECORDS | END_TXN,
    Operation.SEND_OFFSETS: RECORDS | FIND_COORDINATOR | OFFSETS,
    Operation.ABORT: END_TXN | ID,
}


@pytest.mark.kip(691, "the documentation says what is fatal in which call")
def test_fatal_errors_by_call_are_those_of_the_code() -> None:
    told: dict[str, set[str]] = {}
    page, same = DOCS / "producer.md", set[str]()
    for calls, fatal in re.findall(
        r"^\| (`.*?) \| (.*) \|$", section(page, "What is fatal in which call"), re.MULTILINE
    ):
        names = set(re.findall(r"`(\w+Error)`", fatal)) | (same if fatal.startswith("the same") else set())
        told |= dict.fromkeys(re.findall(r"`(\w+)`", calls), same := names)
    assert told == {operation.value: _fatal(operation) for operation in ANSWERS}


def _fatal(operation: Operation) -> set[str]:
    opened = operation not in (Operation.INIT, Operation.BEGIN)  # a transaction, which may be too old
    return {
        type(error).__name__
        for code in ANSWERS[operation]
        for overdue in {False, opened}
        for error in [classify(codes.info(code, ""), Situation(operation, overdue=overdue))]
        if isinstance(error, FatalProducerError) and type(error) is not FatalProducerError
    }


# --- dependencies.md --------------------------------------------------------------------------------------------------


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement)[0]


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = DOCS / "dependencies.md"
    assert sorted(first_column(section(page, "At run time"))) == sorted(map(_name, project["dependencies"]))
    dev = project["optional-dependencies"]["dev"]
    assert sorted(first_column(section(page, "For development"))) == sorted(map(_name, dev))
    extras = ("registry", "iceberg")
    for extra in extras:
        needed = project["optional-dependencies"][extra]
        assert sorted(first_column(section(page, f"With the extra `{extra}`"))) == sorted(map(_name, needed))
    assert list(project["optional-dependencies"]) == [*extras, "dev"]


def test_every_jar_has_its_line() -> None:
    told = first_column(section(DOCS / "dependencies.md", "Jars"))
    sets = (SPARK_KAFKA, KAFKA_BROKER, DELTA, JDBC_DRIVERS, HDFS_SERVERS)
    assert sorted(told) == sorted(each for jars in sets for each in jars.coordinates)


# --- configuration.md -------------------------------------------------------------------------------------------------

WITHOUT_EFFECT = {"metrics.sample.window.ms", "metrics.num.samples"}


def test_every_worker_key_is_described() -> None:
    access = [key for part in ("Logins", "Rights", "Audit") for key in first_column(section(DOCS / "access.md", part))]
    told = [
        *first_column(section(CONFIGURATION, "Worker keys that have effect")),
        *(key for key in access if "." in key),
    ]
    assert sorted(told) == sorted(set(STANDALONE.names) - WITHOUT_EFFECT)
    ignored = section(CONFIGURATION, "Without effect")
    for key in WITHOUT_EFFECT:
        assert f"`{key}`" in ignored


def test_worker_keys_have_the_defaults_of_the_code() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| (\d+|true|false) \|", section(CONFIGURATION, "Worker keys that have effect"), re.MULTILINE
    )
    assert rows
    for key, default in rows:
        assert str(STANDALONE[key].default).lower() == default, key


def test_what_is_said_to_have_no_effect_is_read_nowhere() -> None:
    """When one of these gets an effect, its line has to go."""
    code = "".join(file.read_text() for file in MODULES if file.name != "worker_config.py")
    for key in WITHOUT_EFFECT:
        assert f'"{key}"' not in code, f"{key} is read now: docs/configuration.md says it is not"
    assert "group.id" in DISTRIBUTED


def test_spark_defaults_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(spark\.[^`]+)` \| `([^`]+)` \|", section(CONFIGURATION, "Spark"), re.MULTILINE)
    assert dict(rows) == dict(DEFAULTS)


# --- rest.md ----------------------------------------------------------------------------------------------------------


def test_every_path_is_listed_with_its_methods() -> None:
    rows = re.findall(r"^\| `(/[^`]*)` \| ([^|]*) \|", section(DOCS / "rest.md", "Paths"), re.MULTILINE)
    told = {path: set(re.findall(r"\b(?:GET|PUT|POST|PATCH|DELETE)\b", methods)) for path, methods in rows}
    nobody = MagicMock()
    routes = [*main_routes(nobody, RestSettings(), "", nobody), *admin_routes(nobody, Loggers())]
    real = {route.path: set(route.endpoints) for route in routes}
    assert told == {**real, "/metrics": {"GET"}, "/openapi.json": {"GET"}}


# --- kips -------------------------------------------------------------------------------------------------------------

KIPS = sorted((DOCS / "kips").glob("kip-*.md"))


def _tests(file: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", KIPS, ids=page_name)
def test_modules_and_tests_named_by_a_kip_exist(page: Path) -> None:
    text = page.read_text()
    for name in re.findall(r"`(\w[\w/]*\.py)`", text):
        assert (PACKAGE / name).is_file() or (ROOT / name).is_file(), f"no module {name}"
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    for file, test in named:
        path = ROOT / "tests" / file
        assert path.is_file(), f"no file {file}"
        assert test in _tests(path), f"no test {test} in {file}"
    assert named or "Planned" in text


@cache
def _marked() -> dict[int, set[str]]:
    """The tests that carry a mark of a KIP, in any form."""
    found: dict[int, set[str]] = {}
    for file in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower().startswith("test"):
                text = "\n".join(ast.unparse(each) for each in node.decorator_list)
                for number in re.findall(r"mark\.kip\((\d+)", text):
                    found.setdefault(int(number), set()).add(node.name)
    return found


@pytest.mark.parametrize("number", [52, 745, 875, 980])
def test_most_rows_of_a_kip_are_proved_by_marked_tests(number: int) -> None:
    page = DOCS / "kips" / f"kip-{number}.md"
    named = set(re.findall(r"::(\w+)`", page.read_text()))
    marked = named & _marked()[number]
    assert len(marked) >= len(named) / 2, f"{named - marked} carry no mark of KIP-{number}"
