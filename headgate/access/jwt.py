"""JSON Web Tokens: bearer tokens that an issuer has signed, and whose keys it publishes as a JWKS.

Keys are public, so only algorithms with two keys are of use. New keys are looked for when a token names one that is not
known, but not more often than every ten seconds, whatever tokens come.
"""

from __future__ import annotations

import logging
import math
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final

import httpx2
import orjson
from joserfc import jwk, jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jws import JWSRegistry
from joserfc.jwt import JWTClaimsRegistry

from headgate.access.principal import Principal
from headgate.access.tokens import TokenRefused
from headgate.access.watched_file import WatchedFile
from headgate.api.errors import ConfigError
from headgate.log import Complaints, cause_of

log = logging.getLogger(__name__)

KEYS: Final = "headgate.login.jwks"
ISSUER: Final = "headgate.login.jwt.issuer"
AUDIENCE: Final = "headgate.login.jwt.audience"
_ALGORITHMS: Final = "headgate.login.jwt.algorithms"
_SKEW: Final = "headgate.login.jwt.clock.skew.ms"
_NAME: Final = "headgate.login.jwt.name.claim"
_GROUPS: Final = "headgate.login.jwt.groups.claim"

_USABLE: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    *("Ed25519", "Ed448", "EdDSA"),
)
_SMALLEST_RSA_BITS: Final = 2048
_TIMEOUT_S: Final = 5.0
_LARGEST: Final = 1 << 20
_PAUSE_S: Final = 10.0
_AGAIN_S: Final = 300.0
_LONGEST_S: Final = 24 * 3600.0

KeySource = Callable[[str | None], jwk.KeySet]
"""The keys, with the one of this id if there is such a one. Raises TokenRefused while there are none. May block."""


@dataclass(frozen=True, slots=True)
class JsonWebTokens:
    keys: KeySource
    issuer: str
    audience: tuple[str, ...]
    algorithms: tuple[str, ...]
    skew_s: int = 30
    name_claim: str = "sub"
    groups_claim: str = "groups"
    files: Sequence[str] = ()
    now: Callable[[], float] = time.time

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> JsonWebTokens | None:
        """None without keys. Raises ConfigError."""
        where = parsed[KEYS]
        if not where:
            for key in (key for key in (ISSUER, AUDIENCE) if parsed[key]):
                raise ConfigError.invalid(key, parsed[key], f"It has no effect without {KEYS}")
            return None
        for key in (key for key in (ISSUER, AUDIENCE) if not parsed[key]):
            raise ConfigError(f"{key} must be set with {KEYS}: else tokens for anybody, by anybody, would be taken")
        for name in parsed[_ALGORITHMS]:
            if name not in _USABLE:
                reason = f"{name} is none of those that public keys can check: {', '.join(_USABLE)}"
                raise ConfigError.invalid(_ALGORITHMS, parsed[_ALGORITHMS], reason)
        if not parsed[_ALGORITHMS]:
            raise ConfigError.missing(_ALGORITHMS)
        keys, files = _source(where)
        return cls(
            keys=keys,
            issuer=parsed[ISSUER],
            audience=tuple(parsed[AUDIENCE]),
            algorithms=tuple(parsed[_ALGORITHMS]),
            skew_s=math.ceil(parsed[_SKEW] / 1000),
            name_claim=parsed[_NAME],
            groups_claim=parsed[_GROUPS],
            files=files,
        )

    def principal(self, token: str) -> Principal:
        """May block for seconds, for new keys. Raises TokenRefused."""
        expected = JWTClaimsRegistry(
            now=int(self.now()),
            leeway=self.skew_s,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "values": list(self.audience)},
            exp={"essential": True},
        )
        try:
            found = jwt.decode(
                token, lambda asked: self.keys(asked.headers().get("kid")), registry=_Registry(self.algorithms)
            )
            expected.validate(found.claims)
        except TokenRefused:
            raise
        except JoseError as error:
            raise TokenRefused(error.description or error.error) from None
        except Exception as error:  # whatever a stranger sent, it is their mistake
            raise TokenRefused(cause_of(error)) from None
        name, groups = found.claims.get(self.name_claim), found.claims.get(self.groups_claim)
        if not isinstance(name, str) or not name:
            raise TokenRefused(f"it has no name: {_NAME} is {self.name_claim}")
        listed = groups if isinstance(groups, list) else [groups]
        return Principal(name, "jwt", frozenset(each for each in listed if isinstance(each, str)))


