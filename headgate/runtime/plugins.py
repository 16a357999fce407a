"""Plugins: finds plugins, describes them.

Two ways in: the entry point group `headgate.plugins` of installed packages, and the folders of `plugin.path`, where one
Python file is enough. A plugin that cannot be loaded is reported and stops nothing.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

from headgate.api.config_provider import ConfigProvider
from headgate.api.connector import Connector, SinkConnector, SourceConnector
from headgate.api.converter import Converter, HeaderConverter
from headgate.api.override_policy import OverridePolicy
from headgate.api.plugin import Plugin, public_name
from headgate.api.transform import Predicate, Transform
from headgate.model import ConnectorType, PluginRef
from headgate.runtime.errors import PluginNotFound

log = logging.getLogger(__name__)

GROUP: Final = "headgate.plugins"


class PluginKind(Enum):
    """In the order of the list of plugins."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    CONFIG_PROVIDER = "config_provider"
    OVERRIDE_POLICY = "override_policy"


_KINDS: Final[dict[PluginKind, tuple[type[Plugin], str]]] = {
    PluginKind.SINK: (SinkConnector, "Connector"),
    PluginKind.SOURCE: (SourceConnector, "Connector"),
    PluginKind.TRANSFORMATION: (Transform, "Transformation"),
    PluginKind.PREDICATE: (Predicate, "Predicate"),
    PluginKind.CONVERTER: (Converter, "Converter"),
    PluginKind.HEADER_CONVERTER: (HeaderConverter, "HeaderConverter"),
    PluginKind.CONFIG_PROVIDER: (ConfigProvider, "ConfigProvider"),
    PluginKind.OVERRIDE_POLICY: (OverridePolicy, "OverridePolicy"),
}
"""What they derive from, and what Apache calls that."""
CONNECTORS: Final = (PluginKind.SINK, PluginKind.SOURCE)
_UNLISTED: Final = (PluginKind.CONFIG_PROVIDER, PluginKind.OVERRIDE_POLICY)
"""What the worker uses and connectors cannot name: Apache's list of plugins has none of them."""


@dataclass(frozen=True, slots=True)
class Found:
    kind: PluginKind
    name: str
    """What users know the class by."""
    version: str | None
    cls: type[Plugin]

    @property
    def names(self) -> tuple[str, ...]:
        """All that mean it. A class that derives from another has its own."""
        return (str(self.ref), *vars(self.cls).get("aliases", ()))

    @property
    def ref(self) -> PluginRef:
        return PluginRef(self.cls.__module__, self.cls.__qualname__)

    @property
    def connector_type(self) -> ConnectorType:
        return ConnectorType(self.kind.value)

    @property
    def connector(self) -> type[Connector]:
        assert issubclass(self.cls, Connector)
        return self.cls


@dataclass(frozen=True, slots=True)
class Broken:
    """A plugin that could not be loaded, and why."""

    where: str
    reason: str


