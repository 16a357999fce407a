"""The keys of FileStreamSink, and what they mean together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.api import BOOLEAN, HIGH, LOW, STRING, ConfigDef, ConfigError, ConfigValue, Key

FILE: Final = "file"
EXACTLY_ONCE: Final = "exactly.once"

CONFIG: Final = ConfigDef(
    Key(
        FILE,
        STRING,
        default=None,
        importance=HIGH,
        doc="File to append to; standard output when absent. With exactly.once, the folder to write to.",
    ),
    Key(
        EXACTLY_ONCE,
        BOOLEAN,
        default=False,
        importance=LOW,
        doc="Whether each record is written once, whatever happens: file is then a folder, in which files with the"
        " lines of a partition appear together with its offsets.",
    ),
)

_NO_FOLDER: Final = "exactly.once needs a folder to write to"


@dataclass(frozen=True, slots=True)
class FileSinkConfig:
    file: str | None
    """Absolute, as errors show it; None: standard output."""
    exactly_once: bool

    @classmethod
    def of(cls, config: Mapping[str, str]) -> FileSinkConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        made = cls(os.path.join(os.getcwd(), parsed[FILE]) if parsed[FILE] else None, bool(parsed[EXACTLY_ONCE]))
        if made.exactly_once and made.file is None:
            raise ConfigError.invalid(FILE, parsed[FILE], _NO_FOLDER)
        return made


def validated(values: list[ConfigValue]) -> list[ConfigValue]:
    """What was found of the keys one by one, and of both together."""
    found = {value.name: value for value in values}
    file = found[FILE]
    if found[EXACTLY_ONCE].value and not file.value and not file.errors:
        file.errors.append(str(ConfigError.invalid(FILE, file.value, _NO_FOLDER)))
    return values
