"""Lines: a column of values as the lines of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_FEW: Final = 50
"""Up to so many, Python is quicker than the calls of Arrow's functions."""
_LARGE: Final = 1 << 30
"""Bytes from which on a column may be too long for text with offsets of 32 bits, once it has its newlines."""


def lines_of(values: pa.ChunkedArray) -> Any:
    """A buffer with each value and a newline after it; a null is written as `null`."""
    if len(values) <= _FEW:
        return "".join("null\n" if value is None else f"{value}\n" for value in values.to_pylist()).encode()
    buffers = [_lines(chunk) for chunk in values.chunks if len(chunk)]
    return buffers[0] if len(buffers) == 1 else b"".join(map(memoryview, buffers))


def _lines(chunk: pa.Array) -> pa.Buffer:
    import pyarrow as pa
    import pyarrow.compute as pc

    text = chunk.cast(pa.large_string()) if chunk.nbytes > _LARGE else chunk
    # The texts of a column lie one after the other: with a newline at the end of each they are the lines.
    return pc.binary_join_element_wise(text.fill_null("null"), "", "\n").buffers()[2]
