"""Soak: two hundred connectors on three workers, everything of the failure table breaks in turn, bad clients attack.

`make soak` runs it for half an hour; then every record is counted, all connectors are deleted, and workers must hold no
more than before. The same `--seed` makes the same choices. It ends with 0 if all is well.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
from cluster_harness import PLUGINS, Cluster, Worker, await_
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from cut_line import Line
from lab import has_nothing
from ledger import Verdict
from run import say, worker_settings

from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener
from tests.soak import attacks, failure_table
from tests.soak.bad_clients import BadClients
from tests.soak.cluster_faults import Breaker
from tests.soak.failure_table import Fault
from tests.soak.fleet import Fleet, Ledger, Numbers
from tests.soak.good_client import GoodClient
from tests.soak.leaks import Held, age_s, collect_garbage, left_behind, thread_names
from tests.soak.report import Outcome, report
from tests.soak.trials import Trials
from tests.soak.trouble import Trouble

SESSION_S: Final = 10.0
TRANSACTION_S: Final = 15.0
_BROKER: Final = {
    # A machine that is held up for seconds is no fault of the list; see `server_config.TO_BE_KILLED`.
    "broker.session.timeout.ms": "18000",
    # A scan while a killed broker starts would end transactions whose partitions it does not know yet, without markers,
    # and then nobody ever reads beyond them (Kafka 4.3.1).
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "30000",
}
_WARM: Final = 18
"""One connector of each kind."""
_WARM_S: Final = 20.0
_CREATE_S: Final = 900.0
_ARRIVE_S: Final = 300.0
_SETTLE_S: Final = 240.0
_CALLERS: Final = 6
_KILLS_UNTIL: Final = 0.75
"""Of the time: workers that are ended later are too young to be compared."""
_UNHANDLED: Final = re.compile(r"^\[.*\] ERROR .* \(headgate\.rest\.errors\)$", re.MULTILINE)


def settings(plugins: Path) -> dict[str, str]:
    return {
        **worker_settings(exactly_once=True),
        "session.timeout.ms": f"{SESSION_S * 1000:.0f}",
        "producer.transaction.timeout.ms": f"{TRANSACTION_S * 1000:.0f}",
        # Else sinks, exactly-once ones too, have what was aborted, and count it as doubled.
        "consumer.isolation.level": "read_committed",
        "offset.flush.interval.ms": "5000",
        "plugin.path": str(plugins),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        # Bad clients are to run into them many times.
        "headgate.rest.headers.timeout.ms": "5000",
        "headgate.rest.body.timeout.ms": "10000",
        # Three workers share this machine, and what is tested here is not how fast they are.
        "headgate.residents.max": "3",
        "headgate.residents.idle.ms": "15000",
        "spark.driver.memory": "1g",
    }


class Soak:
    """From `with` to its end: a broker, a line to it, three workers."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.plugins = folder, folder / "plugins"
        # Which worker or connector it strikes depends on how often somebody had to ask again: what comes next does not.
        self.order, self.chooser = random.Random(seed), random.Random(seed)
        self.outcome = Outcome(seed)
        self.trouble = Trouble()
        self._line = Line()
        self._ending = ExitStack()

    def __enter__(self) -> Soak:
        shutil.copytree(PLUGINS, self.plugins, ignore=shutil.ignore_patterns("__pycache__"))
        for plugin in (Path(__file__).parent / "plugins").glob("*.py"):
            shutil.copy(plugin, self.plugins)
        with ExitStack() as ending:
            ending.enter_context(self._line)
            door = BrokerListener("CUT", advertised=self._line.address)
            folder = self.folder / "broker"
            self.broker = ending.enter_context(Broker(folder, properties=_BROKER, listeners=[door], heap="1g"))
            self._line.upstream = self.broker.address("CUT")
            self.cluster = Cluster(self.folder, self.broker.bootstrap, "soak", settings(self.plugins))
            ending.callback(self.cluster.close)
            for more in ({}, {}, {"bootstrap_servers": self._line.address}):
                self.cluster.add(**more)
            self.cluster.await_ready()
            self._ending = ending.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def run(self, seconds: float, connectors: int, only: Sequence[str] = ()) -> Outcome:
        """`only`: names of faults, where not all are wanted."""
        before = self._warm_up()
        breaker = self._launch(Fleet(self.folder / "fleet", connectors))
        fleet = breaker.fleet
        self.outcome.connectors = len(fleet.members)
        self._break(breaker, seconds, only)
        self.outcome.lines = fleet.lines
        self.outcome.restarted += breaker.failed
        with self._noted("count"):
            self._count(breaker)
        with self._noted("compare"):
            self._delete_all()
            self._compare(before)
        self.outcome.problems += [
            *breaker.surprises,
            *(f"{each} was left behind" for each in left_behind(breaker.ended)),
        ]
        self._look_for_harm()
        return self.outcome

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """What goes wrong within it is told in the end, and the rest goes on."""
        try:
            yield
        except (AssertionError, RuntimeError, KafkaException, httpx2.TransportError) as error:
            self.outcome.problems.append(f"{what}: {type(error).__name__} {str(error)[:1000]}")
            say(f"  {self.outcome.problems[-1]}")

    # --- before -------------------------------------------------------------------------------------------------------

    def _warm_up(self) -> Held:
        """One connector of each kind comes and goes, so that all that is loaded once is loaded."""
        breaker = self._launch(Fleet(self.folder / "warm", _WARM, "warm-"))
        with breaker.fleet.flowing():
            time.sleep(_WARM_S)
        self.outcome.restarted += breaker.failed
        self._delete_all()
        time.sleep(_WARM_S)
        held = [self._held(worker) for worker in self.cluster.workers]
        say(f"before: {Held.most(held)}")
        return Held.most(held)

    def _held(self, worker: Worker) -> Held:
        collect_garbage(worker.pid)
        return Held.by(worker.pid)

    def _launch(self, fleet: Fleet) -> Breaker:
        """Returns when all of it runs."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in fleet.topics]).values():
            made.result(60)
        breaker = Breaker(
            self.cluster,
            self.broker,
            fleet.sources,
            self.chooser,
            max(SESSION_S, TRANSACTION_S) + 3,
            log=say,
            fleet=fleet,
            line=self._line,
            session_s=SESSION_S,
            spared=self.cluster.workers[1],
        )
        began = time.monotonic()
        with ThreadPoolExecutor(_CALLERS) as callers:
            list(callers.map(breaker.create, fleet.members))
        breaker.await_whole(_CREATE_S)
        say(f"{len(fleet.members)} connectors run after {time.monotonic() - began:.0f} s")
        return breaker

    # --- meanwhile ----------------------------------------------------------------------------------------------------

    def _break(self, breaker: Breaker, seconds: float, only: Sequence[str]) -> None:
        fleet = breaker.fleet
        faults = [*breaker.faults(), *Trials(breaker, self.broker.bootstrap, self.folder / "trials").faults()]
        self.outcome.rows = len(failure_table.rows())
        self.outcome.problems += [f"no fault is about: {row}" for row in failure_table.forgotten(faults)]
        faults = [fault for fault in faults if not only or fault.name in only]
        assert faults, f"there is no fault called {only}"
        victim = next(member.name for member in fleet.members if member.kind == "poll")
        quick = attacks.quick(self.folder, self.plugins, victim)
        good = GoodClient(self.cluster, [member.name for member in fleet.members], self.trouble, say)
        bad = BadClients(self.cluster, quick, attacks.slow(), self.trouble, self.outcome.seed)
        began, done = time.monotonic(), set[str]()
        with good, bad, fleet.flowing():
            for fault in _in_turn(faults, self.order):
                passed = time.monotonic() - began
                if passed > seconds:
                    break
                if fault.restarts and passed > seconds * _KILLS_UNTIL:
                    time.sleep(0.1)
                    continue
                self._strike(fault, breaker)
                done.add(fault.name)
                told = f"{fleet.lines} lines, {good.answers.requests + bad.answers.requests} requests"
                wrong = [*good.answers.wrong, *bad.answers.wrong]
                say(f"     {told}, {len(wrong)} wrong answers{': ' if wrong else ''}{'; '.join(wrong[-3:])}")
                time.sleep(self.chooser.uniform(2, 6))
        self.outcome.seconds = time.monotonic() - began
        self.outcome.rows_broken = len(failure_table.broken([each for each in faults if each.name in done]))
        self._take(good, bad)

    def _strike(self, fault: Fault, breaker: Breaker) -> None:
        """And wait until the cluster is whole again."""
        self.outcome.faults[fault.name] += 1
        began = time.monotonic()
        with ExitStack() as ending:
            if fault.breaks:
                ending.enter_context(self.trouble.under_way())
            with self._noted(fault.name):
                fault.act()
            struck = time.monotonic()
            with self._noted(f"after {fault.name}"):
                breaker.mend()
        whole = time.monotonic()
        number = sum(self.outcome.faults.values())
        say(f"{number:4d} {fault.name} ({struck - began:.1f} s, whole after {whole - struck:.1f} s more)")

    def _take(self, good: GoodClient, bad: BadClients) -> None:
        outcome = self.outcome
        outcome.good_requests, outcome.bad_requests = good.answers.requests, bad.answers.requests
        outcome.answers = good.answers.counts + bad.answers.counts
        outcome.wrong_answers = [*good.answers.wrong, *bad.answers.wrong]
        outcome.half_open, outcome.attacks, outcome.times = bad.half_open, len(bad.attacks), good.times
        outcome.problems += bad.errors
        say(f"{sum(outcome.faults.values())} faults in {outcome.seconds:.0f} s; nothing is broken any more")

    # --- after --------------------------------------------------------------------------------------------------------

    def _count(self, breaker: Breaker) -> None:
        """All that was written, at every place where it must be."""
        breaker.mend()
        witnesses = [each.share.name for each in breaker.fleet.ledgers if isinstance(each.share.whole, Numbers)]
        for name in witnesses:
            breaker.call("PUT", f"/connectors/{name}/stop", 204)
        for name in witnesses:
            await_(lambda of=name: breaker.states(of) == ("STOPPED", []), f"{name} has stopped", 120)  # type: ignore[misc]
        breaker.fleet.count_numbers(lambda name: _next(breaker, name))
        deadline = time.monotonic() + _ARRIVE_S
        for ledger in breaker.fleet.ledgers:
            self.outcome.verdicts.append((ledger, self._verdict(ledger, deadline)))
        say(f"{len(breaker.fleet.ledgers)} ledgers are read: {self.outcome.lost} records lost")

    def _verdict(self, ledger: Ledger, deadline: float) -> Verdict:
        while (found := ledger.verdict(self.broker.bootstrap)).lost and time.monotonic() < deadline:
            time.sleep(2)
        return found

    def _delete_all(self) -> None:
        self.cluster.delete_all()
        await_(lambda: all(has_nothing(worker) for worker in self.cluster.workers), "no task is left", 180, 0.5)

    def _compare(self, before: Held) -> None:
        """Idle residents, thread pools and connections take a while to go."""
        self.outcome.before = before
        deadline = time.monotonic() + _SETTLE_S
        while True:
            for worker in self.cluster.workers:
                self.outcome.after[f"{worker.name}, {age_s(worker.pid) / 60:.0f} min old"] = self._held(worker)
            if not self.outcome.leaks:
                break
            if time.monotonic() > deadline:
                for worker in self.cluster.workers:
                    say(f"threads of {worker.name}: {thread_names(worker.pid)}")
                break
            time.sleep(10)
            self.outcome.after.clear()

    def _look_for_harm(self) -> None:
        """What attacks would have left, and what nobody has thought of."""
        for worker in self.cluster.workers:
            found = _UNHANDLED.findall(worker.log.read_text(errors="replace"))
            self.outcome.problems += [f"{worker.name} was surprised: {line}" for line in found[:5]]
        for harm in (self.folder / "canary", self.folder / "evil.py", self.plugins / "evil.txt", self.plugins / "x"):
            if harm.exists():
                self.outcome.problems.append(f"an attack has made {harm.name}")
        names = self.cluster.workers[0].call("GET", "/connectors", 200)
        self.outcome.problems += [f"connector {name} is still there" for name in names]


def _in_turn(faults: Sequence[Fault], chooser: random.Random) -> Iterator[Fault]:
    """Again and again, each time in another order."""
    while True:
        yield from chooser.sample(faults, len(faults))


def _next(breaker: Breaker, name: str) -> int:
    found = breaker.call("GET", f"/connectors/{name}/offsets", 200)["offsets"]
    return int(found[0]["offset"]["next"]) if found else 0


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)  # by way of all that has to be ended


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800, help="how long things break")
    parser.add_argument("--connectors", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="+", default=(), metavar="FAULT", help="these faults and no others, by name")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and files")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _leave)
    folder = Path(tempfile.mkdtemp(prefix="headgate-soak-"))
    say(f"logs in {folder}, seed {arguments.seed}")
    with Soak(folder, arguments.seed) as soak:
        outcome = soak.run(arguments.seconds, arguments.connectors, arguments.only)
    print("\n".join(report(outcome)), flush=True)
    if outcome.good and not arguments.keep:
        shutil.rmtree(folder)
    say("all is well" if outcome.good else f"NOT all is well; seed {arguments.seed}, logs in {folder}")
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
