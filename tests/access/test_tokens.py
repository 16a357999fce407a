"""Bearer tokens whose digests stand in a file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from headgate.access.principal import Principal
from headgate.access.tokens import Tokens
from headgate.api import ConfigError


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def tokens(folder: Path, text: str) -> Tokens:
    (folder / "tokens").write_text(text)
    return Tokens("headgate.login.tokens", str(folder / "tokens"))


def test_whose_token_it_is(tmp_path: Path) -> None:
    text = f"# robots\n\nci sha256:{digest('one')} groups=a,b\nci  sha256:{digest('two').upper()}\r\n"
    found = tokens(tmp_path, text)
    assert found.principal("one") == Principal("ci", "token", frozenset({"a", "b"}))
    assert found.principal("two") == Principal("ci", "token")  # the next one, while the other is still in use
    assert found.principal("three") is None
    assert found.principal(digest("one")) is None
    assert found.principal("") is None
    assert found.files == [str(tmp_path / "tokens")]


@pytest.mark.parametrize(
    "line",
    [
        "ci",
        "ci secret-token",
        f"ci {digest('x')}",
        f"sha256:{digest('x')}",
        f"ci sha256:{digest('x')[1:]}",
        f"ci sha256:{digest('x')}0",
        f"ci sha256:{digest('x')} groups=a groups=b",
        f"ci md5:{digest('x')}",
    ],
)
def test_lines_that_are_wrong_are_refused_unseen(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError, match=r"headgate.login.tokens: line 2: it must read <name> sha256:") as error:
        tokens(tmp_path, f"a sha256:{digest('a')}\n{line}\n")
    assert "secret-token" not in str(error.value)


def test_one_token_is_nobody_elses(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2: this token is there twice"):
        tokens(tmp_path, f"a sha256:{digest('x')}\nb sha256:{digest('x')}")


def test_a_token_that_is_taken_out_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.access.watched_file._LOOK_S", 0.0)
    found = tokens(tmp_path, f"a sha256:{digest('x')}")
    (tmp_path / "tokens").write_text(f"a sha256:{digest('y')}")
    os.utime(tmp_path / "tokens", (1, 1))
    assert found.principal("x") is None
    assert found.principal("y") == Principal("a", "token")
