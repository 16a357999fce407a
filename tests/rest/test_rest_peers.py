"""What a worker asks of others by itself, signed, and https between workers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from rest_fakes import FakeHerder
from starlette.applications import Starlette
from workers import LOCAL, Worker, other, worker

from headgate.model import SessionKey
from headgate.rest.client import PeerTls
from headgate.rest.peers import HttpPeers
from headgate.rest.settings import RestSettings
from headgate.runtime.distributed.signatures import Signatures
from headgate.runtime.errors import BadRequest, Elsewhere, HerderError
from headgate.runtime.ports import PeerError, PeerRequest, Peers, Signer

pytestmark = pytest.mark.process

SIGNATURES = Signatures(strict=True)
KEY = SIGNATURES.new_key(0)
NOW = 1_700_000_000_000
NAME = "a/b %é.."


def sign(asked: PeerRequest) -> Mapping[str, str]:
    return SIGNATURES.sign(KEY, asked, NOW)


class Verifying(FakeHerder):
    """Of a leader that has read the session key, and wants all of a request to be signed."""

    def check(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        SIGNATURES.verify(asked, headers, KEY, NOW)
        return True


@pytest.fixture(scope="module")
def served() -> Iterator[Worker]:
    with worker(herder=Verifying()) as made:
        yield made


@pytest.fixture
def leader(served: Worker) -> Worker:
    return served.reset()


@pytest.fixture
def peers() -> Iterator[Peers]:
    with closing(HttpPeers()) as made:
        yield made


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.kip(507, "internal requests are signed")
def test_requests_are_signed_and_arrive(leader: Worker, peers: Peers) -> None:
    peers.put_task_configs(leader.url, NAME, [{"task.class": "T", "ü": '"'}, {}], sign)
    peers.put_task_configs(leader.url, NAME, [], sign)
    peers.fence(leader.url, NAME, sign)
    peers.take_leave(leader.url.rstrip("/"), "connect-h:1-x", sign)
    assert leader.herder.calls == [
        ("put_task_configs", NAME, [{"task.class": "T", "ü": '"'}, {}]),
        ("put_task_configs", NAME, []),
        ("fence", NAME),
        ("took_leave", "connect-h:1-x"),
    ]
    assert {each.query for each in leader.seen} == {"forward=false"}
    assert {each.headers["user-agent"] for each in leader.seen} == {"kafka-connect"}


@pytest.mark.kip(507, "internal requests are signed")
@pytest.mark.parametrize(
    ("signer", "status", "message"),
    [
        (None, 400, "Internal request missing required signature"),
        (
            lambda asked: SIGNATURES.sign(SessionKey(b"old", "HmacSHA256", 0), asked, NOW),
            403,
            r"Internal request contained invalid signature\.",
        ),
    ],
)
def test_a_signature_that_is_refused_is_told_with_its_status(
    leader: Worker, peers: Peers, signer: Signer | None, status: int, message: str
) -> None:
    calls: list[Callable[[], None]] = [
        lambda: peers.put_task_configs(leader.url, "a", [], signer),
        lambda: peers.fence(leader.url, "a", signer),
        lambda: peers.take_leave(leader.url, "m", signer),
    ]
    for call in calls:
        with pytest.raises(PeerError, match=f"was answered {status}: {message}") as caught:
            call()
        assert caught.value.status == status
    assert leader.herder.calls == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadRequest("Cannot submit non-empty set of task configs for stopped connector a"), 400),
        (HerderError("Error writing task configurations to Kafka"), 500),
    ],
)
def test_what_the_leader_says_is_told(leader: Worker, peers: Peers, error: Exception, status: int) -> None:
    leader.herder.errors["put_task_configs"] = error
    with pytest.raises(PeerError, match=str(error)) as caught:
        peers.put_task_configs(leader.url, "a", [{}], sign)
    assert caught.value.status == status


def test_whoever_does_not_lead_says_so_instead_of_passing_it_on_unsigned(leader: Worker, peers: Peers) -> None:
    leader.herder.errors["fence"] = Elsewhere("http://127.0.0.1:1/")
    with pytest.raises(PeerError, match="conflicting operation") as caught:
        peers.fence(leader.url, "a", sign)
    assert caught.value.status == 409


def test_a_leader_that_does_not_know_of_goodbyes_is_no_problem(peers: Peers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headgate.rest.peers")
    with other(Starlette()) as url:
        peers.take_leave(url, "m", sign)
        with pytest.raises(PeerError, match="was answered 404: no reason that could be read"):
            peers.fence(url, "a", sign)
    assert [record.levelno for record in caplog.records if record.name == "headgate.rest.peers"] == [logging.DEBUG]


def test_a_worker_that_cannot_be_reached_has_no_status(peers: Peers) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        gone = f"http://127.0.0.1:{found.getsockname()[1]}/"
    for url in (gone, "http://[::1/", "nowhere"):
        with pytest.raises(PeerError, match="got no answer") as caught:
            peers.take_leave(url, "m", sign)
        assert caught.value.status is None


def test_once_closed_nobody_is_asked_any_more(leader: Worker) -> None:
    peers = HttpPeers()
    peers.close()
    with pytest.raises(PeerError, match="closed"):
        peers.fence(leader.url, "a", sign)
    assert leader.seen == []


def test_requests_come_from_many_threads_over_few_connections(leader: Worker, peers: Peers) -> None:
    problems: list[Exception] = []

    def ask() -> None:
        try:
            for _ in range(10):
                peers.fence(leader.url, "a", sign)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert problems == []
    assert len(leader.herder.calls) == 80
    assert len({each.client for each in leader.seen}) <= 8


# --- https ------------------------------------------------------------------------------------------------------------


def secured(pem: Path, prefix: str = "listeners.https.", **more: str) -> dict[str, str]:
    """Keys of a worker that serves https alone, and trusts its equals."""
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(pem),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return {"listeners": "https://127.0.0.1:0", **{prefix + key: value for key, value in keys.items()}}


def trusting(config: dict[str, str]) -> RestSettings:
    """Of a worker that is itself asked over http."""
    return RestSettings.parse({**config, "listeners": "http://127.0.0.1:0"})


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
@pytest.mark.parametrize("auth", ["none", "required"])
def test_workers_ask_each_other_over_https(pem: Path, prefix: str, auth: str) -> None:
    config = secured(pem, prefix, ssl_client_auth=auth)
    settings = trusting(config)
    with worker(RestSettings.parse(config), Verifying("a")) as leader, worker(settings) as follower:
        assert leader.url.startswith("https://127.0.0.1:")
        follower.follow(leader.url)
        assert follower.ask("PUT", "/connectors/a/stop").status_code == 204
        with closing(HttpPeers(settings.peer_tls)) as peers:
            peers.fence(leader.url, "a", sign)
        assert leader.herder.calls == [("stop", "a"), ("fence", "a")]


def test_a_certificate_that_nobody_vouches_for_is_refused(pem: Path) -> None:
    with worker(RestSettings.parse(secured(pem))) as leader, worker() as follower:
        follower.follow(leader.url)
        answer = follower.ask("PUT", "/connectors/a/stop")
        assert answer.status_code == 500
        assert answer.json()["message"].startswith("IO Error trying to forward REST request: ")
        assert "certificate verify failed" in answer.json()["message"]
        with closing(HttpPeers()) as peers, pytest.raises(PeerError, match="certificate verify failed"):
            peers.fence(leader.url, "a", sign)
        assert leader.herder.calls == []


def test_without_a_certificate_of_its_own_a_worker_is_not_heard_where_one_is_required(pem: Path) -> None:
    with worker(RestSettings.parse(secured(pem, ssl_client_auth="required"))) as leader:
        settings = RestSettings(listeners=(LOCAL,), peer_tls=PeerTls(ca=str(pem)))
        with worker(settings) as follower, closing(HttpPeers(settings.peer_tls)) as peers:
            follower.follow(leader.url)
            assert follower.ask("PUT", "/connectors/a/stop").status_code == 500
            with pytest.raises(PeerError, match="got no answer"):
                peers.fence(leader.url, "a", sign)
        assert leader.herder.calls == []


@pytest.mark.parametrize(("algorithm", "status"), [("https", 500), ("", 204)])
def test_the_host_of_a_certificate_is_checked_unless_that_is_switched_off(
    pem: Path, algorithm: str, status: int
) -> None:
    config = secured(pem, ssl_endpoint_identification_algorithm=algorithm)
    advertised = RestSettings.parse({**config, "rest.advertised.host.name": "localhost"})
    with worker(advertised) as leader, worker(trusting(config)) as follower:
        assert leader.url.startswith("https://localhost:")
        follower.follow(leader.url)
        answer = follower.ask("PUT", "/connectors/a/stop")
        assert answer.status_code == status
        if status == 500:
            assert "ostname mismatch" in answer.json()["message"]
