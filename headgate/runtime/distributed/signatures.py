"""Signatures of requests between workers (KIP-507), made with a session key that the whole group reads.

The leader makes the key, the config topic tells it to all. What is signed is the body of a request, byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.model import SessionKey
from headgate.runtime.errors import BadRequest, InvalidSignature, NoSessionKey

SIGNATURE: Final = "X-Connect-Authorization"
ALGORITHM: Final = "X-Connect-Request-Signature-Algorithm"

KEY_ALGORITHM: Final = "inter.worker.key.generation.algorithm"
KEY_SIZE: Final = "inter.worker.key.size"
KEY_TTL: Final = "inter.worker.key.ttl.ms"
SIGNATURE_ALGORITHM: Final = "inter.worker.signature.algorithm"
VERIFICATION_ALGORITHMS: Final = "inter.worker.verification.algorithms"
DEFAULT_ALGORITHM: Final = "HmacSHA256"
SMALLEST_KEY_BITS: Final = 40
_NEVER_MS: Final = (1 << 63) - 1


# Digests as hashlib calls them, by Java's names of the MACs, which it takes in any case.
_MACS: Final = {
    "hmacmd5": "md5",
    "hmacsha1": "sha1",
    "hmacsha224": "sha224",
    "hmacsha256": "sha256",
    "hmacsha384": "sha384",
    "hmacsha512": "sha512",
    "hmacsha512/224": "sha512_224",
    "hmacsha512/256": "sha512_256",
    "hmacsha3-224": "sha3_224",
    "hmacsha3-256": "sha3_256",
    "hmacsha3-384": "sha3_384",
    "hmacsha3-512": "sha3_512",
}
_LONG_KEYS: Final = ("md5", "sha1")
"""Java makes keys of 512 bits for these when it is told no size; for the others, as long as the digest."""
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9+/=]")


@dataclass(frozen=True, slots=True)
class Signatures:
    """How this worker signs, what it accepts from others, and which keys it makes as their leader."""

    key_algorithm: str = DEFAULT_ALGORITHM
    key_bits: int = 256
    key_ttl_ms: int = 3_600_000
    """0: keys do not age."""
    algorithm: str = DEFAULT_ALGORITHM
    accepted: tuple[str, ...] = (DEFAULT_ALGORITHM,)

    @classmethod
    def parse(cls, parsed: Mapping[str, Any]) -> Signatures:
        """From the parsed keys of a worker file. Raises ConfigError for keys that do not go together."""
        key_algorithm, algorithm = parsed[KEY_ALGORITHM], parsed[SIGNATURE_ALGORITHM]
        accepted = tuple(parsed[VERIFICATION_ALGORITHMS])
        if algorithm not in accepted:
            reason = f"It must be one of {VERIFICATION_ALGORITHMS} too, or workers would refuse each other's requests"
            raise ConfigError.invalid(SIGNATURE_ALGORITHM, algorithm, reason)
        bits = parsed[KEY_SIZE] if parsed[KEY_SIZE] is not None else _key_bits(_MACS[key_algorithm.lower()])
        return cls(key_algorithm, bits, parsed[KEY_TTL], algorithm, accepted)

    def new_key(self, now_ms: int) -> SessionKey:
        return SessionKey(secrets.token_bytes(self._key_bytes), self.key_algorithm, now_ms)

    def expires_ms(self, key: SessionKey) -> int:
        """When the leader has to replace it; later than any clock shows, if keys do not age."""
        return key.created_ms + self.key_ttl_ms if self.key_ttl_ms > 0 else _NEVER_MS

    def fits(self, key: SessionKey) -> bool:
        """Whether it is of the kind that this worker would make."""
        return key.algorithm == self.key_algorithm and len(key.key) == self._key_bytes

    def sign(self, key: SessionKey, body: bytes) -> dict[str, str]:
        """The headers that go with this body."""
        made = _mac(self.algorithm, key, body)
        return {SIGNATURE: base64.b64encode(made).decode(), ALGORITHM: self.algorithm}

    def verify(self, headers: Mapping[str, str], body: bytes, key: SessionKey | None) -> None:
        """Of a request that was received; `headers` by their names in lower case. `key` None: none was read yet.

        Raises BadRequest, NoSessionKey or InvalidSignature."""
        signature, algorithm = headers.get(SIGNATURE.lower()), headers.get(ALGORITHM.lower())
        if signature is None or algorithm is None:
            raise BadRequest("Internal request missing required signature")
        if not _is_available(algorithm):
            raise BadRequest(f"Algorithm {algorithm} not available")
        claimed = _decoded(signature)
        if algorithm not in self.accepted:
            raise BadRequest(
                f"This worker does not support the '{algorithm}' key signing algorithm used by other workers. This"
                f" worker is currently configured to use: [{', '.join(self.accepted)}]. Check that all workers'"
                " configuration files permit the same set of signature algorithms, and correct any misconfigured worker"
                " and restart it."
            )
        if key is None:
            raise NoSessionKey
        if not hmac.compare_digest(_mac(algorithm, key, body), claimed):
            raise InvalidSignature

    @property
    def _key_bytes(self) -> int:
        return (self.key_bits + 7) // 8


# --- checks of single keys --------------------------------------------------------------------------------------------


def known_algorithm(name: str, value: Any) -> None:
    """A validator."""
    if value is None or not _is_available(value):
        usable = ", ".join(f"Hmac{each[4:].upper()}" for each in _MACS if _is_available(each))
        raise ConfigError.invalid(name, value, f"It must be one of: {usable}")


def known_algorithms(name: str, value: Any) -> None:
    """A validator."""
    if not value:
        raise ConfigError.invalid(name, value, "At least one signature verification algorithm must be provided")
    for each in value:
        known_algorithm(name, each)


def key_size(name: str, value: Any) -> None:
    """A validator."""
    if value is not None and value < SMALLEST_KEY_BITS:
        raise ConfigError.invalid(name, value, f"A key must have at least {SMALLEST_KEY_BITS} bits")


# --- MACs -------------------------------------------------------------------------------------------------------------


def _key_bits(digest: str) -> int:
    return 512 if digest in _LONG_KEYS else hashlib.new(digest).digest_size * 8


def _is_available(algorithm: str) -> bool:
    found = _MACS.get(algorithm.lower())
    # Some builds of OpenSSL leave digests out, MD5 above all.
    return found is not None and found in hashlib.algorithms_available


def _mac(algorithm: str, key: SessionKey, body: bytes) -> bytes:
    return hmac.digest(key.key, body, _MACS[algorithm.lower()])


def _decoded(text: str) -> bytes:
    if illegal := _ILLEGAL.search(text):
        raise BadRequest(f"Illegal base64 character {ord(illegal[0]):x}")
    # Like Java, take it without its padding too.
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    try:
        return binascii.a2b_base64(padded, strict_mode=True)
    except binascii.Error as error:
        raise BadRequest(f"Internal request contained a signature that is no base64: {error}") from None
