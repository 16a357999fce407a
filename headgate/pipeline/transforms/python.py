"""Python: a function of yours, by its dotted name, as a transform."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from headgate.api import HIGH, STRING, ConfigDef, ConfigError, DataError, Key, Record, Transform

FUNCTION = "function"


class Python(Transform[Any]):
    """The function takes a record and returns one, or None to drop it. It is imported on the executors: a file in a
    `plugin.path` folder is enough."""

    aliases: ClassVar[tuple[str, ...]] = ("headgate.transforms.Python",)
    config: ClassVar[ConfigDef] = ConfigDef(
        Key(FUNCTION, STRING, importance=HIGH, doc="Dotted name of the function, e.g. my_module.enrich.")
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._name: str = self.settings[FUNCTION]
        self._call = _function(self._name)

    def apply(self, record: Any) -> Any:
        changed = self._call(record)
        if changed is not None and not isinstance(changed, Record):
            raise DataError(f"{self._name} returned {type(changed).__name__}, not a record or None")
        return changed


def _function(name: str) -> Callable[[Any], Any]:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if module else None
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(FUNCTION, name, f"It cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError.invalid(FUNCTION, name, "It must be the dotted name of a function, e.g. my_module.enrich")
    return found  # type: ignore[no-any-return]
