"""Records whose batch was too large for the broker, on their way to it in smaller ones, in order.

librdkafka does not divide such a batch, as the Java client does: the broker refuses it as a whole, and every record in
it fails for the size that all of them have together. Only one that goes alone and comes back is too large itself.
"""

from __future__ import annotations

from collections import deque

from headgate.kafka.native.calls import Message


class Oversize:
    def __init__(self) -> None:
        self._waiting: dict[str, deque[Message]] = {}
        self._returned: dict[str, list[Message]] = {}
        self._limits: dict[str, int] = {}
        self._felt: set[str] = set()
        self._alone: int | None = None

    def __len__(self) -> int:
        """How many are to be sent again."""
        return sum(map(len, (*self._waiting.values(), *self._returned.values())))

    def limit(self, topic: str) -> int | None:
        """The most bytes of this topic to be sent at a time; None: the broker has taken all so far."""
        return self._limits.get(topic)

    def learn(self, topic: str, most: int) -> None:
        """The broker says that it takes no larger batch of this topic."""
        self._limits[topic] = most

    def feel(self, topic: str, first: int) -> None:
        """The broker does not say what it takes of this topic: so much to begin with."""
        self._limits[topic] = first
        self._felt.add(topic)

    def taken(self, topic: str, size: int, largest: int) -> None:
        """It took so much. Where it does not say what it takes, twice as much is tried next, up to `largest`."""
        if topic in self._felt and 2 * size >= self._limits[topic]:
            self._limits[topic] *= 2
            if self._limits[topic] >= largest:
                del self._limits[topic]
                self._felt.discard(topic)

    @property
    def returned(self) -> tuple[str, ...]:
        """Topics that something came back of since the last group."""
        return tuple(self._returned)

    def takes(self, message: Message) -> bool:
        """Takes what the broker refused for its size; False: it went alone, so it will not do any better."""
        if message.number == self._alone:
            return False
        self._returned.setdefault(message.topic, []).append(message)
        return True

    def group(self) -> list[Message]:
        """The next to be sent, all of one topic. Nothing else may be under way: what comes back was in this group."""
        for topic, messages in self._returned.items():
            half = sum(message.size for message in messages) // 2
            if len(messages) > 1 or topic not in self._limits:  # one alone says nothing of what others are together
                self._limits[topic] = min(self._limits.get(topic, half), half)
                self._felt.discard(topic)
            kept = self._waiting.get(topic, ())
            self._waiting[topic] = deque(sorted([*messages, *kept], key=lambda message: message.number))
        self._returned.clear()
        topic, waiting = next(iter(self._waiting.items()))
        group = [waiting.popleft()]
        left = self._limits[topic] - group[0].size
        while waiting and waiting[0].size <= left:
            left -= waiting[0].size
            group.append(waiting.popleft())
        if not waiting:
            del self._waiting[topic]
        self._alone = group[0].number if len(group) == 1 else None
        return group
