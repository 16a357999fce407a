"""The codecs of record batches. pyarrow has them all; Kafka wraps one of them in a way of its own."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

_XERIAL: Final = b"\x82SNAPPY\x00"


def decompress(codec: int, data: bytes) -> bytes:
    """Raises ValueError for an unknown codec and for damage."""
    unpack = _CODECS.get(codec)
    if unpack is None:
        raise ValueError(f"compression codec {codec} is not known")
    try:
        return unpack(data)
    except (OSError, EOFError, zlib.error, MemoryError) as error:  # damage may ask for any amount of memory
        raise ValueError(str(error) or type(error).__name__) from error


def _snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data)
    blocks, at = [], len(_XERIAL) + 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        blocks.append(_snappy_block(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(blocks)


def _snappy_block(data: bytes) -> bytes:
    size = 0
    for place, byte in enumerate(data[:5]):  # it begins with its size
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return bytes(pa.decompress(data, size, codec="snappy", asbytes=True))


def _stream(codec: str) -> Callable[[bytes], bytes]:
    def unpack(data: bytes) -> bytes:
        with pa.CompressedInputStream(pa.py_buffer(data), codec) as stream:
            return bytes(stream.read())

    return unpack


_CODECS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    1: gzip.decompress,
    2: _snappy,
    3: _stream("lz4"),
    4: _stream("zstd"),
}
