"""The folder of a server: one has it at a time, and a temporary one goes with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.dev.data_folder import DataFolder


class InUse(Exception):
    pass


def test_one_server_at_a_time_has_it(tmp_path: Path) -> None:
    first, second = (DataFolder(tmp_path / "data", "server", InUse) for _ in range(2))
    first.take()
    first.take()
    with pytest.raises(InUse, match=f"data is in use by the server of process {os.getpid()}: stop that one or choose"):
        second.take()
    first.give_back()
    second.take()
    assert (second.path, second.kept, second.leftover) == (tmp_path / "data", True, None)
    second.give_back()
    assert second.kept
    assert (tmp_path / "data").is_dir()


def test_a_temporary_one_goes_with_its_server() -> None:
    folder = DataFolder(None, "server", InUse)
    folder.take()
    path = folder.path
    assert folder.leftover == path
    assert path.name.startswith("headgate-server-")
    folder.give_back()
    folder.give_back()
    assert not path.exists()
    with pytest.raises(RuntimeError, match=r"has no data folder while it is stopped: call start\(\)"):
        folder.path  # noqa: B018 - it raises
