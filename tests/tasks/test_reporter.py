"""Reporter: who is told of a record that failed. No Spark and no Kafka here."""

from __future__ import annotations

import logging

import pytest
from fakes import Clock, Engine, Letters, TopicAdmin, chain_spec, errors_config, make_ports, task_spec

from headgate.api import ConnectError, SinkRecord, SinkTask
from headgate.metrics import ErrorMetrics
from headgate.model import Config, NewTopic
from headgate.pipeline.failure import ConsumedRecord, Failure, InternalSinkRecord, Stage
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import ToleranceExceeded
from headgate.tasks.control import Control
from headgate.tasks.ports import AskAgain
from headgate.tasks.reporter import Reporter

pytestmark = pytest.mark.kip(298, "error handling in Connect")

RECORD = ConsumedRecord("t", 3, 17, 5, "CreateTime", b"k", b"v")
FAILURE = Failure(Stage.TRANSFORMATION, "a.B", "c.D", "no", ("Traceback\n", "c.D: no\n"), RECORD)


class Kafka:
    """Gives a reporter what it asks for, and remembers what that was."""

    def __init__(self) -> None:
        self.letters, self.admin, self.control = Letters(), TopicAdmin(), Control(paused=False)
        self.letters.slow = True
        self.senders: list[tuple[Config, str]] = []
        self.patience: list[AskAgain] = []

    def reporter(self, **errors: str) -> tuple[Reporter, ErrorMetrics]:
        metrics = ErrorMetrics()
        spec = task_spec(SinkTask, errors=errors_config(**errors), producer={"acks": "all"})
        ports = make_ports(Engine(), Clock(), letters=self._letters, topics=self._topics)
        return Reporter(spec, metrics, self.control, ports), metrics

    def _letters(self, config: Config, name: str, _: object) -> Letters:
        self.senders.append((config, name))
        return self.letters

    def _topics(self, _: Config, patience: AskAgain) -> TopicAdmin:
        self.patience.append(patience)
        return self.admin


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


