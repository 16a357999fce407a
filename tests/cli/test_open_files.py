"""How many files a worker may have open."""

from __future__ import annotations

import resource

import pytest

from headgate.cli.open_files import raise_limit

FILES = resource.RLIMIT_NOFILE


def test_a_worker_may_open_what_its_user_may() -> None:
    before, most = resource.getrlimit(FILES)
    resource.setrlimit(FILES, (min(before, 512), most))
    try:
        raise_limit()
        assert resource.getrlimit(FILES) == (min(most, 1 << 20) if most != resource.RLIM_INFINITY else 1 << 20, most)
    finally:
        resource.setrlimit(FILES, (before, most))


@pytest.mark.parametrize(("most", "warned"), [(1024, True), (4096, False), (resource.RLIM_INFINITY, False)])
def test_a_warning_says_when_that_is_little(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, most: int, warned: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, most))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    raise_limit()
    assert [message.partition(" may be open")[0] for message in caplog.messages] == [f"Only {most} files"] * warned
