"""All that a plugin author imports."""

from headgate.api.config import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    REQUIRED,
    SHORT,
    STRING,
    ConfigDef,
    ConfigValue,
    Importance,
    Key,
    Recommender,
    Width,
    all_of,
    at_least,
    java_regex,
    no_duplicates,
    non_empty,
    one_of,
    one_of_any_case,
    valid_regex,
)
from headgate.api.config_provider import ConfigData, ConfigProvider
from headgate.api.connector import Connector, ExactlyOnceSupport, SinkConnector, SourceConnector
from headgate.api.context import (
    ConnectorContext,
    ErrantRecordReporter,
    OffsetReader,
    SinkTaskContext,
    SourceConnectorContext,
    SourceTaskContext,
    TopicPartition,
    TransactionContext,
)
from headgate.api.converter import Converter, HeaderConverter
from headgate.api.errors import ConfigError, ConnectError, DataError, RetriableError, UnsupportedOperation
from headgate.api.override_policy import OverridePolicy, OverrideRequest
from headgate.api.plugin import Plugin
from headgate.api.reach import Reach, ReachKind
from headgate.api.record import Header, Record, SinkRecord, SourceRecord
from headgate.api.schema import Field, Schema, SchemaType, Struct
from headgate.api.task import (
    Consumed,
    Form,
    FrameSinkTask,
    RowsFrom,
    SinkTask,
    SourceFrame,
    SourceTable,
    SourceTask,
    TableSinkTask,
    Task,
)
from headgate.api.transform import Predicate, Transform

__all__ = [
    "BOOLEAN", "CLASS", "DOUBLE", "HIGH", "INT", "LIST", "LONG", "LOW", "MEDIUM", "PASSWORD", "REQUIRED", "SHORT",
    "STRING", "ConfigData", "ConfigDef", "ConfigError", "ConfigProvider", "ConfigValue", "ConnectError", "Connector",
    "ConnectorContext", "Consumed", "Converter", "DataError", "ErrantRecordReporter", "ExactlyOnceSupport", "Field",
    "Form", "FrameSinkTask", "Header", "HeaderConverter", "Importance", "Key", "OffsetReader", "OverridePolicy",
    "OverrideRequest", "Plugin", "Predicate", "Reach", "ReachKind", "Recommender", "Record", "RetriableError",
    "RowsFrom", "Schema", "SchemaType", "SinkConnector", "SinkRecord", "SinkTask", "SinkTaskContext", "SourceConnector",
    "SourceConnectorContext", "SourceFrame", "SourceRecord", "SourceTable", "SourceTask", "SourceTaskContext", "Struct",
    "TableSinkTask", "Task", "TopicPartition", "TransactionContext", "Transform", "UnsupportedOperation", "Width",
    "all_of", "at_least", "java_regex", "no_duplicates", "non_empty", "one_of", "one_of_any_case", "valid_regex",
]  # fmt: skip
