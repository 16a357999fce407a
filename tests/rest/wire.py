"""Wire: HTTP/1.1 byte by byte, on one connection."""

from __future__ import annotations

import socket
from typing import BinaryIO

from workers import Worker

Answer = tuple[int, dict[str, str], bytes]


class Wire:
    def __init__(self, server: Worker, source: str = "127.0.0.1") -> None:
        port = int(server.server.addresses[0].rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))
        self.file: BinaryIO = self.socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, *pieces: bytes) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            self.socket.sendall(piece)

    def answer(self, body: bool = True) -> Answer:
        status = int(self.file.readline().split()[1])
        lines = (line.decode().strip().partition(": ") for line in iter(self.file.readline, b"\r\n"))
        headers = {name.lower(): value for name, _, value in lines}
        return status, headers, self.file.read(int(headers.get("content-length", 0))) if body else b""

    def ended(self) -> bool:
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:  # It left while we had more to say.
            return True

    def asked(self, *pieces: bytes) -> tuple[int, bytes]:
        self.send(*pieces)
        status, _, body = self.answer()
        return status, body
