"""Where turns take place: a broker, a registry, and what both sides read; gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inputs import Inputs
from registry import Registry
from topics import Topics
from turn import Sizes, Turn

from headgate.dev.broker import Broker


@dataclass(frozen=True, slots=True)
class Stage:
    folder: Path
    topics: Topics
    inputs: Inputs
    sizes: Sizes

    @classmethod
    @contextmanager
    def of(cls, sizes: Sizes) -> Iterator[Stage]:
        folder, registry = Path(tempfile.mkdtemp(prefix="headgate-bench-")), Registry()
        try:
            # A deleted topic goes at once, and not a minute later during somebody's measurement.
            with Broker(heap="1g", properties={"log.segment.delete.delay.ms": "0"}) as broker:
                topics = Topics(broker.bootstrap)
                yield cls(folder, topics, Inputs(topics, folder, registry.url, sizes.lines, sizes.size), sizes)
                topics.close()
        finally:
            registry.close()
            shutil.rmtree(folder)

    @contextmanager
    def turn(self, row: str, kind: str, number: int) -> Iterator[Turn]:
        name = f"{row}-{kind}-{number}".lower()
        turn = Turn(kind, number, name, self.folder / name, self.topics, self.inputs, self.sizes)
        turn.folder.mkdir()
        yield turn
        self.topics.delete(name)
        shutil.rmtree(turn.folder)
