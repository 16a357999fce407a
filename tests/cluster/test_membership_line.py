"""Something stands between a worker and Kafka that takes connections and closes them, as proxies and tunnels do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from cut_line import Line
from group_node import Configs, Node, settled

from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener

# kafka-python leaves sockets that could not be connected to the garbage collector.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

Eventually = Callable[..., None]

SESSION_S = 2.0
"""Of the one behind the line. The other one's is longer: so long it can be held up."""


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Broker, Line]]:
    properties = {"group.min.session.timeout.ms": "1000"}
    with Line() as line:
        listeners = [BrokerListener("CUT", advertised=line.address)]
        with Broker(listeners=listeners, properties=properties, heap="256m") as broker:
            line.upstream = broker.address("CUT")
            yield broker, line


@pytest.fixture
def line(ways: tuple[Broker, Line]) -> Line:
    return ways[1]


@pytest.fixture
def nodes(
    ways: tuple[Broker, Line], unique: Callable[[str], str], eventually: Eventually
) -> Iterator[tuple[Node, Node]]:
    """The first leads; the second is behind the line."""
    (broker, line), group, configs = ways, unique("line"), Configs()
    configs.create("lines", tasks=3)
    with Node("near", group, {"bootstrap.servers": broker.bootstrap}, configs, max_delay_ms=0) as near:
        eventually(lambda: settled([near]))
        bootstrap, timeouts = {"bootstrap.servers": line.address}, {"session_timeout_ms": int(SESSION_S * 1000)}
        with Node("far", group, bootstrap, configs, max_delay_ms=0, timeouts=timeouts) as far:
            eventually(lambda: settled([near, far]) and far.held)
            yield near, far
            line.mend()


def join_slowly(nodes: tuple[Node, Node], seconds: float) -> threading.Event:
    """The second joins again, and waits for the first: for so long, or until the event is set."""
    near, far = nodes
    joins, enough = threading.Event(), threading.Event()

    def hold_up() -> None:
        joins.set()
        enough.wait(seconds)

    near.before_state = hold_up
    far.configs.offset += 1
    far.membership.request_rejoin()
    assert joins.wait(10), "the broker has asked the other to join, so this one has"
    return enough


def test_it_gives_up_its_work_and_comes_back(line: Line, nodes: tuple[Node, Node], eventually: Eventually) -> None:
    near, far = nodes
    line.drop()
    eventually(lambda: not far.held)
    eventually(lambda: near.held == near.configs.configured)
    line.mend()
    eventually(lambda: settled([near, far]) and far.held)


def test_a_cut_while_it_joins_is_noticed_within_the_session(
    line: Line, nodes: tuple[Node, Node], eventually: Eventually
) -> None:
    """Nobody is told of such a cut, and the join may last until the rebalance times out."""
    near, far = nodes
    enough = join_slowly(nodes, SESSION_S + 4)
    line.cut()
    eventually(lambda: not far.held, SESSION_S + 1)
    enough.set()
    eventually(lambda: near.held == near.configs.configured)
    line.mend()
    eventually(lambda: settled([near, far]) and far.held)


def test_a_join_that_lasts_longer_than_a_session_is_no_cut(nodes: tuple[Node, Node], eventually: Eventually) -> None:
    near, far = nodes
    join_slowly(nodes, SESSION_S + 2)
    near.before_state = lambda: None
    eventually(lambda: settled([near, far]))
    assert far.given_up == []


def test_also_while_it_joins(line: Line, nodes: tuple[Node, Node], eventually: Eventually) -> None:
    near, far = nodes
    enough = join_slowly(nodes, 3)
    line.drop()
    eventually(lambda: not far.held)
    enough.set()
    eventually(lambda: near.held == near.configs.configured)
    line.mend()
    eventually(lambda: settled([near, far]) and far.held)
