"""UrlTemplate: where a record is sent, by its topic and its key; on one host, whatever these are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from headgate.api import DataError
from headgate.connectors.http.address import Address

TOPIC: Final = "topic"
KEY: Final = "key"
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_DOTS: Final = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    address: Address

    @classmethod
    def parse(cls, text: str) -> UrlTemplate:
        """Raises ValueError, also for variables in place of the host."""
        return cls(Address.parse(text))

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(_VARIABLE.findall(self.address.target))

    @property
    def unknown(self) -> frozenset[str]:
        return self.variables - {TOPIC, KEY}

    def filled(self, values: Mapping[str, str | None]) -> Address:
        """Raises DataError where a value would make another place of it than one of its own."""
        asked = self.variables
        if not asked:
            return self.address
        missing = [name for name in sorted(asked) if not values[name]]
        if missing:
            raise DataError(f"It has no {missing[0]}, which url asks for")
        target = _VARIABLE.sub(
            lambda found: quote(values[found[1]] or "", safe="", errors="strict"), self.address.target
        )
        made = replace(self.address, target=target)
        # To a server these are no names, but the folder itself and the one above.
        if _DOTS.intersection(made.path.split("/")):
            raise DataError("Its key or topic would lead elsewhere: dots are no name in a URL")
        return made
