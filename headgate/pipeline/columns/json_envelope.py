"""Envelope: the text around the payloads of JsonConverter, which is the same for all of one schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import Group
from headgate.pipeline.columns.json_groups import JsonGroups, Kinds
from headgate.pipeline.columns.json_texts import Mask, Places

_PAYLOAD: Final = re.compile(rb'"payload": ?')
_SCHEMA: Final = re.compile(rb', ?"schema":')
_FINDS: Final = 8
"""How many places are looked at where these words are: there are schemas in which they are, too."""
_REMEMBERED: Final = 64


@dataclass(frozen=True, slots=True)
class Envelope:
    head: bytes
    tail: bytes
    groups: JsonGroups | None = field(default=None, compare=False)
    """Who reads the payloads; None where columns cannot."""

    def matches(self, data: pa.Array) -> Mask:
        fits = pc.and_(pc.starts_with(data, self.head), pc.ends_with(data, self.tail))
        long = pc.greater(pc.binary_length(data), len(self.head) + len(self.tail))  # they do not overlap
        return pc.and_(fits, long).to_numpy(zero_copy_only=False)

    def payloads(self, data: pa.Array) -> pa.Array:
        return pc.binary_slice(data, len(self.head), -len(self.tail))

    def around(self, payload: bytes) -> bytes:
        return self.head + payload + self.tail


class Envelopes:
    """Reads texts of any schemas."""

    def __init__(self, reader: Callable[[bytes], JsonGroups | None]) -> None:
        """`reader` says who reads the payloads of an envelope, which it is given with a null in it."""
        self._kinds: Kinds[Envelope] = Kinds(partial(_learnt, reader), most=_REMEMBERED)

    def of(self, rows: Places, data: pa.Array) -> Iterator[Group]:
        for envelope, found, texts in self._kinds.parts(rows, data):
            if envelope.groups is not None:
                yield from envelope.groups.of(found, envelope.payloads(texts))


def _learnt(reader: Callable[[bytes], JsonGroups | None], texts: Sequence[bytes]) -> list[Envelope]:
    found = set(filter(None, map(_envelope, texts)))
    return [replace(envelope, groups=reader(envelope.around(b"null"))) for envelope in found]


def _envelope(text: bytes) -> Envelope | None:
    """Whatever value is between head and tail, it is the payload then."""
    heads = (text[: place.end()] for place in islice(_PAYLOAD.finditer(text), _FINDS))
    tails = [text[-1:], *(text[place.start() :] for place in [*_SCHEMA.finditer(text)][: -_FINDS - 1 : -1])]
    return next((made for head in heads for tail in tails if _is_envelope(made := Envelope(head, tail))), None)


def _is_envelope(envelope: Envelope) -> bool:
    try:
        trees = [orjson.loads(envelope.around(value)) for value in (b"0", b"1")]
    except orjson.JSONDecodeError:
        return False
    return all(
        isinstance(tree, dict) and tree.keys() == {"schema", "payload"} and tree["payload"] == value
        for value, tree in enumerate(trees)
    )
