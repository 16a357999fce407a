"""Plugin: what all plugins have, so that they can be found, named and described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from headgate import __version__
from headgate.api.reach import Reach


def public_name(cls: type) -> str:
    """What users know a class by: the first of its own aliases, that of a Java class where it stands for one; else its
    full name."""
    names: tuple[str, ...] = vars(cls).get("aliases", ())
    return names[0] if names else f"{cls.__module__}.{cls.__qualname__}"


class Plugin:
    """Base of all plugins. Found by entry point, or as a class in a Python file of a `plugin.path` folder."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other class names that mean this plugin, e.g. that of the Java class whose configuration it understands. The
    first is shown to users."""

    @classmethod
    def version(cls) -> str:
        """Shown in status and in the list of plugins."""
        return __version__

    @classmethod
    def unavailable(cls) -> str | None:
        """Why this plugin cannot be used here, such as a library that is not installed and how to install it; None: it
        can. A configuration that names it is refused with this."""
        return None

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        """What a plugin with this configuration, which may be wrong, gets at: files, hosts, tables, code; without
        looking at any of it. What the worker does not allow is refused before the plugin sees the configuration."""
        return ()
