"""Statements on Spark: each is run in a session of the task's own, on the rows that came out of the part before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.model import EngineUnavailable, TaskSpec
from headgate.pipeline.batch import pieces
from headgate.pipeline.blob import Job, SelectedRows, pack_spec, selection_job
from headgate.pipeline.chain import Chain
from headgate.pipeline.parts import Part, parts
from headgate.pipeline.sql.relation import Relation, Relations
from headgate.pipeline.sql.rows import Origins
from headgate.pipeline.sql.selected import Selected
from headgate.pipeline.sql.statement import TABLE
from headgate.pipeline.sql.types import nullable
from headgate.pipeline.transforms.sql import STATEMENT, VALUE_SCHEMA, Sql
from headgate.sandbox import Sandbox
from headgate.spark.plans import check_frame, check_text
from headgate.spark.session import Session, label

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.pipeline.shelf import Shelf
    from headgate.pipeline.sink_chain import Output

_BLOB_BYTES: Final = 2 * 1024 * 1024
"""What a statement gave is cut into pieces of this size, so that several cores share it."""
_LINES: Final = 8
_SESSION_S: Final = 20.0
"""How long to wait for a session to ask: one that has died is back after five."""
_NOTICED_S: Final = 0.2


class StatementFailed(ConnectError):
    """A statement could not be run. That concerns its batch, not a record: the task fails with this."""

    def __init__(self, part: Part, reason: str) -> None:
        assert part.statement is not None
        super().__init__(
            f"Transform {part.alias} of connector {part.spec.task.connector} failed: {reason}\n"
            f"The statement: {part.statement.statement.text}"
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    """One statement, and the part of the chain behind it."""

    part: Part
    relations: Relations
    following: bytes
    """The packed chain of the next part."""


class SparkStatements:
    """Fits `tasks.ports.StatementRunner`. Spark ties jobs to threads: it is called on a lane, one thread of this
    task's own, so that its jobs, and no others, can be cancelled."""

    def __init__(self, spec: TaskSpec, session: Session, output: Output | None, sandbox: Sandbox) -> None:
        """`output` is that of a sink. Raises StatementFailed for what Spark's parser refuses, or may not be run."""
        self._id = spec.id
        self._session = session
        self._output = output
        self._sandbox = sandbox
        self._lane = ThreadPoolExecutor(1, f"spark-{spec.id}")
        self._own: tuple[SparkSession, SparkSession] | None = None
        """A session of the task's own, and the one it was made of."""
        self._checked: dict[str, pa.Schema] = {}
        """By transform, the types of the rows that its plan was last looked at with."""
        found = parts(spec.chain)
        self.first = found[0].spec
        """The chain up to the first statement, or all of it."""
        for part in found[1:]:
            Chain.build(part.spec).close()  # a wrong setting is found before the first record
        self._cuts = [
            _Cut(part, self._relations(part), pack_spec(following.spec)) for part, following in pairwise(found)
        ]

    def __len__(self) -> int:
        return len(self._cuts)

    def select(self, index: int, tables: Sequence[pa.Table], shelf: Shelf | None) -> Future[list[Job]]:
        """Jobs for the part behind the statement."""
        return self._lane.submit(partial(self._run, self._cuts[index], tables, shelf))

    def close(self) -> None:
        self._lane.shutdown(wait=False)

    def _spark(self) -> SparkSession:
        """With tables of its own: every task has one called `records`."""
        base = self._session.session()
        if self._own is None or self._own[1] is not base:
            self._own = _apart(base), base
        return self._own[0]

    def _relations(self, part: Part) -> Relations:
        assert part.statement is not None
        statement, declared = part.statement.statement, part.statement.value_schema
        with self._explained(part):
            check_text(self._spark(), statement.text, self._sandbox)
            return Relations(statement.fields(), _declared(declared) if declared else None)

    def _run(self, cut: _Cut, tables: Sequence[pa.Table], shelf: Shelf | None) -> list[Job]:
        """On the lane: jobs for the next part."""
        jobs = []
        with self._explained(cut.part):
            for table, origins in self._select(cut.part, cut.relations.of(tables)):
                if table.num_rows:
                    Selected(table.slice(0, 0), origins, sink=self._output is not None).check()
                work = SelectedRows(origins, self._output)
                jobs += [selection_job(cut.following, work, piece, shelf) for piece in pieces(table, _BLOB_BYTES)]
        return jobs

    def _select(self, part: Part, relation: Relation) -> Iterator[tuple[pa.Table, Origins]]:
        session = self._spark()
        label(session.sparkContext, str(self._id), self._id.connector)
        try:
            frame = self._query(session, part, relation)
            if len(relation.topics) == 1 or "topic" in map(str.lower, frame.columns):
                yield frame.toArrow(), relation.origins
                return
            # The rows do not say of which topic they are: topic by topic, it is known.
            for topic in relation.topics:
                alone = relation.of_topic(topic)
                yield self._query(session, part, alone).toArrow(), alone.origins
        finally:
            session.catalog.dropTempView(TABLE)

    def _query(self, session: SparkSession, part: Part, relation: Relation) -> DataFrame:
        assert part.statement is not None
        visible = relation.visible
        session.createDataFrame(visible).createOrReplaceTempView(TABLE)
        frame = session.sql(part.statement.statement.text)
        # It takes a hundred calls of the JVM, and says the same of every batch of the same types.
        if visible.schema != self._checked.get(part.alias):
            check_frame(frame, self._sandbox)
            self._checked[part.alias] = visible.schema
        return frame

    @contextmanager
    def _explained(self, part: Part) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            explained = self._session.explain(error)
            if isinstance(explained, EngineUnavailable):
                raise explained from error
            raise StatementFailed(part, _reason(explained)) from None


