"""The keys of HttpSource and HttpSink: what is refused, with which words, and what is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from headgate.api import ConfigError, ConnectError, ExactlyOnceSupport, Reach, ReachKind
from headgate.connectors import HttpSink, HttpSource
from headgate.connectors.http.address import Address
from headgate.connectors.http.pages import PagePosition
from headgate.connectors.http.sink_config import HttpSinkConfig
from headgate.connectors.http.source_config import HttpSourceConfig
from headgate.runtime.config.masking import MASKED, masked
from headgate.runtime.plugins import Plugins

URL = "https://api.example/orders"
SOURCE = {"url": URL, "topic": "orders"}
SINK = {"url": URL}
SECRET = "open-sesame"


def errors(connector: type[HttpSource] | type[HttpSink], config: Mapping[str, str]) -> dict[str, list[str]]:
    """By key. What validation finds wrong cannot be started either, and the other way round."""
    found = {value.name: value.errors for value in connector().validate(config) if value.errors}
    parse: Any = HttpSourceConfig.of if connector is HttpSource else HttpSinkConfig.of
    if found:
        with pytest.raises(ConfigError) as raised:
            parse(config)
        assert str(raised.value) in [each for listed in found.values() for each in listed]
    else:
        parse(config)
    return found


def test_little_is_needed() -> None:
    assert errors(HttpSource, SOURCE) == {}
    assert errors(HttpSink, SINK) == {}


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ({"url": "orders"}, "url", "It must be a URL such as"),
        ({"topic": ""}, "topic", "non-empty"),
        ({"method": "PUT"}, "method", "one of: GET, POST"),
        ({"body": "{}"}, "body", "set method=POST"),
        ({"body": "{", "method": "POST"}, "body", "It must be JSON"),
        ({"records.pointer": "items"}, "records.pointer", "A JSON pointer begins with /"),
        ({"key.pointer": "/~"}, "key.pointer", "~0"),
        ({"timestamp.pointer": "x"}, "timestamp.pointer", "A JSON pointer"),
        ({"page.by": "page"}, "page.by", "one of: none, cursor, offset, link"),
        ({"page.by": "cursor", "cursor.param": "c"}, "cursor.pointer", "page.by=cursor needs it"),
        ({"page.by": "cursor", "cursor.pointer": "/c"}, "cursor.param", "unless ${cursor} stands in body"),
        ({"page.by": "offset", "offset.param": ""}, "offset.param", "unless ${offset} stands in body"),
        ({"page.by": "offset", "limit": "0"}, "limit", "at least 1"),
        ({"link.hosts": "b.example"}, "link.hosts", "It has no effect with page.by=none"),
        ({"page.by": "link", "link.hosts": "b.example/x"}, "link.hosts", "the name of a host"),
        ({"page.by": "link", "link.hosts": "https://b.example"}, "link.hosts", "the name of a host"),
        ({"poll.interval.ms": "0"}, "poll.interval.ms", "at least 1"),
        ({"response.max.bytes": "0"}, "response.max.bytes", "at least 1"),
    ],
)
def test_what_a_source_refuses(more: dict[str, str], key: str, reason: str) -> None:
    (told,) = errors(HttpSource, {**SOURCE, **more})[key]
    assert reason in told


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ({"url": "https://${topic}.example/"}, "url", "It must be a URL"),
        ({"url": f"{URL}/${{offset}}"}, "url", "not ${offset}"),
        ({"url": f"{URL}/${{key}}", "batch.format": "ndjson"}, "url", "needs batch.format=single"),
        ({"method": "GET"}, "method", "one of: POST, PUT, PATCH"),
        ({"batch.format": "csv"}, "batch.format", "one of: single, json-array, ndjson"),
        ({"batch.max.records": "0"}, "batch.max.records", "at least 1"),
        ({"value.format": "avro"}, "value.format", "one of: json, text"),
        ({"on.null": "delete"}, "on.null", "it needs ${key} in url"),
        ({"idempotency.header": "a b"}, "idempotency.header", "no name of a header"),
        ({"idempotency.header": "Id", "batch.format": "ndjson"}, "idempotency.header", "It needs batch.format=single"),
        ({"retry.max": "-2"}, "retry.max", "at least -1"),
    ],
)
def test_what_a_sink_refuses(more: dict[str, str], key: str, reason: str) -> None:
    (told,) = errors(HttpSink, {**SINK, **more})[key]
    assert reason in told


@pytest.mark.parametrize(
    ("more", "key", "reason"),
    [
        ({"auth.type": "digest"}, "auth.type", "one of: none, basic, bearer, header"),
        ({"auth.type": "basic", "auth.user": "me"}, "auth.password", "auth.type=basic needs it"),
        ({"auth.type": "basic", "auth.password": SECRET}, "auth.user", "auth.type=basic needs it"),
        ({"auth.type": "basic", "auth.user": "a:b", "auth.password": SECRET}, "auth.user", "no colon"),
        ({"auth.type": "bearer"}, "auth.token", "auth.type=bearer needs it"),
        ({"auth.token": SECRET}, "auth.token", "It has no effect with auth.type=none"),
        ({"auth.type": "bearer", "auth.token": f"{SECRET}\nX: y"}, "auth.token", "no line ends"),
        ({"auth.type": "bearer", "auth.token": f"{SECRET}ü"}, "auth.token", "only ASCII"),
        ({"auth.type": "header", "auth.token": SECRET, "auth.header": "a:b"}, "auth.header", "no name of a header"),
        ({"auth.type": "header", "auth.token": SECRET, "auth.header": ""}, "auth.header", "auth.type=header needs it"),
        ({"headers.a b": "x"}, "headers.a b", "no name of a header"),
        ({"headers.": "x"}, "headers.", "no name of a header"),
        ({"headers.A": "x\r\ny"}, "headers.A", "no line ends"),
        ({"headers.A": ""}, "headers.A", "at least one character"),
        ({"headers.Host": "b.example"}, "headers.Host", "sets this header itself"),
        ({"headers.Authorization": SECRET}, "headers.Authorization", "set auth.type, or secret.headers.Authorization"),
        ({"headers.A": "x", "secret.headers.a": SECRET}, "secret.headers.a", "set twice"),
        ({"secret.headers.A": f"{SECRET}\n"[::-1] + "\nx"}, "secret.headers.A", "no line ends"),
        (
            {"auth.type": "bearer", "auth.token": SECRET, "secret.headers.authorization": SECRET},
            "secret.headers.authorization",
            "set twice",
        ),
        ({"ssl.key.location": "key.pem"}, "ssl.key.location", "no effect without ssl.certificate.location"),
        ({"ssl.key.password": SECRET}, "ssl.key.password", "no effect without ssl.certificate.location"),
        ({"rate.limit.per.second": "-1"}, "rate.limit.per.second", "number of requests a second"),
        ({"rate.limit.per.second": "NaN"}, "rate.limit.per.second", "number of requests a second"),
        ({"rate.limit.per.second": "Infinity"}, "rate.limit.per.second", "number of requests a second"),
        ({"request.timeout.ms": "0"}, "request.timeout.ms", "at least 1"),
    ],
)
def test_what_both_refuse_without_telling_secrets(more: dict[str, str], key: str, reason: str) -> None:
    for connector, config in ((HttpSource, SOURCE), (HttpSink, SINK)):
        found = errors(connector, {**config, **more})
        assert list(found) == [key]
        assert reason in found[key][0]
        assert SECRET not in str(found)
        assert SECRET not in [
            value.value for value in connector().validate({**config, **more}) if "header" in value.name
        ]


def test_secret_headers_are_not_shown_and_go_to_one_host_only() -> None:
    config = {**SINK, "secret.headers.X-One": SECRET, "headers.X-Api-Key": "by-its-name", "headers.X-Two": "seen"}
    shown = {value.name: value.value for value in HttpSink().validate(config)}
    assert [shown[key] for key in [*config][1:]] == ["[hidden]", "[hidden]", "seen"]
    headers = HttpSinkConfig.of(config).client.headers
    assert headers.plain == {"X-Two": "seen"}
    assert headers.secret == {"X-One": SECRET, "X-Api-Key": "by-its-name"}


def test_workers_mask_all_that_is_secret() -> None:
    secret = [
        "auth.password", "auth.token", "ssl.key.password", "secret.headers.X-One", "headers.X-Api-Key",
        "headers.X-Token",
    ]  # fmt: skip
    seen = ["url", "auth.user", "auth.header", "headers.Accept", "ssl.key.location"]
    for connector in (HttpSource, HttpSink):
        config = {"connector.class": connector.aliases[0], **dict.fromkeys([*secret, *seen], SECRET)}
        shown = masked(config, Plugins([connector]))
        assert sorted(key for key, value in shown.items() if value == MASKED) == sorted(secret)


def test_a_login_is_hidden_in_all_its_forms() -> None:
    basic = HttpSinkConfig.of({**SINK, "auth.type": "basic", "auth.user": "me", "auth.password": SECRET}).client.headers
    assert basic.secret == {"Authorization": "Basic bWU6b3Blbi1zZXNhbWU="}
    assert {SECRET, "bWU6b3Blbi1zZXNhbWU="} <= {*basic.hidden}
    bearer = HttpSinkConfig.of({**SINK, "auth.type": "bearer", "auth.token": SECRET}).client.headers
    assert bearer.secret == {"Authorization": f"Bearer {SECRET}"}
    named = HttpSinkConfig.of({**SINK, "auth.type": "header", "auth.token": SECRET}).client.headers
    assert named.secret == {"X-API-Key": SECRET}


def test_what_is_reached_is_said_also_of_wrong_configurations() -> None:
    config = {
        **SOURCE, "page.by": "link", "link.hosts": "b.example, c.example:8443,", "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem", "ssl.key.location": "key.pem",
    }  # fmt: skip
    assert [*HttpSource.reaches(config)] == [
        Reach(ReachKind.HOST, URL, "url"),
        Reach(ReachKind.READ, "ca.pem", "ssl.ca.location"),
        Reach(ReachKind.READ, "me.pem", "ssl.certificate.location"),
        Reach(ReachKind.READ, "key.pem", "ssl.key.location"),
        Reach(ReachKind.HOST, "b.example", "link.hosts"),
        Reach(ReachKind.HOST, "c.example:8443", "link.hosts"),
    ]
    assert [*HttpSink.reaches({"url": "nonsense"})] == [Reach(ReachKind.HOST, "nonsense", "url")]
    assert [*HttpSink.reaches({})] == []


# --- requests ---------------------------------------------------------------------------------------------------------


def asked(config: Mapping[str, str], page: Any = None) -> tuple[str, bytes | None]:
    address, body = HttpSourceConfig.of({**SOURCE, **config}).request(PagePosition(page))
    return address.url, body


def test_pages_are_asked_for_by_parameters() -> None:
    cursor = {"page.by": "cursor", "cursor.pointer": "/next", "cursor.param": "after", "url": f"{URL}?after=start&a=b"}
    assert asked(cursor) == (f"{URL}?after=start&a=b", None)
    assert asked(cursor, "x y") == (f"{URL}?a=b&after=x+y", None)
    assert asked(cursor, True) == (f"{URL}?a=b&after=true", None)
    offset = {"page.by": "offset", "limit": "20", "limit.param": "size"}
    assert asked(offset) == (f"{URL}?offset=0&size=20", None)
    assert asked({**offset, "limit.param": ""}, 40) == (f"{URL}?offset=40", None)
    assert asked({"page.by": "link"}, "https://api.example/p/2") == ("https://api.example/p/2", None)
    assert asked({}) == (URL, None)


def test_what_stands_in_the_body_is_no_parameter() -> None:
    post = {"method": "POST", "page.by": "cursor", "cursor.pointer": "/next", "body": '{"after": ${cursor}}'}
    assert asked(post) == (URL, b'{"after": null}')
    assert asked(post, 7) == (URL, b'{"after": 7}')
    assert asked({**post, "cursor.param": "after"}, 7) == (URL, b'{"after": 7}')
    offset = {"method": "POST", "page.by": "offset", "body": "[${offset}, ${limit}]"}
    assert asked(offset, 200) == (URL, b"[200, 100]")


@pytest.mark.parametrize(
    ("url", "link", "followed"),
    [
        (URL, "https://api.example/2", True),
        (URL, "http://api.example/2", False),
        (URL, "https://api.example:8443/2", False),
        (URL, "https://b.example/2", True),
        (URL, "https://B.example:8443/2", True),
        (URL, "http://b.example/2", False),
        (URL, "https://c.example:8443/2", True),
        (URL, "https://c.example/2", False),
        (URL, "https://d.example/2", False),
        ("http://api.example", "http://b.example/2", True),
        ("http://api.example", "https://api.example/2", True),
    ],
)
def test_links_are_followed_to_hosts_that_are_named_and_never_to_less_safe_ones(
    url: str, link: str, followed: bool
) -> None:
    config = {"url": url, "topic": "t", "page.by": "link", "link.hosts": "b.example,c.example:8443"}
    assert HttpSourceConfig.of(config).may_follow(Address.parse(link)) is followed


# --- offsets ----------------------------------------------------------------------------------------------------------

CURSOR = {**SOURCE, "page.by": "cursor", "cursor.pointer": "/next", "cursor.param": "after"}


@pytest.mark.kip(875, "altering offsets")
def test_offsets_can_be_altered() -> None:
    secret_url = {**CURSOR, "url": f"{URL}?api_key={SECRET}"}
    for config in (CURSOR, secret_url):
        assert HttpSource().alter_offsets(config, [({"url": URL}, {"cursor": "x", "records": 2})])
    linked = {**SOURCE, "page.by": "link"}
    assert HttpSource().alter_offsets(linked, [({"url": URL}, {"link": f"{URL}?page=2"})])
    assert HttpSource().alter_offsets(SOURCE, [({"anything": 1}, None)])
    assert HttpSink().alter_offsets(SINK, {})


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize(
    ("config", "partition", "offset", "reason"),
    [
        (SOURCE, {"url": URL}, {"offset": 1}, "With page.by=none there are no offsets"),
        (CURSOR, {"url": "https://api.example/others"}, {"cursor": "x"}, "The partition of this connector is"),
        (CURSOR, {"url": URL, "x": 1}, {"cursor": "x"}, "The partition of this connector is"),
        (CURSOR, None, {"cursor": "x"}, "The partition of this connector is"),
        (CURSOR, {"url": URL}, {"offset": 1}, "an offset has cursor and records, not offset"),
        ({**SOURCE, "page.by": "link"}, {"url": URL}, {"link": "https://b.example/"}, "No link is followed to"),
    ],
)
def test_offsets_that_could_not_be_gone_on_from_are_refused(
    config: dict[str, str], partition: Any, offset: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConnectError, match=reason):
        HttpSource().alter_offsets(config, [(partition, offset)])


def test_exactly_once_needs_offsets() -> None:
    for by in ("cursor", "offset", "link"):
        assert HttpSource().exactly_once_support({"page.by": by}) is ExactlyOnceSupport.SUPPORTED
    assert HttpSource().exactly_once_support({}) is ExactlyOnceSupport.UNSUPPORTED
    assert HttpSource().exactly_once_support({"page.by": " none "}) is ExactlyOnceSupport.UNSUPPORTED
