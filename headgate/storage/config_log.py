"""ConfigLog: connector configs, task configs and target states in the config topic, which all workers read.

A write has happened when the call returns: Kafka has acknowledged it, and this worker has read it back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from headgate.model import (
    Config,
    LevelChange,
    PassingEvent,
    RestartRequest,
    SessionKey,
    TargetChange,
    TargetState,
    TaskId,
)
from headgate.runtime.ports import ConfigsLost
from headgate.runtime.view import ClusterView
from headgate.storage.config_records import (
    CommitRecord,
    ConfigRecord,
    ConnectorRecord,
    TargetStateRecord,
    TaskCountRecord,
    TaskRecord,
    decode,
    encode,
)
from headgate.storage.config_state import ConfigFold, ConfigState
from headgate.storage.records import MalformedRecord, NotJson
from headgate.storage.topic_log import Log, LogRecord
from headgate.storage.topic_writer import WriteFailed, Writer

_log: Final = logging.getLogger(__name__)

WRITE_S: Final = 30.0


class LeaderWriteFailed(WriteFailed):
    """A write that only the leader may make was not made: this worker is not, or no longer, the one whose transactions
    count. It must join the group again and claim the topic anew."""


OnChange = Callable[[PassingEvent | None], None]
"""Told, from the log's thread, that something came after start-up; the state has it by then. Must not block."""


