"""Workers in a group without Kafka and Spark: a topic in memory, and a group that rebalances when it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeVar

from memory_offsets import MemoryOffsetStore
from memory_topic import ConfigTopic, TopicAppender, TopicFollower
from runtime_fakes import PATIENCE_S, WORKER_FILE, FakeGroups, FakeRunner, Script, World, eventually, scripted_plugins

from headgate.cluster.leader import Election
from headgate.cluster.protocol import Assignment, AssignmentProblem, Joined, Protocol
from headgate.cluster.work import Work
from headgate.model import Config, PassingEvent, State, Status, TaskId
from headgate.runtime.config.worker_config import DISTRIBUTED, WorkerConfig
from headgate.runtime.distributed.group import GroupSettings
from headgate.runtime.distributed.herder import DistributedHerder, GroupPorts
from headgate.runtime.distributed.signatures import Signatures
from headgate.runtime.errors import HerderError
from headgate.runtime.herder_ports import HerderPorts, offsets_in
from headgate.runtime.ports import PeerError, PeerRequest, Signer
from headgate.storage.config_log import ConfigLog
from headgate.storage.memory import MemoryStatusStore

T = TypeVar("T")


class SharedStatusStore(MemoryStatusStore):
    """One for all workers; remembers every change of a state."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str | TaskId, list[Status]] = {}
        self.active: dict[str, dict[str, None]] = {}
        self.ages: dict[str | TaskId, float] = {}
        self.late: dict[str | TaskId, Status] = {}
        """What another worker has written and nobody has read yet."""
        self.flushes = 0

    def put(self, whose: str | TaskId, status: Status) -> None:
        self.history.setdefault(whose, []).append(status)
        super().put(whose, status)

    def connectors(self) -> tuple[str, ...]:
        """Also those of which only tasks have a state."""
        return tuple(self._now)

    def states(self, what: str | TaskId) -> list[State]:
        """Each only once if it was written several times in a row."""
        found: list[State] = []
        for status in self.history.get(what, []):
            if found[-1:] != [status.state]:
                found.append(status.state)
        return found

    def flush(self, timeout: float) -> bool:
        self.flushes += 1
        return True

    def refresh(self, timeout: float) -> None:
        for whose in list(self.late):
            self.put(whose, self.late.pop(whose))

    def topics(self, connector: str) -> tuple[str, ...]:
        return tuple(self.active.get(connector, ()))

    def age(self, whose: str | TaskId) -> float:
        return self.ages.get(whose, 0.0)

    def has_topic(self, connector: str, topic: str) -> bool:
        return topic in self.active.get(connector, {})

    def put_topic(self, connector: str, topic: str, task: int) -> None:
        self.active.setdefault(connector, {})[topic] = None

    def remove_topics(self, connector: str) -> None:
        self.active.pop(connector, None)


class MemoryStores:
    """Fits `runtime.distributed.group.Stores`."""

    def __init__(self, topic: ConfigTopic, statuses: SharedStatusStore) -> None:
        self.log = TopicFollower(topic)
        self.writer = TopicAppender(topic)
        self.configs = ConfigLog(self.log, self.writer, timeout=1.0)
        self.statuses = statuses
        self.claims: list[str] = []
        self.refusing: list[Exception] = []
        """Raised by the next claims or starts."""

    def start(self, on_change: Callable[[PassingEvent | None], None]) -> None:
        self._refuse()
        self.configs.start(on_change)

    def claim(self) -> None:
        self._refuse()
        self.claims.append("claim")

    def resign(self) -> None:
        self.claims.append("resign")

    def close(self) -> None:
        self.configs.close()

    def _refuse(self) -> None:
        if self.refusing:
            raise self.refusing.pop(0)


