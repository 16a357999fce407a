"""Items of lists and maps, written as rows of their own: those of one list stand together then, and are one part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from headgate.pipeline.converters.registry.columns import views
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.scalars import Parts
from headgate.pipeline.converters.registry.columns.varints import Longs, Mask


def counts(array: pa.Array, live: Mask | None) -> Longs:
    """Of the items of each list; 0 where there is none."""
    found = np.diff(views.bounds(array))
    return found if live is None else found * live


def written(
    array: pa.Array, live: Mask | None, pieces: Pieces, write: Callable[[list[pa.Array], Pieces], None]
) -> Parts:
    """What is written of the items of each list. `write` gets all items, of maps the keys and the values; lists with
    items that it refuses are refused."""
    bounds = views.bounds(array)
    first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
    items = Pieces(count)
    inside = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    write([each.slice(first, count) for each in inside], items)
    if items.wrong is not None:
        rows = np.repeat(np.arange(len(array)), np.diff(bounds))
        pieces.refuse(np.isin(np.arange(len(array)), rows[items.wrong]))
    joined = items.joined()
    ends = views.bounds(joined)[bounds - first]
    lengths = np.diff(ends)
    return Parts(views.content(joined), ends[:-1], lengths if live is None else lengths * live)
