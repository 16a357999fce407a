"""What tasks need from others, as Protocols. `spark`, `kafka` and `producer` fit them by shape; `cli` joins them.

A task's thread is the only caller, unless a method says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.api.reach import Reach
from headgate.model import Config, NewTopic, PartitionStart, TaskId, TaskSpec, TopicPartition
from headgate.tasks.source.offsets import OffsetsFor

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.api.task import SourceFrame
    from headgate.model import ChainSpec
    from headgate.pipeline.blob import Job, Packed
    from headgate.pipeline.frame_report import FrameReport
    from headgate.pipeline.shelf import Shelf
    from headgate.pipeline.sink_chain import Output, SinkChain
    from headgate.producer.errors import ProducerError

Ranges = Mapping[TopicPartition, tuple[int, int]]
"""From the first offset to the one after the last."""


class TaskListener(Protocol):
    """Told what becomes of a task; see `runtime.ports.TaskListener`."""

    def on_running(self) -> None: ...

    def on_paused(self) -> None: ...

    def on_failed(self, trace: str) -> None: ...

    def on_stopped(self) -> None: ...

    def on_topic(self, topic: str) -> None: ...

    def await_fencing(self) -> None: ...

    def confirm_start(self) -> None: ...


# --- the engine -------------------------------------------------------------------------------------------------------


class StatementRunner(Protocol):
    """The statements of one task's chain. They cut it into parts; each runs between two of them."""

    first: ChainSpec
    """The chain up to the first statement, or all of it."""

    def __len__(self) -> int: ...

    def select(self, index: int, tables: Sequence[pa.Table], shelf: Shelf | None) -> Future[list[Job]]:
        """What a statement makes of the rows before it, as jobs for the part behind it. Fails with StatementFailed, or
        with EngineUnavailable: then it may be asked again."""

    def close(self) -> None: ...


class RangeReader(Protocol):
    """Reads ranges of offsets for one task, on executors."""

    @property
    def most(self) -> int:
        """Records that it is best asked for at once."""

    @property
    def ahead(self) -> int:
        """How many times it is best asked before the first answer is wanted."""

    def read(self, ranges: Ranges, shelf: Shelf | None) -> Future[Any]:
        """A list of packed results, or, where the task takes it, a frame. Fails with EngineUnavailable, and with
        RangeUnread."""

    def cancel(self) -> None:
        """Nobody wants what it was asked for."""

    def close(self) -> None: ...


class FrameSender(Protocol):
    """Has executors send the frames of one source task to Kafka."""

    def send(self, frame: SourceFrame) -> Future[FrameReport]:
        """One at a time. Fails with EngineUnavailable: then it may be asked again, and some may be sent twice; or with
        what Spark says of the frame."""

    def close(self) -> None:
        """Nobody waits for what is under way."""


class Engine(Protocol):
    """Runs the pipeline. May be used from any thread."""

    def ready(self, cancelled: Callable[[], bool]) -> None:
        """Waits for it. Raises EngineUnavailable when it cannot be had, or `cancelled` says to give up."""

    def submit(self, task: TaskId, blobs: Sequence[bytes]) -> Future[list[Packed]]:
        """The results of blobs, in their order. Fails with EngineUnavailable."""

    def trouble(self, task: TaskId) -> str | None:
        """Why what the task has submitted is not done, if it is not only slow."""

    def cancel(self, task: TaskId) -> None:
        """Nobody waits for anything of this task any more."""

    def forget(self, task: TaskId) -> None:
        """The task has ended."""

    def shelf(self) -> AbstractContextManager[Shelf | None]:
        """For large payloads, where engine and worker share a machine."""

    def statements(self, spec: TaskSpec, output: Output | None) -> StatementRunner:
        """`output` is that of a sink. Raises StatementFailed for what is no query."""

    def ranges(self, spec: TaskSpec, chain: bytes, sink: SinkChain, frames: bool) -> RangeReader | None:
        """`chain` is the packed one that `sink` was built of; `frames`: the task takes them. None: only the task's
        consumer can read."""

    def frame_sender(self, spec: TaskSpec, chain: bytes) -> FrameSender:
        """`chain` is the packed one of a source without statements."""

    def frame(self, table: pa.Table) -> Any:
        """A DataFrame."""

    def session_for(self, task: TaskId) -> Any:
        """The SparkSession, for a plugin; waits for it. Jobs of the calling thread are the task's from now on."""

    def explain(self, error: Exception) -> Exception:
        """What an exception of somebody who used a frame or the session really means: EngineUnavailable, or what it
        says."""


# --- Kafka ------------------------------------------------------------------------------------------------------------


class Fetched(Protocol):
    """Records as they came, at least one."""

    @property
    def following(self) -> Mapping[TopicPartition, int]:
        """Where to go on after them."""

    def __len__(self) -> int: ...

    def table(self, needed: frozenset[str]) -> pa.Table:
        """These columns of `pipeline.batch.CONSUMED`."""


