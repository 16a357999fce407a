"""Addresses: what is a URL to us, what leads elsewhere, and what a key can make of one."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import DataError
from headgate.connectors.http.address import Address
from headgate.connectors.http.url_template import UrlTemplate

HOME = Address.parse("https://api.example/v1/orders?limit=2")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://a", Address("http", "a", 80, "/")),
        ("HTTPS://A.Example:8443/x?y=%20z", Address("https", "a.example", 8443, "/x?y=%20z")),
        ("http://a?x=1@2", Address("http", "a", 80, "/?x=1@2")),
        ("http://[::1]:8080/", Address("http", "[::1]", 8080, "/")),
        ("http://my_service/", Address("http", "my_service", 80, "/")),
    ],
)
def test_a_url_is_taken_apart_and_put_together(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(address.url) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "ftp://a/", "http://", "http:///x", "//a/x", "http://a:0/", "http://a:99999/", "http://a:x/",
        "http://a b/", "http://a/ b", "http://a/\n", "http://a\\b", "http://ä.example/", "http://a/ä",
        "http://${topic}/", "http://a.${key}/", "http://a%2eb/",
    ],
)  # fmt: skip
def test_what_others_might_read_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a URL"):
        Address.parse(text)


@pytest.mark.parametrize(
    "text", ["https://me:secret@a.example/", "http://me@a.example", "http://a\\@b", "http://a.example@b.example?x"]
)
def test_a_login_within_a_url_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"set auth\.type instead") as refused:
        Address.parse(text)
    assert "secret" not in str(refused.value)


def test_a_url_has_no_fragment() -> None:
    with pytest.raises(ValueError, match="behind #"):
        Address.parse("https://a.example/x#y")


@given(st.text(st.sampled_from("htps:/@[]?#%\\.a1-_ \t"), max_size=12))
def test_our_host_is_that_of_the_client(rest: str) -> None:
    try:
        address = Address.parse(f"http://{rest}")
    except ValueError:
        return
    try:
        url = httpx2.URL(address.url)
    except httpx2.InvalidURL:
        return
    assert (url.scheme, url.host, url.port or 80) == (address.scheme, address.host.strip("[]"), address.port)


@pytest.mark.parametrize(
    ("home", "other", "is_home"),
    [
        ("https://a/x", "https://a/y?z", True),
        ("https://a/x", "https://a:443/y", True),
        ("https://a/x", "https://A/y", True),
        ("https://a/x", "https://a:444/", False),
        ("https://a/x", "https://b/", False),
        ("https://a/x", "http://a/", False),
        ("https://a/x", "http://a:443/", False),
        ("http://a/x", "https://a/", True),
        ("http://a:8080/x", "https://a/", False),
        ("http://a/x", "https://a:8443/", False),
    ],
)
def test_home_is_the_same_host_and_port_and_no_less_safe(home: str, other: str, is_home: bool) -> None:
    assert Address.parse(home).is_home_of(Address.parse(other)) is is_home


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("?page=2", "https://api.example/v1/orders?page=2"),
        ("/v2", "https://api.example/v2"),
        ("items#top", "https://api.example/v1/items"),
        ("//b.example/x", "https://b.example/x"),
        ("http://api.example/v1", "http://api.example/v1"),
    ],
)
def test_links_may_be_relative(reference: str, url: str) -> None:
    assert HOME.resolve(reference).url == url


@pytest.mark.parametrize("reference", ["javascript:alert(1)", "file:///etc/passwd", "https://me:x@api.example/", "//"])
def test_what_is_no_place_is_no_link(reference: str) -> None:
    if reference == "//":
        assert HOME.resolve(reference).host == "api.example"
        return
    with pytest.raises(ValueError, match="URL"):
        HOME.resolve(reference)


def test_parameters_take_the_place_of_those_with_their_names() -> None:
    address = Address.parse("https://a/x?b=%2B+1&since=0&c&si%6ece=1")
    assert address.with_parameters({"since": "a b&c"}).url == "https://a/x?b=%2B+1&c&since=a+b%26c"
    assert Address.parse("https://a/x").with_parameters({"n": "1", "m": "2"}).url == "https://a/x?n=1&m=2"
    assert address.shown == "https://a/x"


def test_parameters_with_the_names_of_secrets_are_secrets() -> None:
    assert Address.parse("https://a/x?api_key=a%2Bb&page=2&token=").secrets == ["a%2Bb", "a+b"]


# --- templates --------------------------------------------------------------------------------------------------------

ITEM = UrlTemplate.parse("https://api.example/${topic}/items/${key}?t=${topic}")


def test_topic_and_key_are_percent_encoded() -> None:
    address = ITEM.filled({"topic": "orders.eu", "key": "a/b?c#d&e=ü %"})
    assert address.url == "https://api.example/orders.eu/items/a%2Fb%3Fc%23d%26e%3D%C3%BC%20%25?t=orders.eu"


@pytest.mark.parametrize("key", ["", ".", "..", None])
def test_a_key_that_would_mean_another_place_is_refused(key: str | None) -> None:
    with pytest.raises(DataError):
        ITEM.filled({"topic": "orders", "key": key})
    with pytest.raises(DataError):
        UrlTemplate.parse("https://a/.${key}").filled({"topic": "t", "key": "."})


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_key_leads_elsewhere(key: str) -> None:
    try:
        address = UrlTemplate.parse("https://api.example/items/${key}/state").filled({"topic": "t", "key": key})
    except DataError:
        assert key in (".", "..")
        return
    url = httpx2.URL(address.url)
    assert (url.host, url.query) == ("api.example", b"")
    assert [part.decode() for part in url.raw_path.split(b"/")[1::2]] == ["items", "state"]
    assert Address.parse(address.url) == address


def test_variables_that_are_not_known_are_found() -> None:
    assert UrlTemplate.parse("https://a/${topic}/${partition}").unknown == {"partition"}
