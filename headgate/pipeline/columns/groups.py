"""Groups of what a converter reads when all of it is of one schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import Group, Values


def group(values: Values) -> Group:
    """Of all rows."""
    return Group(pa.array(np.arange(len(values))), values)


def group_where(mask: pa.Array, values: Values) -> Group:
    """Of the rows that the mask names."""
    return Group(pc.indices_nonzero(mask).cast(pa.int64()), values.where(mask))
