"""The table at the end: what was broken, what was asked, what was lost, doubled or kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ledger import Verdict

from tests.soak.fleet import Ledger
from tests.soak.good_client import percentile
from tests.soak.leaks import Held


@dataclass
class Outcome:
    """Of a whole soak."""

    seed: int
    seconds: float = 0.0
    connectors: int = 0
    lines: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    rows_broken: int = 0
    good_requests: int = 0
    bad_requests: int = 0
    half_open: int = 0
    attacks: int = 0
    """Kinds of bad requests that were made."""
    answers: Counter[str] = field(default_factory=Counter)
    wrong_answers: list[str] = field(default_factory=list)
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    verdicts: list[tuple[Ledger, Verdict]] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    """What had failed, and was restarted by hand."""
    before: Held | None = None
    after: dict[str, Held] = field(default_factory=dict)
    """By worker."""
    problems: list[str] = field(default_factory=list)
    """All else that must not be."""

    @property
    def lost(self) -> int:
        return sum(verdict.lost for _, verdict in self.verdicts)

    @property
    def leaks(self) -> list[str]:
        return [f"{worker}: {what} {now}, was {was}" for worker, what, was, now, most in self.compared() if now > most]

    def compared(self) -> Iterator[tuple[str, str, int, int, int]]:
        """Worker, what, how much was held before, how much after, how much it may be."""
        for worker, held in self.after.items():
            assert self.before is not None
            yield from ((worker, *figures) for figures in held.compared(self.before))

    @property
    def unclean(self) -> list[tuple[Ledger, Verdict]]:
        return [(ledger, verdict) for ledger, verdict in self.verdicts if not ledger.clean(verdict)]

    @property
    def good(self) -> bool:
        measured = bool(self.verdicts) and bool(self.after)
        return measured and not (self.unclean or self.leaks or self.wrong_answers or self.problems)

    def exactly_once(self, which: bool) -> list[Verdict]:
        return [verdict for ledger, verdict in self.verdicts if ledger.exactly_once is which]


def report(outcome: Outcome) -> Iterator[str]:
    """Lines of Markdown."""
    once, at_least = outcome.exactly_once(True), outcome.exactly_once(False)
    yield from _table(
        ("Soak", f"seed {outcome.seed}"),
        [
            ("connectors, on 3 workers", f"{outcome.connectors:,}"),
            ("seconds", f"{outcome.seconds:,.0f}"),
            ("faults", f"{sum(outcome.faults.values()):,}, of {len(outcome.faults)} kinds"),
            ("rows of the failure table that were broken", f"{outcome.rows_broken} of {outcome.rows}"),
            ("requests", f"{outcome.good_requests + outcome.bad_requests:,}"),
            ("bad requests", f"{outcome.bad_requests:,}, of {outcome.attacks} kinds"),
            ("connections that said nothing", f"{outcome.half_open:,}"),
            ("answers", _counted(outcome.answers)),
            ("answers that are not in the book", f"{len(outcome.wrong_answers):,}"),
            *((f"{what}, while all was whole", _times(times)) for what, times in outcome.times.items()),
            ("lines written to files", f"{outcome.lines:,}"),
            ("records expected, exactly once", f"{sum(each.expected for each in once):,}"),
            ("records expected, at least once", f"{sum(each.expected for each in at_least):,}"),
            ("lost", f"{outcome.lost:,}"),
            ("doubled, exactly once", f"{sum(each.doubled for each in once):,}"),
            ("out of order, exactly once", f"{sum(each.disordered for each in once):,}"),
            ("doubled, at least once, which is no error", f"{sum(each.doubled for each in at_least):,}"),
            ("restarted by hand", f"{len(outcome.restarted):,}"),
            ("leaks", f"{len(outcome.leaks):,}"),
            ("other problems", f"{len(outcome.problems):,}"),
        ],
    )
    yield ""
    yield from _table(("Faults", "times"), [(name, str(count)) for name, count in sorted(outcome.faults.items())])
    yield ""
    yield from _table(("Kind", "ledgers", "expected", "lost", "doubled", "out of order"), _kinds(outcome.verdicts))
    yield ""
    yield from _table(("Held after all was deleted", "before", "after", "at most"), _held(outcome))
    yield ""
    for ledger, verdict in outcome.unclean:
        yield (
            f"{ledger.kind} {verdict.source}: expected {verdict.expected}, found {verdict.found}: {verdict.lost} lost,"
            f" {verdict.doubled} doubled, {verdict.disordered} out of order {verdict.first_difference}"
        )
    for title, found in (
        ("leak", outcome.leaks),
        ("answer", outcome.wrong_answers),
        ("problem", outcome.problems),
        ("restarted by hand", outcome.restarted),
    ):
        yield from (f"{title}: {each}" for each in found[:30])


def _kinds(verdicts: Iterable[tuple[Ledger, Verdict]]) -> Iterator[tuple[str, ...]]:
    by_kind: dict[str, list[Verdict]] = {}
    for ledger, verdict in verdicts:
        by_kind.setdefault(f"{ledger.kind}{'' if ledger.exactly_once else ' (at least once)'}", []).append(verdict)
    for kind, found in by_kind.items():
        sums = (sum(getattr(each, what) for each in found) for what in ("expected", "lost", "doubled", "disordered"))
        yield kind, str(len(found)), *(f"{each:,}" for each in sums)


def _held(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    for worker, what, was, now, most in outcome.compared():
        unit = " MB" if "memory" in what else ""
        yield f"{worker}: {what}", f"{was}{unit}", f"{now}{unit}", f"{most}{unit}"


def _counted(answers: Counter[str]) -> str:
    return ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.items()))


def _times(times: Sequence[float]) -> str:
    half, nearly_all, longest = (percentile(times, part) * 1000 for part in (0.5, 0.99, 1.0))
    return f"{len(times):,} times, p50 {half:.0f} ms, p99 {nearly_all:.0f} ms, at most {longest:.0f} ms"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |"
