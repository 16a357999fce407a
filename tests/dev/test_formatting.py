"""New folders of Kafka: the tool is asked once."""

from __future__ import annotations

import sys
from pathlib import Path

import javaproperties
import pytest

from headgate.dev.formatting import format_folder

pytestmark = pytest.mark.process

TOOL = """
import pathlib, sys
order = sys.argv[1:]
folder = pathlib.Path(order[order.index("-c") + 1]).parent / "kafka"
if (folder / "refuse").exists():
    sys.exit("no such feature")
(folder / "bootstrap.checkpoint").write_bytes(b"features")
meta = f"version=1\\nnode.id=1\\ndirectory.id=x\\ncluster.id={order[order.index('-t') + 1]}\\n"
(folder / "meta.properties").write_text(meta)
(folder / "by-the-tool").touch()
"""


@pytest.fixture
def tool(tmp_path: Path) -> list[str]:
    """Stands for Kafka's, and takes its arguments."""
    program = tmp_path / "tool.py"
    program.write_text(TOOL)
    return [sys.executable, str(program), "classes"]


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name / "kafka").mkdir(parents=True)
    return tmp_path / name


def meta(data: Path) -> dict[str, str]:
    read: dict[str, str] = javaproperties.loads((data / "kafka" / "meta.properties").read_text())
    return read


def test_copies_differ_in_their_ids_alone(tool: list[str], tmp_path: Path) -> None:
    first, second = folder(tmp_path, "first"), folder(tmp_path, "second")
    assert format_folder(tool, first, tmp_path / "cache", {"a": "1"}) is None
    Path(tool[1]).write_text("raise SystemExit('not again')")
    assert format_folder(tool, second, tmp_path / "cache", {"a": "1"}) is None
    assert (second / "kafka" / "bootstrap.checkpoint").read_bytes() == b"features"
    one, other = meta(first), meta(second)
    assert {key for key in one if one[key] != other[key]} == {"cluster.id", "directory.id"}
    assert one.keys() == other.keys()
    assert len(other["cluster.id"]) == len(other["directory.id"]) == 22


def test_nodes_that_are_set_up_differently_begin_differently(tool: list[str], tmp_path: Path) -> None:
    for number in range(2):
        data = folder(tmp_path, str(number))
        assert format_folder(tool, data, tmp_path / "cache", {"a": str(number)}) is None
    assert len(list((tmp_path / "cache" / "formatted").iterdir())) == 2


def test_what_kafka_refuses_is_told_and_not_kept(tool: list[str], tmp_path: Path) -> None:
    data = folder(tmp_path, "data")
    (data / "kafka" / "refuse").touch()
    assert format_folder(tool, data, tmp_path / "cache", {}) == "no such feature\n"
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_costs_time_alone(tool: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    for name in ("first", "second"):
        data = folder(tmp_path, name)
        assert format_folder(tool, data, tmp_path / "cache", {}) is None
        assert (data / "kafka" / "by-the-tool").exists()
