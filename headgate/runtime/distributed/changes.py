"""What changed between two snapshots of the config topic, as far as anybody has to act upon it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.runtime.view import ClusterView


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of connectors."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    recommitted: frozenset[str] = frozenset()
    """They have another set of tasks."""

    @property
    def needs_rebalance(self) -> bool:
        return bool(self.added or self.removed or self.recommitted)


def between(before: ClusterView, after: ClusterView) -> Changes:
    """Every record makes a new object: what is another object was written again, also when it is equal."""
    old, new = before.connectors, after.connectors
    return Changes(
        added=frozenset(new.keys() - old.keys()),
        removed=frozenset(old.keys() - new.keys()),
        recommitted=frozenset(name for name in old.keys() & new.keys() if old[name].tasks is not new[name].tasks),
    )
