"""Registry: asks the schema registry, and says in our errors what came of it."""

from __future__ import annotations

import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from headgate.api import ConfigError, DataError, RetriableError
from headgate.pipeline.converters.registry.keys import SSL, URL, cache_size

T = TypeVar("T")

REFUSED_SECONDS: Final = 30.0
"""For so long a refusal is repeated without asking again: with `errors.tolerance=all` every record would ask."""

_MOST_REFUSED: Final = 1000
_BUSY: Final = (408, 429)
_CONVERTERS: Final = {"AVRO": "AvroConverter", "JSON": "JsonSchemaConverter", "PROTOBUF": "ProtobufConverter"}


@dataclass(frozen=True, slots=True)
class Text:
    """A schema as the registry keeps it."""

    text: str
    references: tuple[tuple[str, str, int], ...] = ()
    """Name, subject and version of the schemas that this one uses."""


class Registry:
    """Of one converter. `kind` is AVRO, JSON or PROTOBUF; `fmt` the form in which schemas are asked for."""

    def __init__(self, settings: Mapping[str, Any], kind: str, fmt: str | None = None) -> None:
        # Here, not above: the classes of the converters must be found where the extra is not installed.
        from confluent_kafka.schema_registry import SchemaRegistryClient

        self._kind = kind
        self._fmt = fmt
        self._normalize: bool = settings["normalize.schemas"]
        self._shown = re.sub(r"//[^/@,]*@", "//", settings[URL])
        self._refused: dict[tuple[str, ...], tuple[float, str]] = {}
        try:
            self._client: Any = SchemaRegistryClient(_client_config(settings))
        except (ValueError, TypeError, OSError) as error:  # of TLS files too: ssl.SSLError is an OSError
            raise ConfigError(f"The client of schema registry {self._shown} cannot be made: {error}") from error
        # Converters are never told that they are done with: the connections go when the last of them does.
        weakref.finalize(self, self._client.close)

    def register(self, topic: str, subject: str, text: str) -> int:
        """The id of this schema, new or old. Raises DataError, RetriableError."""
        schema = self._schema(text)
        ask = partial(self._client.register_schema, subject, schema, normalize_schemas=self._normalize)
        return int(self._ask(("register", subject, text), "to register a schema", topic, subject, ask))

    def lookup(self, topic: str, subject: str, text: str) -> int:
        """The id of this schema, which must be there. Raises DataError, RetriableError."""
        schema = self._schema(text)
        ask = partial(self._client.lookup_schema, subject, schema, normalize_schemas=self._normalize)
        return int(self._ask(("lookup", subject, text), "to find a schema", topic, subject, ask).schema_id)

    def latest(self, topic: str, subject: str) -> tuple[int, Text]:
        ask = partial(self._client.get_latest_version, subject, fmt=self._fmt)
        found = self._ask(("latest", subject), "to give its latest schema", topic, subject, ask)
        return int(found.schema_id), self._text(topic, subject, found.schema)

    def by_id(self, topic: str, subject: str | None, schema_id: int) -> Text:
        ask = partial(self._client.get_schema, schema_id, fmt=self._fmt)
        found = self._ask(("id", str(schema_id)), f"to give schema {schema_id}", topic, subject, ask)
        return self._text(topic, subject, found)

    def used_by(self, topic: str, text: Text, seen: set[str] | None = None) -> Iterator[tuple[str, str]]:
        """Name and text of the schemas that this one uses, each after those that it uses itself."""
        seen = set() if seen is None else seen
        for name, subject, version in text.references:
            if name in seen:
                continue
            seen.add(name)
            found = self._version(topic, subject, version)
            yield from self.used_by(topic, found, seen)
            yield name, found.text

    def _version(self, topic: str, subject: str, version: int) -> Text:
        ask = partial(self._client.get_version, subject, version, fmt=self._fmt)
        key = ("version", subject, str(version))
        return self._text(topic, subject, self._ask(key, f"to give version {version}", topic, subject, ask).schema)

    def _schema(self, text: str) -> Any:
        from confluent_kafka.schema_registry import Schema

        return Schema(text, schema_type=self._kind)

    def _text(self, topic: str, subject: str | None, found: Any) -> Text:
        kind = found.schema_type or "AVRO"
        if kind != self._kind:
            fits = _CONVERTERS.get(kind, "another converter")
            told = f"{_where(topic, subject)}, which needs {fits}"
            raise DataError(f"Expected {self._kind}, but the schema is {kind}: {told}")
        return Text(found.schema_str, tuple((each.name, each.subject, each.version) for each in found.references or ()))

    def _ask(self, key: tuple[str, ...], what: str, topic: str, subject: str | None, call: Callable[[], T]) -> T:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        until, message = self._refused.get(key, (0.0, ""))
        if time.monotonic() < until:
            raise DataError(message)
        where = _where(topic, subject)
        try:
            return call()
        except SchemaRegistryError as error:
            status = error.http_status_code
            message = f"Schema registry {self._shown} refused {what}: {where}: {error.error_message} (HTTP {status})"
            if status >= 500 or status in _BUSY:
                raise RetriableError(message) from error
        except Exception as error:
            message = f"Schema registry {self._shown} gave no answer {what}: {where}: {type(error).__name__}: {error}"
            if isinstance(error, OSError) or _is_transport(error):
                raise RetriableError(message) from error
        if len(self._refused) >= _MOST_REFUSED:
            self._refused.clear()
        self._refused[key] = (time.monotonic() + REFUSED_SECONDS, message)
        raise DataError(message)


def _where(topic: str, subject: str | None) -> str:
    return f"topic {topic}, subject {subject}" if subject is not None else f"topic {topic}"


def _is_transport(error: Exception) -> bool:
    # By name: the client uses httpx or httpx2, whichever fits the Python it runs on.
    return any(each.__name__ == "TransportError" for each in type(error).__mro__)


def _client_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "url": settings[URL],
        "timeout": settings["http.read.timeout.ms"] / 1000,
        "cache.capacity": cache_size(dict(settings)),
        "max.retries": settings["max.retries"],
        "retries.wait.ms": settings["retries.wait.ms"],
        "retries.max.wait.ms": settings["retries.max.wait.ms"],
    }
    source, user = settings["basic.auth.credentials.source"], settings["basic.auth.user.info"]
    if source == "USER_INFO" and not user:
        raise ConfigError("basic.auth.credentials.source=USER_INFO needs basic.auth.user.info=<name>:<password>")
    if user and source != "URL":
        made["basic.auth.user.info"] = user
    return {**made, **_tls(settings)}


def _tls(settings: Mapping[str, Any]) -> dict[str, str]:
    names: Sequence[str] = ("ca.location", "certificate.location", "key.location", "key.password")
    made = {f"ssl.{name}": settings[SSL + name] for name in names}
    for store, name in (("truststore", "ca"), ("keystore", "certificate")):
        location = settings[f"{SSL}{store}.location"]
        if location is None:
            continue
        if settings[f"{SSL}{store}.type"].upper() != "PEM":
            key = f"{SSL}{store}.type"
            raise ConfigError.invalid(key, settings[key], f"Only PEM can be read here; or set {SSL}{name}.location")
        made[f"ssl.{name}.location"] = made[f"ssl.{name}.location"] or location
    return {key: value for key, value in made.items() if value is not None}
