"""Trials: connectors of their own that are told to fail, as rows of the failure table say, beside all that runs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cluster_harness import await_, lines, sink_config, source_config
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from topic_reader import create_topic

from tests.soak.cluster_faults import Breaker
from tests.soak.failure_table import Fault
from tests.soak.fleet import JSON, committed

_SOON_S: Final = 120.0
"""The machine is busy, and others come and go."""
_SMALL: Final = "1000"
_JSON: Final = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
_TOLERANT: Final = {"errors.tolerance": "all"}


@dataclass
class Trial:
    """One connector, its topic and its files."""

    operator: Breaker
    bootstrap: str
    folder: Path
    name: str

    def __post_init__(self) -> None:
        self.topic, self.dead = self.name, f"{self.name}-dead"
        self.file, self.out = self.folder / f"{self.name}.txt", self.folder / f"{self.name}-out"
        self.flag, self.log = self.folder / f"{self.name}.flag", self.folder / f"{self.name}.log"
        self.flag.touch()

    def create(self, config: Mapping[str, str], *expected: int) -> Any:
        return self.operator.call("PUT", f"/connectors/{self.name}/config", *(expected or (200, 201)), json=config)

    def command(self, verb: str, *expected: int) -> None:
        self.operator.call("PUT", f"/connectors/{self.name}/{verb}", *expected)

    def restart(self) -> None:
        path = f"/connectors/{self.name}/restart?includeTasks=true&onlyFailed=true"
        self.operator.call("POST", path, 202)

    def let_go(self) -> None:
        """What fails or hangs while the flag is there does so no longer."""
        self.flag.unlink(missing_ok=True)

    def end(self) -> None:
        self.let_go()
        self.operator.call("DELETE", f"/connectors/{self.name}", 204, 404)

    # --- configurations -----------------------------------------------------------------------------------------------

    def source(self, **more: str) -> dict[str, str]:
        self.file.touch()
        return source_config(self.file, self.topic, **more)

    def sink(self, **more: str) -> dict[str, str]:
        return sink_config(self.out, self.topic, **more)

    def transform(self, kind: str, **more: str) -> dict[str, str]:
        keys = {f"transforms.t.{key.replace('_', '.')}": value for key, value in more.items()}
        return {"transforms": "t", "transforms.t.type": kind, **keys}

    def faulty(self, kind: str, fail_in: str, **more: str) -> dict[str, str]:
        where = {"topics": self.topic} if kind == "FaultySink" else {"topic": self.topic, "count": "3"}
        told = {"fail.in": fail_in, "fail.while": str(self.flag), "log": str(self.log)}
        return {"connector.class": kind, **where, **told, **more}

    @property
    def dead_letters(self) -> dict[str, str]:
        return {**_TOLERANT, "errors.deadletterqueue.topic.name": self.dead}

    # --- records ------------------------------------------------------------------------------------------------------

    def write(self, *written: str) -> None:
        with self.file.open("a") as out:
            out.writelines(f"{line}\n" for line in written)

    def send(self, *values: str) -> None:
        """To the topic of a sink."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for value in values:
            producer.produce(self.topic, value.encode())
        assert producer.flush(30) == 0

    def await_topic(self, *expected: str, topic: str = "") -> None:
        where = topic or self.topic
        await_(lambda: committed(self.bootstrap, where) == list(expected), f"{len(expected)} in {where}", _SOON_S, 0.5)

    def await_out(self, *expected: str) -> None:
        await_(lambda: lines(self.out) == list(expected), f"{expected} in {self.out}", _SOON_S, 0.2)

    # --- states -------------------------------------------------------------------------------------------------------

    def await_running(self) -> None:
        wanted = ("RUNNING", ["RUNNING"])
        await_(lambda: self.operator.states(self.name) == wanted, f"{self.name} runs", _SOON_S, 0.3)

    def await_failed(self, why: str = "") -> None:
        await_(lambda: self._failed(why), f"{self.name} fails with {why!r}", _SOON_S, 0.3)

    def _failed(self, why: str) -> bool:
        status = self.operator.call("GET", f"/connectors/{self.name}/status", 200, 404)
        all_ = [status["connector"], *status["tasks"]] if "connector" in status else []
        return any(each["state"] == "FAILED" and why in each["trace"] for each in all_)


