"""What the Kafka clients of this process have going: connections and bytes, for whoever asks for metrics.

Native producers are asked through their sockets. What librdkafka says of its other clients it says every few seconds,
to whoever polls them; it is kept as it came, and read only when somebody asks.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakSet

from headgate.kafka.native.sockets import Sockets
from headgate.kafka.settings import ClientKind
from headgate.metrics import ClientFigures

log = logging.getLogger(__name__)

_EVERY_S: Final = 30.0
"""Each time librdkafka writes up to four kilobytes for each partition, which takes it 20 µs; and while a sink hangs in
a put they wait to be heard."""
_KNOWN_S: Final = 90.0
"""A client that has said nothing for so long is closed, or its owner is busy: what it said is not told any more."""
_KINDS: Final = {ClientKind.PRODUCER: "producer", ClientKind.CONSUMER: "consumer", ClientKind.ADMIN: "admin_client"}


class Pollable(Protocol):
    def poll(self, seconds: float, /) -> object: ...


T = TypeVar("T", bound=Pollable)


@dataclass(eq=False)
class _Said:
    """A `stats_cb`. The client holds it, and so does nobody else."""

    kind: str
    _text: str = ""
    _when: float = 0.0

    def __call__(self, text: str) -> None:
        self._text, self._when = text, time.monotonic()

    def figures(self) -> ClientFigures | None:
        if time.monotonic() - self._when > _KNOWN_S or not self._text:
            return None
        said = json.loads(self._text)
        up = sum(broker["state"] == "UP" for broker in said["brokers"].values())
        return ClientFigures(self.kind, said["client_id"], up, said["tx_bytes"], said["rx_bytes"])


@dataclass(eq=False)
class Traced:
    """A native producer. It holds this, and so does nobody else."""

    client_id: str
    sockets: Sockets

    def figures(self) -> ClientFigures:
        return ClientFigures("producer", self.client_id, *self.sockets.traffic())


_guard: Final = threading.Lock()
_clients: Final[WeakSet[_Said | Traced]] = WeakSet()
_idle: Final[WeakSet[Any]] = WeakSet()
_server: Final[list[threading.Thread]] = []


def watched(kind: ClientKind, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a client that somebody polls, with what lets it tell of itself."""
    said = _Said(_KINDS[kind])
    with _guard:
        _clients.add(said)
    return {"statistics.interval.ms": round(_EVERY_S * 1000), "stats_cb": said, **settings}


def traced(client_id: str) -> Traced:
    """For a native producer."""
    made = Traced(client_id, Sockets())
    with _guard:
        _clients.add(made)
    return made


def served(client: T) -> T:
    """A watched client that nobody polls while it has nothing to do: what it says would pile up unheard."""
    with _guard:
        _idle.add(client)
        if not _server:
            _server.append(threading.Thread(target=_serve, name="idle-clients", daemon=True))
            _server[0].start()
    return client


def _serve() -> None:
    while True:
        time.sleep(_EVERY_S)
        _poll_idle()


def _poll_idle() -> None:
    with _guard:
        clients = list(_idle)
    for client in clients:
        try:
            client.poll(0)
        except Exception as error:  # whoever uses it is told, too
            log.debug("A client that had nothing to do: %s", error)


def client_figures() -> list[ClientFigures]:
    """Of all clients that live in this process."""
    with _guard:
        clients = list(_clients)
    return [found for each in clients if (found := each.figures()) is not None]
