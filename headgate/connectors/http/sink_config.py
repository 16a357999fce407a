"""The keys of HttpSink, and what they mean together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigValue, Key, at_least, one_of
from headgate.api.config import HIGH, INT, MEDIUM, STRING
from headgate.connectors.http import client_config
from headgate.connectors.http.client_config import URL, ClientConfig, valid_url
from headgate.connectors.http.headers import is_header_name
from headgate.connectors.http.url_template import KEY, UrlTemplate

METHOD: Final = "method"
BATCH_FORMAT: Final = "batch.format"
BATCH_RECORDS: Final = "batch.max.records"
BATCH_BYTES: Final = "batch.max.bytes"
VALUE_FORMAT: Final = "value.format"
ON_NULL: Final = "on.null"
IDEMPOTENCY: Final = "idempotency.header"
RETRY_MAX: Final = "retry.max"

SINGLE: Final = "single"
JSON_ARRAY: Final = "json-array"
NDJSON: Final = "ndjson"
JSON: Final = "json"
TEXT: Final = "text"
FAIL: Final = "fail"
SKIP: Final = "skip"
DELETE: Final = "delete"

CONFIG: Final = (
    ConfigDef(
        Key(
            URL,
            STRING,
            validator=valid_url,
            importance=HIGH,
            doc="Where records are sent. In path and query ${topic} and ${key} are those of the record.",
        ),
        Key(
            METHOD,
            STRING,
            default="POST",
            validator=one_of("POST", "PUT", "PATCH"),
            importance=HIGH,
            doc="How they are sent: POST, PUT or PATCH.",
        ),
        Key(
            BATCH_FORMAT,
            STRING,
            default=SINGLE,
            validator=one_of(SINGLE, JSON_ARRAY, NDJSON),
            importance=HIGH,
            doc="What a request has: single (one record), json-array or ndjson (several, one a line).",
        ),
        Key(BATCH_RECORDS, INT, default=500, validator=at_least(1), doc="Most records of a request."),
        Key(
            BATCH_BYTES,
            INT,
            default=1 << 20,
            validator=at_least(1),
            doc="Largest body of a request with several records. A larger record is sent alone.",
        ),
        Key(
            VALUE_FORMAT,
            STRING,
            default=JSON,
            validator=one_of(JSON, TEXT),
            importance=MEDIUM,
            doc="How values are sent: json, as JsonConverter writes them without schemas; or text: strings and bytes as"
            " they are, all others as JSON.",
        ),
        Key(
            ON_NULL,
            STRING,
            default=FAIL,
            validator=one_of(FAIL, SKIP, DELETE),
            importance=MEDIUM,
            doc="What becomes of records without a value: fail (they are bad records), skip, or delete: DELETE is sent"
            " to url, which must have ${key} in it.",
        ),
        Key(
            IDEMPOTENCY,
            STRING,
            default=None,
            importance=MEDIUM,
            doc="Header in which each request has topic-partition-offset of its record; batch.format=single only.",
        ),
        Key(
            RETRY_MAX,
            INT,
            default=10,
            validator=at_least(-1),
            importance=MEDIUM,
            doc="How often in a row a request is tried again before the task fails; -1: without end.",
        ),
    )
    + client_config.CONFIG
)


@dataclass(frozen=True, slots=True)
class HttpSinkConfig:
    client: ClientConfig
    url: UrlTemplate
    method: str
    batch_format: str
    batch_records: int
    batch_bytes: int
    raw: bool
    """Strings and bytes are sent as they are."""
    on_null: str
    idempotency_header: str | None
    retry_max: int
    """Less than 0: without end."""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> HttpSinkConfig:
        """Raises ConfigError."""
        parsed = client_config.checked(CONFIG, config, _problems)
        client = ClientConfig.of(config, parsed)
        return cls(
            client=client,
            url=UrlTemplate(client.address),
            method=parsed[METHOD],
            batch_format=parsed[BATCH_FORMAT],
            batch_records=1 if parsed[BATCH_FORMAT] == SINGLE else parsed[BATCH_RECORDS],
            batch_bytes=parsed[BATCH_BYTES],
            raw=parsed[VALUE_FORMAT] == TEXT,
            on_null=parsed[ON_NULL],
            idempotency_header=parsed[IDEMPOTENCY] or None,
            retry_max=parsed[RETRY_MAX],
        )

    @property
    def content_type(self) -> str:
        if self.batch_format == NDJSON:
            return "application/x-ndjson"
        return "text/plain; charset=utf-8" if self.raw and self.batch_format == SINGLE else "application/json"


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    return client_config.validated(CONFIG, config, _problems)


def _problems(config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    template, form = UrlTemplate.parse(parsed[URL]), parsed[BATCH_FORMAT]
    if unknown := template.unknown:
        yield URL, f"Only ${{topic}} and ${{key}} can stand in it, not ${{{min(unknown)}}}"
    if form != SINGLE and KEY in template.variables:
        yield URL, f"Records with different keys cannot share a request: ${{key}} needs {BATCH_FORMAT}={SINGLE}"
    if parsed[ON_NULL] == DELETE and KEY not in template.variables:
        yield ON_NULL, "To delete is to say what: it needs ${key} in url"
    header = parsed[IDEMPOTENCY]
    if header and not is_header_name(header):
        yield IDEMPOTENCY, "It is no name of a header"
    if header and form != SINGLE:
        yield IDEMPOTENCY, f"It needs {BATCH_FORMAT}={SINGLE}: which records share a request may differ next time"
