"""Pages: where reading goes on after each record, however pages are asked for; and offsets as people set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import ConnectError
from headgate.connectors.http.body_template import BodyTemplate
from headgate.connectors.http.pages import PageBy, PagePosition, Paging
from headgate.connectors.http.pointer import Pointer
from headgate.java.json import loads

START = PagePosition()
NONE = Paging(PageBy.NONE)
OFFSET = Paging(PageBy.OFFSET)
LINK = Paging(PageBy.LINK)
CURSOR = Paging(PageBy.CURSOR, Pointer.parse("/next"))
OF_RECORD = Paging(PageBy.CURSOR, Pointer.parse("/id"), cursor_of_record=True)


def test_one_page_has_no_offsets_and_is_read_again() -> None:
    turned = NONE.turn(START, {}, ["a", "b"], None)
    assert (turned.new, turned.position, turned.more) == (["a", "b"], START, False)
    assert [NONE.offset(after) for after in turned.after] == [None, None]


def test_offsets_count_records() -> None:
    first = OFFSET.turn(START, {}, ["a", "b"], None)
    assert [OFFSET.offset(after) for after in first.after] == [{"offset": 1}, {"offset": 2}]
    assert first.more
    end = OFFSET.turn(first.position, {}, [], None)
    assert (end.position, end.more) == (first.position, False)


def test_the_cursor_of_a_record_is_where_to_go_on_after_it() -> None:
    first = OF_RECORD.turn(START, {}, [{"id": 7}, {"id": 9}], None)
    assert [OF_RECORD.offset(after) for after in first.after] == [{"cursor": 7}, {"cursor": 9}]
    assert first.more
    assert OF_RECORD.turn(first.position, {}, [], None).more is False
    # An API that gives the record of the cursor again would be asked without end.
    assert OF_RECORD.turn(first.position, {}, [{"id": 9}], None).more is False


def test_a_page_is_left_with_its_last_record() -> None:
    turned = CURSOR.turn(START, {"next": "n"}, ["a", "b", "c"], None)
    assert [CURSOR.offset(each) for each in turned.after] == [{"records": 1}, {"records": 2}, {"cursor": "n"}]
    assert (turned.position, turned.more) == (PagePosition("n"), True)


@pytest.mark.parametrize("end", [{}, {"next": None}, {"next": ""}, {"next": False}, {"next": "n"}])
def test_the_last_page_is_looked_at_again(end: Mapping[str, Any]) -> None:
    turned = CURSOR.turn(PagePosition("n"), end, ["a", "b"], None)
    assert (turned.position, turned.more) == (PagePosition("n", 2), False)
    assert [CURSOR.offset(each) for each in turned.after] == [
        {"cursor": "n", "records": 1},
        {"cursor": "n", "records": 2},
    ]
    again = CURSOR.turn(turned.position, {"next": "m"}, ["a", "b", "c"], None)
    assert (again.new, again.position, again.more) == (["c"], PagePosition("m"), True)
    full = CURSOR.turn(turned.position, {"next": "m"}, ["a", "b"], None)
    assert (full.new, full.after, full.position, full.more) == ([], [], PagePosition("m"), True)


def test_a_page_that_has_lost_records_gives_none_twice() -> None:
    turned = CURSOR.turn(PagePosition("n", 3), {}, ["a"], None)
    assert (turned.new, turned.position) == ([], PagePosition("n", 3))


def test_an_empty_page_moves_on_and_is_not_asked_for_more_at_once() -> None:
    turned = CURSOR.turn(PagePosition("n"), {"next": "m"}, [], None)
    assert (turned.position, turned.more) == (PagePosition("m"), False)


def test_links_are_pages_too() -> None:
    turned = LINK.turn(START, {}, ["a", "b"], "https://a/?p=2")
    assert [LINK.offset(each) for each in turned.after] == [{"records": 1}, {"link": "https://a/?p=2"}]


def test_cursors_of_any_size_stay_exact() -> None:
    tree = loads(b'[{"id": 18446744073709551616}, {"id": 9223372036854775807}, {"id": "x"}]', typed=True)
    turned = OF_RECORD.turn(START, {}, tree, None)
    assert [each.page for each in turned.after] == ["18446744073709551616", 9223372036854775807, "x"]


def test_what_is_no_cursor_is_told() -> None:
    with pytest.raises(ConnectError, match=r"A record of the answer has nothing at cursor\.pointer"):
        OF_RECORD.turn(START, {}, [{"id": None}], None)
    with pytest.raises(ConnectError, match="The cursor of a record is a list"):
        OF_RECORD.turn(START, {}, [{"id": [1]}], None)
    with pytest.raises(ConnectError, match="The cursor of the answer is an object"):
        CURSOR.turn(START, {"next": {}}, [], None)


PAGINGS = [OFFSET, LINK, CURSOR, OF_RECORD]


@pytest.mark.parametrize("paging", PAGINGS)
@given(pages=st.lists(st.integers(0, 4), min_size=1, max_size=6), data=st.data())
def test_reading_goes_on_where_an_offset_says_whatever_the_pages_are(
    paging: Paging, pages: list[int], data: st.DataObject
) -> None:
    """An API of pages of these sizes, all read once; then from the offset behind any record."""
    starts = [sum(pages[:number]) for number in range(len(pages) + 1)]
    records = [{"id": number} for number in range(starts[-1])]

    def asked(at: PagePosition) -> tuple[Any, list[Any], str | None]:
        if paging is OFFSET or paging is OF_RECORD:
            first = 0 if at.page is None else int(at.page) + (paging is OF_RECORD)
            return {}, records[first : first + 2], None
        number = 0 if at.page is None else int(str(at.page).rpartition("/")[2])
        following = f"https://a/{number + 1}" if number + 1 < len(pages) else None
        return {"next": following}, records[starts[number] : starts[number + 1]], following

    def read(at: PagePosition) -> list[tuple[int, Any]]:
        found: list[tuple[int, Any]] = []
        while True:
            turned = paging.turn(at, *asked(at))
            found += [(new["id"], paging.offset(after)) for new, after in zip(turned.new, turned.after, strict=True)]
            if turned.position == at:
                return found
            at = turned.position

    everything = read(START)
    assert [number for number, _ in everything] == list(range(starts[-1]))
    if everything:
        number, offset = data.draw(st.sampled_from(everything))
        left = [each for each, _ in read(paging.position(offset))]
        assert left == list(range(number + 1, starts[-1]))


# --- offsets of others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paging", "offset"),
    [
        (OFFSET, {"offset": 0}),
        (LINK, {"link": "https://a/?p=2"}),
        (LINK, {"link": "https://a/?p=2", "records": 3}),
        (LINK, {"records": 3}),
        (CURSOR, {"cursor": "x"}),
        (CURSOR, {"cursor": 1.5, "records": 1}),
        (OF_RECORD, {"cursor": 0}),
    ],
)
def test_offsets_come_back_as_they_were(paging: Paging, offset: dict[str, Any]) -> None:
    assert paging.offset(paging.position(offset)) == offset


@pytest.mark.parametrize(
    ("paging", "offset", "reason"),
    [
        (OFFSET, {}, "an offset has offset, not nothing"),
        (OFFSET, {"offset": -1}, "whole number, 0 or more, not -1"),
        (OFFSET, {"offset": True}, "not True"),
        (OFFSET, {"offset": "1"}, "not '1'"),
        (OFFSET, {"offset": 1 << 63}, "whole number"),
        (OFFSET, {"offset": 1, "records": 1}, "an offset has offset, not offset, records"),
        (OF_RECORD, {"cursor": "x", "records": 1}, "an offset has cursor, not cursor, records"),
        (CURSOR, {"cursor": None}, "a text or a number, not None"),
        (CURSOR, {"cursor": ""}, "a text or a number, not ''"),
        (CURSOR, {"cursor": ["x"]}, "a text or a number"),
        (CURSOR, {"link": "x"}, "an offset has cursor and records, not link"),
        (LINK, {"link": "page 2"}, "a URL, not 'page 2'"),
        (LINK, {"link": 2}, "a URL, not 2"),
        (LINK, {"link": "https://a/", "records": -1}, "records of an offset is a whole number"),
    ],
)
def test_offsets_of_another_shape_are_refused(paging: Paging, offset: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConnectError, match=reason):
        paging.position(offset)


# --- bodies -----------------------------------------------------------------------------------------------------------


def test_values_stand_in_a_body_as_json() -> None:
    body = BodyTemplate('{"after": ${cursor}, "also": [${cursor}]}')
    assert body.filled({"cursor": 'a"b'}) == b'{"after": "a\\"b", "also": ["a\\"b"]}'
    assert body.filled({}) == b'{"after": null, "also": [null]}'
    assert body.problem(PageBy.CURSOR) is None


@pytest.mark.parametrize(
    ("text", "by", "reason"),
    [
        ('{"after": "${cursor}"}', PageBy.CURSOR, "without quotation marks"),
        ("{", PageBy.NONE, "must be JSON"),
        ('{"a": NaN}', PageBy.NONE, "must be JSON"),
        ('{"after": ${cursor}}', PageBy.OFFSET, "Nothing is known of ${cursor} with page.by=offset"),
        ('{"after": ${topic}}', PageBy.CURSOR, "Nothing is known of ${topic}"),
    ],
)
def test_a_body_that_makes_no_json_is_refused(text: str, by: PageBy, reason: str) -> None:
    assert reason in (BodyTemplate(text).problem(by) or "")
