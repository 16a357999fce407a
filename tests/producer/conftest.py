"""Brokers and jobs for the producer's tests.

One broker serves all cases that leave it alone, by three doors: a plain one whose users may do everything, one behind
the fault-injecting proxy, and one where users log in and need ACLs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from access import JAAS
from job import START_S, Job, MakeJob, make_job, warm
from proxy import Proxy

from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener

PROPERTIES: Final = {
    # Transactions that are too old are looked for that often: not every 10 s.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Who does not log in, the broker itself among them.
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": JAAS,
}


@pytest.fixture(scope="session")
def doors() -> Iterator[tuple[Broker, Proxy]]:
    with Proxy() as proxy:
        listeners = [BrokerListener("PROXY", advertised=proxy.address), BrokerListener("SASL", "SASL_PLAINTEXT")]
        with Broker(properties=PROPERTIES, listeners=listeners, heap="256m", start_seconds=START_S) as broker:
            proxy.upstream = broker.address("PROXY")
            warm(broker.bootstrap)
            yield broker, proxy


@pytest.fixture(scope="session")
def broker(doors: tuple[Broker, Proxy]) -> Broker:
    return doors[0]


@pytest.fixture
def proxy(doors: tuple[Broker, Proxy]) -> Iterator[Proxy]:
    """Without rules at first. Fails the test when a rule was never met, or met what it is not for."""
    proxy = doors[1]
    proxy.clear()
    yield proxy
    proxy.heal()
    problems = list(proxy.problems)
    proxy.clear()
    assert not problems


@pytest.fixture
def new_job(request: pytest.FixtureRequest, unique: Callable[[str], str]) -> Iterator[MakeJob]:
    """Jobs with topics of their own on a broker, the shared one by default; their producers end with the test."""
    jobs: list[Job] = []

    def make(broker: Broker | None = None, *, topic: dict[str, str] | None = None, **settings: Any) -> Job:
        broker = broker or request.getfixturevalue("broker")
        job = make_job(broker.bootstrap, lambda name: f"{unique(name)}-{len(jobs)}", topic, **settings)
        jobs.append(job)
        return job

    yield make
    for job in jobs:
        job.open.close()


@pytest.fixture
def job(new_job: MakeJob) -> Job:
    return new_job()


@pytest.fixture
def proxied(new_job: MakeJob, proxy: Proxy) -> Job:
    """A job whose producer is behind the proxy, and whose checks are not."""
    return new_job(bootstrap_servers=proxy.address)
