"""AllowedPaths: which files and folders a provider may look into."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.api import ConfigError, Reach, ReachKind

log = logging.getLogger(__name__)

ALLOWED_PATHS: Final = "allowed.paths"


@dataclass(frozen=True, slots=True)
class AllowedPaths:
    paths: tuple[Path, ...] | None = None
    """None: everywhere."""

    @classmethod
    def parse(cls, params: Mapping[str, str]) -> AllowedPaths:
        """Raises ConfigError for one that is not absolute or not there."""
        listed = [each.strip() for each in params.get(ALLOWED_PATHS, "").split(",") if each.strip()]
        paths = tuple(Path(os.path.normpath(each)) for each in listed)
        for path in paths:
            if not path.is_absolute():
                raise ConfigError(f"Path {path} is not absolute")
            if not path.exists():
                raise ConfigError(f"Path {path} does not exist")
        return cls(paths or None)

    def find(self, path: str) -> Path | None:
        """The path, if there is one that may be looked into; a warning says which may not. Neither `..` nor a link
        leads out: where both lead to is what counts."""
        if not path:
            return None
        if self.paths is None:
            return Path(path)
        wanted = Path(os.path.realpath(path))
        if any(wanted.is_relative_to(os.path.realpath(each)) for each in self.paths):
            return wanted
        log.warning("The path %s is not allowed to be accessed", path)
        return None


def reaches(params: Mapping[str, str]) -> list[Reach]:
    """What a provider reaches that the worker file does not name: everything, unless it is told where to look."""
    return [] if AllowedPaths.parse(params).paths else [Reach(ReachKind.READ, os.sep, ALLOWED_PATHS)]
