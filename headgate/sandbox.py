"""Sandbox: what connectors may reach on this worker, as the worker file says.

Asked when a configuration is checked, and again right before something is opened: links may lead elsewhere by then.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.api.config import LIST, LOW, MEDIUM, STRING, ConfigDef, Key, one_of
from headgate.api.errors import ConfigError
from headgate.api.plugin import Plugin
from headgate.api.reach import Reach, ReachKind
from headgate.model import Config

MODE: Final = "headgate.sandbox"
ROOTS: Final = "headgate.file.roots"
HOSTS: Final = "headgate.hosts"
CLASSES: Final = "headgate.classes"
TABLES: Final = "headgate.tables"
MODULES: Final = "headgate.python.modules"

COMPATIBLE: Final = "compatible"
STRICT: Final = "strict"
OPEN: Final = "open"


def _absolute(name: str, value: Any) -> None:
    for each in value or ():
        if not os.path.isabs(each):
            raise ConfigError.invalid(name, each, "It must be an absolute path")


KEYS: Final = ConfigDef(
    Key(MODE, STRING, COMPATIBLE, one_of(COMPATIBLE, STRICT, OPEN), MEDIUM, "What connectors may reach."),
    Key(ROOTS, LIST, [], _absolute, MEDIUM, "strict: folders whose files connectors may read and write."),
    Key(HOSTS, LIST, [], None, MEDIUM, "strict: hosts, * for any part, that connectors may speak with."),
    Key(CLASSES, LIST, [], None, MEDIUM, "strict: plugins that may be used besides Headgate's own."),
    Key(TABLES, LIST, [], None, LOW, "Tables that Sql may read besides records."),
    Key(MODULES, LIST, None, None, LOW, "Modules whose functions transforms may call; those in plugin.path if absent."),
)

_CODE: Final = (*all_suffixes(), ".pth", ".jar", ".class")
_KERNEL: Final = ("/proc/sys", "/sys")
_SCRATCH: Final = re.compile(r"headgate-(\d+|broker)-.*|(spark|pyspark|blockmgr)-.*")
"""Folders of workers, by their process ids, and of Spark, in a folder for temporary files."""
_PACKAGE: Final = os.path.dirname(__file__)
_OFFSETS: Final = "offset.storage.file.filename"


@dataclass(frozen=True, slots=True)
class Sandbox:
    mode: str = COMPATIBLE
    roots: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    modules: tuple[str, ...] | None = None
    """None: those in the folders of plugins."""
    plugin_folders: tuple[str, ...] = ()
    folders: tuple[str, ...] = (_PACKAGE, *_KERNEL)
    """Nothing that a connector writes comes into these, in any mode."""
    scratch: tuple[str, ...] = ()
    """Folders for temporary files, of which some are the worker's."""
    files: tuple[str, ...] = ()
    """Of the worker's own."""
    logins: tuple[str, ...] = ()
    """Files that say who is let in, and who may do what: for nobody to read or write, in any mode."""
    offsets: str | None = None
    """One more, with all whose names begin with its name and a dot: it is written beside, and then moved."""

    @classmethod
    def of(
        cls,
        raw: Config,
        plugin_folders: Iterable[str] = (),
        own: Iterable[str | Path] = (),
        logins: Iterable[str | Path] = (),
    ) -> Sandbox:
        """From the worker file, with its secrets in place; `own` are files and folders that it does not name. Raises
        ConfigError."""
        given = KEYS.parse(raw)
        plugins, owned = tuple(plugin_folders), [str(each) for each in own]
        named = [os.path.expanduser(each) for each in raw.get("plugin.path", "").split(",") if each]
        brokers = (raw.get(f"{prefix}bootstrap.servers", "") for prefix in ("", "producer.", "consumer.", "admin."))
        local = raw.get("spark.local.dir", "").split(",")
        converters = (raw.get(key, "").strip() for key in ("key.converter", "value.converter", "header.converter"))
        return cls(
            mode=given[MODE],
            roots=tuple(given[ROOTS]),
            hosts=(*given[HOSTS], *filter(None, (_host(each)[0] for listed in brokers for each in listed.split(",")))),
            classes=frozenset((*given[CLASSES], *converters)),
            tables=frozenset(each.replace("`", "").lower() for each in given[TABLES]),
            modules=None if given[MODULES] is None else tuple(given[MODULES]),
            plugin_folders=plugins,
            folders=(*plugins, *named, *(each for each in owned if not os.path.isfile(each)), _PACKAGE, *_KERNEL),
            scratch=(tempfile.gettempdir(), *(each.strip() for each in local if each.strip())),
            files=(*owned, *(value for value in raw.values() if "/" in value)),
            logins=tuple(map(str, logins)),
            offsets=raw.get(_OFFSETS),
        )

    # --- questions ----------------------------------------------------------------------------------------------------

    def problem(self, reach: Reach) -> str | None:
        """Why it may not be reached, and what to do about it; None: it may."""
        match reach.kind:
            case ReachKind.READ:
                return self._login(reach.what) or self._outside(reach.what)
            case ReachKind.WRITE:
                return self._login(reach.what) or self._own(reach.what) or self._outside(reach.what)
            case ReachKind.HOST:
                allowed = self.mode != STRICT or any(
                    fnmatchcase(each, pattern.lower()) for each in _host(reach.what) for pattern in self.hosts
                )
                return None if allowed else f"This worker speaks only with hosts that its file names: {HOSTS}"
            case ReachKind.TABLE:
                allowed = self.mode == OPEN or reach.what.lower() in self.tables
                shown = (
                    f"{reach.what} cannot be used: only records can, and tables and formats that the worker file names"
                )
                return None if allowed else f"{shown}: {TABLES}"
            case ReachKind.CODE:
                return self._foreign(reach.what)
            case ReachKind.OPTION:
                shown = (
                    f"{reach.what} is none of the settings that are known to be harmless: it may load classes or files"
                )
                return None if self.mode == OPEN else f"{shown}. Leave it out, or set {MODE}={OPEN} in the worker file"

    def class_problem(self, cls: type[Plugin]) -> str | None:
        """The same of the use of a plugin. What classes of others reach is known only as far as they say."""
        names = {f"{cls.__module__}.{cls.__qualname__}", *vars(cls).get("aliases", ())}
        if self.mode != STRICT or cls.__module__.startswith("headgate.") or names & self.classes:
            return None
        return f"This worker uses only Headgate's own plugins, and those that its file names: {CLASSES}"

    def require(self, reach: Reach) -> None:
        """Raises ConfigError unless it may be reached."""
        problem = self.problem(reach)
        if problem is not None:
            raise ConfigError.invalid(reach.key, reach.what, problem)

    @property
    def other_tables(self) -> bool:
        """Whether there may be any besides `records`."""
        return self.mode == OPEN or bool(self.tables)

    # --- files --------------------------------------------------------------------------------------------------------

    def _outside(self, path: str) -> str | None:
        real = _real(path)
        if self.mode != STRICT or any(real.is_relative_to(_real(root)) for root in self.roots):
            return None
        return f"{_shown(path, real)} is in none of the folders that the worker file names: {ROOTS}"

    def _login(self, path: str) -> str | None:
        real = _real(path)
        if any(real == _real(file) for file in self.logins):
            return f"{_shown(path, real)} is for the worker alone: it says who is let in"
        return None

    def _own(self, path: str) -> str | None:
        real = _real(path)
        if real.name.endswith(_CODE):
            return f"{_shown(path, real)} would be code: connectors write none; choose another name"
        if self._is_own(real):
            return f"{_shown(path, real)} is the worker's own: connectors write elsewhere; choose another file"
        return None

    def _is_own(self, path: Path) -> bool:
        for folder in map(_real, self.folders):
            if path.is_relative_to(folder) or folder.is_relative_to(path):
                return True
        for folder in map(_real, self.scratch):
            if path.is_relative_to(folder) and any(map(_SCRATCH.fullmatch, path.relative_to(folder).parts[:1])):
                return True
        if self.offsets and f"{path}.".startswith(f"{_real(self.offsets)}."):
            return True
        return any(path == _real(file) for file in self.files if not os.path.isdir(file))

    # --- code ---------------------------------------------------------------------------------------------------------

    def _foreign(self, module: str) -> str | None:
        if self.mode == OPEN:
            return None
        if self.modules is not None:
            if any(module == each or module.startswith(f"{each}.") for each in self.modules):
                return None
            return f"Module {module} is none of those that the worker file names: {MODULES}"
        places = _places(module.partition(".")[0])
        folders = [_real(folder) for folder in self.plugin_folders]
        if places and all(any(place.is_relative_to(folder) for folder in folders) for place in places):
            return None
        return f"Module {module} is not in a folder of plugin.path; others must be named in the worker file: {MODULES}"