class FakePlace:
    """A place in the group as the test says."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.protocol = Protocol.SESSIONED
        self.is_leader = False
        self.leader_url = ""
        self.rebalancing = False
        self.in_session = True
        self.wanted = 0
        """How often another rebalance was asked for."""
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")
        self.member_id = ""

    def request_rejoin(self) -> None:
        self.wanted += 1

    def leave(self, reason: str) -> Future[None]:
        self.calls.append(f"leave: {reason}")
        self.member_id = ""
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def take(self, joined: Joined) -> None:
        self.member_id, self.generation, self.protocol = joined.member_id, joined.generation, joined.protocol
        self.is_leader, self.leader_url = joined.leads, joined.assignment.leader_url


class Node(World):
    """One worker of the group, with the commands that `World` has."""

    def __init__(self, group: Group, name: str, settings: GroupSettings, worker_file: Mapping[str, str]) -> None:
        self.name = name
        self.url = f"http://{name}/"
        self.script = group.script
        self.runner = FakeRunner(group.script.journal)
        self.place = FakePlace()
        self.stores = MemoryStores(group.topic, group.statuses)
        self.configs: ConfigLog = self.stores.configs  # type: ignore[assignment]
        self.levels: list[tuple[str, str]] = []
        self.problems: list[Exception] = []
        self.fenced: list[Sequence[str]] = []
        self.groups = FakeGroups()
        self.group = group
        raw = {**WORKER_FILE, **DISTRIBUTED_FILE, **worker_file}
        ports = HerderPorts(
            config=replace(WorkerConfig.parse(raw, DISTRIBUTED), signatures=group.signatures),
            plugins=scripted_plugins(),
            configs=self.stores.configs,
            statuses=self.stores.statuses,
            open_offsets=offsets_in(group.offsets),
            groups=self.groups,
            runner=self.runner,
            worker_id=name,
            cluster_id=lambda: "cluster-1",
        )
        in_group = GroupPorts(
            stores=self.stores,
            url=self.url,
            peers=group,
            join=lambda herder: self.place,
            settings=settings,
            set_level=lambda logger, level: self.levels.append((logger, level)),
            failed=self.problems.append,
            fence=lambda clients, ids: self.fenced.append(ids),
            prepare=lambda: None,
            transactional=False,
        )
        self.herder: DistributedHerder = DistributedHerder(ports, in_group)  # type: ignore[assignment]

    def start(self) -> Node:
        self.herder.start()
        eventually(lambda: "start" in self.place.calls or self.problems, f"{self.name} wants to join")
        return self

    def settle(self) -> None:
        """Waits until what was posted to the herder so far is done."""
        self.do(_nothing)

    def idle(self) -> None:
        """As long as it has no place it waits for one, and does nothing else."""
        self.settle()
        eventually(lambda: not self.herder._background or not self.place.member_id, "idle")
        self.settle()

    def say(self, call: Callable[[], T]) -> T:
        """Calls something on the herder's thread."""

        async def said() -> T:
            return call()

        return self.do(said)

    def running(self, name: str = "orders") -> list[int]:
        """The numbers of a connector's tasks that live here."""
        self.settle()
        return sorted(task.task for task in self.herder.worker.tasks if task.connector == name)

    def status_of_elsewhere(self) -> Status:
        return Status(State.RUNNING, "another worker")

    def take_up(self, joined: Joined) -> None:
        self.place.take(joined)
        self.do(lambda: self.herder.member.take_up(joined))


async def _nothing() -> None:
    pass


DISTRIBUTED_FILE: Mapping[str, str] = {
    "group.id": "group",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}


