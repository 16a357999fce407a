"""Signatures of requests between workers (KIP-507), made with a session key that the whole group reads.

The leader makes the key, the config topic tells it to all. Apache's signature is over the body of a request alone;
ours, beside it, over method, path, time and body, and good for once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.model import SessionKey
from headgate.runtime.errors import BadRequest, InvalidSignature, NoSessionKey
from headgate.runtime.ports import PeerRequest

SIGNATURE: Final = "X-Connect-Authorization"
ALGORITHM: Final = "X-Connect-Request-Signature-Algorithm"
WHOLE: Final = "X-Headgate-Authorization"
"""Ours: when it was signed and a number that comes once, then the signature."""

KEY_ALGORITHM: Final = "inter.worker.key.generation.algorithm"
KEY_SIZE: Final = "inter.worker.key.size"
KEY_TTL: Final = "inter.worker.key.ttl.ms"
SIGNATURE_ALGORITHM: Final = "inter.worker.signature.algorithm"
VERIFICATION_ALGORITHMS: Final = "inter.worker.verification.algorithms"
MODE: Final = "headgate.internal.signatures"
DEFAULT_ALGORITHM: Final = "HmacSHA256"
SMALLEST_KEY_BITS: Final = 40
WINDOW_MS: Final = 300_000
"""So long is a signature good, and so much may the clocks of two workers differ: as for Kerberos."""
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
    strict: bool = False
    """Whether a signature over the body alone is not enough."""

    @classmethod
    def parse(cls, parsed: Mapping[str, Any]) -> Signatures:
        """From the parsed keys of a worker file. Raises ConfigError for keys that do not go together."""
        key_algorithm, algorithm = parsed[KEY_ALGORITHM], parsed[SIGNATURE_ALGORITHM]
        accepted = tuple(parsed[VERIFICATION_ALGORITHMS])
        if algorithm not in accepted:
            reason = f"It must be one of {VERIFICATION_ALGORITHMS} too, or workers would refuse each other's requests"
            raise ConfigError.invalid(SIGNATURE_ALGORITHM, algorithm, reason)
        bits = parsed[KEY_SIZE] if parsed[KEY_SIZE] is not None else _key_bits(_MACS[key_algorithm.lower()])
        strict = parsed[MODE].lower() == "strict"
        if strict and parsed["connect.protocol"].lower() != "sessioned":
            raise ConfigError.invalid(MODE, parsed[MODE], "Only workers with connect.protocol=sessioned sign requests")
        return cls(key_algorithm, bits, parsed[KEY_TTL], algorithm, accepted, strict)

    def new_key(self, now_ms: int) -> SessionKey:
        return SessionKey(secrets.token_bytes(self._key_bytes), self.key_algorithm, now_ms)

    def expires_ms(self, key: SessionKey) -> int:
        """When the leader has to replace it; later than any clock shows, if keys do not age."""
        return key.created_ms + self.key_ttl_ms if self.key_ttl_ms > 0 else _NEVER_MS

    def fits(self, key: SessionKey) -> bool:
        """Whether it is of the kind that this worker would make."""
        return key.algorithm == self.key_algorithm and len(key.key) == self._key_bytes

    def sign(self, key: SessionKey, asked: PeerRequest, now_ms: int) -> dict[str, str]:
        """The headers that go with it: Apache's and ours."""
        once = f"{now_ms}-{secrets.token_hex(8)}"
        made = (_mac(self.algorithm, key, each) for each in (asked.body, _whole(asked, once)))
        body, whole = (base64.b64encode(each).decode() for each in made)
        return {SIGNATURE: body, ALGORITHM: self.algorithm, WHOLE: f"{once} {whole}"}

    def verify(self, asked: PeerRequest, headers: Mapping[str, str], key: SessionKey | None, now_ms: int) -> str | None:
        """Of a request that was received; `headers` by their names in lower case. `key` None: none was read yet. What
        must not come twice; None, where only the body is signed, of which nobody can tell.

        Raises BadRequest, NoSessionKey or InvalidSignature."""
        algorithm = headers.get(ALGORITHM.lower())
        signature = None if self.strict else headers.get(SIGNATURE.lower())
        once: str | None = None
        signed = asked.body
        if signature is None and WHOLE.lower() in headers:
            once, _, signature = headers[WHOLE.lower()].rpartition(" ")
            signed = _whole(asked, once)
        if signature is None or algorithm is None:
            more = f": {MODE}=strict asks for {WHOLE}, which Apache's workers do not send" if self.strict else ""
            raise BadRequest(f"Internal request missing required signature{more}")
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
        if not hmac.compare_digest(_mac(algorithm, key, signed), claimed):
            raise InvalidSignature
        if once is not None and abs(age := now_ms - _signed_at(once)) > WINDOW_MS:
            raise InvalidSignature(
                f"Internal request was signed {age / 1000:.0f} s ago, by this worker's clock: clocks of workers may"
                f" differ by {WINDOW_MS // 1000} s."
            )
        return once

    @property
    def _key_bytes(self) -> int:
        return (self.key_bits + 7) // 8


@dataclass(eq=False, slots=True)
class TakenOnce:
    """Requests that were taken not long ago. May be used from any thread."""

    _taken: dict[str, None] = field(default_factory=dict)
    """In the order in which they came."""
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def take(self, once: str, now_ms: int) -> None:
        """What `Signatures.verify` gave. Raises InvalidSignature, when it was taken before: old task configs, and a
        fence around tasks that are well, do harm when they come again."""
        with self._guard:
            if once in self._taken:
                raise InvalidSignature("Internal request was made before: it is not carried out twice.")
            # Twice the window: who signed later may have come earlier, by as much as clocks differ.
            while self._taken and _signed_at(first := next(iter(self._taken))) < now_ms - 2 * WINDOW_MS:
                del self._taken[first]
            self._taken[once] = None


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


def _whole(asked: PeerRequest, once: str) -> bytes:
    return "\n".join((asked.method, asked.target, once, "")).encode() + asked.body


def _signed_at(once: str) -> int:
    """Of what was signed by a worker, and so is as `Signatures.sign` makes it."""
    return int(once.partition("-")[0])


def _decoded(text: str) -> bytes:
    if illegal := _ILLEGAL.search(text):
        raise BadRequest(f"Illegal base64 character {ord(illegal[0]):x}")
    # Like Java, take it without its padding too.
    padded = text if "=" in text else text + "=" * (-len(text) % 4)
    try:
        return binascii.a2b_base64(padded, strict_mode=True)
    except binascii.Error as error:
        raise BadRequest(f"Internal request contained a signature that is no base64: {error}") from None
