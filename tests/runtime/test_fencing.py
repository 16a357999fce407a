"""Fencing (KIP-618): nothing that an older set of tasks sends may count once a new set starts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from cluster_fakes import Group, Node
from memory_topic import ConfigTopic, TopicAppender, TopicFollower
from runtime_fakes import Script

from headgate.api import ConnectError
from headgate.model import ChainSpec, Config, ConnectorType, PluginRef, PluginSpec, TargetState, TaskId, TaskSpec
from headgate.runtime.distributed import preflight
from headgate.runtime.distributed.fencing import FencingRounds
from headgate.runtime.distributed.preflight import ClusterPreflight
from headgate.runtime.errors import BadRequest, ConnectorNotFound, FencingOutdated, OffsetsError, ShuttingDown
from headgate.runtime.ports import PeerError
from headgate.storage.config_log import ConfigLog

CLIENTS: Config = {"bootstrap.servers": "there:9092"}


class Leader:
    """The rounds of a leader, on a config topic in memory; `fenced` has the ids of each call to Kafka."""

    def __init__(self) -> None:
        self.topic = ConfigTopic()
        self.configs = ConfigLog(TopicFollower(self.topic), TopicAppender(self.topic), timeout=1.0)
        self.configs.start()
        self.fenced: list[list[str]] = []
        self.type = ConnectorType.SOURCE
        self.during: Callable[[], None] = lambda: None
        self.rounds = FencingRounds(self.configs, self.fence, self.clients, lambda _: self.type, self.write, "group")

    def fence(self, clients: Config, ids: Sequence[str]) -> None:
        assert clients == CLIENTS
        self.fenced.append(list(ids))
        self.during()

    async def clients(self, name: str) -> Config:
        return CLIENTS

    async def write(self, call: Callable[[], None], what: str) -> None:
        call()

    def tasks(self, count: int) -> None:
        """A new set of tasks, as the connector asked for."""
        self.configs.put_connector("orders", {"name": "orders"})
        self.configs.put_tasks("orders", [{"part": str(number)} for number in range(count)])

    def round(self) -> None:
        asyncio.run(self.rounds.run("orders"))

    @property
    def counts(self) -> list[object]:
        return [value["task-count"] for value in self.topic.values("tasks-fencing-orders")]


@pytest.fixture
def leader() -> Iterator[Leader]:
    made = Leader()
    yield made
    made.configs.close()


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_the_first_tasks_have_nobody_before_them(leader: Leader) -> None:
    leader.tasks(3)
    leader.round()
    assert leader.fenced == []
    assert leader.counts == [3]


@pytest.mark.parametrize(("before", "after"), [(3, 2), (1, 2), (2, 1), (2, 0), (4, 4)])
def test_each_task_of_the_set_before_is_shut_out(leader: Leader, before: int, after: int) -> None:
    leader.tasks(before)
    leader.round()
    leader.tasks(after)
    leader.round()
    assert leader.fenced == [[f"group-orders-{number}" for number in range(before)]]
    assert leader.counts == [before, after]


def test_one_task_after_one_task_shuts_the_older_one_out_by_itself(leader: Leader) -> None:
    leader.tasks(1)
    leader.round()
    leader.tasks(1)
    leader.round()
    assert leader.fenced == []
    assert leader.counts == [1, 1]


def test_a_set_is_fenced_once_however_many_tasks_ask(leader: Leader) -> None:
    leader.tasks(2)
    leader.round()
    leader.tasks(2)

    async def both() -> None:
        await asyncio.gather(*(leader.rounds.run("orders") for _ in range(5)))

    asyncio.run(both())
    leader.round()
    assert len(leader.fenced) == 1
    assert leader.counts == [2, 2]


def test_a_round_that_is_overtaken_by_a_newer_set_counts_for_nothing(leader: Leader) -> None:
    leader.tasks(2)
    leader.round()
    leader.tasks(3)
    leader.during = lambda: leader.tasks(4)
    with pytest.raises(FencingOutdated, match="a new set of task configs was generated"):
        leader.round()
    assert leader.counts == [2]
    leader.during = lambda: None
    leader.round()
    assert leader.fenced[-1] == ["group-orders-0", "group-orders-1"], "those that counted last"
    assert leader.counts == [2, 4]


def test_a_round_that_fails_is_told_to_all_who_wait_and_can_be_repeated(leader: Leader) -> None:
    leader.tasks(2)
    leader.round()
    leader.tasks(2)

    def away() -> None:
        raise RuntimeError("Kafka is away")

    leader.during = away

    async def both() -> list[BaseException | None]:
        return await asyncio.gather(*(leader.rounds.run("orders") for _ in range(2)), return_exceptions=True)

    assert [str(error) for error in asyncio.run(both())] == ["Kafka is away"] * 2
    leader.during = lambda: None
    leader.round()
    assert leader.counts == [2, 2]


def test_who_waits_may_leave_and_the_round_goes_on(leader: Leader) -> None:
    leader.tasks(2)
    leader.round()
    leader.tasks(2)
    began, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert go_on.wait(10)

    leader.during = slow

    async def run() -> None:
        impatient = asyncio.create_task(leader.rounds.run("orders"))
        await asyncio.to_thread(began.wait, 10)
        impatient.cancel()
        patient = asyncio.create_task(leader.rounds.run("orders"))
        await asyncio.sleep(0)
        go_on.set()
        await patient

    asyncio.run(run())
    assert len(leader.fenced) == 1
    assert leader.counts == [2, 2]


def test_only_sources_that_are_there_are_fenced(leader: Leader) -> None:
    with pytest.raises(ConnectorNotFound):
        leader.round()
    leader.tasks(1)
    leader.type = ConnectorType.SINK
    with pytest.raises(BadRequest, match="Connector orders is not a source connector"):
        leader.round()


# --- what a task waits for --------------------------------------------------------------------------------------------


class Task:
    """A task that is about to start; `answers` are what the leader says, one after the other."""

    def __init__(self, leader: Leader, *answers: Exception | None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.mine = True
        self.heard: Callable[[], bool] = lambda: True
        self.preflight = ClusterPreflight(leader.configs, self.fence, lambda task: self.mine, lambda: self.heard())

    def fence(self, name: str) -> None:
        assert name == "orders"
        self.asked += 1
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer

    def spec(self, generation: int = 0) -> TaskSpec:
        task, converter = TaskId("orders", 0), PluginSpec(PluginRef("a", "B"))
        chain = ChainSpec(task, ConnectorType.SOURCE, converter, converter, converter)
        whole = TaskSpec(task, object, ConnectorType.SOURCE, "1", {}, {}, chain, TargetState.STARTED)
        return replace(whole, generation=generation)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_PAUSE_S", 0.001)


@pytest.mark.usefixtures("quick")
def test_what_passes_is_asked_again(leader: Leader) -> None:
    passing = [PeerError("no answer"), *(PeerError("not now", status) for status in (403, 409, 503))]
    task = Task(leader, *passing, None)
    task.preflight.await_fencing(task.spec())
    assert task.asked == 5


def test_what_does_not_pass_fails_the_task(leader: Leader) -> None:
    task = Task(leader, PeerError("cluster authorization failed", 500))
    with pytest.raises(ConnectError, match="older tasks could not be fenced: cluster authorization failed"):
        task.preflight.await_fencing(task.spec())


@pytest.mark.usefixtures("quick")
def test_patience_has_an_end(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "_PATIENCE_S", 0.0)
    task = Task(leader, *[PeerError("not now", 409)] * 100)
    with pytest.raises(ConnectError, match="not now"):
        task.preflight.await_fencing(task.spec())


def test_a_task_that_was_given_away_asks_for_nothing(leader: Leader) -> None:
    task = Task(leader)
    task.mine = False
    with pytest.raises(ConnectError, match="already been revoked from this worker"):
        task.preflight.await_fencing(task.spec())
    assert task.asked == 0


def test_a_worker_that_ends_is_not_a_failure_of_the_task(leader: Leader) -> None:
    task = Task(leader, ShuttingDown())
    with pytest.raises(ShuttingDown):
        task.preflight.await_fencing(task.spec())


def test_who_was_held_for_longer_than_a_session_waits_for_the_groups_word(
    leader: Leader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes for its own what others have by now."""
    monkeypatch.setattr(preflight, "_PAUSE_S", 0.0)
    leader.tasks(1)
    task, words = Task(leader), [True, False, False]
    spec = task.spec(leader.configs.state().generations.get("orders", 0))
    task.heard = lambda: words.pop()
    task.preflight.confirm_start(spec)
    assert words == []

    def revoked() -> bool:
        task.mine = False
        return False

    task.heard = revoked
    with pytest.raises(ConnectError, match="already been revoked"):
        task.preflight.confirm_start(spec)
    task.mine, task.heard = True, lambda: False
    monkeypatch.setattr(preflight, "_PATIENCE_S", 0.0)
    with pytest.raises(TimeoutError, match="orders-0 is still this worker's"):
        task.preflight.confirm_start(spec)


