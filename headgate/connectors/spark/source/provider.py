"""Data sources for PySpark, found by their names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headgate.api import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

_FORM = "It must be the name of a data source's class: my_module.MySource or my_module:MySource"


def parts(name: str) -> tuple[str, str]:
    """Module and class."""
    module, _, attribute = name.strip().replace(":", ".").rpartition(".")
    return module, attribute


def valid_provider(key: str, value: Any) -> None:
    found(key, value)


def found(key: str, name: str) -> type[DataSource]:
    """The class. Raises ConfigError, whatever the module raises when it is imported. As with functions, a class is
    named by the module that defines it: else every module would offer all that it imports, and whoever allowed it has
    seen only what it defines."""
    module, attribute = parts(name)
    if not module or not attribute:
        raise ConfigError.invalid(key, name, _FORM)
    try:
        home = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ConfigError.invalid(key, name, f"It cannot be imported: {type(error).__name__}: {error}") from error
    from pyspark.sql.datasource import DataSource

    source = getattr(home, attribute, None)
    if not (isinstance(source, type) and issubclass(source, DataSource)):
        raise ConfigError.invalid(key, name, f"{module} has no data source {attribute}. {_FORM}")
    if source.__module__ != module:
        where = f"{source.__module__}.{source.__qualname__}"
        raise ConfigError.invalid(key, name, f"It is not defined in {module}: name it by where it is, {where}")
    if source.streamReader is DataSource.streamReader and source.simpleStreamReader is DataSource.simpleStreamReader:
        lacks = "It has neither streamReader nor simpleStreamReader: what can only be read as a whole has no offsets"
        raise ConfigError.invalid(key, name, lacks)
    return source
