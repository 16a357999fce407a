"""cluster_id: which Kafka cluster a configuration leads to."""

from __future__ import annotations

import logging
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headgate.kafka.settings import QUIET, ClientKind, translate
from headgate.model import Config
from headgate.storage.admin_clients import wait

_log: Final = logging.getLogger(__name__)


def cluster_id(admin: Config, timeout: float = 10.0) -> str | None:
    """The cluster's id; None if no broker answers in time or none has an id. Raises ClientConfigError."""
    config = translate(ClientKind.ADMIN, admin).config
    try:
        client = AdminClient({**QUIET, **config})
        found = wait(client, client.describe_cluster(request_timeout=timeout), timeout + 1).cluster_id
    except (KafkaException, TimeoutError) as error:
        _log.warning("Kafka did not tell its cluster id: %s", error)
        return None
    return found or None
