"""RestSettings: what the REST API reads of the worker file."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.api.config import ConfigDef
from headgate.api.errors import ConfigError
from headgate.rest.headers import KEY as HEADERS
from headgate.rest.headers import HeaderRule, parse_rules
from headgate.rest.listeners import Listener, Tls
from headgate.runtime.worker_config import COMMON

LISTENERS: Final = "listeners"
ADMIN_LISTENERS: Final = "admin.listeners"
ADVERTISED_LISTENER: Final = "rest.advertised.listener"
_KEYS: Final = ConfigDef(
    *(
        COMMON[name]
        for name in (
            LISTENERS,
            ADMIN_LISTENERS,
            "rest.advertised.host.name",
            "rest.advertised.port",
            ADVERTISED_LISTENER,
            "access.control.allow.origin",
            "access.control.allow.methods",
            HEADERS,
        )
    )
)
_CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class RestSettings:
    listeners: tuple[Listener, ...] = (Listener("http", "", 8083),)
    admin_listeners: tuple[Listener, ...] | None = None
    """None: admin endpoints on the main listeners; empty: nowhere."""
    advertised_host: str | None = None
    advertised_port: int | None = None
    advertised_listener: str | None = None
    """http or https; None: http if there is such a listener."""
    allow_origins: tuple[str, ...] = ()
    """CORS: empty for none of it; `*` within an origin stands for any text."""
    allow_methods: tuple[str, ...] = ("GET", "POST", "HEAD")
    header_rules: tuple[HeaderRule, ...] = ()
    tls: Tls | None = None
    admin_tls: Tls | None = None
    health_timeout: float = 10.0

    @classmethod
    def parse(cls, config: Mapping[str, str], default_listeners: Sequence[str] = ("http://:8083",)) -> RestSettings:
        """From a worker's configuration. Raises ConfigError or ListenerError."""
        found = _KEYS.parse(config)
        admin = found[ADMIN_LISTENERS]
        advertised = (found[ADVERTISED_LISTENER] or "").lower() or None
        if advertised not in (None, "http", "https"):
            raise ConfigError.invalid(ADVERTISED_LISTENER, advertised, "String must be one of: http, https")
        tls = _tls(config, "listeners.https.")
        return cls(
            listeners=tuple(Listener.parse(each) for each in found[LISTENERS] or default_listeners),
            admin_listeners=None if admin is None else tuple(Listener.parse(each, ADMIN_LISTENERS) for each in admin),
            advertised_host=found["rest.advertised.host.name"] or None,
            advertised_port=found["rest.advertised.port"],
            advertised_listener=advertised,
            allow_origins=_listed(found["access.control.allow.origin"]),
            allow_methods=_listed(found["access.control.allow.methods"]) or cls().allow_methods,
            header_rules=parse_rules(found[HEADERS]),
            tls=tls,
            admin_tls=_tls(config, "admin.listeners.https."),
        )

    @property
    def admin_on_main(self) -> bool:
        return self.admin_listeners is None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _tls(config: Mapping[str, str], prefix: str) -> Tls | None:
    # As Kafka Connect: the prefixed keys if there is one of them, else the worker's own, never a mix.
    prefixed = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    keys = prefixed or config
    location = keys.get("ssl.keystore.location")
    if not location:
        return None
    ca = keys.get("ssl.truststore.location") or None
    stores = ("ssl.keystore.type", *(("ssl.truststore.type",) if ca else ()))
    for name in stores:
        kind = keys.get(name) or "JKS"
        if kind.upper() != "PEM":
            # A keystore for the Kafka clients alone is none of our business.
            if not prefixed and not _has_https(config):
                return None
            raise ConfigError.invalid(name, kind, "The REST API reads PEM files only; convert the store and set PEM")
    auth = (keys.get("ssl.client.auth") or "none").lower()
    if auth not in _CLIENT_AUTH:
        raise ConfigError.invalid("ssl.client.auth", auth, f"String must be one of: {', '.join(_CLIENT_AUTH)}")
    return Tls(location, None, keys.get("ssl.key.password"), ca, _CLIENT_AUTH[auth])


def _has_https(config: Mapping[str, str]) -> bool:
    return any("https:" in config.get(name, "").lower() for name in (LISTENERS, ADMIN_LISTENERS))
