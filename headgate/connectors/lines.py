"""Lines: a column of values as the lines of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_FEW: Final = 50
"""Up to so many, Python is quicker than the calls of Arrow's functions."""


def lines_of(values: pa.ChunkedArray) -> Any:
    """A buffer with each value and a newline after it; a null is written as `null`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(values) <= _FEW:
        return "".join("null\n" if value is None else f"{value}\n" for value in values.to_pylist()).encode()
    text = pa.large_string()  # a batch may hold more than 2 GiB
    chunks = values.cast(text).fill_null("null").chunks
    # The empty string at the end gets the last line its newline.
    everything = pa.concat_arrays([*chunks, pa.array([""], text)])
    one_row = pa.LargeListArray.from_arrays(pa.array([0, len(everything)], pa.int64()), everything)
    return pc.binary_join(one_row, pa.scalar("\n", text))[0].as_buffer()
