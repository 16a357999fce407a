"""Python: a function of yours, by its dotted name, as a transform."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from headgate.api import HIGH, STRING, ConfigDef, ConfigError, DataError, Key, Record, Transform
from headgate.api.config import REQUIRED
from headgate.api.reach import Reach, ReachKind

FUNCTION = "function"


def _found(key: str, name: str | None) -> None:
    if name is not None:
        _function(key, name)


class Python(Transform[Any]):
    """The function takes a record and returns one, or None to drop it. It is imported on the executors: a file in a
    `plugin.path` folder is enough."""

    aliases: ClassVar[tuple[str, ...]] = ("headgate.transforms.Python",)
    config: ClassVar[ConfigDef] = ConfigDef(
        Key(FUNCTION, STRING, REQUIRED, _found, HIGH, "Dotted name of the function, e.g. my_module.enrich.")
    )

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Sequence[Reach]:
        module = config.get(FUNCTION, "").strip().rpartition(".")[0]
        return [Reach(ReachKind.CODE, module, FUNCTION)] if module else ()

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._name: str = self.settings[FUNCTION]
        self._call = _function(FUNCTION, self._name)

    def apply(self, record: Any) -> Any:
        changed = self._call(record)
        if changed is not None and not isinstance(changed, Record):
            raise DataError(f"{self._name} returned {type(changed).__name__}, not a record or None")
        return changed


def _function(key: str, name: str) -> Callable[[Any], Any]:
    """Raises ConfigError, whatever the module raises when it is imported."""
    module, _, attribute = name.rpartition(".")
    try:
        found = importlib.import_module(module) if module else None
    except (Exception, SystemExit) as error:
        raise ConfigError.invalid(key, name, f"It cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(found, attribute, None)
    home = getattr(function, "__module__", None)
    if callable(function) and home == module:
        return function  # type: ignore[no-any-return]
    reason = "It must be the dotted name of a function, e.g. my_module.enrich"
    if callable(function):
        # Else every module would offer all that it imports: whoever allowed it has seen only what it defines.
        reason = f"It is not defined in {module} but in {home}: name it by the module that it is defined in"
    elif found is not None and function is None:
        reason = f"It cannot be imported: {found} has no {attribute}. A worker reads it once: restart it after a change"
    raise ConfigError.invalid(key, name, reason)
