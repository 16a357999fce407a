"""Whether a source can do what it is asked for: exactly-once delivery, transactions that it ends itself (KIP-618)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from headgate.api.config import ConfigValue
from headgate.api.connector import ExactlyOnceSupport, SourceConnector
from headgate.model import Config
from headgate.runtime.config.connector_config import BOUNDARY, EXACTLY_ONCE

log = logging.getLogger(__name__)

_UNKNOWN: Final = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please"
    " consult the documentation for the connector to determine whether it supports exactly-once semantics, and then"
    ' consider reconfiguring the connector to use the value "requested" for this property (which will disable this'
    " preflight check and allow the connector to be created)."
)
_UNSUPPORTED: Final = "The connector does not support exactly-once semantics with the provided configuration."
_NO_BOUNDARIES: Final = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. Please"
    " reconfigure it to use a different transaction boundary definition."
)


def check(connector: SourceConnector, config: Config, values: Mapping[str, ConfigValue], enabled: bool) -> None:
    """Adds what is wrong to the values. `enabled`: the worker has exactly-once support for sources."""
    support, boundary = values[EXACTLY_ONCE], values[BOUNDARY]
    if support.value == "required" and not support.errors:
        if not enabled:
            support.errors.append("This worker does not have exactly-once source support enabled.")
        _ask(support, lambda: _support_error(connector.exactly_once_support(config)))
    if boundary.value == "connector" and not boundary.errors:
        _ask(boundary, lambda: None if connector.can_define_transaction_boundaries(config) else _NO_BOUNDARIES)


def _support_error(support: ExactlyOnceSupport | None) -> str | None:
    if support is None:
        return _UNKNOWN
    return None if support is ExactlyOnceSupport.SUPPORTED else _UNSUPPORTED


def _ask(value: ConfigValue, hook: Callable[[], str | None]) -> None:
    try:
        problem = hook()
    except Exception as error:
        log.warning("The connector failed while it was asked about %s", value.name, exc_info=True)
        told = str(error).strip()
        problem = "An unexpected error occurred during validation" + (
            f": {told}" if told else "; please see the worker logs for more details."
        )
    if problem is not None:
        value.errors.append(problem)
