"""Settings of librdkafka as kafka-python takes them, for what is done with Kafka's protocol itself."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from headgate.kafka.settings.errors import ClientConfigError

_PLAIN_NAMES: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "client.dns.lookup": "client_dns_lookup",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_LOGIN: Final = frozenset({"sasl_plain_username", "sasl_plain_password"})
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_TLS_NOT_HERE: Final = (
    "ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem", "ssl.engine.location", "ssl.cipher.suites",
    "ssl.crl.location", "ssl.curves.list", "ssl.sigalgs.list",
)  # fmt: skip


def for_kafka_python(translated: Mapping[str, Any]) -> dict[str, Any]:
    """From what `translate` gives. May hold passwords, and a TLS context, which does not travel. Raises
    ClientConfigError for a login or a key store that only librdkafka can do."""
    made: dict[str, Any] = {
        name: str(translated[key]) for key, name in _PLAIN_NAMES.items() if translated.get(key) is not None
    }
    protocol = made["security_protocol"] = made.get("security_protocol", "PLAINTEXT").upper()
    if protocol.startswith("SASL"):
        mechanism = made.get("sasl_mechanism", "").upper()
        if mechanism not in _MECHANISMS:
            raise ClientConfigError(f"sasl.mechanism {mechanism or '(none)'} is not possible here: {_MECHANISMS} are.")
        made["sasl_mechanism"] = mechanism
        if not made.keys() >= _LOGIN:
            raise ClientConfigError(f"sasl.mechanism {mechanism} needs sasl.username and sasl.password.")
    else:
        for name in ("sasl_mechanism", *_LOGIN):
            made.pop(name, None)
    if protocol.endswith("SSL"):
        made["ssl_context"] = _tls(translated)
    return made


def _tls(translated: Mapping[str, Any]) -> ssl.SSLContext:
    for key in _TLS_NOT_HERE:
        if translated.get(key):
            raise ClientConfigError(f"{key} is not possible here: name PEM files.")
    try:
        context = ssl.create_default_context(
            cafile=translated.get("ssl.ca.location"), cadata=translated.get("ssl.ca.pem")
        )
        if certificate := translated.get("ssl.certificate.location"):
            # An empty password, for without one OpenSSL would ask for it in the terminal.
            password = translated.get("ssl.key.password", "")
            context.load_cert_chain(certificate, translated.get("ssl.key.location"), password)
    except (OSError, ValueError) as error:
        raise ClientConfigError(f"The TLS settings cannot be used: {error}.") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 refuses certificates that librdkafka takes
    context.check_hostname = translated.get("ssl.endpoint.identification.algorithm", "https") == "https"
    if str(translated.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
