"""Reach: what a plugin gets at beside records, declared so that whoever runs the worker can say what it may."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class ReachKind(Enum):
    READ = "read"
    """A file, by its path."""
    WRITE = "write"
    """A file, or a folder and all that comes into it."""
    HOST = "host"
    """By name, with or without a port, or as a URL."""
    TABLE = "table"
    """Of Spark's: a table, a view, or a file as `format.path`."""
    CODE = "code"
    """A Python module."""
    OPTION = "option"
    """A setting of a library, by its name, that is not known to be harmless: it may load classes or open files."""


@dataclass(frozen=True, slots=True)
class Reach:
    kind: ReachKind
    what: str
    key: str
    """The key of the configuration that names it."""


_KEY_TAB: Final = re.compile(r"""\bkeyTab\s*=\s*["']?([^"'\s;]+)""")


def client_reaches(config: Mapping[str, str], prefix: str = "") -> Iterator[Reach]:
    """Of the settings of a Kafka client, those keys that begin with `prefix`, by any of their names: its brokers, its
    files, and whom it asks for tokens."""
    for whole, value in config.items():
        key = whole.removeprefix(prefix)
        kind, named = ReachKind.READ, [value]
        if not whole.startswith(prefix):
            continue
        if key in ("bootstrap.servers", "metadata.broker.list") or key.endswith(".url"):
            kind, named = ReachKind.HOST, value.split(",")
        elif key == "sasl.jaas.config":
            named = _KEY_TAB.findall(value)
        elif not key.endswith((".location", ".keytab", ".file")):
            continue
        yield from (Reach(kind, each.strip(), whole) for each in named if each.strip())
