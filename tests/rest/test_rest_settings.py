"""What the REST API reads of the worker file: listeners, TLS, header rules."""

from __future__ import annotations

import ssl
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from starlette.datastructures import MutableHeaders

from headgate.api.errors import ConfigError
from headgate.rest.client import PeerTls
from headgate.rest.handshake import Handshake
from headgate.rest.headers import Action, HeaderRule, parse_rules
from headgate.rest.limits import RestLimits
from headgate.rest.listeners import Listener, ListenerError, Tls
from headgate.rest.settings import RestSettings


def test_without_keys_the_api_listens_on_8083_and_has_the_admin_endpoints() -> None:
    assert RestSettings.parse({}) == RestSettings()
    assert RestSettings().admin_on_main
    assert RestSettings.parse({}, ["http://127.0.0.1:8083"]).listeners == (Listener("http", "127.0.0.1", 8083),)


LIMITS = {
    "headers.timeout.ms": 1000, "body.timeout.ms": 2000, "idle.timeout.ms": 3000, "max.connections": 4,
    "max.connections.per.address": 5, "max.header.bytes": 1600, "max.headers": 7, "max.url.bytes": 800,
    "max.body.bytes": 9000,
}  # fmt: skip


def test_all_keys_are_read() -> None:
    settings = RestSettings.parse(
        {
            "listeners": "http://:8083, HTTP://[::1]:0",
            "admin.listeners": "http://localhost:9000",
            "rest.advertised.host.name": "me.example",
            "rest.advertised.port": "80",
            "rest.advertised.listener": "HTTPS",
            "access.control.allow.origin": "http://a, http://b",
            "access.control.allow.methods": "GET, PUT",
            "response.http.headers.config": "set X: y",
            "headgate.allowed.hosts": "a.example, [::1]",
            **{f"headgate.rest.{key}": str(value) for key, value in LIMITS.items()},
        }
    )
    assert settings == RestSettings(
        listeners=(Listener("http", "", 8083), Listener("http", "::1", 0)),
        admin_listeners=(Listener("http", "localhost", 9000),),
        advertised_host="me.example",
        advertised_port=80,
        advertised_listener="https",
        allow_origins=("http://a", "http://b"),
        allow_methods=("GET", "PUT"),
        header_rules=(HeaderRule(Action.SET, "X", "y"),),
        allowed_hosts=("a.example", "[::1]"),
        limits=RestLimits(1.0, 2.0, 3.0, 4, 5, 1600, 7, 800, 9000),
    )


@pytest.mark.parametrize(
    ("text", "listener", "shown"),
    [
        ("http://:8083", Listener("http", "", 8083), "http://:8083"),
        ("https://h.example:1/", Listener("https", "h.example", 1), "https://h.example:1"),
        ("http://[::1]:8083", Listener("http", "::1", 8083), "http://[::1]:8083"),
        (" http://0.0.0.0:0 ", Listener("http", "0.0.0.0", 0), "http://0.0.0.0:0"),
    ],
)
def test_a_listener_is_read_and_shown(text: str, listener: Listener, shown: str) -> None:
    assert Listener.parse(text) == listener
    assert str(listener) == shown


@pytest.mark.parametrize(
    "text", ["8083", "localhost:8083", "http://localhost", "ftp://h:1", "http://h:65536", "http://h:-1", "http://h:1/x"]
)
def test_what_is_no_listener_is_refused_with_its_key(text: str) -> None:
    with pytest.raises(ListenerError, match=r"in admin\.listeners is no listener: write http://host:port"):
        Listener.parse(text, "admin.listeners")


def test_an_unknown_advertised_listener_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rest\.advertised\.listener"):
        RestSettings.parse({"rest.advertised.listener": "ftp"})


# --- TLS --------------------------------------------------------------------------------------------------------------

PEM = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k.pem"}


