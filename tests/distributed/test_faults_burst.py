"""Many connectors created at once over all workers: none is lost, nobody is told of an error."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from cluster_harness import await_, source_config
from lab import Lab
from topic_reader import read_topic

pytestmark = pytest.mark.spark

COUNT: Final = 40
CALLERS: Final = 8


def test_every_connector_runs(lab: Lab, name: str, topic: str, tmp_path: Path) -> None:
    names = [f"{name}-{number}" for number in range(COUNT)]
    answers: Counter[int] = Counter()

    def create(number: int) -> None:
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
        body = {"name": names[number], "config": source_config(tmp_path / f"{number}.txt", topic)}
        worker = lab.workers[number % len(lab.workers)]
        while True:
            answer = worker.http.post("/connectors", json=body)
            answers[answer.status_code] += 1
            if answer.status_code != 409:
                return
            assert "already exists" not in answer.text, answer.text
            time.sleep(0.05)

    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(create, range(COUNT)))
    created = time.monotonic() - began
    lab.await_whole(dict.fromkeys(names, 1), 180)
    print(f"\n{COUNT} created in {created:.1f} s, all RUNNING after {time.monotonic() - began:.1f} s: {dict(answers)}")
    assert answers.keys() <= {201, 409}
    await_(
        lambda: {record.value for record in read_topic(lab.broker.bootstrap, topic)} == set(range(COUNT)),
        "the line of every connector is there",
    )
    assert answers[201] == COUNT