class _Registry(JWSRegistry):
    """Takes these algorithms and no others, and headers that it does not know: issuers have their own."""

    def __init__(self, algorithms: Sequence[str]) -> None:
        super().__init__(algorithms=algorithms, strict_check_header=False)
        self._usable = {name: self.algorithms[name] for name in algorithms}

    def get_alg(self, name: str) -> Any:
        try:
            return self._usable[name]
        except KeyError:
            raise UnsupportedAlgorithmError(f"{name} is not in {_ALGORITHMS}") from None


# --- keys -------------------------------------------------------------------------------------------------------------


def _source(where: str) -> tuple[KeySource, Sequence[str]]:
    """With the files that it reads."""
    if "://" not in where:
        file = WatchedFile(KEYS, where, parse_keys)
        return lambda _: file.read(), [file.path]
    try:
        url = httpx2.URL(where)
    except httpx2.InvalidURL as error:
        raise ConfigError.invalid(KEYS, where, str(error)) from None
    if url.userinfo:
        raise ConfigError(f"{KEYS} has a password in its URL, which cannot be used here")
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
        raise ConfigError.invalid(
            KEYS, where, "It must be an https:// URL, or a file: else others could send their keys"
        )
    return KeysAtUrl(where), ()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_keys(text: str | bytes) -> jwk.KeySet:
    """Of a JWKS, those that tokens can be signed with. Raises ValueError."""
    found = orjson.loads(text)
    listed = found.get("keys") if isinstance(found, dict) else None
    keys = [key for each in (listed if isinstance(listed, list) else ()) if (key := _key(each)) is not None]
    if not keys:
        raise ValueError('it is no JWKS, {"keys": [...]}, with a key that signatures can be checked with')
    return jwk.KeySet(keys)


def _key(found: Any) -> jwk.Key | None:
    """None: not for us, as others that the issuer has there may be."""
    if not isinstance(found, dict) or found.get("kty") not in ("RSA", "EC", "OKP") or found.get("use", "sig") != "sig":
        return None
    try:
        key = jwk.import_key(found)
        if isinstance(key, jwk.RSAKey) and key.public_key.key_size < _SMALLEST_RSA_BITS:
            raise ValueError(f"RSA keys must have {_SMALLEST_RSA_BITS} bits")
        key.ensure_kid()
    except (JoseError, ValueError, TypeError, KeyError) as error:
        log.warning("A key of the JWKS cannot be used: %s", cause_of(error))
        return None
    return key


class KeysAtUrl:
    """A KeySource. While the URL cannot be read, the keys from before are good, for a day. May be used from any thread,
    but for one that must not block."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._complaints = Complaints(log, f"Keys at {url}, named by {KEYS}", clock)
        self._lock = threading.Lock()
        self._keys: jwk.KeySet | None = None
        self._read = self._tried = -math.inf
        self._look()

    def __call__(self, kid: str | None) -> jwk.KeySet:
        # Who has a key goes on with it while another thread looks for newer ones.
        if self._is_due(kid) and self._lock.acquire(blocking=self._lacks(kid)):
            try:
                if self._is_due(kid):  # still
                    self._look()
            finally:
                self._lock.release()
        if self._keys is None or self._clock() - self._read > _LONGEST_S:
            raise TokenRefused(f"the keys at {self._url} could not be read, or not for a day")
        return self._keys

    def _is_due(self, kid: str | None) -> bool:
        now = self._clock()
        return (self._lacks(kid) or now - self._read >= _AGAIN_S) and now - self._tried >= _PAUSE_S

    def _lacks(self, kid: str | None) -> bool:
        return self._keys is None or (kid is not None and all(key.kid != kid for key in self._keys))

    def _look(self) -> None:
        try:
            self._keys = parse_keys(_fetched(self._url))
            self._read = self._clock()
        except (httpx2.HTTPError, OSError, ValueError) as error:
            self._complaints.say(f"{cause_of(error)}; tokens are checked with the keys from before, if there are any")
        finally:
            self._tried = self._clock()  # when it is over: until then, others wait for it


def _fetched(url: str) -> bytes:
    ends = time.monotonic() + 2 * _TIMEOUT_S
    body = bytearray()
    # Only the machine's own certificate authorities count, and no proxy that the environment names.
    trusted = ssl.create_default_context()
    with (
        httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False, verify=trusted) as client,
        client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
    ):
        if response.status_code != 200:
            raise ValueError(f"the answer was HTTP {response.status_code}")
        for part in response.iter_raw():
            body += part
            if len(body) > _LARGEST or time.monotonic() > ends:
                raise ValueError(f"the answer is larger than {_LARGEST} bytes, or does not end")
    return bytes(body)
