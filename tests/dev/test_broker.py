import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.dev import ports
from headgate.dev.broker import Broker, BrokerFailed, DataInUse, PortInUse
from headgate.dev.command import main
from headgate.dev.server_config import TO_BE_KILLED

pytestmark = pytest.mark.broker

PARENT = """
import signal
from headgate.dev.broker import Broker
broker = Broker(progress=False)
broker.start()
print(broker.pid, broker.data, flush=True)
signal.pause()
"""
COMMAND = [sys.executable, "-c", "import sys; from headgate.dev.command import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("broker"), properties=TO_BE_KILLED) as broker:
        yield broker


@pytest.fixture
def occupied() -> Iterator[int]:
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(broker: Broker, topic: str, count: int) -> list[bytes]:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "test", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        return [message.value() or b"" for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def test_it_serves_and_keeps_its_data_through_restart_and_kill(broker: Broker) -> None:
    produce(broker, "kept", b"1")
    address, cluster, first = broker.bootstrap, broker.cluster_id, broker.pid

    broker.restart()
    assert (broker.bootstrap, broker.cluster_id) == (address, cluster)
    assert broker.pid != first
    produce(broker, "kept", b"2")

    broker.kill()
    assert not broker.running()
    broker.restart()
    assert consume(broker, "kept", 2) == [b"1", b"2"]


def test_a_folder_in_use_is_refused(broker: Broker) -> None:
    with pytest.raises(DataInUse, match=f"in use by the broker of process {os.getpid()}"):
        Broker(broker.data).start()
    assert broker.running()


def test_a_port_in_use_is_refused(broker: Broker) -> None:
    with pytest.raises(PortInUse, match=f"Port {broker.port} on 127.0.0.1 is in use"):
        Broker(port=broker.port).start()


def test_its_log_is_in_its_folder(broker: Broker) -> None:
    assert "Kafka Server started" in (broker.data / "logs" / "server.log").read_text()


def test_properties_reach_kafka_and_a_bad_one_shows_why(tmp_path: Path) -> None:
    broker = Broker(tmp_path, properties={"num.io.threads": "none"})
    with pytest.raises(BrokerFailed, match=r"num\.io\.threads"):
        broker.start()
    assert not broker.running()


@pytest.mark.parametrize(("argument", "reason"), [({"port": 70000}, "not a port"), ({"data": "a,b"}, "a comma")])
def test_arguments_are_checked_before_anything_starts(argument: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Broker(**argument)


def test_a_property_that_would_move_it_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log\.dirs cannot be set"):
        Broker(properties={"log.dirs": "/elsewhere"})


def test_a_start_that_fails_shows_the_first_error(tmp_path: Path) -> None:
    broker = Broker(tmp_path, properties={"super.users": "User:me", "authorizer.class.name": "no.such.Authorizer"})
    with pytest.raises(
        BrokerFailed, match=r"ended while starting; its log says:\n(Picked up .*\n)?.*ERROR(.|\n)*no\.such\.Authorizer"
    ):
        broker.start()


def test_a_port_that_is_taken_in_the_last_moment_is_given_up(monkeypatch: pytest.MonkeyPatch, occupied: int) -> None:
    pick, picked = ports.pick_free, iter([[occupied, ports.pick_free(1)[0]]])
    monkeypatch.setattr(ports, "pick_free", lambda count, avoid=0: next(picked, None) or pick(count, avoid))
    with Broker() as broker:
        assert broker.port != occupied
        data = broker.data
    assert not data.exists(), "temporary"


def test_no_jvm_is_left_when_its_parent_is_killed(
    alive: Callable[[int], bool], eventually: Callable[..., None]
) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, data = parent.stdout.readline().split()
        assert alive(int(pid))
        parent.send_signal(signal.SIGKILL)
        eventually(lambda: not alive(int(pid)))
        eventually(lambda: not Path(data).exists())


def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    arguments = ["--port", "0", "--data", str(tmp_path), "--property", "num.partitions=3"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        line = command.stdout.readline()
        assert line.startswith("Kafka serves at 127.0.0.1:")
        assert str(tmp_path) in line
        command.send_signal(signal.SIGINT)
        assert command.wait(30) == 0
    assert "num.partitions=3" in (tmp_path / "server.properties").read_text()
    assert "shut down completed" in (tmp_path / "logs" / "server.log").read_text()


def test_the_command_says_that_the_port_is_in_use(occupied: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(occupied)]) == 1
    assert capsys.readouterr().err == (
        f"headgate broker: Port {occupied} on 127.0.0.1 is in use: stop what listens there or choose another port.\n"
    )