def test_a_failure_is_counted(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    made, metrics = kafka.reporter(tolerance="all")
    assert made.failed(FAILURE).done()
    made.retried()
    assert (metrics.failures, metrics.errors, metrics.skipped, metrics.retries) == (2, 1, 1, 1)
    assert (metrics.logged, metrics.dead_letters) == (0, 0)
    assert metrics.last_error_ms > 1.7e12
    assert (kafka.senders, caplog.messages, made.flush(0)) == ([], [], True)
    made.close()


def test_a_failure_that_is_not_tolerated_is_not_skipped(kafka: Kafka) -> None:
    made, metrics = kafka.reporter()
    made.failed(FAILURE)
    assert (metrics.failures, metrics.errors, metrics.skipped) == (1, 1, 0)


@pytest.mark.parametrize(
    ("include", "where"),
    [
        ("false", ""),
        (
            "true",
            ", where consumed record is {topic='t', partition=3, offset=17, timestamp=5, timestampType=CreateTime}",
        ),
    ],
)
def test_the_log_has_apaches_line_and_the_trace_below(
    kafka: Kafka, caplog: pytest.LogCaptureFixture, include: str, where: str
) -> None:
    made, metrics = kafka.reporter(log_enable="true", log_include_messages=include)
    made.failed(FAILURE)
    assert caplog.messages == [
        f"Error encountered in task orders-2. Executing stage 'TRANSFORMATION' with class 'a.B'{where}. D: no"
    ]
    assert caplog.records[0].levelno == logging.ERROR
    assert logging.Formatter("%(message)s").format(caplog.records[0]).endswith(". D: no\nTraceback\nc.D: no")
    assert metrics.logged == 1


def test_dead_letters_are_waited_for(kafka: Kafka) -> None:
    made, metrics = kafka.reporter(deadletterqueue_topic_name="dead", deadletterqueue_topic_replication_factor="1")
    assert kafka.admin.made == [NewTopic("dead", 1, 1)]
    assert kafka.senders == [({"acks": "all", "linger.ms": "5"}, "dead-letters-orders-2")]
    done = made.failed(FAILURE)
    assert kafka.letters.sent == [("dead", b"v", b"k", (), 5)]
    assert not done.done()
    assert not made.flush(7.0)
    kafka.letters.futures[0].set_result(None)
    assert made.flush(7.0)
    assert metrics.dead_letters == 1
    made.close()
    assert kafka.letters.closed
    assert kafka.letters.flushes == [7.0, 7.0, 5.0]  # the last ones get a moment to arrive


def test_a_sender_that_has_failed_for_good_is_closed_all_the_same(kafka: Kafka) -> None:
    """A task that ends must not fail for it: whoever stores offsets was told before."""
    made, _ = kafka.reporter(deadletterqueue_topic_name="dead")
    kafka.letters.failure = "fenced"
    with pytest.raises(ConnectError, match="fenced"):
        made.flush(7.0)
    made.close()
    assert kafka.letters.closed


def test_without_its_dead_letter_queue_a_task_does_not_start(kafka: Kafka) -> None:
    kafka.admin.error = OSError("not allowed")
    with pytest.raises(ConnectError, match="Could not initialize dead letter queue with topic=dead"):
        kafka.reporter(deadletterqueue_topic_name="dead")
    assert kafka.senders == []


def test_a_task_that_is_given_up_on_does_not_ask_for_its_dead_letter_queue_again(kafka: Kafka) -> None:
    kafka.reporter(deadletterqueue_topic_name="dead")
    (patience,) = kafka.patience
    assert patience.tries == 6
    assert patience.may_go_on()
    kafka.control.stop()
    assert patience.may_go_on()  # who stops may still write
    assert patience.pause(60.0) is False  # and does not sit there
    kafka.control.cancel()
    assert not patience.may_go_on()


# --- errant records ---------------------------------------------------------------------------------------------------


def chain() -> SinkChain:
    return SinkChain(chain_spec(), Output(Kind.RECORDS))


@pytest.mark.kip(610, "errant record reporter")
@pytest.mark.parametrize(
    ("errors", "there"),
    [
        ({}, False),
        ({"tolerance": "all"}, False),
        ({"log_enable": "true"}, True),
        ({"deadletterqueue_topic_name": "dead"}, True),
    ],
)
def test_a_task_has_a_reporter_if_somebody_listens(kafka: Kafka, errors: dict[str, str], there: bool) -> None:
    made, _ = kafka.reporter(**errors)
    assert (made.errant(chain()) is not None) is there


@pytest.mark.kip(610, "errant record reporter")
def test_a_reported_record_becomes_a_dead_letter_with_its_own_bytes(kafka: Kafka) -> None:
    made, metrics = kafka.reporter(
        tolerance="all", deadletterqueue_topic_name="dead", deadletterqueue_context_headers_enable="true"
    )
    errant = made.errant(chain())
    assert errant is not None
    record = SinkRecord(topic="t", value="changed", partition=3, offset=17)
    row = ("t", 3, 17, 5, "CreateTime", b"k", b"\xff", [{"key": "h", "value": b"1"}])
    done = errant.report(InternalSinkRecord.of(record, row), ValueError("no"))
    ((_, value, key, found, _),) = kafka.letters.sent
    assert (key, value, found[0]) == (b"k", b"\xff", ("h", b"1"))
    headers = dict(found)
    assert headers["__connect.errors.stage"] == b"TASK_PUT"
    assert headers["__connect.errors.class.name"] == b"headgate.api.task.SinkTask"
    assert headers["__connect.errors.exception.class.name"] == b"builtins.ValueError"
    assert not done.done()
    assert (metrics.failures, metrics.errors, metrics.skipped) == (1, 1, 1)


@pytest.mark.kip(610, "errant record reporter")
def test_a_record_that_the_task_made_itself_is_written_by_the_converters(kafka: Kafka) -> None:
    made, _ = kafka.reporter(tolerance="all", deadletterqueue_topic_name="dead")
    errant = made.errant(chain())
    assert errant is not None
    errant.report(SinkRecord(topic="t", value="changed", key="k", partition=3, offset=17, timestamp=9), ValueError())
    assert kafka.letters.sent == [("dead", b"changed", b"k", (), 9)]


@pytest.mark.kip(610, "errant record reporter")
def test_without_tolerance_reporting_raises_and_yet_reports(kafka: Kafka) -> None:
    made, metrics = kafka.reporter(deadletterqueue_topic_name="dead")
    errant = made.errant(chain())
    assert errant is not None
    with pytest.raises(ToleranceExceeded, match=r"stage 'TASK_PUT'.*offset=17.*ValueError: no"):
        errant.report(SinkRecord(topic="t", value="v", partition=3, offset=17), ValueError("no"))
    assert len(kafka.letters.sent) == 1
    assert (metrics.errors, metrics.skipped) == (1, 0)
