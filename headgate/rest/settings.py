"""RestSettings: what the REST API reads of the worker file."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.api.config import ConfigDef
from headgate.api.errors import ConfigError
from headgate.rest.client import PeerTls
from headgate.rest.handshake import Handshake
from headgate.rest.headers import KEY as HEADERS
from headgate.rest.headers import HeaderRule, parse_rules
from headgate.rest.limits import RestLimits
from headgate.rest.listeners import Listener, Tls
from headgate.runtime.config.worker_config import COMMON

LISTENERS: Final = "listeners"
ADMIN_LISTENERS: Final = "admin.listeners"
ADVERTISED_LISTENER: Final = "rest.advertised.listener"
MASK_SECRETS: Final = "headgate.mask.secrets"
_OURS: Final = (
    LISTENERS, ADMIN_LISTENERS, "rest.advertised.", "access.control.", HEADERS, "headgate.allowed.hosts",
    "headgate.rest.", MASK_SECRETS,
)  # fmt: skip
_KEYS: Final = ConfigDef(*(key for key in COMMON if key.name.startswith(_OURS)))
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
    allowed_hosts: tuple[str, ...] = ()
    """Names that listeners answer to, besides their own."""
    header_rules: tuple[HeaderRule, ...] = ()
    limits: RestLimits = field(default_factory=RestLimits)
    tls: Tls | None = None
    admin_tls: Tls | None = None
    peer_tls: PeerTls = field(default_factory=PeerTls)
    """For https to other workers, by the keys of the main listeners."""
    mask_secrets: bool = False
    """Configurations are shown without secrets."""
    health_timeout: float = 10.0

    @classmethod
    def parse(cls, config: Mapping[str, str], default_listeners: Sequence[str] = ("http://:8083",)) -> RestSettings:
        """From a worker's configuration. Raises ConfigError or ListenerError."""
        found = _KEYS.parse(config)
        admin = found[ADMIN_LISTENERS]
        advertised = (found[ADVERTISED_LISTENER] or "").lower() or None
        if advertised not in (None, "http", "https"):
            raise ConfigError.invalid(ADVERTISED_LISTENER, advertised, "String must be one of: http, https")
        return cls(
            listeners=tuple(Listener.parse(each) for each in found[LISTENERS] or default_listeners),
            admin_listeners=None if admin is None else tuple(Listener.parse(each, ADMIN_LISTENERS) for each in admin),
            advertised_host=found["rest.advertised.host.name"] or None,
            advertised_port=found["rest.advertised.port"],
            advertised_listener=advertised,
            allow_origins=_listed(found["access.control.allow.origin"]),
            allow_methods=_listed(found["access.control.allow.methods"]) or cls().allow_methods,
            allowed_hosts=tuple(found["headgate.allowed.hosts"]),
            header_rules=parse_rules(found[HEADERS]),
            limits=RestLimits.of(found),
            tls=_tls(config, "listeners.https."),
            admin_tls=_tls(config, "admin.listeners.https."),
            peer_tls=_peer_tls(config),
            mask_secrets=found[MASK_SECRETS],
        )

    @property
    def origin_pattern(self) -> str:
        """Of the origins that are allowed, where not all are."""
        return "|".join(re.escape(origin).replace(r"\*", "[^/]*") for origin in self.allow_origins)

    def allows(self, origin: str, method: str) -> bool:
        """Whether pages from there may do this."""
        if not self.allow_origins or method not in self.allow_methods:
            return False
        return "*" in self.allow_origins or re.fullmatch(self.origin_pattern, origin) is not None

    @property
    def admin_on_main(self) -> bool:
        return self.admin_listeners is None


def _listed(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


@dataclass(frozen=True, slots=True)
class _Stores:
    """The `ssl.*` keys of one kind of listener."""

    keys: Mapping[str, str]
    prefix: str
    """What they have before their names."""
    needed: bool
    """Whether https depends on them. A store for the Kafka clients alone is none of our business."""

    @classmethod
    def below(cls, config: Mapping[str, str], prefix: str) -> _Stores:
        # As Kafka Connect: the prefixed keys if there is one of them, else the worker's own, never a mix.
        prefixed = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
        return cls(prefixed or config, prefix if prefixed else "", bool(prefixed) or _has_https(config))

    def handshake(self) -> Handshake:
        return Handshake.parse(self.keys, self.prefix) if self.needed else Handshake()

    def client_auth(self) -> ssl.VerifyMode:
        key, auth = f"{self.prefix}ssl.client.auth", (self.keys.get("ssl.client.auth") or "none").lower()
        if auth not in _CLIENT_AUTH:
            raise ConfigError.invalid(key, auth, f"String must be one of: {', '.join(_CLIENT_AUTH)}")
        if auth != "none" and self.needed and self.pem("truststore") is None:
            reason = f"Set {self.prefix}ssl.truststore.location to a PEM file of those who sign clients' certificates"
            raise ConfigError.invalid(key, auth, reason)
        return _CLIENT_AUTH[auth]

    def pem(self, store: str) -> str | None:
        """The file of the `keystore` or `truststore`."""
        location, kind = self.keys.get(f"ssl.{store}.location"), self.keys.get(f"ssl.{store}.type") or "JKS"
        if not location or kind.upper() == "PEM":
            return location or None
        if self.needed:
            reason = "The REST API reads PEM files only; convert the store and set PEM"
            raise ConfigError.invalid(f"{self.prefix}ssl.{store}.type", kind, reason)
        return None


def _tls(config: Mapping[str, str], prefix: str) -> Tls | None:
    stores = _Stores.below(config, prefix)
    certificate = stores.pem("keystore")
    if certificate is None:
        return None
    return Tls(
        certificate,
        password=stores.keys.get("ssl.key.password"),
        ca=stores.pem("truststore"),
        client_auth=stores.client_auth(),
        handshake=stores.handshake(),
    )


def _peer_tls(config: Mapping[str, str]) -> PeerTls:
    stores = _Stores.below(config, "listeners.https.")
    return PeerTls(
        ca=stores.pem("truststore"),
        certificate=stores.pem("keystore"),
        password=stores.keys.get("ssl.key.password"),
        # Apache's switch: set to nothing, any host may show any certificate that the trust store vouches for.
        verify_host=bool(stores.keys.get("ssl.endpoint.identification.algorithm", "https").strip()),
        handshake=stores.handshake(),
    )


def _has_https(config: Mapping[str, str]) -> bool:
    return any("https:" in config.get(name, "").lower() for name in (LISTENERS, ADMIN_LISTENERS))