class Trials:
    def __init__(self, operator: Breaker, bootstrap: str, folder: Path) -> None:
        self._operator, self._bootstrap, self._folder = operator, bootstrap, folder
        self._numbers = itertools.count()
        folder.mkdir(exist_ok=True)

    @contextmanager
    def _trial(self) -> Iterator[Trial]:
        made = Trial(self._operator, self._bootstrap, self._folder, f"trial-{next(self._numbers)}")
        try:
            yield made
        finally:
            made.end()

    @contextmanager
    def _sink(self) -> Iterator[Trial]:
        """Its topic is there."""
        with self._trial() as trial:
            create_topic(self._bootstrap, trial.topic)
            yield trial

    def faults(self) -> list[Fault]:
        return [
            Fault(self.slow_chain, ("a chain that takes longer",)),
            Fault(self.bad_record, ("one record: converter or transform",)),
            Fault(self.failing_statement, ("a statement",)),
            Fault(self.record_that_waits, ("one record, with RetriableError",)),
            Fault(self.refused_dead_letter, ("Kafka refuses a dead letter",)),
            Fault(self.no_dead_letters, ("the dead letter queue cannot",)),
            Fault(self.reported_record, ("a sink task reports",)),
            Fault(self.poll_that_waits, ("`poll` raises RetriableError",)),
            Fault(self.put_that_waits, ("`put` raises RetriableError",)),
            Fault(self.failing_poll, ("`poll` or `put` raises anything else",)),
            Fault(self.large_record, ("Kafka refuses a record of a source",)),
            Fault(self.small_batches, ("a topic takes smaller batches",)),
            Fault(self.lowered_limit, ("Kafka refuses a whole batch",)),
            Fault(self.failing_flush, ("`pre_commit` or `flush`",)),
            Fault(self.offset_behind_the_end, ("a sink that keeps offsets itself",)),
            Fault(self.deleted_topic, ("the commit of a sink's offsets fails",)),
            Fault(self.missing_secret, ("a config provider raises",)),
            Fault(self.impossible_topic, ("a source's topic cannot be created",)),
            Fault(self.failing_start, ("`start` of a connector raises",)),
            Fault(self.too_many_tasks, ("a connector makes more tasks",)),
            Fault(self.hanging_connector, ("a connector's plugin code hangs",)),
            Fault(self.hanging_task, ("a task does not stop",)),
            Fault(self.broken_plugin, ("a plugin cannot be imported",)),
        ]

    # --- records ------------------------------------------------------------------------------------------------------

    def slow_chain(self) -> None:
        with self._trial() as trial:
            trial.create(trial.source(**trial.transform("WaitingTransform", **{"while": str(trial.flag)})))
            trial.write("one", "two")
            await_(lambda: trial.flag.with_suffix(".waits").exists(), "the chain waits", _SOON_S)
            time.sleep(2)
            trial.let_go()
            trial.await_topic("one", "two")

    def bad_record(self) -> None:
        with self._trial() as trial:
            trial.create(trial.source(**trial.transform("FailingTransform")))
            trial.write("good", "bad")
            trial.await_failed("this value is bad")

    def failing_statement(self) -> None:
        with self._trial() as trial:
            statement = "SELECT CAST(value AS INT) AS value FROM records"
            trial.create(trial.source(**trial.transform("headgate.transforms.Sql", statement=statement)))
            trial.write("no number")
            trial.await_failed(statement)

    def record_that_waits(self) -> None:
        with self._trial() as trial:
            patient = trial.transform("PatientTransform", **{"while": str(trial.flag)})
            retries = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1000"}
            trial.create(trial.source(**patient, **retries))
            trial.write("now", "later")
            time.sleep(5)
            trial.let_go()
            trial.await_topic("now", "later")

    def refused_dead_letter(self) -> None:
        with self._sink() as trial:
            create_topic(self._bootstrap, trial.dead, max_message_bytes=_SMALL)
            trial.create(trial.sink(**_JSON, **trial.dead_letters))
            trial.send("{" + "x" * 5000, "1")
            trial.await_out("1")

    def no_dead_letters(self) -> None:
        with self._sink() as trial:
            replicas = {"errors.deadletterqueue.topic.replication.factor": "3"}
            trial.create(trial.sink(**_JSON, **trial.dead_letters, **replicas))
            trial.await_failed()

    def reported_record(self) -> None:
        with self._sink() as trial:
            trial.create(trial.faulty("FaultySink", "report", **trial.dead_letters))
            trial.send("errant", "fine")
            trial.await_topic("errant", topic=trial.dead)
            self._await_put(trial, "fine")

    def _await_put(self, trial: Trial, value: str) -> None:
        put = trial.log.with_name(f"{trial.log.name}.records")
        await_(lambda: any(line.endswith(f"'{value}'") for line in lines(put)), f"{value!r} was put", _SOON_S)

    def large_record(self) -> None:
        with self._trial() as trial:
            create_topic(self._bootstrap, trial.topic, max_message_bytes=_SMALL)
            trial.create(trial.source())
            trial.write("x" * 5000)
            trial.await_failed(trial.topic)

    def small_batches(self) -> None:
        with self._trial() as trial:
            create_topic(self._bootstrap, trial.topic, max_message_bytes=_SMALL)
            many = [f"line {number:030d}" for number in range(200)]
            trial.source()
            trial.write(*many)
            trial.create(trial.source())
            trial.await_topic(*many)

    def lowered_limit(self) -> None:
        with self._sink() as trial:
            few, many = ["first"], [f"line {number:030d}" for number in range(200)]
            trial.create(trial.source())
            trial.write(*few)
            trial.await_topic(*few)
            entry = ConfigEntry("max.message.bytes", _SMALL, incremental_operation=AlterConfigOpType.SET)
            change = ConfigResource(ResourceType.TOPIC, trial.topic, incremental_configs=[entry])
            admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
            admin.incremental_alter_configs([change])[change].result(20)
            trial.write(*many)
            trial.await_topic(*few, *many)

    # --- tasks --------------------------------------------------------------------------------------------------------

    def poll_that_waits(self) -> None:
        with self._trial() as trial:
            config = {"connector.class": "Later", "topic": trial.topic, "retry.while": str(trial.flag)}
            trial.create(config)
            trial.await_running()
            time.sleep(3)
            trial.let_go()
            trial.await_topic("later")

    def put_that_waits(self) -> None:
        with self._sink() as trial:
            trial.create(trial.faulty("FaultySink", "retry"))
            trial.send("patient")
            trial.await_running()
            time.sleep(3)
            trial.let_go()
            self._await_put(trial, "patient")

    def failing_poll(self) -> None:
        """And a restart of what has failed."""
        with self._trial() as trial:
            trial.create(trial.faulty("FaultySource", "task.poll"))
            trial.await_failed("told to fail in task.poll")
            trial.let_go()
            trial.restart()
            trial.await_topic("record 0", "record 1", "record 2")

    def failing_flush(self) -> None:
        with self._sink() as trial:
            trial.create(trial.faulty("FaultySink", "later:flush"))
            trial.send("one")
            trial.await_running()
            time.sleep(3)
            trial.let_go()
            await_(lambda: _committed(trial) == 1, "its offset is committed", _SOON_S, 0.3)

    def offset_behind_the_end(self) -> None:
        with self._sink() as trial:
            trial.create(trial.sink(**{"exactly.once": "true"}))
            trial.send("one")
            await_(lambda: _committed(trial) == 1, "its offset is committed", _SOON_S, 0.3)
            trial.command("stop", 204)
            place = {"kafka_topic": trial.topic, "kafka_partition": 0}
            body = {"offsets": [{"partition": place, "offset": {"kafka_offset": 1000}}]}
            self._operator.call("PATCH", f"/connectors/{trial.name}/offsets", 200, json=body)
            trial.command("resume", 202)
            trial.await_failed()

    def deleted_topic(self) -> None:
        with self._sink() as trial:
            trial.create(trial.sink())
            trial.send("one")
            trial.await_out("one")
            AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0}).delete_topics([trial.topic])
            time.sleep(5)

    def hanging_task(self) -> None:
        with self._trial() as trial:
            trial.create(trial.faulty("FaultySource", "hang:task.stop"))
            trial.await_running()
            self._operator.call("DELETE", f"/connectors/{trial.name}", 204)
            await_(lambda: "task.stop" in lines(trial.log), "it hangs", _SOON_S)
            time.sleep(5)

    # --- connectors ---------------------------------------------------------------------------------------------------

    def missing_secret(self) -> None:
        with self._trial() as trial:
            trial.create(trial.source(**{"errors.log.enable": f"${{file:{trial.out}:key}}"}), 400)

    def impossible_topic(self) -> None:
        with self._trial() as trial:
            keys = {"topic.creation.default.replication.factor": "3", "topic.creation.default.partitions": "1"}
            trial.create(trial.source(**keys))
            trial.write("one")
            trial.await_failed(trial.topic)

    def failing_start(self) -> None:
        with self._trial() as trial:
            trial.create(trial.faulty("FaultySource", "connector.start"), 200, 201, 500)
            trial.await_failed("told to fail in connector.start")
            trial.let_go()
            trial.restart()
            trial.await_running()

    def too_many_tasks(self) -> None:
        with self._trial() as trial:
            trial.create(trial.faulty("FaultySource", "", tasks="3", **{"tasks.max": "1"}), 200, 201, 500)
            trial.await_failed()

    def hanging_connector(self) -> None:
        with self._trial() as trial:
            trial.create(trial.faulty("FaultySource", "hang:connector.start"))
            await_(lambda: "connector.start" in lines(trial.log), "it hangs", _SOON_S)
            self._operator.call("DELETE", f"/connectors/{trial.name}", 204)
            time.sleep(5)

    def broken_plugin(self) -> None:
        with self._trial() as trial:
            trial.create({"connector.class": "broken.Broken"}, 400)


def _committed(trial: Trial) -> int:
    found = trial.operator.call("GET", f"/connectors/{trial.name}/offsets", 200, 404).get("offsets", [])
    return sum(each["offset"]["kafka_offset"] for each in found)
