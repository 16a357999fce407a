"""cluster_id: which Kafka cluster a configuration leads to."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaException

from headgate.kafka.admin_clients import admin_client, wait
from headgate.model import Config

_log: Final = logging.getLogger(__name__)


def cluster_id(admin: Config, timeout: float = 10.0) -> str | None:
    """The cluster's id; None if no broker answers in time or none has an id. Raises ClientConfigError."""
    try:
        client = admin_client(admin)
        found = wait(client, client.describe_cluster(request_timeout=timeout), timeout + 1).cluster_id
    except KafkaException as error:
        _log.warning("Kafka did not tell its cluster id: %s", error)
        return None
    return found or None
