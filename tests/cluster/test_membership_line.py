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


@pytest.fixture(scope="module")
def ways() -> Iterator[tuple[Broker, Line]]:
    with Line() as line, Broker(listeners=[BrokerListener("CUT", advertised=line.address)], heap="256m") as broker:
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
        with Node("far", group, {"bootstrap.servers": line.address}, configs, max_delay_ms=0) as far:
            eventually(lambda: settled([near, far]) and far.held)
            yield near, far
            line.mend()


def test_it_gives_up_its_work_and_comes_back(line: Line, nodes: tuple[Node, Node], eventually: Eventually) -> None:
    near, far = nodes
    line.drop()
    eventually(lambda: not far.held)
    eventually(lambda: near.held == near.configs.configured)
    line.mend()
    eventually(lambda: settled([near, far]) and far.held)


def test_also_while_it_joins(line: Line, nodes: tuple[Node, Node], eventually: Eventually) -> None:
    near, far = nodes
    held_up = threading.Event()

    def hold_up() -> None:
        held_up.wait(3)

    near.before_state = hold_up
    far.configs.offset += 1
    far.membership.request_rejoin()
    eventually(lambda: far.membership.rebalancing and not near.membership.rebalancing)
    line.drop()
    eventually(lambda: not far.held)
    held_up.set()
    eventually(lambda: near.held == near.configs.configured)
    line.mend()
    eventually(lambda: settled([near, far]) and far.held)
