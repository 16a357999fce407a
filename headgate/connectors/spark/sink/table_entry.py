"""TableEntry: what a commit to a table says of itself, so that the table can tell where to go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.api import TopicPartition
from headgate.connectors.ledger import Taken


@dataclass(frozen=True, slots=True)
class TableEntry:
    version: int = 0
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    writer: str = ""
    """Who wrote it: a name of this one commit."""

    def text(self, application: str) -> str:
        known = [[where.topic, where.partition, offset] for where, offset in sorted(self.offsets.items())]
        return json.dumps({"headgate": application, "version": self.version, "writer": self.writer, "offsets": known})

    @classmethod
    def read(cls, text: str | None, application: str) -> TableEntry | None:
        """None: it is another's."""
        try:
            said: Any = json.loads(text or "null")
        except ValueError:
            return None
        if not isinstance(said, dict) or said.get("headgate") != application:
            return None
        offsets = {TopicPartition(topic, partition): offset for topic, partition, offset in said["offsets"]}
        return cls(said["version"], offsets, said["writer"])


def application_of(connector: str) -> str:
    """The name that entries of a connector are under."""
    return f"headgate-{connector}"


def taken(table: str) -> Taken:
    return Taken(
        f"Another task writes to {table} under the name of this connector. Nothing was lost, and nothing written twice:"
        " this one goes on after what the other has written"
    )
