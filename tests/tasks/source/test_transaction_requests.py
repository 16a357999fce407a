"""How a task wants its transactions to end: by record or by batch, and what was polled is cut there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import ConnectError, SourceRecord, SourceTable, TransactionContext
from headgate.tasks.source.polled import End, Polled, ended
from headgate.tasks.source.transaction_requests import TransactionRequests

pytestmark = pytest.mark.kip(618, "connector-defined transaction boundaries")


def records(*values: int) -> list[SourceRecord]:
    return [
        SourceRecord(topic="t", value=value, source_partition={"p": 0}, source_offset={"n": value}) for value in values
    ]


def shown(pieces: Sequence[Polled]) -> list[tuple[list[Any], End | None]]:
    return [([record.value for record in piece.content], piece.end) for piece in pieces]  # type: ignore[union-attr]


def test_what_nothing_was_asked_for_goes_on() -> None:
    requests = TransactionRequests()
    context: TransactionContext = requests
    assert context is requests
    assert shown(requests.cut(records(1, 2))) == [([1, 2], None)]
    assert requests.cut([]) == []


def test_a_record_is_the_last_of_its_transaction() -> None:
    requests, found = TransactionRequests(), records(1, 2, 3, 4)
    requests.commit_transaction(found[1])
    requests.abort_transaction(found[2])
    pieces = requests.cut(found)
    assert shown(pieces) == [([1, 2], End.COMMIT), ([3], End.ABORT), ([4], None)]
    assert [piece.offsets for piece in pieces] == [(({"p": 0}, {"n": number}),) for number in (2, 3, 4)]
    assert shown(requests.cut(records(5))) == [([5], None)], "asked for once"


def test_a_batch_is_the_last_of_its_transaction_also_an_empty_one() -> None:
    requests = TransactionRequests()
    requests.commit_transaction()
    assert shown(requests.cut(records(1, 2))) == [([1, 2], End.COMMIT)]
    requests.abort_transaction()
    assert shown(requests.cut([])) == [([], End.ABORT)]
    assert requests.cut([]) == []


def test_a_table_ends_as_a_whole() -> None:
    requests = TransactionRequests()
    table = SourceTable(topic="t", table=pa.table({"value": ["a"]}), source_partition=None, source_offset=None)
    requests.abort_transaction()
    (piece,) = requests.cut(table)
    assert (piece.content, piece.end) == (table, End.ABORT)


def test_records_are_known_by_themselves_and_not_by_what_they_hold() -> None:
    requests, (one, two) = TransactionRequests(), records(1, 1)
    assert one == two
    requests.commit_transaction(two)
    assert shown(requests.cut([one, two, *records(1)])) == [([1, 1], End.COMMIT), ([1], None)]


def test_a_record_may_be_asked_for_before_it_is_polled() -> None:
    requests, found = TransactionRequests(), records(1, 2)
    requests.commit_transaction(found[1])
    assert shown(requests.cut(found[:1])) == [([1], None)]
    assert shown(requests.cut(found[1:])) == [([2], End.COMMIT)]


def test_who_wants_both_is_told_so() -> None:
    requests, found = TransactionRequests(), records(1)
    requests.commit_transaction(found[0])
    requests.abort_transaction(found[0])
    with pytest.raises(ConnectError, match="both commit and abort of same record against topic/partition t/None"):
        requests.cut(found)
    requests.commit_transaction()
    requests.abort_transaction()
    with pytest.raises(ConnectError, match="both commit and abort of same transaction"):
        requests.cut(found)


def test_what_was_polled_is_cut_behind_each_end() -> None:
    one, two, three, four = (
        Polled.of(records(number), end) for number, end in enumerate([None, End.COMMIT, None, None])
    )
    assert ended([one, two, three, four]) == [[one, two], [three, four]]
    assert ended([one, two]) == [[one, two]]
    assert ended([]) == []
