"""Lookout: looks for topics and partitions to copy, again and again, and sees to it that there is a place for them."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.mirror.cluster import Cluster, Known, Unreachable
from headgate.connectors.mirror.config import MirrorConfig, onto_itself
from headgate.connectors.mirror.naming import too_long
from headgate.log import Complaints

log = logging.getLogger(__name__)

_LOOK_S: Final = 3.0
"""How long a cluster may take to answer, before it is asked again."""
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Observation:
    partitions: frozenset[TopicPartition]
    """To be copied."""
    one_cluster: bool
    """They are read where records go to."""


@dataclass(eq=False)
class Lookout:
    """From `start` to `stop` it has a thread, which calls `changed` when something else than was taken last is to be
    seen, and `failed` with what it cannot go on with."""

    config: MirrorConfig
    source: Cluster
    target: Cluster | None
    """None where the cluster that records go to is not known."""
    changed: Callable[[], None]
    failed: Callable[[Exception], None]

    def __post_init__(self) -> None:
        self._complaints = Complaints(log, "Mirror")
        self._condition = threading.Condition()
        self._seen: Observation | None = None
        self._asked = False
        self._taken: Observation | None = None
        self._problem: Exception | None = None
        self._ended = threading.Event()
        # Its log lines name the connector, as those of whoever made it.
        run = partial(contextvars.copy_context().run, self._run)
        self._thread = threading.Thread(target=run, name="mirror-lookout", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        self._ended.set()
        self._thread.join(seconds)

    def take(self, seconds: float) -> Observation | None:
        """What was seen last, or is seen within this time; None: nothing yet. Raises what made it give up."""
        with self._condition:
            self._condition.wait_for(lambda: self._seen or self._problem, seconds)
            if self._problem is not None:
                raise self._problem
            self._asked, self._taken = True, self._seen
            return self._seen

    def _run(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            try:
                self._see(self._look())
                pause = self.config.refresh_s
            except Unreachable as error:
                self._complaints.say(f"{error}; asked again")
                pause = min(_AGAIN_S, self.config.refresh_s)
            except Exception as error:
                with self._condition:
                    self._problem = error
                    self._condition.notify_all()
                self.failed(error)
                return

    def _see(self, seen: Observation) -> None:
        with self._condition:
            self._seen = seen
            self._condition.notify_all()
            news = self._asked and seen != self._taken
        if news and not self._ended.is_set():
            self.changed()

    def _look(self) -> Observation:
        known = self.source.look(_LOOK_S)
        target = self.target.look(_LOOK_S) if self.target is not None else None
        one = not self.config.elsewhere or (target is not None and bool(known.id) and known.id == target.id)
        topics = self._chosen(known, one)
        if self.config.create_topics and self.target is not None and target is not None:
            self._make_room(self.target, target, topics, known)
        places = frozenset(TopicPartition(topic, number) for topic in topics for number in range(known.topics[topic]))
        return Observation(places, one)

    def _chosen(self, known: Known, one_cluster: bool) -> list[str]:
        config = self.config
        topics = config.selection.of(known.topics)
        missing = config.selection.missing(known.topics)
        if missing:
            self._complaints.say(f"{self.source} has no topic {', '.join(missing)} yet")
        if one_cluster and config.selection.pattern is not None:
            # A pattern may match what we have made of others. Copies of copies would never end.
            topics = [topic for topic in topics if config.naming.keeps(topic) or not config.naming.makes(topic)]
        for topic in topics:
            if one_cluster and config.naming.keeps(topic):
                raise onto_itself(config, topic)
            if too_long(config.naming.name(topic)):
                raise ConnectError(f"There can be no topic {config.naming.name(topic)}: its name is too long")
        return topics

    def _make_room(self, cluster: Cluster, target: Known, topics: list[str], known: Known) -> None:
        wanted: dict[str, int] = {}
        for topic in topics:
            name = self.config.naming.name(topic)
            wanted[name] = max(wanted.get(name, 0), known.topics[topic])
        missing = {name: count for name, count in wanted.items() if name not in target.topics}
        if missing:
            cluster.create(missing)
            log.info("Created %s", ", ".join(f"topic {name} ({count} partitions)" for name, count in missing.items()))
        if self.config.same_partition:
            small = {name: count for name, count in wanted.items() if target.topics.get(name, count) < count}
            if small:
                cluster.grow(small)
                log.info("Topics have as many partitions as what they are copies of: %s", small)
