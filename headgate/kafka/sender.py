"""Sender: sends records from any thread, and tells of each when Kafka has it, or has refused it."""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate.kafka.settings import ONE_AT_A_TIME, USUAL, ClientKind, translate
from headgate.kafka.statistics import served, watched
from headgate.log import Complaints
from headgate.model import Config

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.5
_LAST_WORDS_S: Final = 1.0


class Sender:
    """May be used from any thread. What one of them sends with one key arrives in that order. It has a thread of its
    own only while something is unanswered, for librdkafka tells nobody who does not listen."""

    def __init__(
        self,
        settings: Config,
        name: str,
        may_go_on: Callable[[], bool] = lambda: True,
        *,
        creates_topics: bool = True,
    ) -> None:
        """`settings` are by Apache's names; nothing is part of a transaction. Its thread, and its complaints, have this
        name. It waits for as long as `may_go_on` says so. `creates_topics`: if the broker does. Raises
        ClientConfigError."""
        plain = {key: value for key, value in settings.items() if key != "transactional.id"}
        translated = translate(ClientKind.PRODUCER, plain).config
        complaints = Complaints(log, name)
        ours = {
            "error_cb": lambda error: complaints.say(error.str()),
            "allow.auto.create.topics": creates_topics,
        }
        self._producer: Producer | None = Producer(
            watched(ClientKind.PRODUCER, {**USUAL, **ONE_AT_A_TIME, **translated, **ours}), logger=log
        )
        self._polling = threading.Lock()
        self._name = name
        self._may_go_on = may_go_on
        self._changed = threading.Condition()
        self._unanswered = 0
        self._listener: threading.Thread | None = None
        self._closed = False
        self.failure: str | None = None
        """Why it can never send again."""
        served(self)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        *,
        room_s: float = math.inf,
    ) -> Future[Any]:
        """Its result is the offset that Kafka gave to the record, or KafkaException. Raises BufferError when there is
        no room for it within `room_s`: the broker is slower than whoever sends."""
        done: Future[Any] = Future()
        done.set_running_or_notify_cancel()  # it is on its way: nobody can call it back

        def produce() -> None:
            if self._closed or self._producer is None:
                raise KafkaException(KafkaError(KafkaError._DESTROY, "the sender is closed"))
            more: Any = {"headers": list(headers) or None, "on_delivery": partial(self._reported, done)}
            self._producer.produce(topic, value, key, timestamp=timestamp or 0, **more)

        with self._changed:  # nothing is answered between finding no room and waiting for it
            try:
                self._with_room(produce, time.monotonic() + room_s)
            except KafkaException as error:
                done.set_exception(error)
                return done
            self._unanswered += 1
            self._listen()
        return done

    def _with_room(self, produce: Callable[[], None], deadline: float) -> None:
        while True:
            try:
                return produce()
            except BufferError:
                if not self._wait(deadline):
                    raise

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has answered for everything; False when it has not within this time."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self._unanswered:
                if not self._wait(deadline):
                    return False
        return True

    def _wait(self, deadline: float) -> bool:
        """For the next answer, or a moment; whether to go on with that."""
        left = deadline - time.monotonic()
        if left <= 0 or self.failure is not None or not self._may_go_on():
            return False
        self._changed.wait(min(left, _LOOK_S))
        return True

    def close(self, seconds: float = 0.0) -> None:
        """Waits that long for what is under way; the rest is given up, and told so. May be repeated."""
        self._closed = True
        if not self.flush(seconds) and self._producer is not None:
            self._producer.purge(blocking=False)
            self.flush(_LAST_WORDS_S)
        self._let_go()

    def _let_go(self) -> None:
        """Whoever still holds this holds no threads and connections with it. Nobody may be inside the producer when it
        goes, and what it has not told yet it must tell before: then its listener comes here once more."""
        with self._polling, self._changed:
            dropped = None
            if not self._unanswered:
                dropped, self._producer = self._producer, None
        del dropped  # not within the locks: it takes its time

    # --- what Kafka answers -------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        if self._listener is None:
            # Its log lines name the task, as those of whoever sends.
            run = partial(contextvars.copy_context().run, self._serve)
            self._listener = threading.Thread(target=run, name=self._name, daemon=True)
            self._listener.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._unanswered:
                    self._listener = None
                    break
            self.poll(_LOOK_S)
        if self._closed:
            self._let_go()

    def poll(self, seconds: float) -> None:
        """Takes what came back; waits for it that long."""
        try:
            with self._polling:
                if self._producer is not None:
                    self._producer.poll(seconds)
        except KafkaException as error:  # it raises none but what ends the producer
            self.failure = self.failure or error.args[0].str()

    def _reported(self, done: Future[Any], error: KafkaError | None, message: Message) -> None:
        if error is None:
            done.set_result(message.offset())
        else:
            done.set_exception(KafkaException(error))
        with self._changed:
            self._unanswered -= 1
            self._changed.notify_all()