class ConfigLog:
    """May be used from any thread; writes wait for each other."""

    def __init__(
        self,
        log: Log,
        writer: Writer,
        *,
        transactional: bool = False,
        timeout: float = WRITE_S,
        missing: Callable[[], bool] = lambda: False,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """With `transactional`, what only the leader may write goes through the writer that it has claimed the topic
        with. `timeout` is for a whole write with all of its steps. `missing`: whether Kafka has the topic no more;
        `look` finds out whether it has another one, and calls `replaced` then."""
        self._topic_log = log
        self._writer = writer
        self._leader: Writer | None = None
        self._transactional = transactional
        self._timeout = timeout
        self._missing = missing
        self._look = look
        self._replaced = False
        self._on_change: OnChange | None = None
        self._fold = ConfigFold()
        self._folding = threading.Lock()
        self._writing = threading.Lock()

    def start(self, on_change: OnChange | None = None, timeout: float = 60.0) -> None:
        """Returns when the topic has been read. Raises ReadTimeout."""
        self._topic_log.start(self._on_record, timeout)
        self._on_change = on_change

    def close(self) -> None:
        """Ends reading and writing; a writer of the leader's, too."""
        self._topic_log.close()
        self.claim(None)
        self._writer.close()

    # --- reading: from any thread -------------------------------------------------------------------------------------

    def view(self) -> ClusterView:
        return self.state().view

    def state(self) -> ConfigState:
        with self._folding:
            return self._fold.state()

    def refresh(self, timeout: float) -> ConfigState:
        """The state with all that was in the topic when this was called; what is in memory, when that topic is no more:
        what runs shall go on. Raises ReadTimeout."""
        if self.lost is None:
            self._topic_log.read_to_end(timeout)
        return self.state()

    @property
    def lost(self) -> str | None:
        """Why nothing can be written, and memory is all there is to read."""
        topic = f"Topic {self._topic_log.topic} of connector configurations"
        if self._replaced:
            return (
                f"{topic} was deleted and made anew. What runs goes on, by what is in memory, and nothing can be"
                " changed. Save the configurations (GET /connectors?expand=info), then stop all workers and start them"
                " again."
            )
        return f"{topic} was deleted. What runs goes on, and nothing can be changed." if self._missing() else None

    def replaced(self) -> None:
        """The topic is another one by now. What it says is not carried out: an empty one would end everything, one that
        was put back could do so half-way. From any thread."""
        self._replaced = True

    def _on_record(self, record: LogRecord) -> None:
        if record.offset < self._fold.offset:  # it was read to there: the topic has lost records, or is another one
            self._look()
        if self._replaced:
            return
        try:
            known = decode(record.key, record.value)
        except NotJson as error:
            _log.error("Record %d of %s is ignored: %s", record.offset, self._topic_log.topic, error)
            return
        except MalformedRecord as error:
            _log.error("Record %d of %s (%r) is ignored: %s", record.offset, self._topic_log.topic, record.key, error)
            with self._folding:
                self._fold.ignore(record.offset)
            return
        with self._folding:
            told = self._fold.apply(known, record.offset)
        if told and self._on_change is not None:
            self._on_change(_passing(known))

    # --- writing ------------------------------------------------------------------------------------------------------

    def claim(self, writer: Writer | None) -> None:
        """The leader's transactional writer, None when this worker leads no more. The last one is closed."""
        last, self._leader = self._leader, writer
        if last is not None and last is not writer:
            last.close()

    def put_connector(self, name: str, config: Config, target: TargetState | None = None) -> None:
        """Create or replace. The target state comes first: a crash in between must not start what shall be stopped. One
        that such a crash has left behind does not count for what is created now."""
        with self._step() as deadline:
            self._read(deadline)
            with self._folding:
                if target is None and self._fold.left_behind(name):
                    target = TargetState.STARTED
            state = [] if target is None else [TargetStateRecord(name, target)]
            self._write_as_leader([*state, ConnectorRecord(name, config)], deadline)

    def remove_connector(self, name: str) -> None:
        self._lead(ConnectorRecord(name, None), TargetStateRecord(name, None))

    def put_tasks(self, name: str, configs: Sequence[Config]) -> None:
        """Raises ConnectorNotFound. The commit is a step of its own: no worker may see it before all the tasks."""
        with self._step() as deadline:
            self._read(deadline)
            self.view().require(name)
            if configs:
                self._write_as_leader([TaskRecord(TaskId(name, n), each) for n, each in enumerate(configs)], deadline)
            self._write_as_leader([CommitRecord(name, len(configs))], deadline)

    def put_target_state(self, name: str, target: TargetState) -> None:
        """Any worker may. Raises ConnectorNotFound."""
        with self._step() as deadline:
            self.view().require(name)
            self._write(TargetStateRecord(name, target), deadline)

    def put_restart_request(self, request: RestartRequest) -> None:
        self._lead(request)

    def put_task_count(self, name: str, count: int) -> None:
        """KIP-618: the tasks before the current ones have been fenced."""
        self._lead(TaskCountRecord(name, count))

    def put_session_key(self, key: SessionKey) -> None:
        self._lead(key)

    def put_logger_level(self, namespace: str, level: str) -> None:
        """Any worker may."""
        with self._step() as deadline:
            self._write(LevelChange(namespace, level), deadline)

    @contextmanager
    def _step(self) -> Iterator[float]:
        """One write at a time, until a deadline for all of it."""
        if (lost := self.lost) is not None:
            raise ConfigsLost(lost)
        deadline = time.monotonic() + self._timeout
        if not self._writing.acquire(timeout=self._timeout):
            raise WriteFailed(f"Another write to topic {self._topic_log.topic} takes longer than {self._timeout:g} s")
        try:
            yield deadline
        finally:
            self._writing.release()

    def _lead(self, *records: ConfigRecord) -> None:
        with self._step() as deadline:
            self._write_as_leader(records, deadline)

    def _write_as_leader(self, records: Sequence[ConfigRecord], deadline: float) -> None:
        """What only the leader may write: one transaction where there are any, else one after the other."""
        entries = [encode(each) for each in records]
        if not self._transactional:
            # Task configs mean nothing before their commit: they need not wait for each other.
            steps = [entries] if isinstance(records[0], TaskRecord) else [[each] for each in entries]
            for step in steps:
                self._writer.write(step, _left(deadline))
        else:
            leader = self._leader
            if leader is None:
                raise LeaderWriteFailed(f"This worker has not claimed topic {self._topic_log.topic}: it does not lead")
            try:
                leader.write(entries, _left(deadline))
            except Exception as error:
                # Whatever it was, its transactions may be fenced or unfinished: only a new claim makes that certain.
                self.claim(None)
                raise LeaderWriteFailed(
                    f"The leader's write to topic {self._topic_log.topic} failed: {error}"
                ) from error
        self._read(deadline)

    def _write(self, record: ConfigRecord, deadline: float) -> None:
        self._writer.write([encode(record)], _left(deadline))
        self._read(deadline)

    def _read(self, deadline: float) -> None:
        self._topic_log.read_to_end(_left(deadline))


def _passing(record: ConfigRecord) -> PassingEvent | None:
    match record:
        case TargetStateRecord(connector, TargetState() as target):
            return TargetChange(connector, target)
        case RestartRequest() | LevelChange():
            return record
        case _:
            return None


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)
