"""Kafka client settings by Apache's Java names, as librdkafka takes them."""

from headgate.kafka.settings.errors import ClientConfigError
from headgate.kafka.settings.translate import ONE_AT_A_TIME, USUAL, ClientKind, Translated, translate

__all__ = ["ONE_AT_A_TIME", "USUAL", "ClientConfigError", "ClientKind", "Translated", "translate"]
