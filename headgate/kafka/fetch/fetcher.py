"""Fetches over Kafka's protocol: while one is read, the next is on its way."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from kafka import errors
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.structs import TopicPartition as Native

from headgate.kafka.fetch.batches import Aborted, Batches, Unreadable
from headgate.kafka.settings.kafka_python import for_kafka_python
from headgate.model import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

FETCH_BYTES: Final = 4 * 1024 * 1024
_LEAST_BYTES: Final = 256 * 1024
_WAIT_MS: Final = 500
_ANSWER_MS: Final = 30_000
_PAUSE_S: Final = 0.2
_RECONNECT_MS: Final = 1000
_EARLIEST: Final = -2
_COMMITTED: Final = "read_committed"
_NEWEST: Final = 11
"""From version 12 on, topics are named by ids."""


class Silent(Exception):
    """The broker gave nothing for longer than one is willing to wait."""


class Fetcher:
    """From `with` to its end: connections to brokers, over which any partition is read, one after the other. `settings`
    are librdkafka's; raises ClientConfigError when they cannot be used here."""

    def __init__(self, settings: Mapping[str, Any], patience_s: float) -> None:
        self._patience_s = patience_s
        self._committed = settings.get("isolation.level", _COMMITTED) == _COMMITTED
        self._sizes: dict[TopicPartition, float] = {}
        """Bytes of an offset, as it was last."""
        # It logs what it is about to put right by itself, at length; what lasts is raised.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self._client: Any = KafkaNetClient(
            **for_kafka_python(settings), receive_message_max_bytes=2**31 - 1, reconnect_backoff_max_ms=_RECONNECT_MS
        )
        # Looking for a topic that was deleted shall not make it again.
        self._client.cluster.config["allow_auto_create_topics"] = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def read(
        self, where: TopicPartition, start: int, end: int, needed: Collection[str]
    ) -> Iterator[tuple[pa.Table, int]]:
        """What is there between the offsets, with the offset to go on from. Raises Unreadable, Silent, and errors of
        kafka-python that do not pass by themselves."""
        reading = _Reading(self._client, where, self._committed, self._patience_s)
        at, per_offset = start, self._sizes.get(where)
        under_way = reading.ask(at, FETCH_BYTES if per_offset is None else _enough(per_offset, end - start))
        while at < end:
            batches, first, following = reading.answer(under_way, at, end)
            if batches.size:
                per_offset = self._sizes[where] = batches.size / (following - first)
            if following < end:
                under_way = reading.ask(following, _enough(per_offset or 0, end - following))
            yield batches.read(where, first, end, needed), following
            at = following