def _places(module: str) -> Sequence[Path]:
    """The files and folders that a module without dots would come from. Nothing is imported to find that out."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    found = [spec.origin] if spec.origin and spec.has_location else spec.submodule_search_locations or ()
    return [Path(os.path.abspath(each)) for each in found]


def _shown(path: str, real: Path) -> str:
    return path if os.path.abspath(path) == str(real) else f"{path}, which is {real},"


def _host(text: str) -> tuple[str, ...]:
    """Its name, and that with the port if there is one; nothing can be allowed that is no host."""
    try:
        parts = urlsplit(text.strip() if "://" in text else f"//{text.strip()}")
        host = parts.hostname or ""
        return (host, f"{host}:{parts.port}") if parts.port else (host,)
    except ValueError:
        return ("",)


def _real(path: str) -> Path:
    """Without links and dots."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL in it: no file has such a name
        return Path(os.path.abspath(path))


def warnings(raw: Config) -> Iterator[str]:
    """What whoever runs the worker should know of its file."""
    mode = raw.get(MODE, COMPATIBLE).strip()
    if mode == OPEN:
        yield f"{MODE}={OPEN}: whoever may create a connector can read files and run Python here; not for production"
    if mode != STRICT:
        for key in (key for key in (ROOTS, HOSTS, CLASSES) if raw.get(key, "").strip()):
            yield f"{key} has no effect without {MODE}={STRICT}"
