"""The door: who is let in by which way, how failures are answered, and what is told of them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import bcrypt
import pytest
from joserfc import jwk, jwt

from headgate.access.certificates import CertificateRules
from headgate.access.jaas import EXTENSION, LOGIN_MODULE
from headgate.access.logins import LoginFailed, LoginRequired, Logins, TooManyFailures
from headgate.access.passwords import UNKNOWN, WRONG
from headgate.access.principal import Principal
from headgate.access.tokens import Tokens
from headgate.api import ConfigError
from headgate.runtime.config.worker_config import COMMON

T = TypeVar("T")

WORKER = {"bootstrap.servers": "a:1", "key.converter": "K", "value.converter": "V"}
MALFORMED = "the header Authorization is malformed, or of a kind that is not configured"
HERE = "192.0.2.7"
ELSEWHERE = "192.0.2.8"
CERTIFICATE = {"subject": ((("organizationName", "Ex"),), (("commonName", "robot"),))}
KEY = jwk.generate_key("EC", "P-256", {"kid": "ec"})


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class Users:
    """Passwords that count how often they are checked."""

    def __init__(self, **users: str) -> None:
        self.users = users
        self.checked: list[str] = []
        self.version = 0
        self.files: Sequence[str] = ["/users"]
        self.threads: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.takes_s = 0.0

    def problem(self, user: str, password: str) -> str | None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.takes_s)
        self.checked.append(user)
        self.threads.add(threading.current_thread().name)
        self.at_once -= 1
        if user not in self.users:
            return UNKNOWN
        return None if self.users[user] == password else WRONG


class Time:
    """A clock that nobody waits for, with all the waits."""

    def __init__(self) -> None:
        self.s = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.s

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))
        self.s += seconds
        await asyncio.sleep(0)


Made = Callable[..., Logins]


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def users() -> Users:
    return Users(alice="secret", bob="other")


@pytest.fixture
def made(clock: Time) -> Iterator[Made]:
    """Logins of these parts, closed when it is over."""
    all_made: list[Logins] = []

    def make(passwords: Any = (), tokens: Any = None, web_tokens: Any = None, certificates: Any = None) -> Logins:
        all_made.append(Logins(passwords, tokens, web_tokens, certificates, clock, clock.sleep))
        return all_made[-1]

    yield make
    for each in all_made:
        each.close()


def run(asked: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asked)


async def outcomes(logins: Logins, *headers: str | None, address: str = HERE) -> list[object]:
    """Of requests at once: names, or types of errors."""
    found = await asyncio.gather(*(logins.who(each, None, address) for each in headers), return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each.name for each in found]


async def fails(logins: Logins, header: str, times: int = 1, address: str = HERE) -> None:
    for _ in range(times):
        assert await outcomes(logins, header, address=address) == [LoginFailed]


# --- passwords --------------------------------------------------------------------------------------------------------


def test_a_password_is_a_login(made: Made, users: Users) -> None:
    logins = made([users])
    assert run(logins.who(basic("alice", "secret"), None, HERE)) == Principal("alice", "basic")
    assert all(name.startswith("headgate-passwords") for name in users.threads)
    assert logins.failed == dict.fromkeys(("basic", "token", "jwt", "certificate", "other", "refused"), 0)


def test_any_of_several_files_will_do(made: Made, users: Users) -> None:
    logins = made([users, Users(carol="third", alice="another")])
    good = [basic("alice", "secret"), basic("alice", "another"), basic("carol", "third")]
    assert run(outcomes(logins, *good, basic("carol", "secret"))) == ["alice", "alice", "carol", LoginFailed]


def test_without_credentials_the_caller_is_told_which_there_are(made: Made, users: Users, tmp_path: Path) -> None:
    basic, bearer = 'Basic realm="Headgate", charset="UTF-8"', 'Bearer realm="Headgate"'
    (tmp_path / "tokens").write_text("")
    tokens = Tokens("k", str(tmp_path / "tokens"))
    rules = CertificateRules.parse("k", "DEFAULT")
    for logins, challenges in (
        (made([users], tokens), (basic, bearer)),
        (made([users]), (basic,)),
        (made((), tokens), (bearer,)),
        (made(certificates=rules), ()),
    ):
        with pytest.raises(LoginRequired) as error:
            run(logins.who(None, None, HERE))
        assert (str(error.value), error.value.challenges) == ("User cannot access the resource.", challenges)
        assert sum(logins.failed.values()) == 0


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic ???",
        f"Basic {base64.b64encode(b'alice').decode()}",
        f"Basic {base64.b64encode(b':secret').decode()}",
        f"Basic {base64.b64encode(bytes([255, 58, 120])).decode()}",
        "Basic \u00e9",
        "Bearer x",
        "Negotiate YII=",
        base64.b64encode(b"alice:secret").decode(),
    ],
)
def test_a_header_that_is_malformed_or_of_another_kind_fails(made: Made, users: Users, header: str) -> None:
    logins = made([users], certificates=CertificateRules.parse("k", "DEFAULT"))
    with pytest.raises(LoginFailed, match=r"^User cannot access the resource\.$") as error:
        run(logins.who(header, CERTIFICATE, HERE))  # the header decides
    assert error.value.challenges == logins.challenges
    assert users.checked == []
    assert logins.failed["other"] == 1


@pytest.mark.parametrize(
    "header",
    ["basic YWxpY2U6c2VjcmV0", "BASIC  YWxpY2U6c2VjcmV0 ", basic("zoë", "pä:ss"), basic("zoë", "pä:ss").rstrip("=")],
)
def test_headers_are_taken_as_apache_takes_them(made: Made, header: str) -> None:
    logins = made([Users(alice="secret", zoë="pä:ss")])
    assert run(logins.who(header, None, HERE)).name in ("alice", "zoë")


def test_a_good_login_is_remembered_for_a_minute(made: Made, users: Users, clock: Time) -> None:
    async def scene() -> None:
        logins = made([users])
        for _ in range(5):
            await logins.who(basic("alice", "secret"), None, HERE)
        assert users.checked == ["alice"]
        await fails(logins, basic("alice", "secre"))
        await fails(logins, basic("bob", "secret"))
        assert users.checked == ["alice", "alice", "bob"]
        clock.s += 61
        await logins.who(basic("alice", "secret"), None, ELSEWHERE)
        assert users.checked == ["alice", "alice", "bob", "alice"]

    run(scene())


def test_it_is_forgotten_when_the_file_changes(made: Made, users: Users) -> None:
    async def scene() -> None:
        logins = made([users, Users()])
        await logins.who(basic("alice", "secret"), None, HERE)
        del users.users["alice"]
        await logins.who(basic("alice", "secret"), None, HERE)
        users.version += 1
        await fails(logins, basic("alice", "secret"))

    run(scene())


def test_what_changes_while_a_password_is_checked_counts_as_changed(made: Made, users: Users) -> None:
    class Changing(Users):
        def problem(self, user: str, password: str) -> str | None:
            self.version += 1
            return super().problem(user, password)

    async def scene() -> None:
        changing = Changing(alice="secret")
        logins = made([changing])
        for _ in range(3):
            await logins.who(basic("alice", "secret"), None, HERE)
        assert len(changing.checked) == 3

    run(scene())


def test_memory_of_good_logins_is_bounded_and_holds_no_passwords(made: Made) -> None:
    async def scene() -> None:
        logins = made([Users(**{f"user{number}": "hidden-word" for number in range(1010)})])
        for number in range(1010):
            await logins.who(basic(f"user{number}", "hidden-word"), None, HERE)
        assert len(logins._remembered) == 1000
        assert "hidden-word" not in repr(logins._remembered)

    run(scene())


def test_many_at_once_are_checked_two_at_a_time_and_the_same_ones_once(made: Made, users: Users) -> None:
    users.takes_s = 0.02
    same, others = [basic("alice", "secret")] * 20, [basic(f"user{number}", "x") for number in range(6)]
    assert run(outcomes(made([users]), *same, *others)) == ["alice"] * 20 + [LoginFailed] * 6
    assert users.most_at_once == 2
    assert users.checked.count("alice") <= 2


# --- failures ---------------------------------------------------------------------------------------------------------


def test_failures_wait_and_are_counted(made: Made, users: Users, clock: Time) -> None:
    async def scene() -> None:
        logins = made([users])
        await fails(logins, basic("alice", "x"), 7)
        assert clock.waits == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        assert logins.failed["basic"] == 7
        await logins.who(basic("alice", "secret"), None, HERE)
        await fails(logins, basic("alice", "x"))
        assert clock.waits[-1] == 0.2
        assert len(clock.waits) == 8

    run(scene())


def test_too_many_failures_at_once_are_sent_away_and_nobody_else(made: Made, users: Users) -> None:
    async def scene() -> None:
        asleep = asyncio.Event()
        logins = Logins([users], clock=lambda: 1000.0, sleep=lambda _: _until(asleep))
        asked = [asyncio.create_task(logins.who(basic("alice", f"x{number}"), None, HERE)) for number in range(200)]
        async with asyncio.timeout(30):  # a few wait, the others are told at once
            while len([task for task in asked if not task.done()]) >= 10:
                await asyncio.sleep(0.001)
        assert len(users.checked) < 15
        errors = [task.exception() for task in asked if task.done()]
        assert {type(error) for error in errors} == {TooManyFailures}
        with pytest.raises(TooManyFailures, match=r"^Too many failed logins: try again in 2\d seconds\.$") as error:
            await logins.who(basic("alice", "secret"), None, HERE)  # right or wrong: it is not tried
        assert 20 < error.value.retry_after_s <= 25
        assert logins.failed["refused"] > 190
        assert (await logins.who(basic("bob", "other"), None, HERE)).name == "bob"
        assert (await logins.who(basic("alice", "secret"), None, ELSEWHERE)).name == "alice"
        assert (await logins.who(basic("alice", "secret"), None, HERE)).name == "alice"  # remembered now
        asleep.set()
        await asyncio.gather(*asked, return_exceptions=True)
        logins.close()

    run(scene())


async def _until(event: asyncio.Event) -> None:
    await event.wait()


def test_why_is_told_in_the_log_without_secrets(
    made: Made, users: Users, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        (tmp_path / "tokens").write_text("")
        logins = made([users], Tokens("k", str(tmp_path / "tokens")))
        await fails(logins, basic("alice", "hidden-word"))
        await fails(logins, basic("hidden-word", "x"))
        await fails(logins, "Bearer hidden-word")
        await fails(logins, "Hidden-word x")

    run(scene())
    assert [line.getMessage() for line in caplog.records] == [
        f"Failed login (basic) from {HERE}: wrong password for alice",
        f"Failed login (basic) from {HERE}, 2 times in the last minutes: unknown user",
        f"Failed login (token) from {HERE}, 3 times in the last minutes: unknown token",
        f"Failed login (other) from {HERE}, 4 times in the last minutes: {MALFORMED}",
    ]


def test_a_flood_is_not_a_line_each(made: Made, users: Users, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        logins = made([users])
        for number in range(100):
            await fails(logins, basic(f"user{number}", "x"))

    run(scene())
    assert len(caplog.records) == 13


# --- tokens and certificates ------------------------------------------------------------------------------------------


def signed(seconds: float = 60, **claims: Any) -> str:
    whole = {"iss": "i", "aud": "a", "sub": "carol", "exp": int(time.time() + seconds), **claims}
    return jwt.encode({"alg": "ES256", "kid": "ec"}, whole, KEY, algorithms=["ES256"])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Keys of a worker file that name files which are there."""
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
    digest = hashlib.sha256(b"a-token").hexdigest()
    (tmp_path / "tokens").write_text(f"ci sha256:{digest} groups=robots\n")
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "htpasswd").write_text(f"alice:{hashed}\n")
    return {
        "headgate.login.htpasswd": str(tmp_path / "htpasswd"),
        "headgate.login.tokens": str(tmp_path / "tokens"),
        "headgate.login.jwks": str(tmp_path / "jwks.json"),
        "headgate.login.jwt.issuer": "i",
        "headgate.login.jwt.audience": "a",
        "headgate.login.certificates": "true",
        "headgate.login.certificate.rules": "RULE:CN=(\\w+),.*/$1/",
    }


