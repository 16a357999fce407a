"""HttpSourceTask: asks for page after page, and gives what is new."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from headgate.api import ConnectError, RetriableError, SourceRecord, SourceTask
from headgate.api.reach import Reach, ReachKind
from headgate.connectors.http.address import Address
from headgate.connectors.http.answer import HttpAnswer, Outcome
from headgate.connectors.http.client import HttpClient
from headgate.connectors.http.links import next_link
from headgate.connectors.http.pace import RequestPace
from headgate.connectors.http.pages import PageBy, PagePosition
from headgate.connectors.http.source_config import LINK_HOSTS, HttpSourceConfig
from headgate.java.json import MISSING, loads, plain
from headgate.log import is_secret

log = logging.getLogger(__name__)

_IDLE_S: Final = 1.0
_TROUBLE_S: Final = 4.0
"""While the server is left alone, `poll` says why so often: the task's verdict and the log show it."""
_JSON: Final = {"Accept": "application/json"}
_JSON_BODY: Final = {**_JSON, "Content-Type": "application/json"}
_LONG: Final = 1 << 63
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS: Final = dt.timedelta(milliseconds=1)


class HttpSourceTask(SourceTask):
    """The offset says which page to ask for and, where the API has no names for places within it, how many records of
    it were given. A page that is asked for again must begin with the same records."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._client: HttpClient | None = None
        self._due = 0.0
        """When to ask again, by the monotonic clock."""
        self._failures = 0
        self._trouble: str | None = None
        """Why nothing is asked until then."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = HttpSourceConfig.of(config)
        self._partition = self._config.partition
        self._position = self._stored()
        self._pace = RequestPace(self._config.client.requests_per_second)
        self._client = HttpClient(self._config.client, self.context.require)

    def poll(self) -> Sequence[SourceRecord] | None:
        if not self._is_due():
            if self._trouble is not None and not self._stop.is_set():
                raise RetriableError(self._trouble)
            return None
        address, body = self._config.request(self._position)
        if self._config.paging.by is PageBy.LINK and self._position.page is not None:
            self._check_link(address)
        answer = self._asked(address, body)
        return None if answer is None else self._records(address, answer)

    def stop_requested(self) -> None:
        self._stop.set()
        client = self._client
        if client is not None:
            client.interrupt()

    def stop(self) -> None:
        self._stop.set()
        if self._client is not None:
            self._client.close()

    def _stored(self) -> PagePosition:
        if not self._config.paging.keeps_offsets:
            return PagePosition()
        try:
            return self._config.paging.position(self.context.offset_reader.offset(self._partition))
        except ConnectError as error:
            advice = "Stop the connector, alter or reset its offsets, and resume it"
            raise ConnectError(f"The stored offset is of no use: {error}. {advice}") from error

    def _is_due(self) -> bool:
        left = self._due - time.monotonic()
        if left > 0:
            self._stop.wait(min(left, _IDLE_S if self._trouble is None else _TROUBLE_S))
        return not self._stop.is_set() and time.monotonic() >= self._due

    # --- asking -------------------------------------------------------------------------------------------------------

    def _asked(self, address: Address, body: bytes | None) -> HttpAnswer | None:
        """The answer; None when the task is to stop. Raises RetriableError, and ConnectError for what does not pass."""
        assert self._client is not None
        config, method = self._config, self._config.method
        self._pace.begin(time.monotonic())
        try:
            answer = self._client.ask(method, address, body, _JSON if body is None else _JSON_BODY, config.most_bytes)
        except RetriableError as error:
            if self._stop.is_set():
                return None
            raise self._later(str(error), None) from error
        if answer.outcome is Outcome.LATER:
            raise self._later(self._client.complaint(method, address, answer), answer.retry_after_s)
        if answer.outcome is Outcome.REFUSED:
            raise ConnectError(self._client.complaint(method, address, answer))
        if not answer.whole:
            raise ConnectError(
                f"The answer to {method} {address.shown} has more than {config.most_bytes} bytes: ask for smaller"
                " pages, or allow more with response.max.bytes"
            )
        self._failures, self._trouble = 0, None
        return answer

    def _later(self, text: str, retry_after_s: float | None) -> RetriableError:
        self._failures += 1
        delay = self._config.client.delay_s(self._failures, retry_after_s)
        now = time.monotonic()
        self._due = now + max(delay, self._pace.left(now))
        self._trouble = f"{text}; asked again after {delay:.1f} s, {self._failures} in a row"
        return RetriableError(self._trouble)

    # --- pages --------------------------------------------------------------------------------------------------------

    def _records(self, address: Address, answer: HttpAnswer) -> list[SourceRecord] | None:
        tree = self._tree(address, answer)
        records = self._found(address, tree)
        turned = self._config.paging.turn(self._position, tree, records, self._next_link(address, answer))
        if self._position.seen > len(records):
            log.warning(
                "A page of %s has %d records, of which %d were given before: new ones are missed until it has more",
                address.shown, len(records), self._position.seen,
            )  # fmt: skip
        made = [self._record(record, after) for record, after in zip(turned.new, turned.after, strict=True)]
        self._position = turned.position
        now = time.monotonic()
        self._due = now + max(self._pace.left(now), 0.0 if turned.more else self._config.poll_interval_s)
        return made or None

    def _tree(self, address: Address, answer: HttpAnswer) -> Any:
        """The answer, numbers exact as yet. Raises ConnectError."""
        if not answer.body:
            return MISSING
        try:
            return loads(answer.body, typed=True)
        except ValueError as error:
            assert self._client is not None
            told = f"The answer to {self._config.method} {address.shown} is not JSON"
            raise ConnectError(f"{told}: {self._client.excerpt(answer)}") from error

    def _found(self, address: Address, tree: Any) -> list[Any]:
        pointer = self._config.records
        found = pointer.of(tree)
        if isinstance(found, list):
            return found
        if found is None or tree is MISSING:
            return []
        if not pointer.names:
            return [found]
        what = "nothing" if found is MISSING else "no list"
        raise ConnectError(f"The answer to {self._config.method} {address.shown} has {what} at records.pointer")

    def _next_link(self, address: Address, answer: HttpAnswer) -> str | None:
        if self._config.paging.by is not PageBy.LINK:
            return None
        text = next_link(answer.headers.get("link", ""))
        if text is None:
            return None
        try:
            link = address.resolve(text)
        except ValueError as error:
            raise ConnectError(
                f"The next page of {address.shown} has a link that cannot be followed: {error}"
            ) from None
        self._check_link(link)
        return link.url

    def _check_link(self, link: Address) -> None:
        """Raises ConnectError when it may not be followed, or would tell a secret to whoever reads offsets."""
        if not self._config.may_follow(link):
            raise ConnectError(
                f"The next page is said to be at {link.shown}: links are followed to the host and port of url, and to"
                f" those that {LINK_HOSTS} names, but never from https to http"
            )
        if not self._config.client.address.is_home_of(link):
            self.context.require(Reach(ReachKind.HOST, link.url, LINK_HOSTS))
        if any(secret in link.url for secret in self._config.client.headers.hidden if is_secret(secret)):
            raise ConnectError(
                "The link to the next page has a secret in it, which may not be stored as an offset: see to it that the"
                " secret is sent in a header"
            )

    # --- records ------------------------------------------------------------------------------------------------------

    def _record(self, found: Any, after: PagePosition) -> SourceRecord:
        config = self._config
        return SourceRecord(
            topic=config.topic,
            value=plain(found),
            key=None if config.key is None else _value(config.key.of(found)),
            timestamp=None if config.timestamp is None else _timestamp(_value(config.timestamp.of(found))),
            source_partition=self._partition if config.paging.keeps_offsets else None,
            source_offset=config.paging.offset(after),
        )


def _value(found: Any) -> Any:
    return None if found is MISSING else plain(found)


def _timestamp(found: Any) -> int | None:
    """In milliseconds. Raises ConnectError."""
    if found is None:
        return None
    ms = -1
    with suppress(ValueError, OverflowError):
        if isinstance(found, int | float) and not isinstance(found, bool):
            ms = int(found)
        elif isinstance(found, str):
            when = dt.datetime.fromisoformat(found)
            ms = ((when if when.tzinfo else when.replace(tzinfo=dt.UTC)) - _EPOCH) // _MS
    if not 0 <= ms < _LONG:
        raise ConnectError(
            f"A record has {str(found)[:100]!r} at timestamp.pointer: neither milliseconds since 1970 nor a time of"
            " ISO 8601"
        )
    return ms
