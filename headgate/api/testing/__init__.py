"""For connector authors: in-memory doubles of what the runtime offers, and acceptance suites to run with pytest.

    class TestMySource(SourceConnectorSuite):
        connector = MySourceConnector
        config = {"topic": "t", "table": "orders"}

        def add_data(self, count):
            insert_rows(count)

A configuration that is only known in the test, such as a temporary file, is set by a fixture:

        @pytest.fixture(autouse=True)
        def given_a_file(self, tmp_path):
            self.config = {"topic": "t", "file": str(tmp_path / "lines")}

Nothing here needs a broker, Spark or, until a test runs, pytest.
"""

from headgate.api.testing.doubles import (
    MemoryConnectorContext,
    MemoryOffsets,
    MemoryReporter,
    MemorySinkTaskContext,
    MemorySourceTaskContext,
    MemoryTransactionContext,
)
from headgate.api.testing.sink import SinkConnectorSuite
from headgate.api.testing.source import SourceConnectorSuite

__all__ = [
    "MemoryConnectorContext",
    "MemoryOffsets",
    "MemoryReporter",
    "MemorySinkTaskContext",
    "MemorySourceTaskContext",
    "MemoryTransactionContext",
    "SinkConnectorSuite",
    "SourceConnectorSuite",
]
