"""What librdkafka knows: asked of itself, without ever making a client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from confluent_kafka import KafkaException, Producer

from headgate.kafka.settings.errors import ClientConfigError

_NOWHERE: Final = "headgate.no.such.property"


def _complaint(config: Mapping[str, str]) -> str | None:
    """What librdkafka has against these settings. They are tried in order before a client is made, and the last one
    here is always refused: so no client ever is."""
    try:
        Producer({**config, _NOWHERE: ""})
    except KafkaException as error:
        text: str = error.args[0].str()
        return None if _NOWHERE in text else text
    raise AssertionError("librdkafka took a property that does not exist")


@cache
def knows(key: str) -> bool:
    # Without a dot or with an underscore are confluent_kafka's own keys, which take functions and objects.
    if not re.fullmatch(r"[a-z0-9]+(\.[a-z0-9]+)+|debug|partitioner", key):
        return False
    text = _complaint({key: ""})
    return text is None or not text.startswith(("No such configuration", "Internal property"))


def check(made: Mapping[str, str]) -> None:
    if text := _complaint(made):
        raise ClientConfigError(f"Kafka's client refuses this configuration: {text}.")
