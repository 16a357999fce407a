"""cluster_id: which Kafka cluster a configuration leads to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from headgate.kafka.admin_clients import admin_client, wait
from headgate.model import Config

_log: Final = logging.getLogger(__name__)


def cluster_id(admin: Config, complain: Callable[[str], object] = _log.warning, timeout: float = 3.0) -> str | None:
    """The cluster's id; None if none has an id, or no broker answers in time: then `complain` is told who did not, and
    why, as soon as none of them can be reached. Raises ClientConfigError."""
    reasons: dict[int, str] = {}
    try:
        client = admin_client(admin, error_cb=lambda error: reasons.update({error.code(): error.str()}))
        asked = client.describe_cluster(request_timeout=timeout)
        found = wait(client, asked, timeout, lambda: KafkaError._ALL_BROKERS_DOWN not in reasons).cluster_id
    except KafkaException as error:
        why = next(
            (text for code, text in reasons.items() if code != KafkaError._ALL_BROKERS_DOWN), error.args[0].str()
        )
        complain(f"{admin['bootstrap.servers']} ({why})")
        return None
    return found or None