class Rebalances(Protocol):
    """Told by a consumer, within its calls, which partitions come and go. What is raised comes out of the call."""

    def on_assigned(self, starts: Mapping[TopicPartition, PartitionStart]) -> Mapping[TopicPartition, int]:
        """Where to begin with each."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None: ...

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None: ...


class Consumer(Protocol):
    """In the sink's group. Rebalances happen inside `fetch` and `keep_alive`."""

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None: ...

    def fetch(self, most: int, seconds: float) -> Fetched | None:
        """What has arrived, at once if anything has; else what arrives within `seconds`. Raises fatal errors."""

    def keep_alive(self) -> None:
        """Takes part in the group while nothing is fetched; the partitions must be paused."""

    def pause(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """These; None: all, and those that come."""

    def resume(self, but: frozenset[TopicPartition] = frozenset()) -> None: ...

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The next fetch of these partitions begins here."""

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Waits for the broker. Raises when it does not take them."""

    def ends(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """The first offset and the one after the last that may be read, asked of the broker."""

    def lag(self, positions: Mapping[TopicPartition, int], *, ask: bool) -> int | None:
        """Of the partition furthest behind; `ask`: the broker, or else by what came with the last records. None when
        that is not known of all of them."""

    def trouble(self) -> str | None:
        """What keeps it from fetching, in one line, as far as it knows. From any thread."""

    def close(self) -> None:
        """Leaves the group; nobody is told of partitions that go."""

    def abandon(self) -> None:
        """The same, and nobody waits for it: the broker may be what does not answer."""


class RefusedMessage(Protocol):
    @property
    def number(self) -> int:
        """Of its row, counted from the first that was sent."""

    @property
    def topic(self) -> str: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...

    @property
    def timestamp(self) -> int | None: ...


class RefusedRecord(Protocol):
    """A record that Kafka does not take."""

    @property
    def message(self) -> RefusedMessage: ...

    @property
    def reason(self) -> str: ...


class Sender(Protocol):
    """Sends rows, at least once."""

    count: int
    """Rows that were sent: the number of the next one."""

    @property
    def unanswered(self) -> int:
        """Those that Kafka has not acknowledged, and of which nobody was told that it refused them."""

    def send(self, table: pa.Table) -> None:
        """In order; waits where there is no room. What was refused is told to `on_refused`, whose errors come out."""

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has everything that it takes; False when it has not within this time."""

    def rest(self) -> None:
        """There will be nothing to send for a while: unless something is unanswered, it holds no connection until
        then."""

    def trouble(self, since: float) -> str | None:
        """What its brokers were last complained about after that moment of the monotonic clock. From any thread."""

    def close(self) -> None:
        """Forgets what was not acknowledged. May be repeated."""


class TransactionalSender(Protocol):
    """Sends rows in transactions (KIP-691). Raises ProducerErrors; OperationTimeoutError when `seconds` are over, and
    then the same call is to be repeated."""

    @property
    def timeout(self) -> float:
        """Seconds that the broker gives a transaction."""

    def init(self, seconds: float) -> None: ...

    def renew(self) -> None:
        """Another producer of the same id, to be initialised."""

    def begin(self) -> None: ...

    def send_table(self, table: pa.Table, settle: Callable[[], None]) -> None:
        """All rows, in order. `settle` waits for Kafka's answer to all that was sent."""

    def send(self, topic: str, value: bytes | None, key: bytes | None) -> object: ...

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group_metadata: Any) -> None: ...

    def flush(self, seconds: float) -> object: ...

    def commit(self, seconds: float) -> None: ...

    def abort(self, seconds: float) -> None: ...

    def shrinks(self, error: ProducerError) -> bool:
        """Whether records were refused for the size that they have together; the next time fewer will go together."""

    def close(self) -> None: ...


class Letters(Protocol):
    """Sends single records, from any thread."""

    failure: str | None
    """Why it can never send again."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
    ) -> Future[Any]:
        """Done when Kafka has it; fails with why it has not. Raises BufferError when there is no room."""

    def flush(self, seconds: float) -> bool: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AskAgain:
    """How a question is asked again while no broker answers."""

    may_go_on: Callable[[], bool]
    pause: Callable[[float], object]
    """Waits that many seconds, or less."""
    tries: int | None = None
    """The most; None: any number."""


class TopicAdmin(Protocol):
    """Topics of a cluster. Raises what Kafka has against it, or that it did not answer."""

    def exists(self, topic: str) -> bool: ...

    def create(self, *topics: NewTopic) -> Sequence[str]:
        """The names of those that were missing and have been made."""


# --- all of it --------------------------------------------------------------------------------------------------------


Clock = Callable[[], float]
"""Seconds that only go forward."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a task is given to work with. Clients are made from settings by Apache's names."""

    engine: Engine
    offsets: OffsetsFor
    consumer: Callable[[Config, Rebalances, int], Consumer]
    """With the most bytes that it fetches ahead."""
    sender: Callable[[Config, Callable[[], bool], Callable[[RefusedRecord], None]], Sender]
    """With whether it may go on, and whom to tell of refused records."""
    transactional: Callable[[Config, Callable[[], bool]], TransactionalSender]
    """With whether the task is still this worker's. Raises ProducerError."""
    letters: Callable[[Config, str, Callable[[], bool]], Letters]
    """With its name, and whether it may go on."""
    topics: Callable[[Config, AskAgain], TopicAdmin]
    require: Callable[[Reach], None] = lambda reach: None
    """Raises ConfigError for what the worker does not allow."""
    clock: Clock = time.monotonic
