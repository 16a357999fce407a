"""Headers of many records in one column: which have some name, and all but those."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def with_name(given: pa.Array, name: str) -> pa.Array:
    """A mask of the records that have a header of this name."""
    rows, named = _found(given, [name])
    mask = np.zeros(len(given), bool)
    mask[rows[named]] = True
    return pa.array(mask)


def without(given: pa.Array, names: Collection[str]) -> pa.Array:
    """Of each record those that have none of these names, in their order."""
    rows, named = _found(given, names)
    if not named.any():
        return given
    counts = np.bincount(rows[~named], minlength=len(given))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), given.flatten().filter(pa.array(~named)), type=given.type)


def _found(given: pa.Array, names: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
    """Of each header the record that it belongs to, and whether its name is one of these."""
    rows = np.repeat(np.arange(len(given)), given.value_lengths().fill_null(0))
    named = pc.is_in(given.flatten().field("key"), pa.array(list(names), pa.string()))
    return rows, np.asarray(named)
