"""The in-memory doubles fit the protocols and remember what was asked of them."""

from __future__ import annotations

from headgate.api import (
    ConnectorContext,
    ErrantRecordReporter,
    OffsetReader,
    SinkRecord,
    SinkTaskContext,
    SourceConnectorContext,
    SourceRecord,
    SourceTaskContext,
    TopicPartition,
    TransactionContext,
)
from headgate.api.testing import (
    MemoryConnectorContext,
    MemoryOffsets,
    MemoryReporter,
    MemorySinkTaskContext,
    MemorySourceTaskContext,
    MemoryTransactionContext,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_doubles_fit_the_protocols() -> None:
    """A type checker reads this one; at run time the names must be there."""
    offsets: OffsetReader = MemoryOffsets()
    connector: ConnectorContext = MemoryConnectorContext()
    source_connector: SourceConnectorContext = MemoryConnectorContext()
    source: SourceTaskContext = MemorySourceTaskContext({})
    sink: SinkTaskContext = MemorySinkTaskContext({})
    reporter: ErrantRecordReporter = MemoryReporter()
    transactions: TransactionContext = MemoryTransactionContext()
    for double, protocol in (
        (offsets, OffsetReader),
        (connector, ConnectorContext),
        (source_connector, SourceConnectorContext),
        (source, SourceTaskContext),
        (sink, SinkTaskContext),
        (reporter, ErrantRecordReporter),
        (transactions, TransactionContext),
    ):
        names = {name for name in vars(protocol) if not name.startswith("_")}
        assert names <= set(dir(double)), f"{type(double).__name__} lacks {names - set(dir(double))}"


def test_offsets_are_found_by_the_content_of_their_partition() -> None:
    offsets = MemoryOffsets([({"a": 1, "b": 2}, {"position": 3})])
    assert offsets.offset({"b": 2, "a": 1}) == {"position": 3}
    assert offsets.offsets([{"a": 1}, {"a": 1, "b": 2}]) == [None, {"position": 3}]
    offsets.commit({"a": 1, "b": 2}, None)
    assert offsets.offset({"a": 1, "b": 2}) is None


def test_a_transaction_context_remembers() -> None:
    transactions = MemoryTransactionContext()
    context = MemorySourceTaskContext({}, transaction_context=transactions)
    assert context.transaction_context is transactions
    assert MemorySourceTaskContext({}).transaction_context is None
    record = SourceRecord(topic="t")
    transactions.commit_transaction(record)
    transactions.commit_transaction()
    transactions.abort_transaction()
    assert (transactions.commits, transactions.aborts) == ([record, None], [None])


def test_a_connector_context_remembers() -> None:
    context = MemoryConnectorContext("name")
    context.request_task_reconfiguration()
    error = ValueError()
    context.raise_error(error)
    assert (context.name, context.reconfigurations, context.errors) == ("name", 1, [error])


def test_a_sink_task_context_remembers() -> None:
    reporter = MemoryReporter()
    context = MemorySinkTaskContext({"a": "b"}, [P0, P1], reporter)
    context.offset(P0, 7)
    context.timeout(100)
    context.pause(P0, P1)
    context.resume(P1)
    context.request_commit()
    assert (context.config, context.assignment) == ({"a": "b"}, frozenset({P0, P1}))
    assert (context.rewound, context.timeouts, context.paused, context.commit_requests) == ({P0: 7}, [100], {P0}, 1)
    record, error = SinkRecord(topic="t"), ValueError()
    assert context.reporter is reporter
    assert reporter.report(record, error).done()
    assert reporter.reported == [(record, error)]
