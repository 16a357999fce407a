"""The page on what a connector's author may do: its keys are those of the code, its example says what it opens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from docs_support import DOCS, blocks, prose

from headgate.api import ConfigError
from headgate.api.testing import MemorySourceTaskContext
from headgate.runtime.config import reaches
from headgate.runtime.plugins import Plugins
from headgate.sandbox import KEYS, Sandbox

PAGE = DOCS / "authors.md"


def test_every_key_is_named() -> None:
    assert set(re.findall(r"`(headgate\.(?!transforms|api)[a-z.]+)`", prose(PAGE))) == set(KEYS.names)


def test_the_example_says_what_it_opens_and_asks_before(tmp_path: Path) -> None:
    (code,) = blocks(PAGE, "python")
    made: dict[str, Any] = {"__name__": "acme_source"}
    exec(code, made)
    config = {"connector.class": "AcmeSource", "file": str(tmp_path / "in")}
    plugins = Plugins([made["AcmeSource"]])
    named = {"headgate.sandbox": "strict", "headgate.classes": "acme_source.AcmeSource"}
    reaches.require(config, plugins, Sandbox.of({**named, "headgate.file.roots": str(tmp_path)}))
    with pytest.raises(ConfigError, match=r"headgate\.file\.roots"):
        reaches.require(config, plugins, Sandbox.of(named))
    (tmp_path / "in").touch()
    task = made["AcmeSourceTask"]()
    task.context = MemorySourceTaskContext(config)
    task.start(config)
    task.file.close()
    assert [each.what for each in task.context.required] == [str(tmp_path / "in")]
