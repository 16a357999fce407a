"""DirectedChain: what the chains of sinks and of sources have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa

from headgate.api import HeaderConverter, Record
from headgate.model import ChainSpec
from headgate.pipeline.chain import Chain
from headgate.pipeline.failure import ConsumedRecord, PolledRecord, RawHeaders, raw_bytes
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.sql.rows import StatementRows
from headgate.pipeline.tolerance import StageFailed, Triage

R = TypeVar("R", bound=Record)


class DirectedChain(ABC, Generic[R]):
    """Built once per task and process, then called batch by batch."""

    def __init__(self, spec: ChainSpec) -> None:
        self._chain = Chain.build(spec)

    @property
    def policy(self) -> ErrorPolicy:
        return self._chain.policy

    @property
    def headers(self) -> HeaderConverter:
        return self._chain.headers

    @property
    def cut(self) -> bool:
        """Whether a statement comes next: then the chain gives rows for it."""
        return self._chain.steps.cut

    def close(self) -> None:
        self._chain.close()

    @abstractmethod
    def _origin(self, record: R) -> ConsumedRecord | PolledRecord:
        """What is to be said of a record that failed."""

    def _stepped(self, records: Sequence[R], triage: Triage, finish: Callable[[R], Any]) -> list[Any]:
        """What `finish` makes of the records after the steps. What fails is for `triage`."""
        done = []
        for index, record in enumerate(records):
            try:
                kept = self._chain.steps.apply(record)
                if kept is not None:
                    done.append(finish(kept))
            except StageFailed as failed:
                if not triage.goes_on(index, failed, partial(self._origin, record)):
                    break
        return done

    def _statement_rows(self, records: Sequence[R], triage: Triage) -> pa.Table:
        """The records after the steps, as the statement will see them."""
        rows = StatementRows(self._chain.headers)
        return rows.table(self._stepped(records, triage, rows.row))

    def _raw(self, topic: str, record: R) -> tuple[bytes | None, bytes | None, RawHeaders]:
        """Key, value and headers as the converters write them, or as they are."""
        return (
            raw_bytes(partial(self._chain.key.from_connect, topic), record.key_schema, record.key),
            raw_bytes(partial(self._chain.value.from_connect, topic), record.value_schema, record.value),
            self._raw_headers(topic, record),
        )

    def _raw_headers(self, topic: str, record: R) -> RawHeaders:
        write = self._chain.headers.from_connect_header
        return tuple(
            (each.key, raw_bytes(partial(write, topic, each.key), each.schema, each.value)) for each in record.headers
        )
