"""Built-in connectors."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headgate.connectors.datagen.connector import Datagen
    from headgate.connectors.http.sink import HttpSink
    from headgate.connectors.http.source import HttpSource
    from headgate.connectors.jdbc.sink import JdbcSink
    from headgate.connectors.jdbc.source import JdbcSource
    from headgate.connectors.mirror.connector import Mirror
    from headgate.connectors.spark.sink.connector import SparkSink
    from headgate.connectors.spark.source.connector import SparkSource

__all__ = ["Datagen", "HttpSink", "HttpSource", "JdbcSink", "JdbcSource", "Mirror", "SparkSink", "SparkSource"]

_WHERE: Final = {
    "Datagen": "datagen.connector",
    "HttpSink": "http.sink",
    "HttpSource": "http.source",
    "JdbcSink": "jdbc.sink",
    "JdbcSource": "jdbc.source",
    "Mirror": "mirror.connector",
    "SparkSink": "spark.sink.connector",
    "SparkSource": "spark.source.connector",
}


def __getattr__(name: str) -> Any:
    # Kafka's clients and Arrow are loaded by those who use them.
    if name in _WHERE:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
