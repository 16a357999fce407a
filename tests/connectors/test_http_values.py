"""Small things of HTTP: JSON pointers, headers Link and Retry-After, the pace of requests, what an answer means."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.connectors.http.answer import HttpAnswer, Outcome
from headgate.connectors.http.links import next_link
from headgate.connectors.http.pace import RequestPace
from headgate.connectors.http.pointer import Pointer
from headgate.connectors.http.retry_after import retry_after_s
from headgate.java.json import MISSING

RFC_6901 = {
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", RFC_6901),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
        ("/foo/2", MISSING),
        ("/foo/-", MISSING),
        ("/foo/00", MISSING),
        ("/foo/-1", MISSING),
        ("/foo/99999999999999999999", MISSING),
        ("/foo/0/x", MISSING),
        ("/nothing", MISSING),
        ("/nothing/at/all", MISSING),
    ],
)
def test_a_pointer_leads_to_what_the_rfc_says(pointer: str, found: Any) -> None:
    assert Pointer.parse(pointer).of(RFC_6901) == found


def test_an_escaped_tilde_is_no_slash() -> None:
    assert Pointer.parse("/~01").of({"~1": "right", "/": "wrong"}) == "right"


@pytest.mark.parametrize("text", ["foo", "foo/bar", "/~", "/~2", "/a~", "#/foo"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON pointer"):
        Pointer.parse(text)


@pytest.mark.parametrize(
    ("header", "link"),
    [
        ("", None),
        ('<https://a.example/?page=2>; rel="next"', "https://a.example/?page=2"),
        ("<https://a.example/?page=2>; rel=next", "https://a.example/?page=2"),
        ("<x>;rel=NEXT", "x"),
        ("<x>; REL = next", "x"),
        ('<x>; rel="last next"', "x"),
        ('<x>; rel="nextish"', None),
        ('<x>; rel="prev"; rel="next"', None),
        ('<a>; rel="prev", <b>; rel="next", <c>; rel="next"', "b"),
        ('<a,b;c>; title="x, <y>; rel=\\"next\\""; rel=prev, <d>; rel=next', "d"),
        ("<a>; crossorigin; rel=next", "a"),
        (", ,<a>; rel=next", "a"),
        ("<a>", None),
        ("< a >; rel=next", "a"),
        ("a; rel=next", None),
        ("<a; rel=next", None),
        ('<a>; rel="prev" nonsense <b>; rel=next', None),
    ],
)
def test_the_next_link_of_a_header(header: str, link: str | None) -> None:
    assert next_link(header) == link


NOW = 1_700_000_000.0
"""Tue, 14 Nov 2023 22:13:20 GMT"""


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("99999999999999999999", None),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:50 -0000", 30.0),
        ("Tuesday, 14-Nov-23 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("Tue, 99 Nov 2023 22:13:00 GMT", None),
        ("Tue, 14 Nov 99999 22:13:00 GMT", None),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds


def test_requests_come_evenly() -> None:
    pace = RequestPace(4.0)
    assert pace.left(10.0) == 0
    pace.begin(10.0)
    assert [pace.left(now) for now in (10.0, 10.2, 10.25, 11.0)] == pytest.approx([0.25, 0.05, 0.0, 0.0])
    pace.begin(11.0)  # a pause is not made up for
    assert pace.left(11.0) == pytest.approx(0.25)


def test_without_a_limit_nobody_waits() -> None:
    pace = RequestPace(0.0)
    pace.begin(10.0)
    assert pace.left(10.0) == 0


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((200, 201, 202, 204, 299), Outcome.DONE),
        ((408, 425, 429, 500, 502, 503, 504, 599), Outcome.LATER),
        ((301, 302, 304, 400, 401, 403, 404, 409, 410, 413, 422, 499), Outcome.REFUSED),
    ],
)
def test_what_a_status_means(statuses: tuple[int, ...], outcome: Outcome) -> None:
    assert {HttpAnswer(status, {}, b"").outcome for status in statuses} == {outcome}


def test_only_who_is_overloaded_says_when_to_come_again() -> None:
    assert [HttpAnswer(status, {"retry-after": "9"}, b"").retry_after_s for status in (429, 503, 500)] == [9, 9, None]


def test_a_status_of_the_server_s_own_has_no_words() -> None:
    assert HttpAnswer(404, {}, b"").status_line == "404 Not Found"
    assert HttpAnswer(499, {}, b"").status_line == "499"
