"""Reads the offset file of Apache Kafka Connect's standalone mode: one serialized HashMap<byte[], byte[]>.

Not a reader of Java serialization: it knows this one shape and refuses all others, so it never makes an object of a
class that a file names. The grammar is chapter 6 of Java's Object Serialization Specification.
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"\xac\xed\x00\x05"

_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = (bytes([tag]) for tag in b"pqrsuwx")
_FIRST_HANDLE: Final = 0x7E0000

# Class descriptors as Java has written them since 1.2; the numbers in them are part of Java's API.
_HASH_MAP: Final = (
    _CLASS + b"\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1"
    b"\x03\x00\x02F\x00\x0aloadFactorI\x00\x09threshold" + _END + _NULL
)
_BYTE_ARRAY: Final = _CLASS + b"\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00" + _END + _NULL


class JavaStreamError(ValueError):
    """The bytes are not such a map, or not all of it."""


def read_java_offsets(data: bytes) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values in the order of the file. Raises JavaStreamError."""
    stream = _Stream(data)
    stream.expect(MAGIC, "the header of a Java serialization stream")
    stream.expect(_OBJECT + _HASH_MAP, "a java.util.HashMap")
    stream.skip(8)  # load factor and threshold
    stream.expect(_BLOCK + b"\x08", "the size of the map")
    stream.skip(4)  # number of buckets
    size = stream.integer()
    pairs = [(stream.byte_array(), stream.byte_array()) for _ in range(size)]
    stream.expect(_END, "the end of the map")
    if stream.left:
        raise JavaStreamError(f"{stream.left} bytes follow the map")
    return pairs


class _Stream:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        # What a reference may mean, by handle. The first two are HashMap's class and the map itself.
        self._handles: list[bytes | str] = ["class", "map"]

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def byte_array(self) -> bytes | None:
        tag = self._take(1)
        if tag == _NULL:
            return None
        if tag == _REFERENCE and isinstance(again := self._referred(), bytes):
            return again
        if tag != _ARRAY:
            self._at -= 1
            raise self._wrong("an array of bytes")
        self._array_class()
        array = self._take(self.integer())
        self._handles.append(array)
        return array

    def _array_class(self) -> None:
        if self._data.startswith(_REFERENCE, self._at):
            self._at += 1
            if self._referred() != "[B":
                raise self._wrong("an array of bytes")
        else:
            self.expect(_BYTE_ARRAY, "an array of bytes")
            self._handles.append("[B")

    def _referred(self) -> bytes | str:
        handle = self.integer() - _FIRST_HANDLE
        if not 0 <= handle < len(self._handles):
            raise self._wrong("a reference to something before it")
        return self._handles[handle]

    def expect(self, expected: bytes, what: str) -> None:
        if not self._data.startswith(expected, self._at):
            raise self._wrong(what)
        self._at += len(expected)

    def integer(self) -> int:
        return int.from_bytes(self._take(4), "big")

    def skip(self, count: int) -> None:
        self._take(count)

    def _take(self, count: int) -> bytes:
        if count > self.left:
            raise JavaStreamError(f"the file ends early, after {len(self._data)} bytes")
        self._at += count
        return self._data[self._at - count : self._at]

    def _wrong(self, what: str) -> JavaStreamError:
        return JavaStreamError(f"byte {self._at} does not begin {what}")
