"""The bill of materials, and what is asked about the pins."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.jars import pins

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.process
def test_the_bill_of_materials_has_what_runs_and_not_what_tests(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPTS / "bom.py", tmp_path / "bom.json"], check=True, capture_output=True)
    components = json.loads((tmp_path / "bom.json").read_text())["components"]
    names = {each["name"] for each in components}
    assert {"pyspark", "py4j", "fastavro"} <= names
    assert not {"pytest", "ruff", "headgate"} & names
    digests = {each["hashes"][0]["content"] for each in components if "hashes" in each}
    assert digests == set(pins.read(pins.OURS).values())


def test_every_page_of_what_is_known_is_read() -> None:
    spec = importlib.util.spec_from_file_location("audit", SCRIPTS / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)

    def ask(question: Any) -> Any:
        first, *others = question["queries"]
        if "page_token" in first:
            return {"results": [{"vulns": [{"id": "B"}]}]}
        return {"results": [{"vulns": [{"id": "A"}], "next_page_token": "more"}, *({} for _ in others)]}

    purls = audit.pinned()
    assert list(audit.known(purls, ask)) == [(purls[0], "A"), (purls[0], "B")]
