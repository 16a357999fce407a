"""TLS of listeners and between workers: what is agreed upon, who is let in, and certificates that change and expire."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from authority import Authority
from cryptography import x509
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from workers import LOCAL, worker

from headgate.rest import certificates
from headgate.rest.certificates import Certificate
from headgate.rest.client import AsyncClients, BlockingClients, PeerTls
from headgate.rest.listeners import Listener, ListenerError, Tls
from headgate.rest.peers import HttpPeers
from headgate.rest.routing import CERTIFICATE
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings
from headgate.runtime.ports import PeerError

HTTPS = Listener("https", "127.0.0.1", 0)
MODERN = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_LOOK_S", 0)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def caller(scope: Scope, receive: Receive, send: Send) -> None:
    """Tells clients what is known of them."""
    request = Request(scope)
    found = request.scope.get(CERTIFICATE)
    await JSONResponse(None if found is None else dict(found["subject"][0]))(scope, receive, send)


@contextmanager
def served(tls: Tls) -> Iterator[Server]:
    with Server(RestSettings(listeners=(HTTPS,), tls=tls)) as server:
        server.start(caller)
        yield server


class Client:
    """One connection, over which it asks."""

    def __init__(self, server: Server, authority: Authority, own: Path | None = None, **versions: ssl.TLSVersion):
        context = ssl.create_default_context(cafile=authority.ca)
        for name, version in versions.items():
            setattr(context, name, version)
        if own is not None:
            context.load_cert_chain(own)
        self._http = httpx2.Client(verify=context, base_url=server.addresses[0], trust_env=False)
        self.said = self.ask()
        """What the server knows."""

    def ask(self) -> object:
        with self._http.stream("GET", "/") as answer:
            stream = answer.extensions["network_stream"]
            self.tls: ssl.SSLSocket = stream.get_extra_info("ssl_object")
            answer.read()
            return answer.json()

    @property
    def server(self) -> str:
        found = self.tls.getpeercert()
        assert found is not None
        return str(dict(each[0] for each in found["subject"])["commonName"])  # type: ignore[misc]

    def close(self) -> None:
        self._http.close()


def shown(server: Server, authority: Authority) -> str:
    """The name of its certificate, to somebody who comes now."""
    with closing(Client(server, authority)) as client:
        return client.server


# --- certificates that change -----------------------------------------------------------------------------------------


@pytest.mark.process
def test_who_connects_sees_the_new_certificate_and_who_is_connected_is_not_disturbed(
    authority: Authority, tmp_path: Path
) -> None:
    """As Kubernetes does it: a link leads to a folder, and is replaced."""
    link, other = tmp_path / "data", tmp_path / "data.new"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        authority.issue(name).rename(tmp_path / name / "tls.pem")
    link.symlink_to("first")
    with served(Tls(str(link / "tls.pem"))) as server, closing(Client(server, authority)) as before:
        assert before.server == "first"
        other.symlink_to("second")
        other.rename(link)
        assert shown(server, authority) == "second"
        before.ask()
        assert before.server == "first"


@pytest.mark.process
@pytest.mark.parametrize("share", [None, 0, 0.3])
def test_files_of_no_use_leave_the_old_certificate_and_are_complained_of_once(
    authority: Authority, caplog: pytest.LogCaptureFixture, share: float | None
) -> None:
    """Such as one that is gone, or of which only a part has been written."""
    file = authority.issue("worker")
    good = file.read_bytes()
    with served(Tls(str(file))) as server:
        if share is None:
            file.unlink()
        else:
            file.write_bytes(good[: int(len(good) * share)])
        assert [shown(server, authority) for _ in range(3)] == ["worker"] * 3
        (line,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        assert line.startswith(f"Cannot use the PEM files of https ({file}): ")
        (warning,) = server.warnings()
        assert "https in listeners cannot be used, and the old one goes on" in warning
        assert str(file) not in warning
        file.write_bytes(authority.issue("renewed").read_bytes())
        assert shown(server, authority) == "renewed"
        assert server.warnings() == []


@pytest.mark.process
def test_who_signs_clients_certificates_is_read_again(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "another ca")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.ca.read_bytes())
    client = other.issue("client")
    with served(Tls(str(authority.issue("worker")), ca=str(trusted), client_auth=ssl.CERT_REQUIRED)) as server:
        with pytest.raises(httpx2.TransportError):
            Client(server, authority, client)
        trusted.write_bytes(other.ca.read_bytes())
        with closing(Client(server, authority, client)) as made:
            assert made.said == {"commonName": "client"}


def test_files_are_looked_at_once_a_second_at_most(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_LOOK_S", 1.0)
    certificate = _certificate(authority.issue("worker"))
    before = certificate.context()
    authority.issue("worker", 91)
    assert certificate.context() is before
    later = time.monotonic() + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    after = certificate.context()
    assert after is not before
    assert certificate.context() is after


# --- certificates that expire -----------------------------------------------------------------------------------------


def _certificate(file: Path) -> Certificate:
    tls = Tls(str(file))
    return Certificate("admin.listeners", tls.certificate, tls.files, tls.context)


@pytest.mark.parametrize(
    ("days", "level", "text"),
    [
        (30.5, None, ""),
        (29.5, logging.WARNING, "expires in 29 days, at {}"),
        (0.5, logging.WARNING, "expires in 0 days, at {}"),
        (-0.5, logging.ERROR, "has expired at {}: clients refuse it"),
    ],
)
def test_the_end_of_a_certificate_is_told_once_a_day(
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    days: float,
    level: int | None,
    text: str,
) -> None:
    certificate = _certificate(authority.issue("worker", days))
    end = certificate.not_after
    assert end is not None
    assert end == pytest.approx(time.time() + days * 86400, abs=5)
    when = dt.datetime.fromtimestamp(end, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = [] if level is None else [f"The certificate for https in admin.listeners {text.format(when)}"]
    for _ in range(3):
        certificate.context()
        assert certificate.warnings() == told
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [(level, line) for line in told]
    tomorrow = time.time() + 86400
    monkeypatch.setattr(time, "time", lambda: tomorrow)
    for _ in range(3):
        certificate.context()
    assert len(caplog.records) == (1 if level is None else 2)  # the first one nears its end by now


def test_a_renewed_certificate_ends_the_warning(authority: Authority) -> None:
    certificate = _certificate(authority.issue("worker", 3))
    assert len(certificate.warnings()) == 1
    authority.issue("worker", 60)
    assert certificate.warnings() == []
    assert certificate.not_after == pytest.approx(time.time() + 60 * 86400, abs=5)


@pytest.mark.process
def test_a_server_warns_at_its_start_and_tells_when_its_certificates_end(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = (LOCAL, HTTPS, HTTPS)
    with Server(RestSettings(listeners=listeners, tls=Tls(str(authority.issue("worker", 12.5))))) as server:
        server.start(caller)
        (line,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        assert line.startswith("The certificate for https in listeners expires in 12 days, at ")
        assert server.warnings() == [line]
        assert list(server.certificate_ends) == server.addresses[1:]
        assert server.certificate_ends[server.addresses[1]] == pytest.approx(time.time() + 12.5 * 86400, abs=5)


def test_a_certificate_whose_end_cannot_be_read_is_used_all_the_same(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("too strict")

    monkeypatch.setattr(x509, "load_pem_x509_certificates", refuse)
    certificate = _certificate(authority.issue("worker", -1))
    assert certificate.not_after is None
    assert certificate.warnings() == []
    certificate.context()


# --- what is agreed upon ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [Tls("{}"), PeerTls(certificate="{}")])
def test_nothing_old_is_agreed_to(authority: Authority, tls: Tls | PeerTls) -> None:
    file = str(authority.issue("worker"))
    context = type(tls)(certificate=file).context()
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    for option in (ssl.OP_NO_COMPRESSION, ssl.OP_NO_RENEGOTIATION, ssl.OP_CIPHER_SERVER_PREFERENCE):
        assert option in context.options
    names = {each["name"] for each in context.get_ciphers()} - MODERN
    assert names
    assert all(name.startswith("ECDHE-") and ("-GCM-" in name or "CHACHA20" in name) for name in names)


PEM = "listeners.https.ssl.{}"


def _settings(file: Path, **keys: str) -> RestSettings:
    """With ssl keys, whose dots are underscores here."""
    keys = {"keystore_type": "PEM", "keystore_location": str(file), **keys}
    return RestSettings.parse(
        {
            "listeners": "https://127.0.0.1:0",
            **{PEM.format(name.replace("_", ".")): value for name, value in keys.items()},
        }
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("keys", "agreed"),
    [
        ({}, ("TLSv1.3", None)),
        ({"enabled_protocols": "TLSv1.3, TLSv1.2"}, ("TLSv1.3", None)),
        ({"enabled_protocols": "TLSv1.2"}, ("TLSv1.2", None)),
        (
            {"enabled_protocols": "TLSv1.2", "cipher_suites": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
            ("TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ),
        (
            {
                "enabled_protocols": "TLSv1.2",
                "cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            },
            ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),  # the server's order, not the client's
        ),
    ],
)
def test_kafkas_keys_say_what_is_agreed_to(
    authority: Authority, keys: dict[str, str], agreed: tuple[str, str | None]
) -> None:
    with Server(_settings(authority.issue("worker"), **keys)) as server:
        server.start(caller)
        with closing(Client(server, authority)) as client:
            name, version, _ = client.tls.cipher() or ("", "", 0)
            assert (version, name if agreed[1] else None) == agreed


@pytest.mark.process
def test_a_client_without_a_version_in_common_is_refused(authority: Authority) -> None:
    with Server(_settings(authority.issue("worker"), enabled_protocols="TLSv1.3")) as server:
        server.start(caller)
        with pytest.raises(httpx2.TransportError):
            Client(server, authority, maximum_version=ssl.TLSVersion.TLSv1_2)


def test_what_cannot_be_chosen_is_said(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    suites = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    Server(_settings(authority.issue("worker"), cipher_suites=suites)).stop()
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.startswith("listeners.https.ssl.cipher.suites chooses for TLS 1.2 only: ")


# --- who is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize(
    ("auth", "shows", "known"),
    [
        (ssl.CERT_NONE, True, None),
        (ssl.CERT_OPTIONAL, False, None),
        (ssl.CERT_OPTIONAL, True, {"commonName": "client"}),
        (ssl.CERT_REQUIRED, True, {"commonName": "client"}),
    ],
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_have_the_clients_certificate_if_it_was_checked(
    authority: Authority, auth: ssl.VerifyMode, shows: bool, known: object, version: ssl.TLSVersion
) -> None:
    own = authority.issue("client") if shows else None
    with (
        served(Tls(str(authority.issue("worker")), ca=str(authority.ca), client_auth=auth)) as server,
        closing(Client(server, authority, own, maximum_version=version)) as client,
    ):
        assert client.said == client.ask() == known


@pytest.mark.process
@pytest.mark.parametrize("shows", ["own", "another's", "nothing"])
def test_workers_that_ask_each_other_for_certificates(authority: Authority, tmp_path: Path, shows: str) -> None:
    """Each has a certificate of its own, and both trust who signed it."""
    store = {"truststore_type": "PEM", "truststore_location": str(authority.ca), "client_auth": "required"}
    leading, following = (_settings(authority.issue(name), **store) for name in ("leader", "follower"))
    peer_tls = following.peer_tls
    if shows != "own":
        (tmp_path / "other").mkdir()
        file = Authority(tmp_path / "other", "another ca").issue("stranger") if shows == "another's" else None
        peer_tls = PeerTls(str(authority.ca), None if file is None else str(file))
    asked = RestSettings(listeners=(LOCAL,), peer_tls=peer_tls)
    with worker(leading) as leader, worker(asked) as follower, closing(HttpPeers(peer_tls)) as peers:
        follower.follow(leader.url)
        answer = follower.ask("PUT", "/connectors/a/stop")
        if shows == "own":
            assert answer.status_code == 204
            peers.fence(leader.url, "a", None)
            assert leader.herder.calls == [("stop", "a"), ("fence", "a")]
        else:
            assert answer.status_code == 500
            assert answer.json()["message"].startswith("IO Error trying to forward REST request: ")
            with pytest.raises(PeerError, match="got no answer"):
                peers.fence(leader.url, "a", None)
            assert leader.herder.calls == []


@pytest.mark.parametrize(
    ("listeners", "is_open"),
    [
        ("http://127.0.0.1:0", []),
        ("http://localhost:0,http://127.0.0.2:0", []),
        ("http://:0", [0]),
        ("http://127.0.0.1:0,http://0.0.0.0:0", [1]),
    ],
)
def test_listeners_beyond_this_machine_are_open_to_everybody_without_logins(listeners: str, is_open: list[int]) -> None:
    with Server(RestSettings.parse({"listeners": listeners})) as server:
        said = server.open_to_everybody(has_logins=False)
        assert server.open_to_everybody(has_logins=True) is None
        urls = ", ".join(server.addresses[index] for index in is_open)
        assert (said or "").partition(" is open to everybody")[0] == (f"The REST API at {urls}" if urls else "")


@pytest.mark.parametrize("auth", [ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED])
def test_nobody_gets_in_without_a_certificate_where_it_is_required(authority: Authority, auth: ssl.VerifyMode) -> None:
    tls = Tls(str(authority.issue("worker")), ca=str(authority.ca), client_auth=auth)
    with Server(RestSettings(listeners=(Listener("https", "", 0),), tls=tls)) as server:
        assert (server.open_to_everybody(has_logins=False) is None) == (auth is ssl.CERT_REQUIRED)


def test_an_admin_listener_is_one_of_them() -> None:
    with Server(RestSettings(listeners=(LOCAL,), admin_listeners=(Listener("http", "", 0),))) as server:
        assert server.admin_addresses[0] in (server.open_to_everybody(has_logins=False) or "")


def test_an_unusable_certificate_leaves_no_socket_open() -> None:
    with pytest.raises(ListenerError, match="Cannot use the PEM files"):
        Server(RestSettings(listeners=(LOCAL, HTTPS), tls=Tls("/nowhere.pem")))


# --- clients between workers ------------------------------------------------------------------------------------------


def test_a_client_is_made_anew_when_its_files_change_and_closed_when_nobody_needs_it(authority: Authority) -> None:
    clients = BlockingClients(PeerTls(str(authority.ca), str(authority.issue("worker"))))
    with clients.lent() as first:
        authority.issue("worker", 91)
        with clients.lent() as second:
            assert second is not first
        assert not first.is_closed
        with clients.lent() as third:
            assert third is second
    assert first.is_closed
    assert not second.is_closed
    authority.ca.write_text("nonsense")
    with clients.lent() as fourth:
        assert fourth is second
    clients.close()
    assert second.is_closed


def test_so_it_is_with_those_that_do_not_block(authority: Authority) -> None:
    async def lend() -> None:
        clients = AsyncClients(PeerTls(str(authority.ca), str(authority.issue("worker"))))
        async with clients.lent() as first:
            pass
        authority.issue("worker", 91)
        async with clients.lent() as second:
            assert second is not first
            assert not first.is_closed  # there might be somebody in need of it
        assert first.is_closed
        await clients.aclose()
        assert second.is_closed

    asyncio.run(lend())


@pytest.mark.process
def test_a_request_under_way_is_answered_though_certificates_change(authority: Authority) -> None:
    own, ca = authority.issue("client"), str(authority.ca)
    clients = BlockingClients(PeerTls(ca, str(own)))
    with (
        served(Tls(str(authority.issue("worker")), ca=ca, client_auth=ssl.CERT_REQUIRED)) as server,
        closing(clients),
        clients.lent() as before,
    ):
        assert before.get(server.addresses[0]).json() == {"commonName": "client"}
        own.write_bytes(authority.issue("renewed").read_bytes())
        with clients.lent() as after:
            assert after.get(server.addresses[0]).json() == {"commonName": "renewed"}
        assert before.get(server.addresses[0]).json() == {"commonName": "client"}
