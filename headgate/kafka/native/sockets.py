"""The sockets of a native producer: librdkafka asks for each here, so the kernel can say what went through them."""

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
from ctypes import CFUNCTYPE, c_int, c_void_p, cast
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from headgate.kafka.native.calls import library

_OPEN: Final = CFUNCTYPE(c_int, c_int, c_int, c_int, c_void_p)
_CLOSE: Final = CFUNCTYPE(c_int, c_int, c_void_p)
_ESTABLISHED: Final = 1
_BYTES_AT: Final = 120
"""Where the kernel's tcp_info has the bytes that were acknowledged, and those that were received."""
_INFO_SIZE: Final = _BYTES_AT + 16


class Traffic(NamedTuple):
    connections: int
    sent: int
    received: int


class Sockets:
    """Of one producer, as long as that lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[int] = set()
        self._sent = self._received = 0
        """Through those that are closed."""
        self._number = next(_numbers)
        _known[self._number] = self

    def install(self, conf: int) -> None:
        """Into an rd_kafka_conf_t."""
        calls = library()
        calls.rd_kafka_conf_set_opaque(conf, self._number)
        calls.rd_kafka_conf_set_socket_cb(conf, cast(_opened, c_void_p))
        calls.rd_kafka_conf_set_closesocket_cb(conf, cast(_closed, c_void_p))

    def traffic(self) -> Traffic:
        with self._lock:  # none of them is closed, and its number given to another, meanwhile
            found = [Traffic(0, self._sent, self._received), *map(_info, self._open)]
        return Traffic(*(sum(column) for column in zip(*found, strict=True)))

    def opened(self, number: int) -> None:
        with self._lock:
            self._open.add(number)

    def close(self, number: int) -> None:
        with self._lock:
            try:
                last = _info(number)
                self._sent, self._received = self._sent + last.sent, self._received + last.received
            finally:
                self._open.discard(number)
                os.close(number)


def _info(number: int) -> Traffic:
    if not hasattr(socket, "TCP_INFO"):  # not on Linux
        return Traffic(1, 0, 0)
    lent = socket.socket(fileno=number)  # not a copy: there may be no room for one
    try:
        info = lent.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    finally:
        lent.detach()
    sent, received = struct.unpack_from("QQ", info, _BYTES_AT) if len(info) >= _INFO_SIZE else (0, 0)
    return Traffic(int(info[0] == _ESTABLISHED), sent, received)


# Of the whole process: a thread of librdkafka's may call them when the producer they are for is about to go.
_numbers: Final = itertools.count(1)
_known: Final[WeakValueDictionary[int, Sockets]] = WeakValueDictionary()


def _socket(domain: int, kind: int, protocol: int, owner: int) -> int:
    try:
        number = socket.socket(domain, kind, protocol).detach()
    except OSError:
        return -1
    sockets = _known.get(owner)
    if sockets is not None:
        sockets.opened(number)
    return number


def _close_socket(number: int, owner: int) -> int:
    sockets = _known.get(owner)
    try:
        os.close(number) if sockets is None else sockets.close(number)
    except OSError:
        return -1
    return 0


_opened: Final = _OPEN(_socket)
_closed: Final = _CLOSE(_close_socket)