@pytest.mark.parametrize(
    ("config", "tls"),
    [
        ({}, None),
        (PEM, Tls("/k.pem")),
        ({f"listeners.https.{key}": value for key, value in PEM.items()}, Tls("/k.pem")),
        (
            {
                **PEM,
                "ssl.key.password": "secret",
                "ssl.truststore.type": "pem",
                "ssl.truststore.location": "/ca.pem",
                "ssl.client.auth": "required",
            },
            Tls("/k.pem", None, "secret", "/ca.pem", ssl.CERT_REQUIRED),
        ),
        ({**PEM, "listeners.https.ssl.client.auth": "required"}, None),
        ({"ssl.keystore.location": "/clients.jks"}, None),
    ],
)
def test_pem_files_are_found_under_apache_s_keys(config: dict[str, str], tls: Tls | None) -> None:
    assert RestSettings.parse(config).tls == tls


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"listeners": "https://:1", "ssl.keystore.location": "/k.jks"}, "ssl.keystore.type"),
        ({"listeners.https.ssl.keystore.location": "/k.p12", "listeners.https.ssl.keystore.type": "PKCS12"}, "PKCS12"),
        ({**PEM, "listeners": "https://:1", "ssl.truststore.location": "/t.jks"}, "ssl.truststore.type"),
        ({**PEM, "ssl.client.auth": "maybe"}, "ssl.client.auth"),
    ],
)
def test_stores_that_are_not_pem_are_refused_where_https_needs_them(config: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        RestSettings.parse(config)


@pytest.mark.parametrize(
    ("config", "tls"),
    [
        ({}, PeerTls()),
        (PEM, PeerTls(certificate="/k.pem")),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}, PeerTls(ca="/ca.pem")),
        (
            {
                **PEM,
                "listeners.https.ssl.truststore.type": "PEM",
                "listeners.https.ssl.truststore.location": "/ca.pem",
                "listeners.https.ssl.key.password": "secret",
            },
            PeerTls("/ca.pem", None, "secret"),
        ),
        ({"ssl.endpoint.identification.algorithm": ""}, PeerTls(verify_host=False)),
        ({"ssl.endpoint.identification.algorithm": "https"}, PeerTls()),
        ({"ssl.truststore.location": "/clients.jks", "ssl.keystore.location": "/clients.p12"}, PeerTls()),
        ({"admin.listeners.https.ssl.truststore.location": "/ca.jks"}, PeerTls()),
    ],
)
def test_other_workers_are_asked_with_the_keys_of_the_main_listeners(config: dict[str, str], tls: PeerTls) -> None:
    assert RestSettings.parse(config).peer_tls == tls


@pytest.mark.parametrize("auth", ["requested", "required"])
@pytest.mark.parametrize("prefix", ["", "listeners.https.", "admin.listeners.https."])
def test_clients_certificates_need_somebody_who_signs_them(auth: str, prefix: str) -> None:
    config = {prefix + key: value for key, value in {**PEM, "ssl.client.auth": auth}.items()}
    expected = (
        rf"{auth} for configuration {prefix}ssl\.client\.auth: Set {prefix}ssl\.truststore\.location to a PEM file"
    )
    with pytest.raises(ConfigError, match=expected):
        RestSettings.parse({"listeners": "https://:1", **config})


TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
ALL_OF_1_3 = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("protocols", "suites", "expected"),
    [
        ("", "", Handshake()),
        ("TLSv1.3,TLSv1.2", "", Handshake()),
        ("TLSv1.2", "", Handshake(TLS_1_2, TLS_1_2)),
        ("TLSv1.3", "", Handshake(TLS_1_3, TLS_1_3)),
        (
            "TLSv1.2",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
            Handshake(TLS_1_2, TLS_1_2, "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384"),
        ),
        (
            "TLSv1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Handshake(TLS_1_2, TLS_1_2, "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ),
        (
            "TLSv1.2",
            "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384,TLS_RSA_WITH_AES_128_CBC_SHA",
            Handshake(TLS_1_2, TLS_1_2, "ECDHE-RSA-AES256-SHA384:AES128-SHA"),
        ),
        ("TLSv1.2", "ECDHE+AESGCM:!AES128", Handshake(TLS_1_2, TLS_1_2, "ECDHE+AESGCM:!AES128")),
        ("", ALL_OF_1_3, Handshake(TLS_1_3, TLS_1_3)),
        (
            "",
            f"{ALL_OF_1_3},TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Handshake(ciphers="ECDHE-RSA-AES128-GCM-SHA256"),
        ),
    ],
)
@pytest.mark.parametrize("prefix", ["", "listeners.https."])
def test_versions_and_cipher_suites_are_chosen_by_kafkas_keys(
    prefix: str, protocols: str, suites: str, expected: Handshake
) -> None:
    keys = {**PEM, "ssl.enabled.protocols": protocols, "ssl.cipher.suites": suites}
    found = RestSettings.parse({"listeners": "https://:1", **{prefix + key: value for key, value in keys.items()}})
    assert found.tls == Tls("/k.pem", handshake=expected)
    assert found.peer_tls == PeerTls(certificate="/k.pem", handshake=expected)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (
            "enabled.protocols",
            "TLSv1.2,TLSv1.1",
            "TLSv1.1 .*: The REST API speaks TLSv1.2 and TLSv1.3, and nothing older",
        ),
        ("cipher.suites", "TLS_RSA_WITH_RC4_128_MD5", "TLS_RSA_WITH_RC4_128_MD5 .* no such cipher suite"),
        ("cipher.suites", "ECDHE-RSA-AES128-GCM-SHA256:NONSENSE", "NONSENSE .* no such cipher suite"),
    ],
)
def test_what_is_too_old_or_unknown_is_refused_where_https_needs_it(key: str, value: str, reason: str) -> None:
    config = {**PEM, f"ssl.{key}": value}
    with pytest.raises(ConfigError, match=reason):
        RestSettings.parse({"listeners": "https://:1", **config})
    assert RestSettings.parse(config).tls == Tls("/k.pem")  # it is for Kafka clients


def test_suites_of_tls_1_3_alone_need_it() -> None:
    config = {**PEM, "ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": ALL_OF_1_3}
    with pytest.raises(ConfigError, match=r"All of these need TLSv1\.3 in ssl\.enabled\.protocols"):
        RestSettings.parse({"listeners": "https://:1", **config})


def test_a_trust_store_that_is_not_pem_is_refused_where_https_needs_it() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.type"):
        RestSettings.parse({"listeners.https.ssl.truststore.location": "/t.jks"})


@pytest.mark.parametrize("tls", [PeerTls(ca="{file}"), PeerTls(certificate="{file}")])
@pytest.mark.parametrize("content", [None, "nonsense"])
def test_unusable_files_are_named(tmp_path: Path, tls: PeerTls, content: str | None) -> None:
    file = tmp_path / "k.pem"
    if content is not None:
        file.write_text(content)
    named = replace(tls, ca=tls.ca and str(file), certificate=tls.certificate and str(file))
    with pytest.raises(ConfigError, match=r"Cannot use the PEM files for https to other workers \(.*k\.pem\)"):
        named.context()


# --- header rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", ()),
        ("set X-Frame-Options: DENY", (HeaderRule(Action.SET, "X-Frame-Options", "DENY"),)),
        (
            'add X-XSS-Protection: 1; mode=block, "SET Cache-Control: no-cache, no-store" ,setDate Expires:1000',
            (
                HeaderRule(Action.ADD, "X-XSS-Protection", "1; mode=block"),
                HeaderRule(Action.SET, "Cache-Control", "no-cache, no-store"),
                HeaderRule(Action.SET_DATE, "Expires", "1000"),
            ),
        ),
        ("addDate Last-Modified: 0", (HeaderRule(Action.ADD_DATE, "Last-Modified", "0"),)),
    ],
)
def test_header_rules_are_read(text: str, rules: tuple[HeaderRule, ...]) -> None:
    assert parse_rules(text) == rules


@pytest.mark.parametrize(
    "text",
    [
        "X: y",
        "remove X: y",
        "set X",
        "set X Y: z",
        'set "X: y',
        "setDate Expires: soon",
        "set X: a\r\nb: c",
    ],
)
def test_unreadable_header_rules_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"response\.http\.headers\.config"):
        parse_rules(text)


def test_set_replaces_add_adds_and_dates_count_from_now() -> None:
    headers = MutableHeaders({"x": "old", "y": "old"})
    for rule in parse_rules("set X: new, add Y: new, setDate Expires: 60000, addDate Expires: 0"):
        rule.apply(headers, now=1_000_000)
    assert headers.getlist("x") == ["new"]
    assert headers.getlist("y") == ["old", "new"]
    assert [parsedate_to_datetime(date).timestamp() for date in headers.getlist("expires")] == [1_000_060, 1_000_000]
