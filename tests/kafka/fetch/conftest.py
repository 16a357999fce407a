"""A broker that asks for logins and certificates, and may be restarted: not the one that all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fetch_support import Doors
from test_client_settings import CERTIFICATE, KEY

from headgate.dev.broker import Broker
from headgate.dev.server_config import BrokerListener

MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="session")
def doors() -> Iterator[Doors]:
    # A quota that is used up is forgotten after two seconds.
    properties = {"quota.window.num": "2", "quota.window.size.seconds": "1", **_DOORS}
    listeners = [BrokerListener("LOGIN", "SASL_PLAINTEXT"), BrokerListener("TLS", "SSL")]
    with Broker(properties=properties, listeners=listeners) as broker:
        yield Doors(broker, broker.address("LOGIN"), broker.address("TLS"))


_DOORS = {
    "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.login.plain.sasl.jaas.config": (
        f'{MODULES}.plain.PlainLoginModule required user_alice="wonder,\\"land\\"";'
    ),
    "listener.name.login.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "listener.name.login.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    "listener.name.tls.ssl.keystore.type": "PEM",
    "listener.name.tls.ssl.keystore.certificate.chain": CERTIFICATE,
    "listener.name.tls.ssl.keystore.key": KEY,
    "listener.name.tls.ssl.truststore.type": "PEM",
    "listener.name.tls.ssl.truststore.certificates": CERTIFICATE,
    "listener.name.tls.ssl.client.auth": "required",
}
