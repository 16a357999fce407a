"""BodyTemplate: the JSON that a page is asked for with, where that is done by POST."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headgate.connectors.http.pages import Cursor, PageBy
from headgate.java.json import dumps, strict_loads

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_KNOWN: Final = {PageBy.CURSOR: {"cursor"}, PageBy.OFFSET: {"offset", "limit"}}


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    text: str

    def problem(self, by: PageBy) -> str | None:
        unknown = self.variables - _KNOWN.get(by, set())
        if unknown:
            return f"Nothing is known of ${{{min(unknown)}}} with page.by={by.value}"
        try:
            strict_loads(self.filled(dict.fromkeys(self.variables, "text")))
        except ValueError as error:
            return f"It must be JSON when ${{...}} are values, which are written without quotation marks: {error}"
        return None

    @property
    def variables(self) -> set[str]:
        return set(_VARIABLE.findall(self.text))

    def filled(self, values: dict[str, Cursor | None]) -> bytes:
        """With JSON values in place of variables; what there is no value for is null."""
        return _VARIABLE.sub(lambda found: dumps(values.get(found[1])).decode(), self.text).encode()
