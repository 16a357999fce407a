"""Tasks survive that there are no files for a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from harness import Client, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


def test_tasks_that_found_no_file_go_on_when_there_are_files_again(
    client: Client, name: str, topic: str, tmp_path: Path, no_files: Callable[[], AbstractContextManager[None]]
) -> None:
    into, out, (source, sink) = tmp_path / "in.txt", tmp_path / "out.txt", (f"{name}-source", f"{name}-sink")
    into.write_text("one\n")
    client.create(source, source_config(into, topic))
    client.create(sink, sink_config(out, topic))
    await_(lambda: lines(out) == ["one"], "the first line has arrived")
    client.put(source, "stop")
    into.write_text("one\ntwo\n")

    def troubles() -> object:
        told = [each["health"]["reason"] or "" for each in client.status(source)["tasks"]]
        return told and all("Too many open files" in reason for reason in told)

    with no_files():
        client.put(source, "resume")
        client.call("POST", f"/connectors/{sink}/tasks/0/restart", 204)
        await_(troubles, "the source says what it waits for")
    await_(lambda: lines(out) == ["one", "two"], "the second line has arrived")
    client.await_states(source, "RUNNING", "RUNNING")
    client.await_states(sink, "RUNNING", "RUNNING")
