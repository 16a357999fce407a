"""The keys of HttpSource, and what they mean together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least, non_empty, one_of
from headgate.api.config import HIGH, INT, LIST, LOW, MEDIUM, STRING
from headgate.connectors.http import client_config
from headgate.connectors.http.address import Address
from headgate.connectors.http.body_template import BodyTemplate
from headgate.connectors.http.client_config import URL, ClientConfig, valid_url
from headgate.connectors.http.pages import PageBy, PagePosition, Paging
from headgate.connectors.http.pointer import Pointer

METHOD: Final = "method"
BODY: Final = "body"
PAGE_BY: Final = "page.by"
CURSOR_POINTER: Final = "cursor.pointer"
CURSOR_IN: Final = "cursor.in"
CURSOR_PARAM: Final = "cursor.param"
OFFSET_PARAM: Final = "offset.param"
LIMIT_PARAM: Final = "limit.param"
LIMIT: Final = "limit"
LINK_HOSTS: Final = "link.hosts"

_ANSWER: Final = "answer"
_RECORD: Final = "record"


def _pointer(name: str, value: Any) -> None:
    try:
        Pointer.parse(value or "")
    except ValueError as error:
        raise ConfigError.invalid(name, value, str(error)) from None


def _hosts(name: str, value: Any) -> None:
    for each in value or ():
        try:
            fine = Address.parse(f"https://{each}").target == "/"
        except ValueError:
            fine = False
        if not fine:
            raise ConfigError.invalid(name, each, "It must be the name of a host, with a port where it has its own")


CONFIG: Final = (
    ConfigDef(
        Key(URL, STRING, validator=valid_url, importance=HIGH, doc="What to ask: the first page."),
        Key("topic", STRING, validator=non_empty, importance=HIGH, doc="Topic that records are written to."),
        Key(METHOD, STRING, default="GET", validator=one_of("GET", "POST"), doc="How to ask: GET or POST."),
        Key(
            BODY,
            STRING,
            default=None,
            doc="What POST sends: JSON, in which ${cursor}, or ${offset} and ${limit}, stand for values.",
        ),
        Key(
            "records.pointer",
            STRING,
            default="",
            validator=_pointer,
            importance=HIGH,
            doc="JSON pointer to the list of records in the answer; by default all of it, a list or one record.",
        ),
        Key(
            "key.pointer",
            STRING,
            default=None,
            validator=_pointer,
            doc="JSON pointer to the key in a record; records have no keys if absent.",
        ),
        Key(
            "timestamp.pointer",
            STRING,
            default=None,
            validator=_pointer,
            doc="JSON pointer to the time in a record: milliseconds since 1970, or ISO 8601, UTC where it has no zone.",
        ),
        Key(
            PAGE_BY,
            STRING,
            default=PageBy.NONE.value,
            validator=one_of(*(each.value for each in PageBy)),
            importance=HIGH,
            doc="How the next page is asked for: cursor, offset, link (of the header Link); none: there is but one.",
        ),
        Key(
            CURSOR_POINTER,
            STRING,
            default=None,
            validator=_pointer,
            doc="page.by=cursor: JSON pointer to the cursor.",
        ),
        Key(
            CURSOR_IN,
            STRING,
            default=_ANSWER,
            validator=one_of(_ANSWER, _RECORD),
            doc="What cursor.pointer leads into: answer, or record, of which the last one counts.",
        ),
        Key(CURSOR_PARAM, STRING, default=None, doc="page.by=cursor: query parameter that the cursor is sent as."),
        Key(
            OFFSET_PARAM, STRING, default="offset", doc="page.by=offset: query parameter for how many records to skip."
        ),
        Key(LIMIT_PARAM, STRING, default="limit", doc="page.by=offset: query parameter for limit; empty: none."),
        Key(LIMIT, INT, default=100, validator=at_least(1), doc="page.by=offset: most records of a page."),
        Key(
            LINK_HOSTS,
            LIST,
            default="",
            validator=_hosts,
            doc="page.by=link: hosts that links may lead to besides that of url. They are sent no secrets.",
        ),
        Key(
            "poll.interval.ms",
            INT,
            default=60_000,
            validator=at_least(1),
            importance=MEDIUM,
            doc="How long to wait before asking again, when all pages are read.",
        ),
        Key(
            "response.max.bytes",
            INT,
            default=64 << 20,
            validator=at_least(1),
            importance=LOW,
            doc="Largest answer, unpacked; with a larger one the task fails.",
        ),
    )
    + client_config.CONFIG
)


@dataclass(frozen=True, slots=True)
class HttpSourceConfig:
    client: ClientConfig
    topic: str
    method: str
    body: BodyTemplate | None
    records: Pointer
    key: Pointer | None
    timestamp: Pointer | None
    paging: Paging
    parameters: Mapping[str, str]
    """Names of query parameters, by what they say: cursor, offset, limit."""
    limit: int
    link_hosts: frozenset[str]
    poll_interval_s: float
    most_bytes: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> HttpSourceConfig:
        """Raises ConfigError."""
        parsed = client_config.checked(CONFIG, config, _problems)
        paging = _paging(parsed)
        return cls(
            client=ClientConfig.of(config, parsed),
            topic=parsed["topic"],
            method=parsed[METHOD],
            body=_body(parsed),
            records=Pointer.parse(parsed["records.pointer"] or ""),
            key=_optional(parsed["key.pointer"]),
            timestamp=_optional(parsed["timestamp.pointer"]),
            paging=paging,
            parameters=_parameters(parsed),
            limit=parsed[LIMIT],
            link_hosts=frozenset(each.lower() for each in parsed[LINK_HOSTS]),
            poll_interval_s=parsed["poll.interval.ms"] / 1000,
            most_bytes=parsed["response.max.bytes"],
        )

    @property
    def partition(self) -> dict[str, str]:
        """Of source offsets."""
        return {URL: self.client.address.shown}

    def may_follow(self, link: Address) -> bool:
        """Whether a link may lead there: to the same host and port, or to another one that is named; and never from
        https to http."""
        home = self.client.address
        named = {link.host, f"{link.host}:{link.port}"} & self.link_hosts
        return home.is_home_of(link) or (bool(named) and (home.scheme, link.scheme) != ("https", "http"))

    def request(self, position: PagePosition) -> tuple[Address, bytes | None]:
        """Where to ask for a page, and with which body."""
        page = position.page
        if self.paging.by is PageBy.LINK and isinstance(page, str):
            address, values = Address.parse(page), {}
        else:
            address, values = self.client.address, self._values(page)
        sent = {self.parameters[name]: _text(value) for name, value in values.items() if name in self.parameters}
        body = None if self.body is None else self.body.filled({**values})
        return address.with_parameters(sent) if sent else address, body

    def _values(self, page: Any) -> dict[str, Any]:
        if self.paging.by is PageBy.OFFSET:
            return {"offset": page or 0, "limit": self.limit}
        return {} if page is None else {self.paging.by.value: page}


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    return client_config.validated(CONFIG, config, _problems)


def _problems(config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    by, body = PageBy(parsed[PAGE_BY]), _body(parsed)
    if body is not None:
        if parsed[METHOD] != "POST":
            yield BODY, "A body is sent by POST only: set method=POST"
        if (problem := body.problem(by)) is not None:
            yield BODY, problem
    sent = body.variables if body is not None else set()
    if by is PageBy.CURSOR:
        if not parsed[CURSOR_POINTER]:
            yield CURSOR_POINTER, "page.by=cursor needs it"
        if not parsed[CURSOR_PARAM] and "cursor" not in sent:
            yield CURSOR_PARAM, "page.by=cursor needs it, unless ${cursor} stands in body"
    if by is PageBy.OFFSET and not parsed[OFFSET_PARAM] and "offset" not in sent:
        yield OFFSET_PARAM, "page.by=offset needs it, unless ${offset} stands in body"
    if by is not PageBy.LINK and parsed[LINK_HOSTS]:
        yield LINK_HOSTS, f"It has no effect with page.by={by.value}"


def _body(parsed: Mapping[str, Any]) -> BodyTemplate | None:
    return BodyTemplate(parsed[BODY]) if parsed[BODY] else None


def _paging(parsed: Mapping[str, Any]) -> Paging:
    return Paging(PageBy(parsed[PAGE_BY]), _optional(parsed[CURSOR_POINTER]), parsed[CURSOR_IN] == _RECORD)


def _optional(text: str | None) -> Pointer | None:
    return None if text is None else Pointer.parse(text)


def _parameters(parsed: Mapping[str, Any]) -> dict[str, str]:
    body = _body(parsed)
    named = {"cursor": parsed[CURSOR_PARAM], "offset": parsed[OFFSET_PARAM], "limit": parsed[LIMIT_PARAM]}
    return {what: name for what, name in named.items() if name and (body is None or what not in body.variables)}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
