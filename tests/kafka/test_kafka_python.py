"""Settings of librdkafka, as kafka-python takes them: the same broker, the same login, the same trust."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from test_client_settings import CERTIFICATE, ENCRYPTED_KEY, KEY, PKCS12

from headgate.kafka.settings import ClientConfigError, ClientKind, translate
from headgate.kafka.settings.kafka_python import for_kafka_python

BROKERS = {"bootstrap.servers": "one:9092,two:9092"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
LOGIN = {**BROKERS, "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}


def made(config: dict[str, str]) -> dict[str, Any]:
    """From a consumer's settings by their Java names, as executors get them."""
    return for_kafka_python(translate(ClientKind.CONSUMER, config).config)


def context(**config: str) -> ssl.SSLContext:
    named = {key.replace("_", "."): value for key, value in config.items()}
    found = made({**BROKERS, "security.protocol": "SSL", **named})["ssl_context"]
    assert isinstance(found, ssl.SSLContext)
    return found


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    for name, text in {"ca": CERTIFICATE, "client": CERTIFICATE + KEY, "locked": CERTIFICATE + ENCRYPTED_KEY}.items():
        (tmp_path / f"{name}.pem").write_text(text)
    (tmp_path / "client.p12").write_bytes(PKCS12)
    return tmp_path


def test_a_broker_without_a_login() -> None:
    assert made(BROKERS) == {"bootstrap_servers": "one:9092,two:9092", "security_protocol": "PLAINTEXT"}


def test_names_and_dns() -> None:
    lookup = "resolve_canonical_bootstrap_servers_only"
    found = made({**BROKERS, "client.id": "me", "client.dns.lookup": lookup, "fetch.max.bytes": "5000"})
    assert found.items() >= {"client_id": "me", "client_dns_lookup": lookup}.items()
    assert len(found) == 4


@pytest.mark.parametrize("key", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "plain", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_by_name_and_password(key: str, mechanism: str) -> None:
    """Both of librdkafka's names for it."""
    given = {"security.protocol": "sasl_plaintext", key: mechanism, "sasl.username": "u", "sasl.password": "p"}
    assert for_kafka_python({**BROKERS, **given}) == {
        "bootstrap_servers": "one:9092,two:9092",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism.upper(),
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }


def test_a_login_from_a_jaas_text() -> None:
    assert made(LOGIN).items() >= {"sasl_plain_username": "u", "sasl_plain_password": "p"}.items()


def test_a_login_that_the_protocol_does_not_ask_for_is_left_out() -> None:
    given = {"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    assert not [name for name in for_kafka_python({**BROKERS, **given}) if name.startswith("sasl")]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"sasl.mechanism": "GSSAPI"}, id="kerberos"),
        pytest.param({"sasl.mechanism": "OAUTHBEARER"}, id="tokens"),
        pytest.param({}, id="no mechanism, which is Kerberos"),
        pytest.param({"sasl.mechanism": "PLAIN"}, id="nobody"),
        pytest.param({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, id="no password"),
    ],
)
def test_a_login_that_only_librdkafka_can_do(given: dict[str, str]) -> None:
    with pytest.raises(ClientConfigError) as raised:
        for_kafka_python({**BROKERS, "security.protocol": "SASL_PLAINTEXT", **given})
    assert str(raised.value).endswith(".")


# --- TLS --------------------------------------------------------------------------------------------------------------


def test_who_is_trusted_without_a_trust_store() -> None:
    found = context()
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_who_is_trusted_by_a_file_or_a_text(pem: Path) -> None:
    by_file = context(ssl_truststore_location=str(pem / "ca.pem"), ssl_truststore_type="PEM")
    by_text = context(ssl_truststore_certificates=CERTIFICATE, ssl_truststore_type="PEM")
    for found in (by_file, by_text):
        assert [ca["subject"] for ca in found.get_ca_certs()] == [((("commonName", "headgate-test"),),)]


def test_certificates_are_looked_at_as_librdkafka_does() -> None:
    """Python 3.13 is stricter by default: a broker would be refused here that librdkafka talks to."""
    assert not context().verify_flags & ssl.VERIFY_X509_STRICT


@pytest.mark.parametrize(("algorithm", "checked"), [("https", True), ("HTTPS", True), ("", False), ("none", False)])
def test_whether_the_name_of_the_broker_is_checked(algorithm: str, checked: bool) -> None:
    found = context(ssl_endpoint_identification_algorithm=algorithm)
    assert (found.check_hostname, found.verify_mode) == (checked, ssl.CERT_REQUIRED)


def test_no_check_at_all() -> None:
    found = context(enable_ssl_certificate_verification="false")
    assert (found.check_hostname, found.verify_mode) == (False, ssl.CERT_NONE)


def test_a_certificate_of_ones_own(pem: Path) -> None:
    context(ssl_keystore_location=str(pem / "client.pem"), ssl_keystore_type="PEM")
    context(ssl_keystore_location=str(pem / "locked.pem"), ssl_keystore_type="PEM", ssl_key_password="secret")


@pytest.mark.parametrize("password", [{}, {"ssl.key.password": "wrong"}], ids=["none", "wrong"])
def test_a_locked_key_without_its_password_is_an_error_and_no_question(pem: Path, password: dict[str, str]) -> None:
    """OpenSSL would ask for it in the terminal."""
    given = {"ssl.certificate.location": str(pem / "ca.pem"), "ssl.key.location": str(pem / "locked.pem")}
    with pytest.raises(ClientConfigError):
        for_kafka_python({**BROKERS, "security.protocol": "SSL", **given, **password})


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"ssl.ca.location": "/there/is/none.pem"}, id="no such file"),
        pytest.param({"ssl.ca.location": "/"}, id="a folder"),
        pytest.param({"ssl.ca.pem": "no certificate"}, id="no certificate"),
        pytest.param({"ssl.keystore.location": "client.p12"}, id="PKCS12"),
        pytest.param({"ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY}, id="a certificate as text"),
        pytest.param({"ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"}, id="ciphers"),
        pytest.param({"ssl.crl.location": "revoked.pem"}, id="revoked ones"),
        pytest.param({"ssl.curves.list": "P-521"}, id="curves"),
    ],
)
def test_tls_that_only_librdkafka_can_do(given: dict[str, str]) -> None:
    with pytest.raises(ClientConfigError) as raised:
        for_kafka_python({**BROKERS, "security.protocol": "SSL", **given})
    assert "BEGIN" not in str(raised.value)


def test_both_a_login_and_tls() -> None:
    found = made({**LOGIN, "security.protocol": "SASL_SSL"})
    assert found.keys() >= {"ssl_context", "sasl_plain_password"}
