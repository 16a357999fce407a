from __future__ import annotations

import pytest
from runtime_fakes import WORKER_FILE

from headgate.api import ExactlyOnceSupport, SinkConnector, SourceConnector
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.validator import Validator
from headgate.runtime.config.worker_config import DISTRIBUTED, WorkerConfig
from headgate.runtime.plugins import Plugins

DISABLED = "This worker does not have exactly-once source support enabled."
UNSUPPORTED = "The connector does not support exactly-once semantics with the provided configuration."
ABSENT = "The connector does not implement the API required for preflight validation of exactly-once source support."
UNEXPECTED = "An unexpected error occurred during validation"
BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. Please"
    " reconfigure it to use a different transaction boundary definition."
)
CLUSTER = {
    **{key: value for key, value in WORKER_FILE.items() if not key.startswith("offset.")},
    "group.id": "g", "config.storage.topic": "c", "offset.storage.topic": "o", "status.storage.topic": "s",
    "exactly.once.source.support": "Enabled",
}  # fmt: skip


class Told(SourceConnector):
    """Says what its configuration tells it to say."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []

    def exactly_once_support(self, config: object) -> ExactlyOnceSupport | None:
        answer = config["answer"]  # type: ignore[index]
        if answer.startswith("raise"):
            raise RuntimeError(answer.removeprefix("raise").strip())
        return {"yes": ExactlyOnceSupport.SUPPORTED, "no": ExactlyOnceSupport.UNSUPPORTED}.get(answer)

    def can_define_transaction_boundaries(self, config: object) -> bool:
        return self.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED


class Sink(SinkConnector):
    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []


def errors(worker: WorkerConfig, **config: str) -> dict[str, list[str]]:
    validator = Validator(Plugins([Told, Sink]), worker.raw, clients=ClientCheck(worker))
    given = {"name": "a", "connector.class": "Told", **{key.replace("_", "."): text for key, text in config.items()}}
    infos = validator.validate(given)
    return {info.value.name: info.value.errors for info in infos.configs if info.value and info.value.errors}


STANDALONE, ENABLED = WorkerConfig.parse(WORKER_FILE), WorkerConfig.parse(CLUSTER, DISTRIBUTED)


@pytest.mark.parametrize(
    ("answer", "messages"),
    [
        ("yes", []),
        ("no", [UNSUPPORTED]),
        ("absent", [ABSENT]),
        ("raise too bad ", [f"{UNEXPECTED}: too bad"]),
        ("raise", [f"{UNEXPECTED}; please see the worker logs for more details."]),
    ],
)
def test_a_source_that_must_deliver_exactly_once(answer: str, messages: list[str]) -> None:
    def begins(found: list[str], expected: list[str]) -> bool:
        return len(found) == len(expected) and all(map(str.startswith, found, expected))

    enabled = errors(ENABLED, answer=answer, exactly_once_support="required")
    assert begins(enabled.get("exactly.once.support", []), messages)
    standalone = errors(STANDALONE, answer=answer, exactly_once_support="required")
    assert begins(standalone["exactly.once.support"], [DISABLED, *messages])
    assert errors(STANDALONE, answer=answer, exactly_once_support="requested") == {}
    assert errors(STANDALONE, answer=answer) == {}


@pytest.mark.parametrize(
    ("answer", "messages"), [("yes", []), ("no", [BOUNDARIES]), ("raise oh", [f"{UNEXPECTED}: oh"])]
)
def test_a_source_that_ends_its_transactions_itself(answer: str, messages: list[str]) -> None:
    found = errors(ENABLED, answer=answer, transaction_boundary="connector")
    assert found.get("transaction.boundary", []) == messages
    assert errors(ENABLED, answer=answer, transaction_boundary="interval") == {}


def test_a_value_that_is_none_is_not_asked_about() -> None:
    found = errors(STANDALONE, answer="no", exactly_once_support="REQUIRED", transaction_boundary="Connector")
    assert [len(each) for each in found.values()] == [1, 1]
    assert all("String must be one of" in each[0] for each in found.values())


def test_sinks_have_no_such_keys() -> None:
    found = errors(STANDALONE, connector_class="Sink", topics="t", exactly_once_support="required")
    assert found == {}