def of(keys: dict[str, str], environ: dict[str, str] | None = None) -> Logins | None:
    """With failures that do not wait."""
    made = Logins.of(COMMON.parse({**WORKER, **keys}), environ or {})
    if made is not None:
        made._sleep = lambda _: asyncio.sleep(0)
    return made


def test_all_ways_at_once(files: dict[str, str], tmp_path: Path) -> None:
    async def scene() -> None:
        logins = of(files)
        assert logins is not None
        assert await logins.who(basic("alice", "secret"), CERTIFICATE, HERE) == Principal("alice", "basic")
        assert await logins.who("Bearer a-token", None, HERE) == Principal("ci", "token", frozenset({"robots"}))
        found = await logins.who(f"bearer {signed(groups=['data'])}", None, HERE)
        assert found == Principal("carol", "jwt", frozenset({"data"}))
        assert await logins.who(None, CERTIFICATE, HERE) == Principal("robot", "certificate")
        assert logins.files == [str(tmp_path / name) for name in ("htpasswd", "tokens", "jwks.json")]
        for header, certificate, kind in (
            (basic("alice", "x"), CERTIFICATE, "basic"),
            ("Bearer b-token", CERTIFICATE, "token"),
            (f"Bearer {signed(-60)}", CERTIFICATE, "jwt"),
            (None, {"subject": ((("commonName", "somebody"),),)}, "certificate"),
        ):
            with pytest.raises(LoginFailed):
                await logins.who(header, certificate, HERE)
            assert logins.failed[kind] == 1
        assert await outcomes(logins, None) == [LoginRequired]
        with pytest.raises(LoginRequired):
            await logins.who(None, {}, HERE)  # of a certificate that was not checked
        logins.close()

    run(scene())