def test_a_task_starts_only_while_its_set_is_the_newest(leader: Leader) -> None:
    leader.tasks(1)
    task = Task(leader)
    spec = task.spec(leader.configs.state().generations.get("orders", 0))
    task.preflight.confirm_start(spec)
    task.mine = False
    with pytest.raises(ConnectError, match="already been revoked"):
        task.preflight.confirm_start(spec)
    task.mine = True
    leader.tasks(1)
    with pytest.raises(ConnectError, match="already generated a new set of task configs"):
        task.preflight.confirm_start(spec)


# --- offsets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(script: Script) -> Iterator[Node]:
    """A leader with exactly-once sources, one of them stopped, whose two tasks may still run somewhere."""
    group = Group(script, "a", exactly_once_source_support="enabled")
    group.settle()
    group.connector(tasks=2)
    (node,) = group.nodes
    node.do(lambda: node.herder.fence("orders"))  # as the first of its tasks asks: now there is a count of them
    assert node.fenced == []
    node.stop()
    group.settle()
    group.offsets.put("orders", [({"f": 1}, {"p": 1})])
    yield node
    group.close()


@pytest.mark.kip(875, "fence out all previously-running tasks before invoking alterOffsets and altering the offsets")
@pytest.mark.parametrize("verb", ["alter", "reset"])
def test_older_tasks_are_fenced_then_the_connector_is_asked_then_offsets_change(
    stopped: Node, script: Script, verb: str
) -> None:
    seen: list[object] = []
    offsets = stopped.group.offsets
    script.on_alter = lambda *_: bool(seen.append((list(stopped.fenced), offsets.all("orders"))))  # type: ignore[func-returns-value]
    if verb == "alter":
        stopped.do(lambda: stopped.herder.alter_offsets("orders", [({"f": 1}, {"p": 2})]))
    else:
        stopped.do(lambda: stopped.herder.reset_offsets("orders"))
    assert seen == [([["group-orders-0", "group-orders-1"]], [({"f": 1}, {"p": 1})])]
    assert offsets.all("orders") == ([({"f": 1}, {"p": 2})] if verb == "alter" else [])


@pytest.mark.kip(875, "if zombie fencing for exactly-once source connectors fails, 500 is returned")
def test_a_connector_is_not_asked_while_its_older_tasks_cannot_be_fenced(
    stopped: Node, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    script.on_alter = lambda *_: bool(asked.append(True))  # type: ignore[func-returns-value]
    monkeypatch.setattr(stopped, "fenced", ())  # takes none
    with pytest.raises(OffsetsError, match=r"^Failed to perform zombie fencing for source connector"):
        stopped.do(lambda: stopped.herder.reset_offsets("orders"))
    assert asked == []
