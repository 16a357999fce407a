"""Whether Kafka answers at all: found out within seconds, and said with its address."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headgate.kafka.admin_clients import wait
from headgate.kafka.asking import passes
from headgate.runtime.ports import KafkaAway


def require_kafka(client: AdminClient, servers: str, seconds: float) -> None:
    """Raises KafkaAway. Whatever Kafka answers, it is there."""
    try:
        wait(client, client.describe_cluster(request_timeout=seconds), seconds)
    except KafkaException as error:
        if passes(error.args[0]):
            raise KafkaAway(servers, error.args[0].str()) from error
