"""Generator: makes a column of values of one schema. Here: numbers, choices and moments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.api import Schema, SchemaType, schema
from headgate.api.frame import arrow_type
from headgate.connectors.datagen.random_rows import Ints, RandomRows, part_of

LEAST_WIDTH: Final = 16
"""What any value counts as: there are random bits for it, however small it is."""
_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_MOST_STEP: Final = 1 << 40
_NULL: Final = 1 << 20
"""The part of a value that decides whether it is null: no value has so many others."""


class BadSchema(ValueError):
    """A schema that makes no sense; the message says where and why."""


class Generator(ABC):
    """What it makes depends on nothing but the rows and the stream."""

    schema: Schema

    @property
    def width(self) -> int:
        """Most bytes that a value takes, roughly."""
        return LEAST_WIDTH

    @property
    def fields(self) -> int:
        """How many columns make up one of its own."""
        return 1

    @property
    def depth(self) -> int:
        """How many structs, arrays and maps stand in each other."""
        return 0

    @abstractmethod
    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        """One value for each row, of the type that `headgate.api.frame` has for the schema."""


def column_of(ints: Ints, kind: Schema) -> pa.Array:
    """Whole numbers as a column of a schema of whole numbers: dates are days, times and timestamps milliseconds."""
    bits = _BITS[kind.type]
    return pa.array(ints.astype(f"int{bits}", copy=False)).view(arrow_type(kind))


@dataclass(frozen=True)
class WholeNumbers(Generator):
    schema: Schema
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_order(self.low, self.high)
        _check_fits(self.schema, self.low, self.high)

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        return column_of(self.numbers(rows, stream), self.schema)

    def numbers(self, rows: RandomRows, stream: int) -> Ints:
        # Where the sum goes beyond 64 bits it comes back to where it belongs.
        return (rows.below(self.high - self.low + 1, stream) + np.uint64(self.low % (1 << 64))).view(np.int64)


@dataclass(frozen=True)
class CountedNumbers(Generator):
    """From `start` on, one step further with each record; behind `last` it begins anew."""

    schema: Schema
    start: int
    step: int
    last: int | None = None
    ahead: int = 0
    """How far from `start` the first record is."""
    jitter: int = 0
    """Up to so much is added to each."""

    def __post_init__(self) -> None:
        if not 0 < abs(self.step) <= _MOST_STEP:
            raise BadSchema(f"a step is not 0 and at most {_MOST_STEP}, not {self.step}")
        if self.last is not None and (self.last - self.start) * self.step < 0:
            raise BadSchema(f"steps of {self.step} do not lead from {self.start} to {self.last}")
        _check_fits(self.schema, self.start, self._last)

    @property
    def _last(self) -> int:
        if self.last is not None:
            return self.last
        limit = 1 << (_BITS[self.schema.type] - 1)
        return limit - 1 if self.step > 0 else -limit

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        numbers, span = rows.numbers, self._last - self.start + (1 if self.step > 0 else -1)
        first = int(numbers[0]) if len(numbers) else 0
        # Only what is small is left to 64 bits: the numbers of the rows are near each other.
        begin, further = (self.ahead + first * self.step) % span, (numbers - first) * self.step
        ends = abs(span) < 1 << 62
        made = (begin + further) % span + self.start if ends else _wrapped(begin + self.start) + further
        if self.jitter:
            made += rows.below(self.jitter, stream).view(np.int64)
        return column_of(made, self.schema)


@dataclass(frozen=True)
class RecordTimes(Generator):
    """The timestamps of the records themselves."""

    schema: Schema = schema.TIMESTAMP

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        return column_of(rows.times, self.schema)


@dataclass(frozen=True)
class FloatNumbers(Generator):
    schema: Schema
    low: float
    high: float
    digits: int | None = None
    """Behind the point."""

    def __post_init__(self) -> None:
        if not np.isfinite(self.high - self.low):
            raise BadSchema(f"from {self.low} to {self.high} is too far")
        _check_order(self.low, self.high)
        if self.digits is not None and not 0 <= self.digits <= 15:
            raise BadSchema(f"there are 0 to 15 digits behind the point, not {self.digits}")
        most = float(np.finfo(np.float32).max)
        if self.schema.type is SchemaType.FLOAT32 and not -most <= self.low <= self.high <= most:
            raise BadSchema("that does not fit into a float")

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        made = self.low + rows.fractions(stream) * (self.high - self.low)
        # What is so large has no digits there.
        if self.digits is not None and max(abs(self.low), abs(self.high)) < 2.0**53 / 10**self.digits:
            made = np.clip(np.round(made, self.digits), self.low, self.high)
        return pa.array(made, arrow_type(self.schema))


@dataclass(frozen=True)
class Decimals(Generator):
    schema: Schema
    unscaled: WholeNumbers
    """Without the point."""

    @classmethod
    def of(cls, scale: int, low: int, high: int) -> Decimals:
        """From `low` to `high`, which are without the point, too."""
        return cls(schema.decimal(scale), WholeNumbers(schema.INT64, low, high))

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        low = self.unscaled.numbers(rows, stream)
        # A decimal of Arrow is a number of 128 bits: the upper half of a small one is its sign.
        data = np.column_stack((low, low >> 63))
        return pa.Array.from_buffers(arrow_type(self.schema), len(low), [None, pa.py_buffer(data)])


@dataclass(frozen=True)
class Booleans(Generator):
    probability: float
    """Of true."""
    schema: Schema = schema.BOOLEAN

    def __post_init__(self) -> None:
        check_probability(self.probability)

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        return pa.array(rows.fractions(stream) < self.probability)


@dataclass(frozen=True, eq=False)
class Choices(Generator):
    schema: Schema
    options: Sequence[Any]
    weights: Sequence[float] = ()
    """One for each option; without any, all are alike."""
    in_turn: bool = False
    """Not at random, but by the numbers of the records."""

    def __post_init__(self) -> None:
        if not self.options:
            raise BadSchema("there is nothing to choose from")
        if self.weights and not (min(self.weights) >= 0 and 0 < sum(self.weights) < np.inf):
            raise BadSchema("weights are 0 or more, and not all of them 0")

    @cached_property
    def _values(self) -> pa.Array:
        return pa.array(self.options, arrow_type(self.schema))

    @cached_property
    def _ends(self) -> Any:
        return np.cumsum(self.weights) / sum(self.weights)

    @property
    def width(self) -> int:
        return max(LEAST_WIDTH, *(int(self._values[at : at + 1].nbytes) for at in range(len(self.options))))

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        if self.in_turn:
            found = rows.numbers % len(self.options)
        elif self.weights:
            # The last end may be a hair below 1.
            found = np.searchsorted(self._ends[:-1], rows.fractions(stream), side="right")
        else:
            found = rows.below(len(self.options), stream).view(np.int64)
        return self._values.take(pa.array(found))


@dataclass(frozen=True)
class NullableValues(Generator):
    schema: Schema
    inner: Generator
    probability: float
    """Of null."""

    @classmethod
    def of(cls, inner: Generator, probability: float) -> NullableValues:
        check_probability(probability)
        return cls(inner.schema.as_optional(), inner, probability)

    @property
    def width(self) -> int:
        return self.inner.width

    @property
    def fields(self) -> int:
        return self.inner.fields

    @property
    def depth(self) -> int:
        return self.inner.depth

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        made = self.inner.column(rows, stream)
        if not self.probability:
            return made
        null = rows.fractions(part_of(stream, _NULL)) < self.probability
        return made.take(pa.array(np.arange(len(made)), mask=null))


def _wrapped(number: int) -> int:
    """As numbers of 64 bits go on behind the last."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def check_text(text: str) -> None:
    """Half a pair of surrogates is in no UTF-8, and so in no column."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadSchema(f"there is half a character in it: U+{ord(text[error.start]):04X}") from None


def check_probability(probability: float) -> None:
    if not 0 <= probability <= 1:
        raise BadSchema(f"a probability is from 0 to 1, not {probability:g}")


def _check_order(low: float, high: float) -> None:
    if not low <= high:
        raise BadSchema(f"{low} is above {high}")


def _check_fits(kind: Schema, *numbers: int) -> None:
    bits = _BITS[kind.type]
    for number in numbers:
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise BadSchema(f"{number} does not fit into {bits} bits")
