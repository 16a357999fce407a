"""Logins: how callers of the REST API show who they are, as the worker file says."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headgate.access.certificates import CertificateRules, subject_of
from headgate.access.failures import Failures
from headgate.access.jaas import EXTENSION, Jaas
from headgate.access.passwords import UNKNOWN, Htpasswd, Passwords
from headgate.access.principal import Principal
from headgate.access.tokens import TokenRefused, Tokens
from headgate.api.errors import ConfigError

if TYPE_CHECKING:
    from headgate.access.jwt import JsonWebTokens

log = logging.getLogger(__name__)

EXTENSIONS: Final = "rest.extension.classes"
IGNORE: Final = "headgate.ignore.rest.extensions"
HTPASSWD: Final = "headgate.login.htpasswd"
TOKENS: Final = "headgate.login.tokens"
CERTIFICATES: Final = "headgate.login.certificates"
RULES: Final = "headgate.login.certificate.rules"
REQUIRED: Final = "headgate.require.login"
_OF_JWT: Final = ("headgate.login.jwks", "headgate.login.jwt.issuer", "headgate.login.jwt.audience")

_BASIC: Final = 'Basic realm="Headgate", charset="UTF-8"'
_BEARER: Final = 'Bearer realm="Headgate"'
_THREADS: Final = 2
"""As many passwords are checked at once: whoever sends wrong ones gets no more of the machine."""
_REMEMBERED_S: Final = 60.0
_MOST_REMEMBERED: Final = 1000


class NotLoggedIn(Exception):
    """Ask again, with what one of the challenges asks for."""

    def __init__(self, challenges: tuple[str, ...]) -> None:
        super().__init__("User cannot access the resource.")
        self.challenges = challenges
        """Values of WWW-Authenticate; none where only a certificate helps."""


class LoginRequired(NotLoggedIn):
    """Nobody has tried."""


class LoginFailed(NotLoggedIn):
    """Somebody has tried in vain. Why, only the log tells."""


class TooManyFailures(Exception):
    """Nothing was tried: come again later."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"Too many failed logins: try again in {retry_after_s} seconds.")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class _Attempt:
    """To log in, by whichever way."""

    kind: str
    who: str = field(default="", repr=False)
    """The name, the token or the subject."""
    password: str = field(default="", repr=False)

    @property
    def guessed(self) -> bool:
        """Whether others, tried long enough, would succeed: nobody guesses a signature."""
        return self.kind not in ("jwt", "certificate")


class _Refused(Exception):
    """The message is for the log."""


