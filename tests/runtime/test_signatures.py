"""Signed requests between workers: `rest.md` section 10, and what Java's own MACs and keys are."""

from __future__ import annotations

import base64
import hashlib

import pytest

from headgate.api import ConfigError
from headgate.model import SessionKey
from headgate.runtime.config.worker_config import DISTRIBUTED, WorkerConfig
from headgate.runtime.distributed.signatures import ALGORITHM, SIGNATURE, WHOLE, WINDOW_MS, Signatures, TakenOnce
from headgate.runtime.errors import BadRequest, HerderError, InvalidSignature, NoSessionKey
from headgate.runtime.ports import PeerRequest

pytestmark = pytest.mark.kip(507, "internal requests are signed")

WORKER = {
    "bootstrap.servers": "a:1",
    "key.converter": "K",
    "value.converter": "V",
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}

# Printed by Java 17: javax.crypto.KeyGenerator's key length in bytes, and javax.crypto.Mac with the key "Jefe" over
# "what do ya want for nothing?" (the second test case of RFC 2202 and RFC 4231) and over nothing.
JAVA = {
    "HmacMD5": (64, "750c783e6ab0b503eaa86e310a5db738", "YLV9pCN+18kbR17d8OeY0w=="),
    "HmacSHA1": (64, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79", "CdnlnXIjnmKoFVxYPVJ0Pem3Ixo="),
    "HmacSHA224": (
        28,
        "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
        "4QupPC9vrjF68YDoNQDtPVToEtsp6tslzMQ9MA==",
    ),
    "HmacSHA256": (
        32,
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        "kjWYym1krypdunnc0CGooP5cX1V1Ga2q8K1TLUUG3TA=",
    ),
    "HmacSHA384": (
        48,
        "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        "meB7ZeC/3t1B9EpDPlFHWgJ+8D/mybtuz2enANN12uOGPYtcP/Y8aT2UKika3S54",
    ),
    "HmacSHA512": (
        64,
        (
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
            "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        ),
        "udFMUabU3UFgTrBsnCQPH2TxQ7XP3qNxKbKLt10TcdMm/CGSFhcSYahObAVwfNO+D2HgqXOjP3BtGQ25rP/Gjw==",
    ),
    "HmacSHA512/224": (
        28,
        "4a530b31a79ebcce36916546317c45f247d83241dfb818fd37254bde",
        "uwr5becSJuUgno3NKMxKEP4O+LalkSZ6wD84DA==",
    ),
    "HmacSHA512/256": (
        32,
        "6df7b24630d5ccb2ee335407081a87188c221489768fa2020513b2d593359456",
        "yjNxoKxTc8DF0nlrpM0eYHmxu0AQ2AiNu8our6e9Bbk=",
    ),
    "HmacSHA3-224": (
        28,
        "7fdb8dd88bd2f60d1b798634ad386811c2cfc85bfaf5d52bbace5e66",
        "wN3cXXWpBgwD3zkFU5xaj71KKyQ79kZlPilA5A==",
    ),
    "HmacSHA3-256": (
        32,
        "c7d4072e788877ae3596bbb0da73b887c9171f93095b294ae857fbe2645e1ba5",
        "NEMGcyc0MNzssvJsSncG0zIx2ZUsy9IDRsRIAjL1jRw=",
    ),
    "HmacSHA3-384": (
        48,
        "f1101f8cbf9766fd6764d2ed61903f21ca9b18f57cf3e1a23ca13508a93243ce48c045dc007f26a21b3f5e0e9df4c20a",
        "WFPMZ52cjkllAZQbRrmFBCBzJZl//2VwPuP0+a78ouFZoBLJrPHZE+l8pm5SzysW",
    ),
    "HmacSHA3-512": (
        64,
        (
            "5a4bfeab6166427c7a3647b747292b8384537cdb89afb3bf5665e4c5e709350b"
            "287baec921fd7ca0ee7a0c31d022a95e1fc92ba9d77df883960275beb4e62024"
        ),
        "EIYAwFWdX0eYHAP+HEOhwncghMUbhzOcn6K9bRRnq0+xu/NeDd3bNqI6RIzRZ9S54Rfte1K/4pn5zkVlYeYG3g==",
    ),
}
TEXT = b"what do ya want for nothing?"
KEY = SessionKey(b"Jefe", "HmacSHA256", created_ms=1_000)
BODY = b'[{"task.class":"T"}]'
NOW = 1_700_000_000_000


def signatures(**keys: str) -> Signatures:
    """With keys of the worker file, dots written as underscores."""
    config = {f"inter.worker.{name.replace('_', '.')}": value for name, value in keys.items()}
    return WorkerConfig.parse({**WORKER, **config}, DISTRIBUTED).signatures


def asked(body: bytes, method: str = "POST", target: str = "/connectors/a/tasks?forward=false") -> PeerRequest:
    return PeerRequest(method, target, body)


def received(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


# --- MACs and keys ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", JAVA)
def test_signatures_are_those_of_java(algorithm: str) -> None:
    _, text, nothing = JAVA[algorithm]
    made = signatures(signature_algorithm=algorithm, verification_algorithms=algorithm)
    headers = made.sign(KEY, asked(TEXT), NOW)
    assert headers["X-Connect-Authorization"] == base64.b64encode(bytes.fromhex(text)).decode()
    assert headers["X-Connect-Request-Signature-Algorithm"] == algorithm
    assert made.sign(KEY, asked(b""), NOW)[SIGNATURE] == nothing
    for body in (TEXT, b""):
        made.verify(asked(body), received(made.sign(KEY, asked(body), NOW)), KEY, NOW)


@pytest.mark.parametrize("algorithm", JAVA)
def test_new_keys_are_as_long_as_java_s(algorithm: str) -> None:
    made = signatures(key_generation_algorithm=algorithm)
    first, second = made.new_key(5), made.new_key(6)
    assert (len(first.key), first.algorithm, first.created_ms) == (JAVA[algorithm][0], algorithm, 5)
    assert first.key != second.key
    assert made.fits(first)


@pytest.mark.parametrize(("bits", "length"), [("40", 5), ("41", 6), ("128", 16), ("1024", 128)])
def test_the_length_of_keys_can_be_set_in_bits(bits: str, length: int) -> None:
    assert len(signatures(key_size=bits).new_key(0).key) == length


def test_a_key_fits_if_it_is_of_the_algorithm_and_length_that_are_configured() -> None:
    made = signatures()
    assert made.fits(SessionKey(b"x" * 32, "HmacSHA256", 0))
    assert not made.fits(SessionKey(b"x" * 31, "HmacSHA256", 0))
    assert not made.fits(SessionKey(b"x" * 32, "HmacSHA512", 0))


def test_keys_age_unless_their_time_is_zero() -> None:
    assert signatures().expires_ms(KEY) == 1_000 + 3_600_000
    assert signatures(key_ttl_ms="7").expires_ms(KEY) == 1_007
    assert signatures(key_ttl_ms="0").expires_ms(KEY) > 1 << 60


def test_the_key_may_be_of_any_algorithm_that_another_leader_chose() -> None:
    key = SessionKey(b"0123456789abcdef", "AES", 0)
    signatures().verify(asked(BODY), received(signatures().sign(key, asked(BODY), NOW)), key, NOW)


# --- what is refused --------------------------------------------------------------------------------------------------

GOOD = {
    name: value for name, value in received(signatures().sign(KEY, asked(BODY), NOW)).items() if name != WHOLE.lower()
}
"""What an Apache worker sends."""
AUTHORIZATION, NAME = SIGNATURE.lower(), ALGORITHM.lower()


@pytest.mark.parametrize(
    ("headers", "error", "message"),
    [
        ({}, BadRequest, "Internal request missing required signature"),
        ({AUTHORIZATION: GOOD[AUTHORIZATION]}, BadRequest, "Internal request missing required signature"),
        ({NAME: "HmacSHA256"}, BadRequest, "Internal request missing required signature"),
        ({**GOOD, NAME: "HmacSHA25"}, BadRequest, "Algorithm HmacSHA25 not available"),
        ({**GOOD, NAME: ""}, BadRequest, "Algorithm  not available"),
        ({**GOOD, AUTHORIZATION: "a-b_"}, BadRequest, "Illegal base64 character 2d"),
        ({**GOOD, AUTHORIZATION: "Y Q="}, BadRequest, "Illegal base64 character 20"),
        ({NAME: "no", AUTHORIZATION: "-"}, BadRequest, "Algorithm no not available"),
        ({NAME: "HmacSHA1", AUTHORIZATION: "-"}, BadRequest, "Illegal base64 character 2d"),
        (
            {**GOOD, NAME: "HmacSHA512"},
            BadRequest,
            (
                "This worker does not support the 'HmacSHA512' key signing algorithm used by other workers. This worker"
                " is currently configured to use: [HmacSHA256, HmacSHA1]. Check that all workers' configuration files"
                " permit the same set of signature algorithms, and correct any misconfigured worker and restart it."
            ),
        ),
        ({**GOOD, AUTHORIZATION: "AAAA"}, InvalidSignature, "Internal request contained invalid signature."),
        ({**GOOD, AUTHORIZATION: ""}, InvalidSignature, "Internal request contained invalid signature."),
        ({**GOOD, NAME: "HmacSHA1"}, InvalidSignature, "Internal request contained invalid signature."),
    ],
)
def test_a_request_without_a_good_signature_is_refused(
    headers: dict[str, str], error: type[HerderError], message: str
) -> None:
    accepting = signatures(verification_algorithms="HmacSHA256, HmacSHA1")
    with pytest.raises(error) as caught:
        accepting.verify(asked(BODY), headers, KEY, NOW)
    assert (type(caught.value), str(caught.value)) == (error, message)


@pytest.mark.parametrize("text", ["Y", "YQ=", "=", "Y=Q=", "YQ==YQ=="])
def test_base64_that_is_cut_or_padded_wrongly_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="no base64"):
        signatures().verify(asked(BODY), {**GOOD, AUTHORIZATION: text}, KEY, NOW)


def test_the_padding_of_base64_may_be_left_out_as_java_allows() -> None:
    signatures().verify(asked(BODY), {**GOOD, AUTHORIZATION: GOOD[AUTHORIZATION].rstrip("=")}, KEY, NOW)


def test_any_change_of_body_or_key_breaks_the_signature() -> None:
    other = SessionKey(b"jefe", KEY.algorithm, KEY.created_ms)
    for body, key in [(BODY + b" ", KEY), (b"", KEY), (BODY, other)]:
        with pytest.raises(InvalidSignature):
            signatures().verify(asked(body), GOOD, key, NOW)


def test_while_no_key_was_read_the_sender_is_asked_to_come_again() -> None:
    with pytest.raises(NoSessionKey) as caught:
        signatures().verify(asked(BODY), GOOD, None, NOW)
    assert str(caught.value) == (
        "This worker is still starting up and has not been able to read a session key from the config topic yet"
    )
    with pytest.raises(BadRequest, match="missing"):
        signatures().verify(asked(BODY), {}, None, NOW)


# --- signatures of the whole request ----------------------------------------------------------------------------------

STRICT = Signatures(strict=True)
OURS = received(STRICT.sign(KEY, asked(BODY), NOW))


def test_a_signature_over_the_body_alone_is_good_for_any_path_and_for_ever_unless_strict() -> None:
    other = asked(BODY, "PUT", "/connectors/b/fence")
    assert signatures().verify(other, GOOD, KEY, NOW * 2) is None
    with pytest.raises(BadRequest, match="asks for X-Headgate-Authorization, which Apache's workers do not send"):
        STRICT.verify(asked(BODY), GOOD, KEY, NOW)


@pytest.mark.parametrize(
    "other",
    [
        asked(BODY, "PUT"),
        asked(BODY, target="/connectors/b/tasks?forward=false"),
        asked(BODY, target="/connectors/a/tasks"),
        asked(BODY + b" "),
    ],
)
def test_ours_is_good_for_one_request_alone(other: PeerRequest) -> None:
    assert STRICT.verify(asked(BODY), OURS, KEY, NOW)
    with pytest.raises(InvalidSignature):
        STRICT.verify(other, OURS, KEY, NOW)
    with pytest.raises(InvalidSignature):
        STRICT.verify(asked(BODY), {**OURS, WHOLE.lower(): f"{NOW}-0 {GOOD[AUTHORIZATION]}"}, KEY, NOW)


def test_ours_is_enough_where_apache_s_would_be() -> None:
    ours = {name: value for name, value in OURS.items() if name != AUTHORIZATION}
    assert signatures().verify(asked(BODY), ours, KEY, NOW)
    with pytest.raises(InvalidSignature):
        signatures().verify(asked(b"[]"), ours, KEY, NOW)


@pytest.mark.parametrize("late", [WINDOW_MS, -WINDOW_MS])
def test_ours_is_not_good_for_long(late: int) -> None:
    assert STRICT.verify(asked(BODY), OURS, KEY, NOW + late)
    with pytest.raises(InvalidSignature, match=r"was signed -?30\d s ago, by this worker's clock"):
        STRICT.verify(asked(BODY), OURS, KEY, NOW + late * 301 // 300)


def test_a_request_is_taken_once_and_forgotten_when_its_time_is_over() -> None:
    taken = TakenOnce()
    once, again = (STRICT.verify(asked(BODY), received(STRICT.sign(KEY, asked(BODY), NOW)), KEY, NOW) for _ in range(2))
    assert once
    assert again
    taken.take(once, NOW)
    taken.take(again, NOW)  # the same request, made anew
    with pytest.raises(InvalidSignature, match="not carried out twice"):
        taken.take(once, NOW + WINDOW_MS)
    taken.take(f"{NOW + 2 * WINDOW_MS + 1}-x", NOW + 2 * WINDOW_MS + 1)
    assert list(taken._taken) == [f"{NOW + 2 * WINDOW_MS + 1}-x"]


# --- configuration ----------------------------------------------------------------------------------------------------


def test_strict_is_asked_for_in_the_worker_file() -> None:
    strict = {**WORKER, "headgate.internal.signatures": "strict"}
    assert WorkerConfig.parse(strict, DISTRIBUTED).signatures == STRICT
    with pytest.raises(ConfigError, match=r"Only workers with connect.protocol=sessioned sign requests"):
        WorkerConfig.parse({**strict, "connect.protocol": "compatible"}, DISTRIBUTED)


def test_without_keys_the_defaults_are_apache_s() -> None:
    assert signatures() == Signatures() == Signatures("HmacSHA256", 256, 3_600_000, "HmacSHA256", ("HmacSHA256",))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"key_generation_algorithm": "ROT13"}, "Invalid value ROT13 for configuration inter.worker.key.generation."),
        ({"signature_algorithm": "SHA256"}, "Invalid value SHA256 for configuration inter.worker.signature.algorithm:"),
        ({"verification_algorithms": ""}, "At least one signature verification algorithm must be provided"),
        ({"verification_algorithms": "HmacSHA256,x"}, "Invalid value x for configuration inter.worker.verification."),
        (
            {"signature_algorithm": "HmacSHA1"},
            (
                "Invalid value HmacSHA1 for configuration inter.worker.signature.algorithm: It must be one of"
                " inter.worker.verification.algorithms too, or workers would refuse each other's requests"
            ),
        ),
        ({"key_size": "39"}, "A key must have at least 40 bits"),
        ({"key_size": "large"}, "Not a number of type INT"),
        ({"key_ttl_ms": "-1"}, "Value must be at least 0"),
    ],
)
def test_keys_that_cannot_work_are_refused_with_a_sentence(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        signatures(**keys)
    assert message in str(caught.value)


def test_an_algorithm_that_this_python_lacks_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "algorithms_available", {"sha256"})
    with pytest.raises(ConfigError, match=r"It must be one of: HmacSHA256$"):
        signatures(key_generation_algorithm="HmacMD5")
