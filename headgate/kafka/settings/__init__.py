"""Kafka client settings by Apache's Java names, as librdkafka takes them."""

from headgate.kafka.settings.errors import ClientConfigError
from headgate.kafka.settings.translate import QUIET, ClientKind, Translated, translate

__all__ = ["QUIET", "ClientConfigError", "ClientKind", "Translated", "translate"]