class Plugins:
    """All plugins of this worker. Names are full class names, the plugins' aliases, or the last part of either."""

    def __init__(self, classes: Iterable[type[Plugin]], broken: Sequence[Broken] = (), folders: Sequence[str] = ()):
        found = (each for cls in dict.fromkeys(classes) for each in _describe(cls))
        order = list(PluginKind)
        self._found: Final = sorted(found, key=lambda each: (order.index(each.kind), each.name))
        self.all: Final[Sequence[Found]] = [each for each in self._found if each.kind not in _UNLISTED]
        self.broken: Final = tuple(broken)
        self.folders: Final = tuple(folders)
        """The folders of `plugin.path`, which executors need on their module path too."""
        self._index: dict[tuple[PluginKind, str], Found | None] = {}
        for each in self._found:
            for full in each.names:
                self._index[each.kind, full] = each
        for each in self._found:
            for alias in {short for full in each.names for short in _short_names(full, each.kind)}:
                key = (each.kind, alias)
                taken = self._index.get(key, each)
                # Two plugins of one short name: neither may be meant by it.
                self._index[key] = each if taken is each else None

    @classmethod
    def discover(cls, plugin_path: Sequence[str] = ()) -> Plugins:
        classes: list[type[Plugin]] = []
        broken: list[Broken] = []
        for entry in metadata.entry_points(group=GROUP):
            try:
                classes.extend(_entry_point(entry.load()))
            except (Exception, SystemExit) as error:
                broken.append(Broken(f"entry point {entry.name} = {entry.value}", _reason(error)))
        folders: list[str] = []
        for folder in plugin_path:
            _scan_folder(Path(folder).expanduser(), classes, broken, folders)
        for each in broken:
            log.error("Plugin %s could not be loaded and is left out: %s", each.where, each.reason)
        return cls(classes, broken, folders)

    def get(self, name: str, *kinds: PluginKind) -> Found | None:
        # Properties files keep blanks at the end of a line.
        return next((found for kind in kinds if (found := self._index.get((kind, name.strip())))), None)

    def find(self, name: str, *kinds: PluginKind) -> Found:
        """Raises PluginNotFound, which lists what there is."""
        found = self.get(name, *kinds)
        if found is not None:
            return found
        _, wanted = _KINDS[kinds[0]]
        known = ", ".join(each.name for each in self._found if each.kind in kinds)
        message = (
            f"Failed to find any class that implements {wanted} and which name matches {name},"
            f" available {wanted.lower()}s are: {known}"
        )
        if self.broken:
            message += "; could not be loaded: " + "; ".join(f"{each.where} ({each.reason})" for each in self.broken)
        raise PluginNotFound(message)

    def find_connector(self, name: str) -> Found:
        return self.find(name, *CONNECTORS)

    def find_any(self, name: str) -> Found | None:
        kinds = (kind for kind in PluginKind if kind not in _UNLISTED)
        return next((found for kind in kinds if (found := self._index.get((kind, name)))), None)

    def connector_type(self, class_name: str | None) -> ConnectorType:
        found = self.get(class_name or "", *CONNECTORS)
        return found.connector_type if found else ConnectorType.UNKNOWN


def _describe(cls: type[Plugin]) -> list[Found]:
    """One entry per kind: a converter may serve for headers too."""
    try:
        version: str | None = cls.version()
    except Exception:
        log.exception("Plugin %s.%s does not tell its version", cls.__module__, cls.__qualname__)
        version = None
    return [Found(kind, public_name(cls), version, cls) for kind, (base, _) in _KINDS.items() if issubclass(cls, base)]


def _short_names(full: str, kind: PluginKind) -> set[str]:
    simple = full.rpartition(".")[2]
    _, suffix = _KINDS[kind]
    return {simple, simple.removesuffix(suffix)} if simple != suffix else {simple}


def _entry_point(loaded: object) -> list[type[Plugin]]:
    if inspect.ismodule(loaded):
        return _classes_in(loaded)
    if inspect.isclass(loaded) and issubclass(loaded, Plugin) and _describable(loaded):
        return [loaded]
    raise TypeError(f"{loaded!r} is not a plugin that could be built")


def _scan_folder(folder: Path, classes: list[type[Plugin]], broken: list[Broken], folders: list[str]) -> None:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        broken.append(Broken(f"folder {folder} of plugin.path", error.strerror or str(error)))
        return
    path = str(folder.resolve())
    # At the end: a plugin file may not take the place of somebody else's module.
    if path not in sys.path:
        sys.path.append(path)
    folders.append(path)
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.suffix == ".py" or (entry / "__init__.py").is_file():
            _load_module(entry, classes, broken)
        elif entry.is_dir() and any(entry.glob("*.py")):
            _scan_folder(entry, classes, broken, folders)


def _load_module(entry: Path, classes: list[type[Plugin]], broken: list[Broken]) -> None:
    name = entry.stem
    try:
        module = importlib.import_module(name)
        file = getattr(module, "__file__", None)
        origin = Path(file).resolve() if file else None
        expected = entry.resolve() if entry.is_file() else entry.resolve() / "__init__.py"
        if origin != expected:
            owner = origin or "a module of Python itself"
            raise ImportError(f"the module name {name} is already taken by {owner}: rename the file")
        classes.extend(_classes_in(module))
    except (Exception, SystemExit) as error:
        broken.append(Broken(str(entry), _reason(error)))


def _classes_in(module: ModuleType) -> list[type[Plugin]]:
    """The concrete plugins that this module, or a part of this package, defines itself."""

    def own(cls: type) -> bool:
        return cls.__module__ == module.__name__ or cls.__module__.startswith(f"{module.__name__}.")

    members: list[type] = [member for _, member in inspect.getmembers(module, inspect.isclass)]
    return [member for member in members if issubclass(member, Plugin) and _describable(member) and own(member)]


def _describable(cls: type[Plugin]) -> bool:
    return issubclass(cls, tuple(base for base, _ in _KINDS.values())) and not inspect.isabstract(cls)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
