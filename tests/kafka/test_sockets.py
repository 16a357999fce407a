"""Sockets of native producers: counted while they are open, and closed whatever is short."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from headgate.kafka.native import sockets
from headgate.kafka.native.sockets import Sockets, Traffic


@pytest.fixture
def producer() -> Sockets:
    return Sockets()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def connected(producer: Sockets, server: socket.socket) -> int:
    """As librdkafka does it; 5 bytes were sent and acknowledged."""
    number = sockets._socket(socket.AF_INET, socket.SOCK_STREAM, 0, producer._number)
    lent = socket.socket(fileno=number)
    lent.connect(server.getsockname())
    there, _ = server.accept()
    lent.sendall(b"hello")
    assert there.recv(5) == b"hello"
    there.close()
    return lent.detach()


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_what_went_through_a_socket_counts_when_it_is_closed(producer: Sockets, server: socket.socket) -> None:
    number = connected(producer, server)
    assert producer.traffic().sent >= 5
    assert sockets._close_socket(number, producer._number) == 0
    assert not is_open(number)
    assert producer.traffic().connections == 0
    assert producer.traffic().sent >= 5


def test_a_socket_is_closed_where_nothing_can_be_opened(
    producer: Sockets, server: socket.socket, no_files: Callable[[], AbstractContextManager[None]]
) -> None:
    number = connected(producer, server)
    with no_files():
        assert sockets._close_socket(number, producer._number) == 0
    assert not is_open(number)
    assert producer.traffic().sent >= 5


def test_a_socket_that_tells_nothing_is_closed(
    producer: Sockets, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> Traffic:
        raise OSError("no")

    number = connected(producer, server)
    monkeypatch.setattr(sockets, "_info", fail)
    assert sockets._close_socket(number, producer._number) == -1
    assert not is_open(number)
    assert producer.traffic() == Traffic(0, 0, 0)
