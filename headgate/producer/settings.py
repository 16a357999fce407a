"""What a producer is configured with: librdkafka's keys, our defaults, and a time limit for every call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.kafka.settings import USUAL
from headgate.producer.errors import InvalidConfigurationError

MAX_BLOCK: Final = "max.block.ms"
"""Apache's key, of no meaning to librdkafka: how long a send waits for room in the queue."""
ONLY_FAILURES: Final = "delivery.report.only.error"

_DEFAULTS: Final[Mapping[str, Any]] = {
    **USUAL,
    # Java's: one key goes to one partition, whichever client wrote it.
    "partitioner": "murmur2_random",
    "enable.idempotence": True,
    "queue.buffering.max.messages": 1_000_000,
}
_OURS: Final = ("on_delivery", "delivery_callback", "dr_cb", "dr_msg_cb")
_ANSWER_S: Final = 1.0
_MESSAGE_TIMEOUT: Final = ("message.timeout.ms", "delivery.timeout.ms")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that calls may take when their caller names no time."""

    init: float
    send_offsets: float
    finish: float
    """Of flush, commit and abort: longer than a record may be under way."""
    close: float
    block: float
    """Of a send for which there is no room."""
    late: float
    """So much more time than it is given librdkafka may take for offsets: it sleeps between tries without a look at the
    clock, and then asks once more."""


@dataclass(frozen=True, slots=True)
class Settings:
    config: Mapping[str, Any]
    """For librdkafka; may hold passwords."""
    transactional_id: str | None
    transaction_timeout: float
    limits: Limits
    only_failures: bool | None
    """Which deliveries are reported, where the user has said so."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        config = {**_DEFAULTS, **given}
        for key in _OURS:
            if config.pop(key, None) is not None:
                raise InvalidConfigurationError(f"{key}: give on_delivery to send() instead")
        only = config.pop(ONLY_FAILURES, None)
        block = _seconds(config, MAX_BLOCK, 60_000)
        config.pop(MAX_BLOCK, None)
        timeout = _seconds(config, "transaction.timeout.ms", 60_000)
        late = _seconds(config, "retry.backoff.max.ms", 1000) + _ANSWER_S
        transactional_id = config.get("transactional.id")
        if transactional_id is None:
            config.pop("transactional.id", None)
            delivery = next((_seconds(config, key, 0) for key in _MESSAGE_TIMEOUT if key in config), 300.0)
            limits = Limits(timeout, timeout, delivery + 10, 10.0, block, late)
        else:
            limits = Limits(2 * timeout, timeout, 2 * timeout, 10.0, block, late)
        return cls(config, transactional_id, timeout, limits, None if only is None else str(only).lower() == "true")


def _seconds(config: Mapping[str, Any], key: str, default: int) -> float:
    try:
        return int(config.get(key, default)) / 1000
    except (TypeError, ValueError):
        raise InvalidConfigurationError(f"{key}: {config[key]!r} is no number of milliseconds") from None