def test_why_a_signed_token_fails_is_told(files: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        logins = of(files)
        assert logins is not None
        for sent in (signed(-60), signed(aud="b")):
            await fails(logins, f"Bearer {sent}")
            assert sent not in caplog.text
        with pytest.raises(LoginFailed):
            await logins.who(None, {"subject": ((("commonName", "x\ny"),),)}, HERE)
        logins.close()

    run(scene())
    assert "(jwt) from 192.0.2.7: The token is expired" in caplog.text
    assert "Invalid claim: 'aud'" in caplog.text
    assert "(certificate)" in caplog.text


def test_a_client_with_an_old_token_slows_down_nobody_else(files: dict[str, str]) -> None:
    async def scene() -> None:
        logins = of(files)
        assert logins is not None
        logins._failures._clock = clock = Time()
        old = f"Bearer {signed(-60)}"
        for _ in range(100):
            clock.s += 0.01
            await outcomes(logins, old)
        assert await outcomes(logins, old) == [TooManyFailures]
        good = ["Bearer a-token", f"Bearer {signed()}", basic("alice", "secret")]
        assert await outcomes(logins, *good) == ["ci", "carol", "alice"]
        logins.close()

    run(scene())


def test_of_many_that_fail_at_once_most_are_sent_away(files: dict[str, str]) -> None:
    async def scene() -> None:
        logins = of(files)
        assert logins is not None
        logins._failures._clock = lambda: 1000.0
        found = await outcomes(logins, *[f"Bearer {signed(-60)}"] * 50)
        assert found.count(LoginFailed) == 7
        assert found.count(TooManyFailures) == 43
        assert (logins.failed["jwt"], logins.failed["refused"]) == (50, 43)
        logins.close()

    run(scene())


def test_keys_that_are_long_in_coming_hold_up_no_passwords(made: Made, users: Users) -> None:
    class Slow:
        files: Sequence[str] = ()

        def __init__(self) -> None:
            self.go_on = threading.Event()

        def principal(self, _: str) -> Principal:
            self.go_on.wait(5)
            return Principal("carol", "jwt")

    async def scene() -> None:
        slow = Slow()
        logins = made([users], None, slow)
        waiting = [asyncio.create_task(logins.who("Bearer a.b.c", None, HERE)) for _ in range(4)]
        await asyncio.sleep(0.01)
        assert (await logins.who(basic("alice", "secret"), None, HERE)).name == "alice"
        assert not any(task.done() for task in waiting)
        slow.go_on.set()
        assert {each.name for each in await asyncio.gather(*waiting)} == {"carol"}

    run(scene())


# --- the worker file --------------------------------------------------------------------------------------------------


def test_without_logins_nobody_is_asked() -> None:
    assert of({}) is None


@pytest.mark.parametrize("key", ["htpasswd", "tokens", "certificates"])
def test_one_way_is_enough(files: dict[str, str], key: str) -> None:
    logins = of({f"headgate.login.{key}": files[f"headgate.login.{key}"], "headgate.require.login": "true"})
    assert logins is not None
    logins.close()


def test_logins_can_be_made_compulsory() -> None:
    with pytest.raises(ConfigError, match=r"true for configuration headgate.require.login: There is no login: set one"):
        of({"headgate.require.login": "true"})


@pytest.mark.parametrize("name", [EXTENSION, "BasicAuthSecurityRestExtension"])
def test_apaches_extension_is_a_login(tmp_path: Path, name: str) -> None:
    (tmp_path / "users.properties").write_text("alice=secret\n")
    (tmp_path / "users.properties").chmod(0o600)
    (tmp_path / "jaas.conf").write_text(
        f'KafkaConnect {{ {LOGIN_MODULE} required file="{tmp_path}/users.properties"; }};'
    )
    environ = {"KAFKA_OPTS": f"-Djava.security.auth.login.config={tmp_path}/jaas.conf"}
    logins = of({"rest.extension.classes": name}, environ)
    assert logins is not None
    assert run(outcomes(logins, basic("alice", "secret"))) == ["alice"]
    assert logins.files == [str(tmp_path / "jaas.conf"), str(tmp_path / "users.properties")]
    logins.close()
    with pytest.raises(ConfigError, match="Set KAFKA_OPTS="):
        of({"rest.extension.classes": name})


def test_other_extensions_keep_the_worker_from_starting_unless_they_are_ignored(
    files: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    keys = {"rest.extension.classes": "com.acme.Ldap,com.acme.Cors"}
    reason = (
        "com.acme.Ldap, com.acme.Cors for configuration rest.extension.classes: .*Java class.*"
        "headgate.ignore.rest.extensions=true"
    )
    for more in ({}, files):
        with pytest.raises(ConfigError, match=reason):
            of({**keys, **more})
    assert of({**keys, "headgate.ignore.rest.extensions": "true"}) is None
    assert "the worker runs without com.acme.Ldap, com.acme.Cors" in caplog.text
    with pytest.raises(ConfigError, match="There is no login"):
        of({**keys, "headgate.ignore.rest.extensions": "true", "headgate.require.login": "true"})
