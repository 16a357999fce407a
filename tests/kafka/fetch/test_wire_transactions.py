"""Transactions: markers are never read, and with committed records only, nothing of what was given up."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_support import ALL, WHERE, Rec, batch, marker

from headgate.kafka.fetch.batches import Aborted, Batches

END = 2**63 - 1


def offsets(data: bytes, aborted: list[Aborted], start: int = 0) -> list[int]:
    return Batches(data, aborted).read(WHERE, start, END, ALL)["offset"].to_pylist()  # type: ignore[no-any-return]


@dataclass
class Log:
    """Written as a broker writes it: batches of several producers, in any order, and markers."""

    parts: list[tuple[int, bytes]] = field(default_factory=list)
    """Each with its first offset."""
    end: int = 0
    open: dict[int, list[int]] = field(default_factory=dict)
    records: list[int] = field(default_factory=list)
    committed: set[int] = field(default_factory=set)
    aborted: list[tuple[Aborted, int]] = field(default_factory=list)
    """With the offset of the marker."""

    def write(self, producer: int, count: int, *, transactional: bool = True, codec: int = 0) -> None:
        recs = [Rec(self.end + at) for at in range(count)]
        self._append(batch(recs, producer=producer, transactional=transactional, codec=codec), count)
        written = [rec.offset for rec in recs]
        self.records += written
        if transactional:
            self.open.setdefault(producer, []).extend(written)
        else:
            self.committed.update(written)

    def finish(self, producer: int, *, commit: bool) -> None:
        written = self.open.pop(producer, [])
        if commit:
            self.committed.update(written)
        elif written:
            self.aborted.append((Aborted(producer, written[0]), self.end))
        self._append(marker(self.end, producer, commit=commit), 1)

    def _append(self, data: bytes, count: int) -> None:
        self.parts.append((self.end, data))
        self.end += count

    def fetch(self, first: int) -> tuple[int, bytes, list[Aborted]]:
        """From one of its batches on; a broker tells of what was given up from there on."""
        start = self.parts[first][0]
        data = b"".join(each for _, each in self.parts[first:])
        return start, data, [each for each, ended in self.aborted if ended >= start]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    for _ in range(draw(st.integers(1, 14))):
        producer = draw(st.integers(1, 3))
        match draw(st.sampled_from(["write", "write", "commit", "abort", "plain"])):
            case "write":
                log.write(producer, draw(st.integers(1, 3)), codec=draw(st.sampled_from([0, 1, 4])))
            case "plain":
                # Of the same producers: an idempotent one has an id too.
                log.write(producer, draw(st.integers(1, 3)), transactional=False)
            case ended:
                log.finish(producer, commit=ended == "commit")
    for producer in list(log.open):
        log.finish(producer, commit=draw(st.booleans()))
    return log


@settings(deadline=None)
@given(logs(), st.data())
def test_what_was_given_up_is_left_out_wherever_a_fetch_begins(log: Log, data: st.DataObject) -> None:
    start, fetched, aborted = log.fetch(data.draw(st.integers(0, len(log.parts) - 1)))
    told = data.draw(st.permutations(aborted))
    assert offsets(fetched, told, start) == [each for each in log.records if each in log.committed and each >= start]


@settings(deadline=None)
@given(logs())
def test_who_reads_the_uncommitted_gets_everything_but_markers(log: Log) -> None:
    start, fetched, _ = log.fetch(0)
    assert offsets(fetched, [], start) == log.records


def test_transactions_of_two_producers_between_each_other() -> None:
    log = Log()
    log.write(1, 2)
    log.write(2, 2)
    log.write(1, 1)
    log.finish(1, commit=False)
    log.write(1, 1)
    log.finish(2, commit=True)
    log.finish(1, commit=True)
    _, data, aborted = log.fetch(0)
    assert aborted == [Aborted(1, 0)]
    assert offsets(data, aborted) == [2, 3, 6]


def test_a_transaction_that_is_given_up_only_behind_the_fetch() -> None:
    """Its marker has not come yet: it is left out all the same, to the end."""
    data = batch([Rec(0)], producer=1, transactional=True) + batch([Rec(1)], producer=2, transactional=True)
    assert offsets(data, [Aborted(1, 0)]) == [1]


def test_the_same_producer_goes_on_after_giving_up() -> None:
    log = Log()
    for commit in (False, True, False, True):
        log.write(7, 1)
        log.finish(7, commit=commit)
    _, data, aborted = log.fetch(0)
    assert offsets(data, aborted) == [2, 6]


def test_a_fetch_that_ends_with_markers_goes_on_behind_them() -> None:
    data = batch([Rec(0)], producer=1, transactional=True) + marker(1, 1, commit=True)
    assert Batches(data).following == 2


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_that_compaction_has_emptied_is_passed_over(commit: bool) -> None:
    empty = batch([], base=1, last=1, producer=1, transactional=True, control=True)
    data = batch([Rec(0)], producer=1, transactional=True) + empty + batch([Rec(2)])
    assert offsets(data, [] if commit else [Aborted(1, 0)]) == ([0, 2] if commit else [2])
