"""A broker that asks for logins and certificates, and may be restarted: not the one that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from fetch_support import Doors
from test_client_settings import CERTIFICATE, KEY

from headgate.dev import ports, server_config
from headgate.dev.broker import Broker

MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="session")
def doors() -> Iterator[Doors]:
    login, tls = (f"{ports.HOST}:{port}" for port in ports.pick_free(2))
    write = server_config.write_server_properties

    def write_with_doors(path: Path, **arguments: Any) -> None:
        write(path, **arguments)
        with path.open(encoding="latin-1") as file:
            written: dict[str, str] = javaproperties.load(file)
        for key in ("listeners", "advertised.listeners"):
            written[key] += f",LOGIN://{login},TLS://{tls}"
        written["listener.security.protocol.map"] += ",LOGIN:SASL_PLAINTEXT,TLS:SSL"
        path.write_text(javaproperties.dumps(written | _DOORS), encoding="latin-1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_config, "write_server_properties", write_with_doors)
        # A quota that is used up is forgotten after two seconds.
        with Broker(properties={"quota.window.num": "2", "quota.window.size.seconds": "1"}) as broker:
            yield Doors(broker, login, tls)


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
