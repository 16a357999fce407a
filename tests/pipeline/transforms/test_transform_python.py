"""A function of the user's as a transform."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api import ConfigError, DataError, SinkRecord
from headgate.pipeline.transforms.python import Python


def upper(record: SinkRecord) -> SinkRecord | None:
    return None if record.value is None else record.with_value(record.value.upper())


def wrong(record: SinkRecord) -> Any:
    return record.value


def made(name: str) -> Python:
    transform = Python()
    transform.configure({"function": f"{__name__}.{name}"})
    return transform


def test_the_function_changes_the_record_or_drops_it() -> None:
    assert made("upper").apply(SinkRecord(topic="t", value="a")) == SinkRecord(topic="t", value="A")
    assert made("upper").apply(SinkRecord(topic="t")) is None


def test_what_is_no_record_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"wrong returned str, not a record"):
        made("wrong").apply(SinkRecord(topic="t", value="a"))


@pytest.mark.parametrize("name", ["no.such.module", "json.nothing", "plain", "json.decoder", ""])
def test_a_name_that_is_no_function_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError, match="function"):
        Python().configure({"function": name})
