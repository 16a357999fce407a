"""Creates a source's topics before its first record gets there, as its `topic.creation.*` keys say (KIP-158)."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from headgate.api.errors import ConnectError
from headgate.model import NewTopic, TaskSpec, TopicGroup
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import TopicAdmin

log = logging.getLogger(__name__)


def group_of(topic: str, groups: tuple[TopicGroup, ...]) -> TopicGroup:
    """The first whose pattern matches the whole name; the last one takes what is left."""
    for group in groups[:-1]:
        if re.fullmatch(group.include, topic) and not re.fullmatch(group.exclude, topic):
            return group
    return groups[-1]


def described(topic: str, group: TopicGroup) -> str:
    """As Apache's messages show a topic that is to be."""

    def count(number: int) -> str:
        return "default" if number == -1 else str(number)

    configs = ", ".join(f"{key}={value}" for key, value in group.configs.items())
    return (
        f"(name={topic}, numPartitions={count(group.partitions)}, replicationFactor={count(group.replication_factor)},"
        f" replicasAssignments=null, configs={{{configs}}})"
    )


@dataclass(frozen=True, slots=True)
class Topics:
    """Used by one thread. Asks nobody for a task without topic creation."""

    _spec: TaskSpec
    _control: Control
    _admin: TopicAdmin

    def ensure(self, topic: str) -> None:
        """The topic exists when this returns. Waits for a broker that is away; raises ConnectError when it says no,
        Stopped when the task is given up on."""
        if not self._spec.topic_groups:
            return
        group = group_of(topic, self._spec.topic_groups)
        new = NewTopic(topic, group.partitions, group.replication_factor, group.configs)
        try:
            if not self._admin.exists(topic) and self._admin.create(new):
                log.info("Created topic %s by creation group %s", described(topic, group), group.name)
        except Stopped:
            raise  # asked to stop while the broker was away
        except Exception as error:
            if self._control.cancelled:
                raise Stopped(f"given up on while the broker was asked about topic {topic}: {error}") from None
            self._control.check()
            raise ConnectError(
                f"Task failed to create new topic {described(topic, group)}. Ensure that the task is authorized to"
                " create topics or that the topic exists and restart the task"
            ) from error