def problems(session: Session, cls: type, settings: Mapping[str, str], sandbox: Sandbox) -> dict[str, str]:
    """What is against an Sql transform, by key, as its parsed text says. A session that is being started is waited for;
    where there is none in time, nothing is found, and no statement runs either. No job is run."""
    if not issubclass(cls, Sql):
        return {}
    checks: dict[str, Callable[[str], object]] = {
        STATEMENT: lambda text: check_text(_apart(session.session()), text, sandbox),
        VALUE_SCHEMA: _declared,
    }
    given = {key: partial(check, settings[key]) for key, check in checks.items() if settings.get(key)}
    found = {key: _against(session, check) for key, check in given.items()}
    return {key: reason for key, reason in found.items() if reason is not None}


def _against(session: Session, check: Callable[[], object]) -> str | None:
    until = time.monotonic() + _SESSION_S
    while time.monotonic() < until:
        try:
            session.context(lambda: time.monotonic() > until)
        except EngineUnavailable:
            return None
        try:
            check()
            return None
        except Exception as error:
            explained = session.explain(error)
            if not isinstance(explained, EngineUnavailable):
                return _reason(explained)
        time.sleep(_NOTICED_S)  # it has died, and soon there is another
    return None


def _apart(base: SparkSession) -> SparkSession:
    """With tables of its own."""
    made = base.newSession()
    # What ${...} means was settled by the config providers; Spark would look into the worker's environment.
    made.conf.set("spark.sql.variable.substitute", "false")
    return made


def _declared(fields: str) -> pa.DataType:
    """What Spark calls so, where everything may be null."""
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructType

    try:
        return nullable(to_arrow_type(StructType.fromDDL(fields)))
    except Exception as error:
        raise ConnectError(f"{VALUE_SCHEMA} {fields}: {error}") from error


def _reason(error: Exception) -> str:
    """The first lines of what Spark says, without its plans."""
    lines = str(error).strip().splitlines()
    plan = next((place for place, line in enumerate(lines) if line.startswith(("'", "+-"))), len(lines))
    return "\n".join(line.rstrip() for line in lines[: min(plan, _LINES)] if line.strip())
