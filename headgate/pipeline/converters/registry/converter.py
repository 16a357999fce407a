"""RegistryConverter: what the converters of a schema registry have in common; what they know, they know for good."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, NoReturn

import numpy as np
import pyarrow as pa

from headgate.api import ConfigError, Converter, DataError, RetriableError, Schema
from headgate.api.frame import Group, NotByColumns, Values
from headgate.api.reach import Reach, client_reaches
from headgate.api.schema import BOOLEAN, BYTES, FLOAT64, INT64, STRING, validate_value
from headgate.pipeline.columns import reading
from headgate.pipeline.converters.registry.client import Registry, Text
from headgate.pipeline.converters.registry.columns.bodies import Bodies, by_schema_id
from headgate.pipeline.converters.registry.keys import cache_size
from headgate.pipeline.converters.registry.subjects import Subjects
from headgate.pipeline.converters.registry.wire import schema_id
from headgate.pipeline.schemas import Cache

Write = Callable[[Any], bytes]
"""A value of one schema as bytes, with all that stands in front. Raises DataError."""

Read = Callable[[bytes], tuple[Schema | None, Any]]
"""All bytes of a record, the id included, as schema and value. Raises DataError."""

ReadColumns = Callable[[Bodies], Iterable[Group]]
"""Those of the bodies that can be read by columns."""

WriteColumns = Callable[[pa.Array], pa.Array]
"""As Write, of all items of an array. Raises NotByColumns."""

INSTALL: Final = 'pip install "headgate[registry]"'

_PLAIN: Final[Mapping[type, Schema]] = {str: STRING, bytes: BYTES, bool: BOOLEAN, int: INT64, float: FLOAT64}


class RegistryConverter(Converter):
    """Schemas are registered, looked up or fetched once, when they are first met; records need no registry."""

    kind: ClassVar[str]
    fmt: ClassVar[str | None] = None
    needs: ClassVar[tuple[str, ...]]
    """Modules that the extra brings."""

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return client_reaches(config)

    @classmethod
    def unavailable(cls) -> str | None:
        for module in cls.needs:
            try:
                importlib.import_module(module)
            except ImportError as error:
                return f"Converters of a schema registry need what is not installed: {INSTALL} ({error})"
        return None

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        problem = self.unavailable()
        if problem is not None:
            raise ConfigError(problem)
        self.settings = self.config.parse(config)
        self._subjects = Subjects(self.settings, is_key=is_key)
        self.registry = Registry(self.settings, self.kind, self.fmt)
        size = cache_size(self.settings)
        # A source may build its schema anew for each record, and executors get another copy with each batch.
        self._by_identity: Cache[tuple[str, int], tuple[Schema, Write]] = Cache(size)
        self._by_schema = lru_cache(size)(self.writer)
        # By topic too: what a reader cannot read, it says of its topic.
        self._readers: Cache[tuple[str, int], Read] = Cache(size)
        self._columns_by_identity: Cache[tuple[str, int], tuple[Schema, WriteColumns]] = Cache(size)
        self._columns_by_schema = lru_cache(size)(self._column_writer)
        self._column_readers: Cache[tuple[str, int], ReadColumns] = Cache(size)

    @abstractmethod
    def writer(self, topic: str, schema: Schema) -> Write:
        """For all values of this schema; asks the registry. Raises DataError, RetriableError."""

    @abstractmethod
    def reader(self, topic: str, text: Text) -> Read:
        """For all data of this schema of the registry. Raises DataError, RetriableError."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            if schema is None or schema.optional:
                return None
            raise DataError(f"Found null value for non-optional schema {schema} (topic {topic})")
        known = self.schema_of(topic, value) if schema is None else schema
        # The schema is kept beside it, so that its id stays taken.
        _, write = self._by_identity.get((topic, id(known)), lambda: (known, self._by_schema(topic, known)))
        validate_value(known, value)
        return write(value)

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        if data is None:
            return None, None
        number = schema_id(topic, data)

        return self._readers.get((topic, number), lambda: self.reader(topic, self._text(topic, number)))(data)

    # --- by columns ---------------------------------------------------------------------------------------------------

    def column_writer(self, topic: str, schema: Schema) -> WriteColumns:
        """As `writer`, by columns. Raises NotByColumns too."""
        raise NotByColumns(f"{self.kind} is written record by record")

    def column_reader(self, topic: str, text: Text) -> ReadColumns:
        """As `reader`, by columns. Raises NotByColumns too."""
        raise NotByColumns(f"{self.kind} is read record by record")

    def write_columns(self, topic: str, values: Values) -> pa.Array:
        data = values.data
        if data.null_count and values.schema is not None and not values.schema.optional:
            raise NotByColumns("null for a schema that is not optional", data.is_null())
        if data.null_count == len(data):
            return pa.nulls(len(data), pa.binary())
        try:
            schema = self.schema_of(topic, _first(data)) if values.schema is None else values.schema
            known = self._columns_by_identity
            _, write = known.get((topic, id(schema)), lambda: (schema, self._columns_by_schema(topic, schema)))
        except (DataError, RetriableError) as error:
            raise NotByColumns("no schema to write with") from error
        return write(data)

    def read_columns(self, topic: str, data: pa.Array) -> Iterable[Group]:
        null = np.flatnonzero(data.is_null().to_numpy(zero_copy_only=False))
        if len(null):
            yield Group(pa.array(null), Values.nulls(len(null)))
        for number, bodies in by_schema_id(data):
            if len(bodies) < reading.FEWEST:
                continue
            made = partial(self._column_reader, topic, number)
            try:
                found = list(self._column_readers.get((topic, number), made)(bodies))
            except (NotByColumns, DataError, RetriableError):
                continue  # one by one, which says what is wrong
            yield from found

    def _column_writer(self, topic: str, schema: Schema) -> WriteColumns:
        try:
            return self.column_writer(topic, schema)
        except NotByColumns as refused:
            return _refusing(refused.why)

    def _column_reader(self, topic: str, number: int) -> ReadColumns:
        try:
            return self.column_reader(topic, self._text(topic, number))
        except NotByColumns as refused:
            return _refusing(refused.why)

    def schema_of(self, topic: str, value: Any) -> Schema:
        """Of a value that came without one. Raises DataError for all but plain values."""
        found = _PLAIN.get(type(value))
        if found is None:
            raise DataError(
                f"A {type(value).__name__} without schema cannot be written for topic {topic} by {type(self).__name__}:"
                " the source has to give its records a schema"
            )
        return found

    def _text(self, topic: str, number: int) -> Text:
        return self.registry.by_id(topic, self._subjects.of_topic(topic), number)

    def register(self, topic: str, record: str | None, text: str) -> tuple[int, Text | None]:
        """The id to write with; and, where the subject's latest schema is to be used, that schema."""
        subject = self._subjects.name(topic, record)
        # As in Confluent's serializers, registering goes before the rest.
        if self.settings["auto.register.schemas"]:
            return self.registry.register(topic, subject, text), None
        if self.settings["use.latest.version"]:
            return self.registry.latest(topic, subject)
        return self.registry.lookup(topic, subject, text), None


def _first(data: pa.Array) -> Any:
    """The first item that is not null."""
    return next(each for each in data if each.is_valid).as_py()


def _refusing(why: str) -> Callable[[Any], NoReturn]:
    def refuse(_: Any) -> NoReturn:
        raise NotByColumns(why)

    return refuse
