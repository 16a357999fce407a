"""Kafka connectors in Python, with Kafka Connect's control plane and Spark's data plane."""

from typing import Final

__version__: Final = "0.1.0"
