"""Asking again: how often, how long apart, and what for."""

from __future__ import annotations

import logging
import time

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.backoff import Backoff
from headgate.kafka.asking import NOT_YET, PASSING, Asker, ask_for, passes

AWAY, FORBIDDEN = KafkaError._TRANSPORT, KafkaError.TOPIC_AUTHORIZATION_FAILED
MISSING = KafkaError.UNKNOWN_TOPIC_OR_PART


class Broker:
    """Answers as it was told; None is an answer."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)

    def __call__(self) -> str:
        code = self.answers.pop(0)
        if code is not None:
            raise KafkaException(KafkaError(code))
        return "answer"


class TestBackoff:
    @pytest.mark.parametrize(
        ("backoff", "pauses"),
        [
            (Backoff(1.0), [1.0, 1.0, 1.0, 1.0]),
            (Backoff(0.25, 2.0), [0.25, 0.5, 1.0, 2.0]),
            (Backoff(0.25, 2.0, most=0.6), [0.25, 0.5, 0.6, 0.6]),
        ],
    )
    def test_pauses_get_longer_up_to_a_limit(self, backoff: Backoff, pauses: list[float]) -> None:
        assert [backoff.after(failures) for failures in (1, 2, 3, 4)] == pauses

    def test_a_broker_may_be_away_for_weeks(self) -> None:
        assert Backoff(0.25, 2.0, most=5.0).after(10_000_000) == 5.0


class TestTable:
    @pytest.mark.parametrize("code", sorted(PASSING))
    def test_what_passes(self, code: int) -> None:
        assert passes(KafkaError(code))

    @pytest.mark.parametrize("code", [FORBIDDEN, *NOT_YET, KafkaError._AUTHENTICATION, KafkaError.INVALID_CONFIG])
    def test_what_does_not(self, code: int) -> None:
        assert not passes(KafkaError(code))

    def test_a_topic_that_is_being_made_is_not_there_yet(self) -> None:
        assert all(passes(KafkaError(code), NOT_YET) for code in NOT_YET)
        assert not passes(KafkaError(FORBIDDEN), NOT_YET)

    def test_librdkafka_may_say_so_itself(self) -> None:
        assert passes(KafkaError(FORBIDDEN, "later", False, True))

    def test_what_ends_a_client_does_not_pass(self) -> None:
        assert not passes(KafkaError(AWAY, "never", True))


class TestAsker:
    def test_it_asks_until_there_is_an_answer(self) -> None:
        pauses: list[float] = []
        asker = Asker(pause=pauses.append, backoff=Backoff(1.0, 2.0))
        assert asker.ask(Broker(AWAY, KafkaError.NOT_CONTROLLER, AWAY, None)) == "answer"
        assert pauses == [1.0, 2.0, 4.0]

    def test_an_answer_at_once_is_not_waited_for(self) -> None:
        assert Asker(pause=lambda _: pytest.fail("it waits")).ask(Broker(None)) == "answer"

    @pytest.mark.parametrize(("code", "left"), [(FORBIDDEN, 8), (MISSING, 8), (AWAY, 3)])
    def test_what_does_not_pass_is_raised_and_what_does_after_so_many_tries(self, code: int, left: int) -> None:
        broker = Broker(*[code] * 9)
        with pytest.raises(KafkaException) as raised:
            Asker(pause=lambda _: None, tries=6).ask(broker)
        assert (raised.value.args[0].code(), len(broker.answers)) == (code, left)

    def test_what_passes_here_only(self) -> None:
        assert Asker(pause=lambda _: None).ask(Broker(MISSING, None), NOT_YET) == "answer"

    def test_it_goes_on_as_long_as_it_may(self) -> None:
        left = [True, True, False]
        broker = Broker(*[AWAY] * 9)
        with pytest.raises(KafkaException):
            Asker(lambda: left.pop(0), pause=lambda _: None).ask(broker)
        assert len(broker.answers) == 6

    def test_what_a_pause_raises_ends_it(self) -> None:
        def stopped(_: float) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            Asker(pause=stopped).ask(Broker(AWAY))

    def test_it_complains_once(self, caplog: pytest.LogCaptureFixture) -> None:
        Asker(pause=lambda _: None).ask(Broker(AWAY, AWAY, AWAY, None))
        assert [each.levelno for each in caplog.records] == [logging.WARNING]
        assert caplog.messages == ["A broker cannot answer and is asked again: Local: Broker transport failure"]


def test_it_asks_until_the_time_is_over() -> None:
    told: list[float] = []

    def question(left: float) -> None:
        told.append(left)
        raise KafkaException(KafkaError(AWAY))

    began = time.monotonic()
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        ask_for(0.3, question, Backoff(0.1))
    assert 0.3 <= time.monotonic() - began < 2
    assert told[0] == pytest.approx(0.3, abs=0.1)
    assert sorted(told, reverse=True) == told
    assert told[-1] >= 0.1
    assert ask_for(0.0, lambda left: left, Backoff(1.0)) == 0.1
