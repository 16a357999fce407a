"""Run as a script by case 25: a task that gets as far as the given word, says so, and waits to be killed."""

from __future__ import annotations

import signal
import sys

from job import Job, T


def main(word: str, bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    job = Job(bootstrap, source, target, group, transactional_id)
    producer = job.start()
    job.fill(producer, 2, 4)
    if word == "committed":
        producer.commit(T)
    print(word, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
