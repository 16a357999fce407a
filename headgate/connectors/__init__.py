"""Built-in connectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.connectors.mirror.connector import Mirror

__all__ = ["Mirror"]


def __getattr__(name: str) -> Any:
    # Kafka's clients are loaded by those who use them.
    if name == "Mirror":
        from headgate.connectors.mirror.connector import Mirror

        return Mirror
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
