"""All pages: links lead somewhere, JSON is JSON, and nothing names what is of no use to readers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs_support import DOCS, PAGES, README, ROOT, ask, blocks, commands, curl, links, page_name, worker

from headgate.model import ConnectorType
from headgate.runtime.config.overrides import ALLOWLIST, POLICY, Client, Overrides

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.resolve().is_relative_to(ROOT), f"{link} leads out of the project"
        if anchor:
            assert anchor in _anchors(target), f"{link}: no such heading"


@every_page
def test_tests_that_are_named_are_there(page: Path) -> None:
    for named in re.findall(r"tests/[\w/]+\.py", page.read_text()):
        assert (ROOT / named).exists(), f"{page_name(page)} names {named}"


@every_page
def test_json_is_json(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=page_name)
def test_requests_are_answered(page: Path, tmp_path: Path) -> None:
    """Those of the README are asked by test_readme.py, which has its connector."""
    asked = [command for block in blocks(page, "shell") for command in commands(block) if command[0] == "curl"]
    if asked:
        with worker(tmp_path) as client:
            for command in asked:
                ask(client, curl(command))


@every_page
def test_nothing_of_this_machine_is_named(page: Path) -> None:
    text = page.read_text()
    for word in ("/work/", "/root/", "/home/", "/tmp/", "repo1.", "pypi" + "." + "org", "-mirror", "mirrors"):
        assert word not in text, f"{page_name(page)} names {word}"
    assert not re.search(r"[\U0001F300-\U0001FAFF\u2600-\u27BF]", text), "an emoji"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.is_dir():
                target = target / "README.md"
            if target.suffix == ".md" and target.exists():
                waiting.append(target)
    lost = sorted(page_name(page) for page in PAGES if page.resolve() not in reached)
    assert not lost, f"no link leads to {lost}"


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(page.name[:4]) for page in (DOCS / "decisions").glob("0*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("0*.md")), ids=page_name)
def test_a_decision_has_context_decision_and_consequences(page: Path) -> None:
    assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert page.read_text().startswith(f"# {page.name[:4]}: ")


def test_the_policy_of_the_configuration_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = blocks(DOCS / "configuration.md", "python")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "policies.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    named = {POLICY: "acme.policies.NoPasswords"}
    text = (DOCS / "configuration.md").read_text()
    assert f"`{POLICY}={named[POLICY]}`" in text
    overrides = Overrides.parse({**named, ALLOWLIST: []}, named)
    config = {"producer.override.ssl.key.password": "x", "producer.override.acks": "1"}
    assert overrides.rejections(Client.PRODUCER, ConnectorType.SOURCE, config) == {
        "ssl.key.password": "Passwords are the worker's affair."
    }
