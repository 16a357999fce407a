"""A part of a backlog, read by a resident: fetches of its own, the pipeline, and packed results for the worker.

Record batches are read by columns (`kafka.fetch`), which takes a fraction of the time that any client's message objects
take (decisions 0010 and 0012). Connections stay for the next part.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headgate.log import cause_of
from headgate.model import RangeUnread, TopicPartition
from headgate.pipeline.blob import Packed
from headgate.pipeline.shelf import Shelf
from headgate.pipeline.sink_chain import Output

if TYPE_CHECKING:
    from headgate.kafka.fetch.fetcher import Fetcher

_MARK: Final = b"range"
"""What blobs begin with that are parts. A pickle, which others are, begins otherwise."""
_ROWS: Final = 20_000
"""Most rows that go through the pipeline at once."""
_SILENCE_S: Final = 15.0
"""A part that gives nothing for so long is given up on, and the task's consumer has to see to it."""
_FETCHERS: Final = 8
"""Most that a resident keeps: those of so many connectors that are behind at a time."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """Plain values, it travels."""

    where: TopicPartition
    start: int
    end: int
    settings: Mapping[str, Any]
    """librdkafka's."""
    chain: bytes
    output: Output
    needed: frozenset[str]
    shelf: Shelf | None = None

    def blob(self) -> bytes:
        return _MARK + pickle.dumps(self)

    def run(self) -> Iterator[bytes]:
        """Packed results, in the order of the offsets."""
        from headgate.pipeline.blob import Job, run_sink

        template = Job(self.chain, self.output, shelf=self.shelf)
        with _fetchers.of(self.settings) as fetcher:
            for batch, _ in fetcher.read(self.where, self.start, self.end, self.needed):
                for start in range(0, batch.num_rows, _ROWS):
                    yield run_sink(template, batch.slice(start, _ROWS))


class _Fetchers:
    """Those of this process, by their settings, whoever was used last at the end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[frozenset[tuple[str, Any]], Fetcher] = OrderedDict()

    @contextmanager
    def of(self, settings: Mapping[str, Any]) -> Iterator[Fetcher]:
        """It is kept, unless something goes wrong with it. Raises ClientConfigError."""
        from headgate.kafka.fetch.fetcher import Fetcher

        key = frozenset(settings.items())
        fetcher = self._kept.pop(key, None) or Fetcher(settings, _SILENCE_S)
        try:
            yield fetcher
        except BaseException:
            fetcher.close()
            raise
        self._kept[key] = fetcher
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)[1].close()


_fetchers: Final = _Fetchers(_FETCHERS)


def is_part(blob: Packed) -> bool:
    return blob[: len(_MARK)] == _MARK


def run(blob: Packed) -> bytes:
    """At a resident: packed results, packed together, or why there are none."""
    part: RangePart = pickle.loads(memoryview(blob)[len(_MARK) :])  # noqa: S301 - of our own driver
    try:
        return pickle.dumps(list(part.run()))
    except Exception as error:  # of reading: what the chain does wrong is a result
        return pickle.dumps(f"{part.where} from offset {part.start} on: {cause_of(error)}")


def results(answers: Iterable[Packed]) -> list[bytes]:
    """At the driver: those of several parts. Raises RangeUnread."""
    found: list[bytes] = []
    for answer in answers:
        given: list[bytes] | str = pickle.loads(answer)  # noqa: S301 - of our own residents
        if isinstance(given, str):
            raise RangeUnread(given)
        found += given
    return found