class _Reading:
    """Of one partition."""

    def __init__(self, client: Any, where: TopicPartition, committed: bool, patience_s: float) -> None:
        self._client = client
        self._where = where
        self._native = Native(where.topic, where.partition)
        self._committed = committed
        self._patience_s = patience_s
        self._until = 0.0

    def ask(self, at: int, most: int) -> Any:
        """A fetch under way, or None when the leader is not known or not there."""
        return self._send(self._fetch(at, most))

    # --- one fetch ----------------------------------------------------------------------------------------------------

    def _fetch(self, at: int, most: int) -> Any:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(
            partition=self._where.partition,
            current_leader_epoch=-1,
            fetch_offset=at,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=most,
        )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=most,
            isolation_level=int(self._committed),
            session_id=0,
            session_epoch=-1,
            topics=[topic(topic=self._where.topic, partitions=[partition])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=_NEWEST,
        )

    def answer(self, under_way: Any, at: int, end: int) -> tuple[Batches, int, int]:
        """Patiently: leaders move and brokers restart. The batches, the offset they begin at, and the one to go on
        from."""
        self._until = time.monotonic() + self._patience_s
        why: object = "nothing came"
        while self._left_ms() > 0:
            try:
                if under_way is None:
                    self._find_leader()
                    under_way = self.ask(at, FETCH_BYTES)
                answer = self._fetched(under_way)
                if answer.error_code == errors.OffsetOutOfRangeError.errno:
                    at = self._log_start(at)  # what was there is deleted by now
                else:
                    self._check(answer.error_code)
                    found = self._found(answer, at, end)
                    if found is not None:
                        return found
                under_way = self.ask(at, FETCH_BYTES)
            except (errors.RetriableError, errors.UnknownBrokerIdError) as error:
                why, under_way = error, None
                time.sleep(_PAUSE_S)
        raise Silent(f"{self._where} gave nothing after offset {at} for {self._patience_s:.0f} s: {why}")

    def _fetched(self, under_way: Any) -> Any:
        """The answer for the partition."""
        response = self._await(under_way)
        self._check(response.error_code)
        if not response.responses:  # a quota is used up: the broker is there, and says how long to wait
            time.sleep(response.throttle_time_ms / 1000)
            self._until = time.monotonic() + self._patience_s
            raise errors.ThrottlingQuotaExceededError(str(self._where))
        return response.responses[0].partitions[0]

    def _found(self, answer: Any, at: int, end: int) -> tuple[Batches, int, int] | None:
        data = bytes(answer.records or b"")
        aborted = [Aborted(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
        batches = Batches(data, aborted if self._committed else ())
        if batches.following is not None and batches.following > at:
            return batches, at, batches.following
        if data:
            raise Unreadable(f"{self._where} gave less than one whole batch at offset {at}")
        # Compaction may have left nothing before the end of the log.
        readable = answer.last_stable_offset if self._committed else answer.high_watermark
        return (batches, at, end) if readable >= end else None

    def _log_start(self, at: int) -> int:
        """Where the log begins by now. Raises OffsetOutOfRangeError when that is not after `at`."""
        topic = ListOffsetsRequest.ListOffsetsTopic
        partition = topic.ListOffsetsPartition(
            partition_index=self._where.partition, current_leader_epoch=-1, timestamp=_EARLIEST
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._committed),
            topics=[topic(name=self._where.topic, partitions=[partition])],
        )
        answer = self._await(self._send(request)).topics[0].partitions[0]
        self._check(answer.error_code)
        if answer.offset <= at:
            raise errors.OffsetOutOfRangeError(f"{self._where} has no offset {at}")
        return int(answer.offset)

    # --- one request --------------------------------------------------------------------------------------------------

    def _send(self, request: Any) -> Any:
        node = self._client.cluster.leader_for_partition(self._native)
        if node is None or node == -1 or not self._client.is_ready(node):
            return None
        under_way = self._client.send(node, request)
        self._client.poll(timeout_ms=0)  # off it goes
        return under_way

    def _await(self, under_way: Any) -> Any:
        if under_way is None:
            raise errors.NodeNotReadyError("no leader")
        self._client.poll(timeout_ms=self._left_ms(), future=under_way)
        if not under_way.is_done:
            raise errors.KafkaTimeoutError("no answer")
        if under_way.exception is not None:
            raise under_way.exception
        return under_way.value

    def _check(self, code: int) -> None:
        if code:
            raise errors.for_code(code)(str(self._where))

    def _find_leader(self) -> None:
        client = self._client
        client.check_version(timeout_ms=self._left_ms())
        client.cluster.add_topic(self._where.topic)
        self._await(client.cluster.request_update())
        node = client.cluster.leader_for_partition(self._native)
        if node is not None and node != -1:
            client.await_ready(node, timeout_ms=self._left_ms())

    def _left_ms(self) -> int:
        return int(min(max(self._until - time.monotonic(), 0) * 1000, _ANSWER_MS))


def _enough(per_offset: float, offsets: int) -> int:
    """Bytes to ask for: what is fetched beyond a range is thrown away."""
    return max(_LEAST_BYTES, min(FETCH_BYTES, int(per_offset * offsets) + _LEAST_BYTES))