class Group:
    """Workers that share a topic. Fits `runtime.ports.Peers`: they reach each other by their URLs.

    A rebalance happens when the test says so, or, with `settle()`, whenever one of them wants it."""

    def __init__(self, script: Script, *names: str, settings: GroupSettings | None = None, **worker_file: str) -> None:
        self.script = script
        self.topic = ConfigTopic()
        self.statuses = SharedStatusStore()
        self.offsets = MemoryOffsetStore()
        self.signatures = Signatures()
        self.generation = 0
        self.away: set[str] = set()
        """URLs that nobody answers at."""
        self._settings = settings or GroupSettings(sync_timeout_ms=1000, unsync_backoff_ms=10, max_delay_ms=0)
        self._file = {key.replace("_", "."): value for key, value in worker_file.items()}
        self._ending = ExitStack()
        self.nodes: list[Node] = []
        for name in names:
            self.add(name)

    def add(self, name: str) -> Node:
        node = Node(self, name, self._settings, self._file)
        self._ending.callback(self._end, node)
        self.nodes.append(node.start())
        return node

    def _end(self, node: Node) -> None:
        self.script.released.set()
        node.runner.deaf = False
        node.herder.shutdown(timeout=PATIENCE_S)
        node.stores.close()

    def close(self) -> None:
        self._ending.close()

    def leave(self, node: Node) -> None:
        node.herder.shutdown(timeout=PATIENCE_S)
        self.nodes.remove(node)

    # --- rebalances ---------------------------------------------------------------------------------------------------

    def rebalance(self, protocol: Protocol = Protocol.SESSIONED) -> None:
        """One round: all join, the first one leads."""
        self.generation += 1
        for node in self.nodes:
            node.place.wanted = 0
        states = {node.name: node.do(node.herder.member.state) for node in self.nodes}
        leader = self.nodes[0]
        election = Election(protocol, self.generation, leader.place.generation, leader.name, states)
        told = leader.do(lambda: leader.herder.member.lead(election))
        for node in self.nodes:
            assignment = told[node.name]
            if assignment.revoked:
                node.do(lambda at=node, work=assignment.revoked: at.herder.member.give_up(work))  # type: ignore[misc]
            node.take_up(Joined(node.name, self.generation, protocol, assignment))

    def settle(self) -> None:
        """Rebalances until nobody wants another one and nothing goes on in the background."""
        for _ in range(50):
            for node in self.nodes:
                node.idle()
            if not any(node.place.wanted for node in self.nodes) and all(node.place.member_id for node in self.nodes):
                return
            self.rebalance()
        raise AssertionError("the group does not come to rest")

    def connector(self, tasks: int = 2, name: str = "orders", **more: str) -> Node:
        """One that runs, with all of its tasks; the worker that owns it."""
        self.script.tasks = [{"part": number} for number in range(tasks)]
        self.nodes[0].create(name, None, tasks_max=str(max(tasks, 1)), **more)
        self.settle()
        assert len(self.where(name)) == tasks
        return self.owner(name)

    def where(self, name: str = "orders") -> dict[int, str]:
        """By number of the task: the worker that runs it."""
        return {number: node.name for node in self.nodes for number in node.running(name)}

    def owner(self, name: str = "orders") -> Node:
        return next(node for node in self.nodes if name in node.herder.worker.connectors)

    # --- peers --------------------------------------------------------------------------------------------------------

    def put_task_configs(self, url: str, connector: str, configs: Sequence[Config], sign: Signer | None) -> None:
        body = json.dumps([dict(config) for config in configs]).encode()
        asked = PeerRequest("POST", f"/connectors/{connector}/tasks", body)
        self._ask(url, sign, asked, lambda node: node.herder.put_task_configs(connector, configs))

    def fence(self, url: str, connector: str, sign: Signer | None) -> None:
        asked = PeerRequest("PUT", f"/connectors/{connector}/fence")
        self._ask(url, sign, asked, lambda node: node.herder.fence(connector))

    def take_leave(self, url: str, member: str, sign: Signer | None) -> None:
        asked = PeerRequest("DELETE", f"/internal/members/{member}")
        self._ask(url, sign, asked, lambda node: node.herder.took_leave(member))

    def _ask(
        self, url: str, sign: Signer | None, asked: PeerRequest, command: Callable[[Node], Coroutine[Any, Any, None]]
    ) -> None:
        node = next((each for each in self.nodes if each.url == url and url not in self.away), None)
        if node is None:
            raise PeerError(f"nobody at {url}")
        try:
            headers = {key.lower(): value for key, value in (sign(asked) if sign else {}).items()}
            node.herder.proofs.check(asked, headers)
            node.do(lambda: command(node))
        except HerderError as error:
            raise PeerError(str(error), 500) from error


def joined(
    *assigned: str | TaskId,
    revoked: Sequence[str | TaskId] = (),
    offset: int = 0,
    generation: int = 1,
    member: str = "a",
    leader: str = "a",
    protocol: Protocol = Protocol.SESSIONED,
    problem: AssignmentProblem = AssignmentProblem.NONE,
) -> Joined:
    """A place with this work."""
    assignment = Assignment(leader, f"http://{leader}/", offset, work(*assigned), work(*revoked), 0, problem)
    return Joined(member, generation, protocol, assignment)


def work(*what: str | TaskId) -> Work:
    return Work.of(
        [each for each in what if isinstance(each, str)], [each for each in what if isinstance(each, TaskId)]
    )


def tasks(*numbers: int, name: str = "orders") -> list[TaskId]:
    return [TaskId(name, number) for number in numbers]
