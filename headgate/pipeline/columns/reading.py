"""Reading: keys and values as groups of one schema or shape, and both together as frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from headgate.api import Converter
from headgate.api.frame import Frame, Group, HeaderColumns, NotByColumns, ReadsColumns, Values
from headgate.pipeline.columns.refused_rows import RefusedRows, numbers
from headgate.pipeline.converters.any_part import AnyPartConverter

FEWEST: Final = 128
"""Rows of a kind that are worth the trouble: fewer are done sooner one by one."""


def read(converter: Converter, topics: pa.Array, data: pa.Array, refused: RefusedRows) -> list[Group]:
    """What the converter makes of a column. What it cannot tell is refused."""
    found: list[Group] = []
    for topic, rows in _topics(converter, topics):
        given = data if rows is None else data.take(rows)
        try:
            groups = cast(ReadsColumns, converter).read_columns(topic, given)
            found += (group if rows is None else Group(rows.take(group.rows), group.values) for group in groups)
        except NotByColumns as refusal:
            refused.add(np.arange(len(data)) if rows is None else rows.to_numpy(), refusal.why)
        except Exception as error:  # one by one it will be seen what is wrong
            refused.add(np.arange(len(data)) if rows is None else rows.to_numpy(), type(error).__name__)
    return found


def _topics(converter: Converter, topics: pa.Array) -> Iterator[tuple[str, pa.Array | None]]:
    """Each topic with its rows, where that makes a difference; None: all of them."""
    encoded = topics.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1 or isinstance(converter, AnyPartConverter):  # which looks at no topic
        yield names[0], None
        return
    codes = encoded.indices.to_numpy()
    for code, name in enumerate(names):
        yield name, numbers(np.flatnonzero(codes == code))


def frames(
    columns: Mapping[str, pa.Array],
    keys: Sequence[Group],
    values: Sequence[Group],
    refused: RefusedRows,
    fewest: int | None = None,
) -> Iterator[Frame]:
    """Rows that have both their keys and their values in common. `columns` are those of a Frame that are known, the
    topic at least. Rows of which there are too few of a kind are refused."""
    count = len(columns["topic"])
    fewest = FEWEST if fewest is None else fewest
    done = []
    for value in values:
        for key in keys:
            rows = refused.spared(_common(key, value, count))
            if len(rows) >= fewest:
                done.append(rows)
                yield _frame(columns, rows, count, _at(key, rows), _at(value, rows))
    refused.add_others(np.concatenate(done) if done else [], "too few of a kind")


def _frame(columns: Mapping[str, pa.Array], rows: Any, count: int, key: Values, value: Values) -> Frame:
    chosen, whole = numbers(rows), len(rows) == count

    def taken(name: str) -> pa.Array | None:
        found = columns.get(name)
        return found if whole or found is None else found.take(chosen)

    none = pa.nulls(len(rows), pa.int64())
    partition, timestamp = taken("partition"), taken("timestamp")
    return Frame(
        rows=chosen,
        topic=taken("topic"),
        partition=none.cast(pa.int32()) if partition is None else partition,
        timestamp=none if timestamp is None else timestamp,
        key=key,
        value=value,
        headers=HeaderColumns(taken("headers")),
        offset=taken("offset"),
    )


def _common(one: Group, other: Group, count: int) -> Any:
    if len(one.rows) == count:
        return other.rows.to_numpy()
    if len(other.rows) == count:
        return one.rows.to_numpy()
    return np.intersect1d(one.rows.to_numpy(), other.rows.to_numpy(), assume_unique=True)


def _at(group: Group, rows: Any) -> Values:
    if len(group.rows) == len(rows):
        return group.values
    places = pa.array(np.searchsorted(group.rows.to_numpy(), rows))
    return Values(group.values.data.take(places), group.values.schema)