class Logins:
    """To be used from one event loop."""

    def __init__(
        self,
        passwords: Sequence[Passwords] = (),
        tokens: Tokens | None = None,
        web_tokens: JsonWebTokens | None = None,
        certificates: CertificateRules | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._passwords = passwords
        self._tokens = tokens
        self._web_tokens = web_tokens
        self._certificates = certificates
        self._clock = clock
        self._sleep = sleep
        self._failures = Failures(clock)
        self._counts = Counter(dict.fromkeys(("basic", "token", "jwt", "certificate", "other", "refused"), 0))
        self._key = secrets.token_bytes(32)
        self._remembered: dict[bytes, tuple[float, object, Principal]] = {}
        self._turns = asyncio.Semaphore(_THREADS)
        # Keys of web tokens may be long in coming: passwords do not wait for them.
        self._hashing: Executor = ThreadPoolExecutor(_THREADS, "headgate-passwords")
        self._verifying: Executor = ThreadPoolExecutor(_THREADS, "headgate-tokens")
        ways = {"basic": passwords, "bearer": tokens or web_tokens, "certificate": certificates}
        self.ways = tuple(way for way, there_is_one in ways.items() if there_is_one)
        """To log in, as OpenAPI's security schemes know them."""
        self.challenges = ((_BASIC,) if passwords else ()) + ((_BEARER,) if tokens or web_tokens else ())

    @classmethod
    def of(cls, parsed: Mapping[str, Any], environ: Mapping[str, str]) -> Logins | None:
        """By the parsed keys of a worker file; None: it asks nobody. May block for seconds. Raises ConfigError."""
        passwords: list[Passwords] = []
        if _has_basic_auth(parsed):
            passwords.append(Jaas.of(environ))
        if parsed[HTPASSWD]:
            passwords.append(Htpasswd(HTPASSWD, parsed[HTPASSWD]))
        tokens = Tokens(TOKENS, parsed[TOKENS]) if parsed[TOKENS] else None
        web_tokens = None
        if any(parsed[key] for key in _OF_JWT):
            from headgate.access.jwt import JsonWebTokens  # which takes its time, and few need it

            web_tokens = JsonWebTokens.of(parsed)
        certificates = CertificateRules.parse(RULES, parsed[RULES]) if parsed[CERTIFICATES] else None
        if passwords or tokens or web_tokens or certificates:
            return cls(passwords, tokens, web_tokens, certificates)
        if parsed[REQUIRED]:
            ways = f"{HTPASSWD}, {TOKENS}, headgate.login.jwks, {CERTIFICATES}"
            raise ConfigError.invalid(REQUIRED, True, f"There is no login: set one of {ways}")
        return None

    @property
    def files(self) -> Sequence[str]:
        """That it reads, and nobody else should write."""
        found = [file for each in self._passwords for file in each.files]
        return found + [file for each in (self._tokens, self._web_tokens) if each for file in each.files]

    @property
    def failed(self) -> Mapping[str, int]:
        """How many logins, by kind; `refused` are those that were sent away until later."""
        return dict(self._counts)

    def close(self) -> None:
        for each in (self._hashing, self._verifying):
            each.shutdown(wait=False, cancel_futures=True)

    # --- who asks -----------------------------------------------------------------------------------------------------

    async def who(self, authorization: str | None, certificate: Mapping[str, Any] | None, address: str) -> Principal:
        """By the header of that name, if there is one, else by the certificate of the connection, as `getpeercert`
        gives it. A failure takes its time. Raises LoginRequired, LoginFailed or TooManyFailures."""
        if authorization is None and (self._certificates is None or not certificate):
            raise LoginRequired(self.challenges)
        if authorization is not None:
            attempt = self._attempt(authorization)
        else:
            attempt = _Attempt("certificate", subject_of(certificate or {}))
        try:
            found = await self._checked(attempt, address)
        except _Refused as refused:
            self._counts[attempt.kind] += 1
            failure = self._failures.failed(address, attempt.who, attempt.guessed)
            if failure.worth_telling:
                times = f", {failure.count} times in the last minutes" if failure.count > 1 else ""
                log.warning("Failed login (%s) from %s%s: %s", attempt.kind, address, times, refused)
            self._admit(attempt, address)  # not if too many wait already
            await self._sleep(failure.wait_s)
            raise LoginFailed(self.challenges) from None
        self._failures.succeeded(address, attempt.who)
        return found

    def _attempt(self, authorization: str) -> _Attempt:
        scheme, _, given = authorization.partition(" ")
        given = given.strip()
        if scheme.lower() == "basic" and self._passwords:
            user, colon, password = _decoded(given).partition(":")
            return _Attempt("basic", user, password) if user and colon else _Attempt("other")
        if scheme.lower() == "bearer" and (self._tokens or self._web_tokens) and given.isascii():
            signed = self._web_tokens and (self._tokens is None or given.count(".") == 2)
            return _Attempt("jwt" if signed else "token", given)
        return _Attempt("other")

    async def _checked(self, attempt: _Attempt, address: str) -> Principal:
        if attempt.kind == "basic":
            return await self._by_password(attempt, address)
        self._admit(attempt, address)
        if attempt.kind in ("token", "jwt"):
            return await self._by_token(attempt)
        if attempt.kind == "certificate":
            return self._by_certificate(attempt.who)
        raise _Refused("the header Authorization is malformed, or of a kind that is not configured")

    def _admit(self, attempt: _Attempt, address: str) -> None:
        seconds = self._failures.refused_s(address, attempt.who, attempt.guessed)
        if seconds:
            self._counts["refused"] += 1
            raise TooManyFailures(seconds)

    async def _by_password(self, attempt: _Attempt, address: str) -> Principal:
        name = attempt.who
        digest = hmac.digest(self._key, f"{name}:{attempt.password}".encode(), "sha256")
        if found := self._recalled(digest):
            return found
        self._admit(attempt, address)
        async with self._turns:
            # Of many requests that came at once, the first may have settled it.
            if found := self._recalled(digest):
                return found
            self._admit(attempt, address)
            versions = self._versions  # before it is checked: what changes meanwhile counts as changed
            loop = asyncio.get_running_loop()
            problem = await loop.run_in_executor(self._hashing, self._problem, name, attempt.password)
        if problem is not None:
            # The name that nobody has may be a password in the wrong place.
            raise _Refused(problem if problem == UNKNOWN else f"{problem} for {name}")
        principal = Principal(name, "basic")
        self._remembered[digest] = self._clock() + _REMEMBERED_S, versions, principal
        if len(self._remembered) > _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        return principal

    def _recalled(self, digest: bytes) -> Principal | None:
        until, versions, principal = self._remembered.get(digest, (0.0, None, None))
        if principal is not None and (until < self._clock() or versions != self._versions):
            del self._remembered[digest]
            return None
        return principal

    @property
    def _versions(self) -> object:
        return [each.version for each in self._passwords]

    def _problem(self, user: str, password: str) -> str | None:
        """None if one of the files has them."""
        worst = UNKNOWN
        for each in self._passwords:
            problem = each.problem(user, password)
            if problem is None:
                return None
            worst = problem if problem != UNKNOWN else worst
        return worst

    async def _by_token(self, attempt: _Attempt) -> Principal:
        found = self._tokens.principal(attempt.who) if self._tokens else None
        if found is not None:
            return found
        if self._web_tokens is None or attempt.kind == "token":
            raise _Refused("unknown token")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._verifying, self._web_tokens.principal, attempt.who)
        except TokenRefused as refused:
            raise _Refused(str(refused)) from None

    def _by_certificate(self, subject: str) -> Principal:
        assert self._certificates is not None
        name = self._certificates.name(subject)
        if name is None:
            raise _Refused(f"no rule of {RULES} has a name for {subject}")
        return Principal(name, "certificate")


def _has_basic_auth(parsed: Mapping[str, Any]) -> bool:
    """Raises ConfigError for other extensions."""
    simple = EXTENSION.rpartition(".")[2]
    others = [name for name in parsed[EXTENSIONS] if name not in (EXTENSION, simple)]
    if others and not parsed[IGNORE]:
        reason = f"It is a Java class, which cannot run here; {IGNORE}=true starts the worker without it"
        raise ConfigError.invalid(EXTENSIONS, ", ".join(others), reason)
    if others:
        log.warning("%s=true: the worker runs without %s", IGNORE, ", ".join(others))
    return len(others) < len(parsed[EXTENSIONS])


def _decoded(text: str) -> str:
    """Of base64, with or without its padding, as Java takes it; nothing, of what is none."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True).decode()
    except (binascii.Error, ValueError):  # the latter of what is not UTF-8, or not ASCII
        return ""
