"""Sql: one Spark SQL statement over all records of a batch, as a transform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from headgate.api import HIGH, LOW, STRING, ConfigDef, ConfigError, ConnectError, Key, Transform, non_empty
from headgate.pipeline.sql.statement import Statement

STATEMENT: Final = "statement"
VALUE_SCHEMA: Final = "value.schema"


def _possible(name: str, value: Any) -> None:
    if value is None:
        return  # that it is missing was said already
    problem = Statement(value).problem()
    if problem is not None:
        raise ConfigError.invalid(name, value, problem)


class Sql(Transform[Any]):
    """The statement reads the batch as the table `records`; its rows are the records that go on. It runs between two
    parts of the chain, not on one record: see `headgate.pipeline.parts`."""

    aliases: ClassVar[tuple[str, ...]] = ("headgate.transforms.Sql",)
    config: ClassVar[ConfigDef] = ConfigDef(
        Key(
            STATEMENT,
            STRING,
            validator=_possible,
            importance=HIGH,
            doc="Query in Spark SQL over the table records: topic, partition, timestamp, key, value, headers, and in"
            " sinks offset. Each of its rows is a record; nothing that it does not select is kept.",
        ),
        Key(
            VALUE_SCHEMA,
            STRING,
            default=None,
            validator=non_empty,
            importance=LOW,
            doc="Types of the fields of the value, as Spark writes them: id BIGINT, tags ARRAY<STRING>. The statement"
            " sees no other fields. Without it, types are found in the records of each batch.",
        ),
    )
    takes_predicate: ClassVar[bool] = False

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.statement = Statement(self.settings[STATEMENT])
        self.value_schema: str | None = self.settings[VALUE_SCHEMA]

    def apply(self, record: Any) -> Any:
        raise ConnectError("A statement is for a batch: it cannot be applied to one record")
