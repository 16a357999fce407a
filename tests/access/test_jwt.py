"""JSON Web Tokens: which are taken, by which keys, and how keys are looked for."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwk, jwt
from joserfc.errors import SecurityWarning

from headgate.access.jwt import JsonWebTokens, KeysAtUrl, parse_keys
from headgate.access.principal import Principal
from headgate.access.tokens import TokenRefused
from headgate.api import ConfigError
from headgate.runtime.config.worker_config import COMMON

NOW = 1_800_000_000
RSA = jwk.generate_key("RSA", 2048, {"kid": "rsa"})
EC = jwk.generate_key("EC", "P-256", {"kid": "ec", "use": "sig", "alg": "ES256"})
ED = jwk.generate_key("OKP", "Ed25519", {"kid": "ed"})
OTHER = jwk.generate_key("EC", "P-256", {"kid": "ec"})
CLAIMS = {"iss": "https://id.example", "aud": "headgate", "sub": "alice", "exp": NOW + 60}


def jwks(*keys: jwk.Key) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def token(claims: Mapping[str, Any] = CLAIMS, key: jwk.Key = EC, alg: str = "ES256", **header: Any) -> str:
    return jwt.encode({"alg": alg, "kid": key.kid, **header}, dict(claims), key, algorithms=[alg])


def without(name: str) -> dict[str, Any]:
    return {claim: value for claim, value in CLAIMS.items() if claim != name}


def part(content: bytes | object) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


PUBLISHED = parse_keys(jwks(RSA, EC, ED))


def tokens(**changes: Any) -> JsonWebTokens:
    given: dict[str, Any] = {
        "keys": lambda _: PUBLISHED,
        "issuer": "https://id.example",
        "audience": ("headgate", "workers"),
        "algorithms": ("RS256", "PS256", "ES256", "Ed25519", "EdDSA"),
        "now": lambda: NOW,
    }
    return JsonWebTokens(**{**given, **changes})


# --- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kid", "alg"), [("rsa", "RS256"), ("rsa", "PS256"), ("ec", "ES256"), ("ed", "Ed25519")])
def test_tokens_of_the_issuer_are_taken(kid: str, alg: str) -> None:
    keys: dict[str, jwk.Key] = {"rsa": RSA, "ec": EC, "ed": ED}
    assert tokens().principal(token(key=keys[kid], alg=alg)) == Principal("alice", "jwt")


def test_the_older_name_of_an_algorithm_is_taken_too() -> None:
    head = f"{part({'alg': 'EdDSA', 'kid': 'ed', 'issuers.own': 1})}.{part(CLAIMS)}"
    assert isinstance(ED, jwk.OKPKey)
    sent = f"{head}.{part(ED.private_key.sign(head.encode()))}"  # type: ignore[union-attr]
    assert tokens().principal(sent).name == "alice"
    with pytest.raises(TokenRefused, match=r"EdDSA is not in headgate.login.jwt.algorithms"):
        tokens(algorithms=("Ed25519",)).principal(sent)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({**CLAIMS, "iss": "https://evil.example"}, "'iss'"),
        ({**CLAIMS, "iss": ["https://id.example"]}, "'iss'"),
        (without("iss"), "'iss'"),
        ({**CLAIMS, "aud": "others"}, "'aud'"),
        ({**CLAIMS, "aud": []}, "'aud'"),
        (without("aud"), "'aud'"),
        ({**CLAIMS, "exp": NOW - 30}, "expired"),
        ({**CLAIMS, "exp": str(NOW + 60)}, "'exp'"),
        ({**CLAIMS, "exp": float("nan")}, "'exp'"),
        (without("exp"), "'exp'"),
        ({**CLAIMS, "nbf": NOW + 31}, "not yet valid"),
        ({**CLAIMS, "iat": NOW + 31}, "in the future"),
        (without("sub"), "no name"),
        ({**CLAIMS, "sub": ""}, "no name"),
        ({**CLAIMS, "sub": 7}, "'sub'"),
    ],
)
def test_tokens_for_others_or_another_time_are_refused(claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        tokens().principal(token(claims))


@pytest.mark.parametrize(
    "claims",
    [
        {**CLAIMS, "exp": NOW - 29},
        {**CLAIMS, "nbf": NOW + 30},
        {**CLAIMS, "iat": NOW + 30},
        {**CLAIMS, "aud": ["others", "workers"]},
    ],
)
def test_clocks_may_differ_and_audiences_be_several(claims: dict[str, Any]) -> None:
    assert tokens().principal(token(claims)).name == "alice"


def test_names_and_groups_are_where_the_worker_file_says() -> None:
    made = tokens(name_claim="email", groups_claim="roles")
    claims = {**CLAIMS, "email": "a@b.c", "roles": ["x", 7, "y"], "groups": ["z"]}
    assert made.principal(token(claims)) == Principal("a@b.c", "jwt", frozenset({"x", "y"}))
    assert made.principal(token({**claims, "roles": "x"})).groups == {"x"}
    assert made.principal(token({**claims, "roles": {"x": 1}})).groups == frozenset()
    with pytest.raises(TokenRefused, match=r"headgate.login.jwt.name.claim is email"):
        made.principal(token())


def forged() -> Iterator[tuple[str, str]]:
    claims = part(CLAIMS)
    yield "none", f"{part({'alg': 'none', 'kid': 'ec'})}.{claims}."
    yield "none in capitals", f"{part({'alg': 'NONE', 'kid': 'ec'})}.{claims}."
    # The public key is no secret: whoever takes it for one of HMAC is deceived.
    for name, secret in (("pem", RSA.as_pem(private=False)), ("jwk", json.dumps(RSA.as_dict(private=False)).encode())):
        head = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{claims}"
        yield f"HS256 with the {name}", f"{head}.{part(hmac.digest(secret, head.encode(), 'sha256'))}"
    yield "another key of that name", token(key=OTHER)
    own = OTHER.as_dict(private=False)
    yield "its own key", token(key=OTHER, jwk=own)
    yield "a key elsewhere", token(key=OTHER, jku="https://evil.example/jwks")
    head, _, signature = token().split(".")
    yield "the key of another algorithm", f"{part({'alg': 'RS256', 'kid': 'ec'})}.{claims}.{signature}"
    yield "other claims", f"{head}.{part({**CLAIMS, 'sub': 'root'})}.{signature}"
    yield "no signature", f"{head}.{claims}."
    yield "no id, of several keys", jwt.encode({"alg": "ES256"}, dict(CLAIMS), EC, algorithms=["ES256"])
    yield "an id of another type", f"{part({'alg': 'ES256', 'kid': ['ec']})}.{claims}.{signature}"
    yield "crit", f"{part({'alg': 'ES256', 'kid': 'ec', 'crit': 5})}.{claims}.{signature}"
    yield "deep", f"{part(b'[' * 380)}.{part(b'[' * 90000)}.{signature}"
    yield "none of it", "some-other-kind-of-token"
    yield "dots", "." * 20
    yield "no text", "\ud800.a.b"


FORGED = dict(forged())


@pytest.mark.parametrize("what", FORGED)
def test_forged_tokens_are_refused(what: str) -> None:
    with pytest.raises(TokenRefused) as error:
        tokens().principal(FORGED[what])
    assert FORGED[what][-20:] not in str(error.value)


def test_a_key_is_for_its_own_algorithm() -> None:
    sealed = jwk.import_key({**RSA.as_dict(private=False), "alg": "PS256"})
    made = tokens(keys=lambda _: jwk.KeySet([sealed]))
    assert made.principal(token(key=RSA, alg="PS256")).name == "alice"
    with pytest.raises(TokenRefused):
        made.principal(token(key=RSA, alg="RS256"))


# --- keys -------------------------------------------------------------------------------------------------------------


def test_of_published_keys_those_are_taken_that_are_of_use(caplog: pytest.LogCaptureFixture) -> None:
    keys = json.loads(jwks(RSA, EC))["keys"]
    with pytest.warns(SecurityWarning):
        small = jwk.generate_key("RSA", 1024, {"kid": "small"}).as_dict(private=False)
    others: list[object] = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"},
        {**keys[0], "kid": "enc", "use": "enc"},
        {"kty": "post-quantum", "kid": "pq"},
        {"kty": "RSA", "kid": "broken"},
        small,
        "x",
    ]
    with pytest.warns(SecurityWarning):
        found = parse_keys(json.dumps({"keys": [*others, *keys]}))
    assert [key.kid for key in found] == ["rsa", "ec"]
    assert caplog.text.count("A key of the JWKS cannot be used") == 2


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"keys": []}', '{"keys": {}}', '{"keys": [{"kty": "oct", "k": "eA"}]}']
)
def test_what_is_no_jwks_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_keys(text)


class Issuer:
    """Publishes keys on a port of its own."""

    def __init__(self) -> None:
        self.body, self.status = jwks(EC), 200
        self.headers: dict[str, str] = {}
        self.asked = 0
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                issuer.entered.set()
                issuer.go_on.wait(10)
                self.send_response(issuer.status)
                for name, value in issuer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(issuer.body)))
                self.end_headers()
                with suppress(OSError):  # nobody reads too much of it
                    self.wfile.write(issuer.body)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks"
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    # It speaks no TLS, and whoever asks it would read all authorities of this machine before, each time.
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    made = Issuer()
    yield made
    made.go_on.set()
    made.server.shutdown()
    made.server.server_close()


class Clock:
    s = 5000.0

    def __call__(self) -> float:
        return self.s


def ids(keys: KeysAtUrl, kid: str | None = "ec") -> list[str | None]:
    return [key.kid for key in keys(kid)]


def test_keys_are_read_at_the_start_and_again_after_five_minutes(issuer: Issuer) -> None:
    keys = KeysAtUrl(issuer.url, clock := Clock())
    clock.s += 299
    assert ids(keys) == ["ec"]
    issuer.body = jwks(EC, RSA)
    assert issuer.asked == 1
    clock.s += 1
    assert ids(keys) == ["ec", "rsa"]
    assert issuer.asked == 2


def test_an_unknown_key_is_looked_for_every_ten_seconds_at_most(issuer: Issuer) -> None:
    keys = KeysAtUrl(issuer.url, clock := Clock())
    clock.s += 10
    issuer.body = jwks(EC, RSA)
    assert ids(keys, "rsa") == ["ec", "rsa"]
    for number in range(100):
        clock.s += 0.3
        ids(keys, f"stranger{number}")
    assert issuer.asked == 2 + 2
    ids(keys, None)
    assert issuer.asked == 4


def test_a_new_key_is_used_at_once_and_an_old_one_no_more(issuer: Issuer) -> None:
    made = tokens(keys=KeysAtUrl(issuer.url, clock := Clock()))
    assert made.principal(token()).name == "alice"
    issuer.body = jwks(RSA)
    clock.s += 10
    assert made.principal(token(key=RSA, alg="RS256")).name == "alice"
    with pytest.raises(TokenRefused, match="No key for kid: 'ec'"):
        made.principal(token())


def test_while_the_issuer_is_away_its_keys_are_good_for_a_day(issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    keys = KeysAtUrl(issuer.url, clock := Clock())
    issuer.server.shutdown()
    issuer.server.server_close()
    for _ in range(20):
        clock.s += 301
        assert ids(keys) == ["ec"]
    for _ in range(20):
        clock.s += 1
        ids(keys, "stranger")
    assert 1 <= len(caplog.records) <= 22
    assert f"Keys at {issuer.url}, named by headgate.login.jwks: ConnectError" in caplog.text
    clock.s += 24 * 3600
    with pytest.raises(TokenRefused, match="could not be read, or not for a day"):
        keys("ec")


@pytest.mark.parametrize(
    ("status", "body", "headers", "reason"),
    [
        (500, b"", {}, "HTTP 500"),
        (302, b"", {"Location": "/jwks"}, "HTTP 302"),
        (200, b"<html>", {}, "JSON"),
        (200, b'{"keys": []}', {}, "no JWKS"),
        (200, b" " * ((1 << 20) + 1), {}, "larger than 1048576 bytes"),
    ],
)
def test_a_worker_starts_though_keys_cannot_be_read_and_takes_them_later(
    issuer: Issuer, status: int, body: bytes, headers: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    fine, issuer.status, issuer.body, issuer.headers = issuer.body, status, body, headers
    made = tokens(keys=KeysAtUrl(issuer.url, clock := Clock()))
    assert reason in caplog.text
    assert issuer.asked == 1
    with pytest.raises(TokenRefused, match="could not be read"):
        made.principal(token())
    issuer.status, issuer.body = 200, fine
    clock.s += 10
    assert made.principal(token()).name == "alice"


def test_who_has_a_key_does_not_wait_for_newer_ones_and_who_has_none_does(issuer: Issuer) -> None:
    keys = KeysAtUrl(issuer.url, clock := Clock())
    clock.s += 300
    issuer.go_on.clear()
    issuer.entered.clear()
    issuer.body = jwks(EC, RSA)
    found: list[list[str | None]] = []
    looking = [threading.Thread(target=lambda: found.append(ids(keys, "rsa"))) for _ in range(2)]
    looking[0].start()
    assert issuer.entered.wait(5)
    looking[1].start()
    assert ids(keys) == ["ec"]
    time.sleep(0.05)
    assert found == []
    issuer.go_on.set()
    for each in looking:
        each.join(5)
    assert found == [["ec", "rsa"]] * 2
    assert issuer.asked == 2


# --- the worker file --------------------------------------------------------------------------------------------------

WORKER = {"bootstrap.servers": "a:1", "key.converter": "K", "value.converter": "V"}


def parsed(**keys: str) -> dict[str, Any]:
    """`headgate.login.` comes before each, with `_` for dots."""
    return COMMON.parse({**WORKER, **{f"headgate.login.{key.replace('_', '.')}": value for key, value in keys.items()}})


def issued(**keys: str) -> dict[str, Any]:
    return parsed(jwt_issuer="https://id.example", jwt_audience="headgate,workers", **keys)


def test_nothing_of_it_is_set() -> None:
    assert JsonWebTokens.of(parsed()) is None


def test_keys_in_a_file_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.access.watched_file._LOOK_S", 0.0)
    monkeypatch.setattr("headgate.access.watched_file._SETTLED_S", 0.0)
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(EC))
    made = JsonWebTokens.of(issued(jwks=str(path), jwt_clock_skew_ms="1500", jwt_name_claim="email"))
    assert made is not None
    assert (made.skew_s, made.name_claim, made.groups_claim) == (2, "email", "groups")
    assert (made.issuer, made.audience) == ("https://id.example", ("headgate", "workers"))
    assert made.files == [str(path)]
    assert [key.kid for key in made.keys("rsa")] == ["ec"]
    path.write_bytes(jwks(RSA))
    assert [key.kid for key in made.keys("rsa")] == ["rsa"]


def test_keys_at_a_url(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    caplog.set_level(logging.WARNING)
    made = JsonWebTokens.of(issued(jwks=issuer.url))
    assert made is not None
    assert made.files == ()
    assert [key.kid for key in made.keys("ec")] == ["ec"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (parsed(jwks="https://x"), "headgate.login.jwt.issuer must be set with headgate.login.jwks"),
        (parsed(jwks="https://x", jwt_issuer="i"), "headgate.login.jwt.audience must be set"),
        (parsed(jwt_issuer="i"), "i for configuration headgate.login.jwt.issuer: It has no effect without"),
        (parsed(jwt_audience="a"), "headgate.login.jwt.audience: It has no effect without"),
        (issued(jwks="http://id.example/jwks"), "must be an https:// URL"),
        (issued(jwks="http://localhost.evil.example/jwks"), "must be an https:// URL"),
        (issued(jwks="ftp://127.0.0.1/jwks"), "must be an https:// URL"),
        (issued(jwks="https://u:hidden-word@id.example/jwks"), "has a password in its URL"),
        (issued(jwks="https://[::/"), "headgate.login.jwks"),
        (issued(jwks="/nowhere/jwks.json"), "No such file"),
        (issued(jwks="https://x", jwt_algorithms="RS256,none"), "none is none of those"),
        (issued(jwks="https://x", jwt_algorithms="HS256"), "HS256 is none of those"),
        (issued(jwks="https://x", jwt_algorithms="rs256"), "rs256 is none of those"),
        (issued(jwks="https://x", jwt_algorithms=""), "headgate.login.jwt.algorithms"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as error:
        JsonWebTokens.of(keys)
    assert "hidden-word" not in str(error.value)
