"""The bytes that workers exchange when their group rebalances: Kafka Connect's `connect` protocol, versions 0 to 2.

Big-endian. A worker joins with its URL, the config offset it has read to, and what it holds; the leader answers each
with what it is to take up and what to give up. Version 0 is the eager protocol: its answer is the whole assignment.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from headgate.cluster.work import NOTHING, Work
from headgate.model import TaskId

_CONNECTOR: Final = -1
"""The number of the connector itself among its tasks."""
_LONGEST: Final = 2**15 - 1


class Protocol(Enum):
    """By the name that members offer; the later ones can do more."""

    EAGER = "default"
    COMPATIBLE = "compatible"
    SESSIONED = "sessioned"

    @property
    def version(self) -> int:
        return _VERSIONS[self]

    @property
    def cooperative(self) -> bool:
        return self is not Protocol.EAGER


_VERSIONS: Final[Mapping[Protocol, int]] = {Protocol.EAGER: 0, Protocol.COMPATIBLE: 1, Protocol.SESSIONED: 2}

OFFERED: Final[Mapping[str, tuple[Protocol, ...]]] = {
    "eager": (Protocol.EAGER,),
    "compatible": (Protocol.COMPATIBLE, Protocol.EAGER),
    "sessioned": (Protocol.SESSIONED, Protocol.COMPATIBLE, Protocol.EAGER),
}
"""What a worker offers, most wanted first, by its `connect.protocol`."""


class AssignmentProblem(IntEnum):
    """Why an assignment holds no work."""

    NONE = 0
    CONFIG_MISMATCH = 1

    @classmethod
    def of(cls, code: int) -> AssignmentProblem:
        """A code that later versions may have is a problem, too, and is met by joining again."""
        return cls.NONE if code == 0 else cls.CONFIG_MISMATCH


class MalformedMessage(ValueError):
    """Bytes of a member that are not what the protocol says."""


@dataclass(frozen=True, slots=True)
class Assignment:
    leader: str
    leader_url: str
    offset: int
    """The config offset that it is based on."""
    assigned: Work = NOTHING
    revoked: Work = NOTHING
    delay_ms: int = 0
    """After so long everybody joins again."""
    problem: AssignmentProblem = AssignmentProblem.NONE


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member says of itself when it joins."""

    url: str
    offset: int
    held: Assignment | None = None
    """All that it holds, as the assignment it amounts to; None when it has never been given one."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A place in the group, and what comes with it. Of an eager protocol `assignment` is all that this member has from
    now on, otherwise what it has in addition."""

    member_id: str
    generation: int
    protocol: Protocol
    assignment: Assignment

    @property
    def leads(self) -> bool:
        return bool(self.member_id) and self.member_id == self.assignment.leader


def encode_member(protocol: Protocol, state: MemberState) -> bytes:
    made = struct.pack(">h", protocol.version) + _text(state.url) + struct.pack(">q", state.offset)
    if not protocol.cooperative:
        return made
    if state.held is None:
        return made + struct.pack(">i", -1)
    held = encode_assignment(protocol, state.held)
    return made + struct.pack(">i", len(held)) + held


def decode_member(data: bytes) -> MemberState:
    """Raises MalformedMessage."""
    read = _MessageReader(data)
    version = read.version()
    url, offset = read.text(), read.number(">q")
    held = read.data() if version > 0 and read.more else None
    return MemberState(url, offset, None if held is None else decode_assignment(held))


def encode_assignment(protocol: Protocol, assignment: Assignment) -> bytes:
    made = struct.pack(">hh", protocol.version, assignment.problem)
    made += _text(assignment.leader) + _text(assignment.leader_url)
    made += struct.pack(">q", assignment.offset) + _work(assignment.assigned)
    if protocol.cooperative:
        made += _work(assignment.revoked) + struct.pack(">i", assignment.delay_ms)
    return made


def decode_assignment(data: bytes) -> Assignment:
    """What trails may be missing. Raises MalformedMessage."""
    read = _MessageReader(data)
    version = read.version()
    problem = read.number(">h")
    leader, leader_url, offset = read.text(), read.text(), read.number(">q")
    assigned = read.work()
    revoked = read.work() if version > 0 and read.more else NOTHING
    delay = read.number(">i") if version > 0 and read.more else 0
    return Assignment(leader, leader_url, offset, assigned, revoked, delay, AssignmentProblem.of(problem))


def _text(value: str) -> bytes:
    data = value.encode()
    if len(data) > _LONGEST:
        raise MalformedMessage(f"a text of {len(data)} bytes, which has no room in a message of the group")
    return struct.pack(">h", len(data)) + data


def _work(work: Work) -> bytes:
    numbers: dict[str, list[int]] = {name: [_CONNECTOR] for name in sorted(work.connectors)}
    for task in sorted(work.tasks):
        numbers.setdefault(task.connector, []).append(task.task)
    parts = [struct.pack(">i", len(numbers))]
    for connector, held in numbers.items():
        parts += [_text(connector), struct.pack(f">i{len(held)}i", len(held), *held)]
    return b"".join(parts)


class _MessageReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def version(self) -> int:
        version = self.number(">h")
        if version < 0:
            raise MalformedMessage(f"version {version}")
        return version

    def number(self, form: str) -> int:
        """As `struct` writes it."""
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def text(self) -> str:
        try:
            return self._take(self.number(">h")).decode()
        except UnicodeDecodeError as error:
            raise MalformedMessage("a text that is not UTF-8") from error

    def data(self) -> bytes | None:
        size = self.number(">i")
        return None if size < 0 else self._take(size)

    def count(self) -> int:
        count = self.number(">i")
        if count < -1:
            raise MalformedMessage(f"{count} elements")
        return max(count, 0)  # -1 is null

    def work(self) -> Work:
        connectors: set[str] = set()
        tasks: set[TaskId] = set()
        for _ in range(self.count()):
            connector = self.text()
            for _ in range(self.count()):
                number = self.number(">i")
                if number == _CONNECTOR:
                    connectors.add(connector)
                else:
                    tasks.add(TaskId(connector, number))
        return Work(frozenset(connectors), frozenset(tasks))

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MalformedMessage(f"{len(self._data)} bytes where at least {end} should be")
        part, self._at = self._data[self._at : end], end
        return part
