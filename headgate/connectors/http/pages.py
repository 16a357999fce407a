"""Pages: how an API is read page by page, and from where it is gone on with; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeAlias

from headgate.api import ConnectError
from headgate.connectors.http.address import Address
from headgate.connectors.http.pointer import Pointer
from headgate.java.json import MISSING

Cursor: TypeAlias = str | int | float | bool

RECORDS: Final = "records"
_LONG: Final = 1 << 63


class PageBy(Enum):
    """What the next page is asked for with; its value is also the name that this has in offsets."""

    NONE = "none"
    CURSOR = "cursor"
    OFFSET = "offset"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class PagePosition:
    page: Cursor | None = None
    """The cursor, offset or link that the page is asked for with; None: it is the first."""
    seen: int = 0
    """So many of its records have been given."""


@dataclass(frozen=True, slots=True)
class Turned:
    """What a page has changed."""

    new: Sequence[Any]
    """Records that were not given before."""
    after: Sequence[PagePosition]
    """Where to go on after each of them."""
    position: PagePosition
    """Where to go on."""
    more: bool
    """Whether there is more to be had at once. The end, and a page without records, are asked for again later."""


@dataclass(frozen=True, slots=True)
class Paging:
    by: PageBy
    cursor: Pointer | None = None
    cursor_of_record: bool = False

    @property
    def keeps_offsets(self) -> bool:
        return self.by is not PageBy.NONE

    @property
    def _counts(self) -> bool:
        """Whether a place within a page is known only by the number of records before it."""
        return self.by is PageBy.LINK or (self.by is PageBy.CURSOR and not self.cursor_of_record)

    def turn(self, at: PagePosition, tree: Any, records: Sequence[Any], link: str | None) -> Turned:
        """`records` are those of the answer `tree` to the request for `at`, `link` is where its header Link leads.
        Raises ConnectError."""
        if self._counts:
            return self._turn_counted(at, records, link if self.by is PageBy.LINK else self._next_cursor(tree))
        if self.by is PageBy.NONE:
            return Turned(records, [at] * len(records), at, False)
        if self.by is PageBy.OFFSET:
            first = 1 + int(at.page or 0)
            after = [PagePosition(first + index) for index in range(len(records))]
        else:
            after = [PagePosition(self._cursor_of(record)) for record in records]
        position = after[-1] if after else at
        return Turned(records, after, position, position != at)

    def offset(self, position: PagePosition) -> dict[str, Any] | None:
        """As a source offset."""
        if not self.keeps_offsets:
            return None
        page = {} if position.page is None else {self.by.value: position.page}
        return {**page, RECORDS: position.seen} if position.seen else page

    def position(self, offset: Mapping[str, Any] | None) -> PagePosition:
        """Of a source offset. Raises ConnectError, which says what is wrong."""
        if offset is None or not self.keeps_offsets:
            return PagePosition()
        name = self.by.value
        known = [name, RECORDS] if self._counts else [name]
        if not offset or not offset.keys() <= {*known}:
            raise ConnectError(f"With page.by={name} an offset has {' and '.join(known)}, not {_named(offset)}")
        page, seen = offset.get(name), offset.get(RECORDS, 0)
        if type(seen) is not int or not 0 <= seen < _LONG:
            raise ConnectError(f"{RECORDS} of an offset is a whole number, 0 or more, not {seen!r}")
        if name in offset and not self._fits(page):
            raise ConnectError(f"{name} of an offset is {_KINDS[self.by]}, not {page!r}")
        return PagePosition(page, seen)

    def _turn_counted(self, at: PagePosition, records: Sequence[Any], following: Cursor | None) -> Turned:
        new = records[at.seen :]
        after = [PagePosition(at.page, at.seen + index) for index in range(1, len(new) + 1)]
        if following is None or following == at.page:
            return Turned(new, after, PagePosition(at.page, max(at.seen, len(records))), False)
        position = PagePosition(following)
        return Turned(new, [*after[:-1], position] if after else after, position, bool(records))

    def _next_cursor(self, tree: Any) -> Cursor | None:
        assert self.cursor is not None
        found = self.cursor.of(tree)
        if found is MISSING or found is None or found is False or found == "":
            return None
        return _primitive(found, "The cursor of the answer")

    def _cursor_of(self, record: Any) -> Cursor:
        assert self.cursor is not None
        found = self.cursor.of(record)
        if found is MISSING or found is None:
            raise ConnectError("A record of the answer has nothing at cursor.pointer: reading could not go on after it")
        return _primitive(found, "The cursor of a record")

    def _fits(self, page: Any) -> bool:
        match self.by:
            case PageBy.OFFSET:
                return type(page) is int and 0 <= page < _LONG
            case PageBy.LINK:
                return isinstance(page, str) and _is_address(page)
        return isinstance(page, str | int | float) and page != ""


_KINDS: Final = {
    PageBy.CURSOR: "a text or a number",
    PageBy.OFFSET: "a whole number, 0 or more",
    PageBy.LINK: "a URL",
}


def _primitive(found: Any, what: str) -> Cursor:
    if isinstance(found, Decimal) or (isinstance(found, int) and not -_LONG <= found < _LONG):
        return str(found)  # an offset's numbers have 64 bits
    if isinstance(found, str | int | float):
        return found
    raise ConnectError(f"{what} is {'a list' if isinstance(found, list) else 'an object'}, not a text or a number")


def _is_address(text: str) -> bool:
    try:
        Address.parse(text)
    except ValueError:
        return False
    return True


def _named(offset: Mapping[str, Any]) -> str:
    return ", ".join(offset) or "nothing"
