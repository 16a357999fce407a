"""Handshake: which versions of TLS, and which cipher suites, a worker agrees to. By Kafka's keys, else modern ones."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.api.errors import ConfigError

_PROTOCOLS: Final = "ssl.enabled.protocols"
_SUITES: Final = "ssl.cipher.suites"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OF_TLS_1_3: Final = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
_MODERN: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(frozen=True, slots=True)
class Handshake:
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: str = _MODERN
    """Of TLS 1.2, as OpenSSL writes them. Python cannot choose among those of TLS 1.3."""
    remark: str | None = None
    """What was asked for and cannot be done."""

    @classmethod
    def parse(cls, keys: Mapping[str, str], prefix: str = "") -> Handshake:
        """`prefix`: what the keys have before their names in the worker file. Raises ConfigError."""
        versions = [_version(prefix + _PROTOCOLS, name) for name in _names(keys, _PROTOCOLS)] or [*_VERSIONS.values()]
        lowest, highest = min(versions), max(versions)
        suites = _names(keys, _SUITES)
        if not suites:
            return cls(lowest, highest)
        key = prefix + _SUITES
        ciphers = ":".join(_openssl(key, name) for name in suites if name not in _OF_TLS_1_3)
        if not ciphers:  # all of them are of TLS 1.3
            if highest is not ssl.TLSVersion.TLSv1_3:
                raise ConfigError.invalid(key, ",".join(suites), f"All of these need TLSv1.3 in {prefix}{_PROTOCOLS}")
            lowest = highest
        remark = None
        if highest is ssl.TLSVersion.TLSv1_3 and not set(suites) >= _OF_TLS_1_3:
            remark = f"{key} chooses for TLS 1.2 only: in TLS 1.3 all of {', '.join(sorted(_OF_TLS_1_3))} may be used"
        return cls(lowest, highest, ciphers or _MODERN, remark)

    def apply(self, context: ssl.SSLContext) -> None:
        context.minimum_version, context.maximum_version = self.lowest, self.highest
        context.set_ciphers(self.ciphers)
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE


def _names(keys: Mapping[str, str], key: str) -> list[str]:
    """Java's lists have commas, OpenSSL's colons."""
    return [name for name in re.split(r"[,:\s]+", keys.get(key) or "") if name]


def _version(key: str, name: str) -> ssl.TLSVersion:
    if name not in _VERSIONS:
        raise ConfigError.invalid(key, name, f"The REST API speaks {' and '.join(_VERSIONS)}, and nothing older")
    return _VERSIONS[name]


def _openssl(key: str, name: str) -> str:
    """OpenSSL's name of a suite that may have Java's: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is
    ECDHE-RSA-AES128-GCM-SHA256."""
    known = name
    if name.startswith("TLS_"):
        known = re.sub(r"^TLS_(RSA_WITH_)?|_WITH|_CBC", "", name).replace("AES_", "AES").replace("_", "-")
        known = known.replace("POLY1305-SHA256", "POLY1305")
    try:
        if known[0].isalpha():  # else it takes something away from the others
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(known)
    except ssl.SSLError:
        raise ConfigError.invalid(key, name, "OpenSSL has no such cipher suite for TLS 1.2 here") from None
    return known
