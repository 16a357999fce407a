"""Kafka client settings by Apache's Java names, as librdkafka takes them."""

from headgate.clients.complaints import Complaints
from headgate.clients.errors import ClientConfigError
from headgate.clients.translate import QUIET, ClientKind, Translated, translate

__all__ = ["QUIET", "ClientConfigError", "ClientKind", "Complaints", "Translated", "translate"]
