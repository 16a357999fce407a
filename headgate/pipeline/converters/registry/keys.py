"""Keys that every converter of a schema registry has, by Confluent's names."""

from __future__ import annotations

from typing import Any, Final

from headgate.api import ConfigError, at_least, non_empty, one_of
from headgate.api.config import BOOLEAN, HIGH, INT, LOW, PASSWORD, STRING, ConfigDef, Key, or_null
from headgate.pipeline.converters.any_part import CONVERTER_TYPE
from headgate.pipeline.converters.registry.subjects import STRATEGIES, TOPIC

URL: Final = "schema.registry.url"
SSL: Final = "schema.registry.ssl."


def cache_size(settings: dict[str, Any]) -> int:
    """Confluent's key has an odd name; people write the other one too."""
    size = settings["schemas.cache.size"]
    return int(settings["schemas.cache.config"] if size is None else size)


def _urls(name: str, value: Any) -> None:
    non_empty(name, value)
    # A URL that is missing has been reported already.
    for url in (value or "").split(",") if value else ():
        if not url.strip().startswith(("http://", "https://")):
            raise ConfigError.invalid(name, value, "Expected URLs that start with http:// or https://")


_strategy: Final = one_of(*STRATEGIES)
_positive: Final = or_null(at_least(1))
_LOGIN: Final = (
    Key(
        "basic.auth.credentials.source",
        STRING,
        default=None,
        validator=or_null(one_of("URL", "USER_INFO")),
        doc="Where name and password are: in the URL, or in basic.auth.user.info.",
    ),
    Key("basic.auth.user.info", PASSWORD, default=None, doc="<name>:<password>"),
)
_TLS: Final = (
    Key(f"{SSL}ca.location", STRING, default=None, doc="PEM file, or folder, of those who sign the registry."),
    Key(f"{SSL}certificate.location", STRING, default=None, doc="PEM file with the certificate of this client."),
    Key(f"{SSL}key.location", STRING, default=None, doc="PEM file with its private key."),
    Key(f"{SSL}key.password", PASSWORD, default=None, doc="What that key is encrypted with."),
    Key(f"{SSL}truststore.location", STRING, default=None, doc="Java's name of ca.location, for a PEM file."),
    Key(f"{SSL}truststore.type", STRING, default="JKS", doc="Only PEM can be read here."),
    Key(f"{SSL}keystore.location", STRING, default=None, doc="Certificate and key in one PEM file."),
    Key(f"{SSL}keystore.type", STRING, default="JKS", doc="Only PEM can be read here."),
)
_SCHEMAS: Final = (
    Key("auto.register.schemas", BOOLEAN, default=True, doc="Register the schemas that are written."),
    Key(
        "use.latest.version",
        BOOLEAN,
        default=False,
        importance=LOW,
        doc="Without auto.register.schemas: write with the subject's latest schema, instead of looking up one's own.",
    ),
    Key(
        "normalize.schemas", BOOLEAN, default=False, importance=LOW, doc="Let the registry normalize before comparing."
    ),
    Key("key.subject.name.strategy", STRING, default=TOPIC, validator=_strategy, doc="Names the subjects of keys."),
    Key("value.subject.name.strategy", STRING, default=TOPIC, validator=_strategy, doc="Names the subjects of values."),
    Key("schemas.cache.config", INT, default=1000, validator=at_least(1), importance=LOW, doc="Schemas to remember."),
    Key("schemas.cache.size", INT, default=None, validator=_positive, importance=LOW, doc="The same; wins if given."),
)
_PATIENCE: Final = (
    Key("http.read.timeout.ms", INT, default=60_000, validator=at_least(1), importance=LOW, doc="Wait for one answer."),
    Key("max.retries", INT, default=3, validator=at_least(0), importance=LOW, doc="Of one request that got no answer."),
    Key("retries.wait.ms", INT, default=1000, validator=at_least(0), importance=LOW, doc="Longest first pause."),
    Key("retries.max.wait.ms", INT, default=20_000, validator=at_least(0), importance=LOW, doc="Longest pause."),
)

REGISTRY_KEYS: Final = ConfigDef(
    CONVERTER_TYPE,
    Key(URL, STRING, validator=_urls, importance=HIGH, doc="URLs of the registry, separated by commas."),
    *_LOGIN,
    *_TLS,
    *_SCHEMAS,
    *_PATIENCE,
)
