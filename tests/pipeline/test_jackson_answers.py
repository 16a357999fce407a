"""JSON is accepted and refused as by Apache's JsonConverter, which was asked: record by record and by columns."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pipeline_plugins import consumed
from sink_strategies import run, sink

from headgate.api import DataError, Form, SinkRecord
from headgate.pipeline.batch import Batch
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.sink_chain import SinkChain
from headgate.pipeline.transforms.from_json import FromJsonValue

_ANSWERS = json.loads(Path(__file__).with_name("jackson_answers.json").read_text())
ANSWERS: list[tuple[bytes, str | bool]] = [
    *((text.encode("latin-1"), answer) for text, answer in _ANSWERS["texts"].items()),
    *(
        ("".join(text * count for text, count in pieces).encode("latin-1"), answer)
        for pieces, answer in _ANSWERS["large"]
    ),
]
"""False: refused; True: accepted, and too large to be written there."""


def shown(value: Any) -> str:
    """As JacksonAnswers.java shows it."""
    if isinstance(value, dict):
        return f"{{{''.join(f'{shown(name)}:{shown(member)},' for name, member in value.items())}}}"
    if isinstance(value, list):
        return f"[{''.join(f'{shown(item)},' for item in value)}]"
    if isinstance(value, str):
        return f"s{value.encode('utf-16-be', 'surrogatepass').hex()}"
    if isinstance(value, float):
        return f"d{struct.pack('>d', value).hex()}"
    return "n" if value is None else str(value).lower() if isinstance(value, bool) else f"l{value}"


def test_the_converter_answers_as_apaches() -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)

    def read(data: bytes) -> str | bool:
        try:
            return shown(converter.to_connect("t", data)[1])
        except DataError as error:
            return not str(error).startswith("Converting byte")

    for data, answer in ANSWERS:
        assert answer in (read(data), read(data) is not False), data[:99]


def test_the_same_is_accepted_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    by_columns, rows = SinkChain._by_columns, []

    def watched(chain: SinkChain, batch: Batch, *arguments: Any) -> Any:
        found = by_columns(chain, batch, *arguments)
        rows.append(batch.num_rows - len(found[2]))
        return found

    monkeypatch.setattr(SinkChain, "_by_columns", watched)
    chain = sink(form=Form.JSON)
    some = ANSWERS[:: max(1, 100 // settings().max_examples)]  # where only some examples of all else are tried
    for data, answer in some:
        batch = consumed([b'{"a":1.5}', data, b'{"a":2.5}'])
        there, failures, _ = run(chain, batch, by_columns=True)
        assert (there.num_rows, len(failures)) == ((3, 0) if answer else (2, 1)), data[:99]
        assert (there, failures, None) == run(chain, batch, by_columns=False), data[:99]
    assert sum(rows) > 2 * len(some)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xef\xbb\xbf", b'{"\\ud800":1}', b"1e-2147483648"])
def test_from_json_refuses_the_same(data: bytes) -> None:
    transform = FromJsonValue()
    transform.configure({})
    with pytest.raises(DataError, match=r"^Converting byte"):
        transform.apply(SinkRecord(topic="t", partition=0, value=data, offset=0))
