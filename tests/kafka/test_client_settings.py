from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from headgate.kafka.settings import ClientConfigError, ClientKind, translate

PRODUCER, CONSUMER, ADMIN = ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN
MAX_INT = str(2**31 - 1)

# Made for these tests, used nowhere else.
KEY = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQghysQb3V1JkpdFQDl
jVQo/MirAVlI9qMMNakzp3N/hcyhRANCAATP1PhEZrj9idyKDfx+v9KdR7iOwlNQ
nHJoL2qHTHmiVA4F9wlXOyKMRbJVA0Uy6dgw6xJRcPfKfV0V8q9qgWDG
-----END PRIVATE KEY-----
"""
ENCRYPTED_KEY = """-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjKFyrhC/K/lwICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHMm9f/l72EhpG88tXgeVWAEgZB0
Vxs2JlmIbLs5TEGtSnUVKn/TARmvxRNHDJYEZg0kPt3XrROCFlvOBwZB/Hy0ZWzf
KJYRct1hwY0a8wyNb81ZDS8BTHhTmYysOFigqpqaPSZ7+OiFM2Ozcrtxc2Un/Ryj
zEp9k00w2cN+Xlk0hce6gLyVHs2C6qKMkEOOs1sPvOyLv6TDBy9HmcEWQxNfWOk=
-----END ENCRYPTED PRIVATE KEY-----
"""  # password: secret
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIUQ6O+NmG3ZI+9poEp0LebtNPjMbswCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNaGVhZGdhdGUtdGVzdDAgFw0yNjExMTUyMTQxMjRaGA8yMTI2
MTAyMjIxNDEyNFowGDEWMBQGA1UEAwwNaGVhZGdhdGUtdGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABM/U+ERmuP2J3IoN/H6/0p1HuI7CU1CccmgvaodMeaJU
DgX3CVc7IoxFslUDRTLp2DDrElFw98p9XRXyr2qBYMajUzBRMB0GA1UdDgQWBBTT
AfVq0Af3h0K6F0Fl1ooeiQXIZDAfBgNVHSMEGDAWgBTTAfVq0Af3h0K6F0Fl1ooe
iQXIZDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCICysVhQ3yM8x
j/8KGXx72gr7It9YZ/GLzkGH99Y9dU5YAiEAr4+wZcAzJgWFBcxPZdY9J7Y8RPOB
ZrHSWzq76tCjhI8=
-----END CERTIFICATE-----
"""
PKCS12 = base64.b64decode(  # both of them; password: secret
    "MIIEHAIBAzCCA9IGCSqGSIb3DQEHAaCCA8MEggO/MIIDuzCCAnIGCSqGSIb3DQEHBqCCAmMwggJfAgEAMIICWAYJKoZIhvcNAQcBMFcGCSqGSI"
    "b3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi5vSlQzAYpgAICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEFTmcfrg1Nj/OB7mX5n0QBiA"
    "ggHwAV5Obfnu/JbkHebhwGR2RsFB800DrmSJZtDpkYnJWK1CHgag8OzOA38U0IBAxDABfbfyEZamZ30DOKcwzCE0adPt6cYYmYuhumOdbe2HMf"
    "I9MVo2WJE9xtBpayktIZEGxcU3qYYyPUKB8mVvPuOfi65MciQ2J+zlDVgKZBWLxoOVDaJBAKyP1F75a9IxXJx/wip6QRByK3qqlLAdBZSLILNh"
    "+P72qxnZXGY+Ao6kODts6Vl7Q54//TUUpIF/sgWfTyT3wvZNC4iafp7pBK9N7xg10q4hNwixgSKVFiXBLVuPtUZR01/QWghgbLBzMkIorxUC3C"
    "W1F7KbYUeYkPsVFu3Lw1rtvcj0BMfIbdRGopl7VneDlCw5L3dlsIFqevQt6TERNQtkqEfRW6x2Vmw7mNgD56eskihe/mdJcrosz9QS286DZr5E"
    "jHPbzIHk3Ag3EiBUq4gNi90swR8FVKlURl3QyzyZbrR9JjkFJZH9eS6itS7zO4gJyyDJc6yygj7jRDGeRUtLEwn+UILpD81Dw8Ni3T+H5/9+VM"
    "bESVgE+jpVsnPXkrrP5EehP/bPlSLoFP2eXMdlHjM2VyhFceaoe8NO7oyfjCTBHFsdT/SsgzKNUcLSfkjuwVly0cms79BQ2ymiJ10noWDWpnup"
    "famOrDCCAUEGCSqGSIb3DQEHAaCCATIEggEuMIIBKjCCASYGCyqGSIb3DQEMCgECoIHvMIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDD"
    "AcBAgYu0eeFwrMOQICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECUnAJKFQ3kKx/8ll+J55UgEgZBMrozlFvNWl0zywLnlmnVX9tlL"
    "BMb6Vl6qvkv+m/piahKHtCeL8rFncgcj89O4idYv8O4V7zwcsYbh4g7DjuxiSSS7kaD7z1DfjGieR9pXrc9T4YAF8Ol3t2LD+jb+YWzI7lJAJ9"
    "I4jXPzJg2/JfIgg5JIbENHVKBzkmz5M/+HEy7SgRE8eycyAqex0wMz8V4xJTAjBgkqhkiG9w0BCRUxFgQUqPZcMBLIlCSnCA2gWM+YikQObEww"
    "QTAxMA0GCWCGSAFlAwQCAQUABCBN20tDpsLzCB9Lc56aQgieyGAVY598XR2wLawZz+50VQQIYM3RAemLlSgCAggA"
)


def config(kind: ClientKind, **settings: str) -> dict[str, Any]:
    """Translated, without what is always there; keys with _ for dots."""
    return translated(kind, {key.replace("_", "."): value for key, value in settings.items()})


def translated(kind: ClientKind, settings: Mapping[str, str]) -> dict[str, Any]:
    made = translate(kind, settings).config
    if kind is PRODUCER and made.get("partitioner") == "murmur2_random":
        del made["partitioner"]
    if kind is CONSUMER and "isolation.level" not in settings:
        del made["isolation.level"]
    return made


def make(kind: ClientKind, settings: Mapping[str, str]) -> None:
    """A real client, of nothing: proof that librdkafka takes the settings, and takes them together."""
    made = {**translate(kind, settings).config, "log_level": 0}
    if kind is PRODUCER:
        Producer(made)
    elif kind is CONSUMER:
        Consumer({"group.id": "g", **made}).close()
    else:
        AdminClient(made)


# All of Apache's settings that have a meaning here, with Apache's defaults or what people set.
JAVA: Mapping[ClientKind, Mapping[str, str]] = {
    ADMIN: {
        "bootstrap.servers": "127.0.0.1:1",
        "client.id": "me",
        "client.dns.lookup": "use_all_dns_ips",
        "security.protocol": "PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384",
        "request.timeout.ms": "30000",
        "metadata.max.age.ms": "300000",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        "retry.backoff.ms": "100",
        "retry.backoff.max.ms": "1000",
        "socket.connection.setup.timeout.ms": "10000",
        "connections.max.idle.ms": "540000",
        "receive.buffer.bytes": "65536",
        "send.buffer.bytes": "131072",
    }
}
JAVA = {
    ADMIN: JAVA[ADMIN],
    PRODUCER: {
        **JAVA[ADMIN],
        "acks": "all",
        "enable.idempotence": "true",
        "transactional.id": "tx",
        "transaction.timeout.ms": "60000",
        "delivery.timeout.ms": "120000",
        "max.in.flight.requests.per.connection": "5",
        "retries": MAX_INT,
        "linger.ms": "5",
        "batch.size": "16384",
        "buffer.memory": "33554432",
        "max.request.size": "1048576",
        "compression.type": "zstd",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.zstd.level": "3",
        "partitioner.class": "",
        "partitioner.ignore.keys": "false",
    },
    CONSUMER: {
        **JAVA[ADMIN],
        "group.id": "g",
        "group.instance.id": "i",
        "group.protocol": "CLASSIC",
        "client.rack": "r",
        "session.timeout.ms": "45000",
        "heartbeat.interval.ms": "3000",
        "max.poll.interval.ms": "300000",
        "enable.auto.commit": "false",
        "auto.commit.interval.ms": "5000",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "check.crcs": "true",
        "allow.auto.create.topics": "true",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
        "fetch.min.bytes": "1",
        "fetch.max.bytes": "52428800",
        "fetch.max.wait.ms": "500",
        "max.partition.fetch.bytes": "1048576",
    },
}


@pytest.mark.parametrize("kind", ClientKind)
def test_all_settings_that_have_a_meaning_make_a_client_together(kind: ClientKind) -> None:
    assert translate(kind, JAVA[kind]).ignored == ()
    make(kind, JAVA[kind])


EACH = [(kind, key) for kind in ClientKind for key in JAVA[kind]]


@pytest.mark.parametrize(("kind", "key"), EACH, ids=[f"{kind.value}-{key}" for kind, key in EACH])
def test_each_setting_makes_a_client_alone(kind: ClientKind, key: str) -> None:
    make(kind, {key: JAVA[kind][key]})


INTEGERS = [(kind, key) for kind, key in EACH if JAVA[kind][key].lstrip("-").isdigit()]


@pytest.mark.parametrize(("kind", "key"), INTEGERS, ids=[f"{kind.value}-{key}" for kind, key in INTEGERS])
@pytest.mark.parametrize("value", ["0", "-1", "1", MAX_INT])
def test_a_number_out_of_range_becomes_the_nearest_one(kind: ClientKind, key: str, value: str) -> None:
    assert translate(kind, {key: value}).ignored == ()
    with pytest.raises(ClientConfigError, match=f"^{key} must be a whole number, not 'many'"):
        translate(kind, {key: "many"})


class TestProducer:
    def test_records_go_to_the_partitions_that_javas_producer_chooses(self) -> None:
        assert translate(PRODUCER, {}).config == {"partitioner": "murmur2_random"}
        assert translate(PRODUCER, {"partitioner.class": ""}).config == {"partitioner": "murmur2_random"}

    @pytest.mark.parametrize("name", ["RoundRobinPartitioner", "UniformStickyPartitioner"])
    def test_partitioners_that_spread_records_evenly_do_so(self, name: str) -> None:
        assert config(PRODUCER, partitioner_class=f"org.apache.kafka.clients.producer.{name}") == {
            "partitioner": "random"
        }
        assert config(PRODUCER, partitioner_ignore_keys="TRUE") == {"partitioner": "random"}

    def test_any_other_partitioner_class_cannot_be_done(self) -> None:
        with pytest.raises(ClientConfigError, match=r"names com\.acme\.Mine, a Java class, which cannot run here"):
            config(PRODUCER, partitioner_class="com.acme.Mine")

    def test_sizes_and_times(self) -> None:
        assert config(PRODUCER, max_request_size="5000000") == {"message.max.bytes": "5000000"}
        assert config(PRODUCER, buffer_memory="33554433") == {
            "queue.buffering.max.kbytes": "32769",
            "queue.buffering.max.messages": "0",
        }
        assert config(PRODUCER, batch_size="0") == {"batch.size": "1"}
        assert config(PRODUCER, delivery_timeout_ms=MAX_INT) == {"delivery.timeout.ms": MAX_INT}
        assert config(PRODUCER, request_timeout_ms="40000") == {
            "request.timeout.ms": "40000",
            "socket.timeout.ms": "40000",
        }

    def test_apaches_framework_defaults_make_a_client(self) -> None:
        defaults = {
            "bootstrap.servers": "127.0.0.1:1",
            "key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
            "max.block.ms": str(2**63 - 1),
            "enable.idempotence": "false",
            "acks": "all",
            "max.in.flight.requests.per.connection": "1",
            "delivery.timeout.ms": MAX_INT,
            "client.id": "connector-producer-a-0",
        }
        assert translate(PRODUCER, defaults).ignored == ("key.serializer", "max.block.ms")
        make(PRODUCER, defaults)
        make(PRODUCER, {**defaults, "enable.idempotence": "true", "transactional.id": "connect-a-0"})

    def test_no_record_outlives_its_transaction(self) -> None:
        settings = {"transactional.id": "t", "delivery.timeout.ms": MAX_INT, "request.timeout.ms": "30000"}
        assert translated(PRODUCER, settings)["delivery.timeout.ms"] == "60000"
        short = translated(PRODUCER, {**settings, "transaction.timeout.ms": "10000"})
        assert (short["delivery.timeout.ms"], short["socket.timeout.ms"]) == ("10000", "10000")
        make(PRODUCER, {**settings, "transaction.timeout.ms": "10000"})

    def test_the_compression_level_is_that_of_the_codec_in_use(self) -> None:
        levels = {"compression.gzip.level": "9", "compression.zstd.level": "22", "compression.lz4.level": "1"}
        assert translated(PRODUCER, {**levels, "compression.type": "gzip"})["compression.level"] == "9"
        assert translated(PRODUCER, {**levels, "compression.type": "zstd"})["compression.level"] == "12"
        assert "compression.level" not in translated(PRODUCER, {**levels, "compression.type": "snappy"})
        assert translated(PRODUCER, levels) == {}


class TestConsumer:
    @pytest.mark.parametrize(("java", "ours"), [("latest", "latest"), ("earliest", "earliest"), ("none", "error")])
    def test_offset_reset(self, java: str, ours: str) -> None:
        assert config(CONSUMER, auto_offset_reset=java) == {"auto.offset.reset": ours}

    def test_an_offset_reset_by_time_cannot_be_done(self) -> None:
        with pytest.raises(ClientConfigError, match="use earliest, latest or none"):
            config(CONSUMER, auto_offset_reset="by_duration:PT1H")

    @pytest.mark.parametrize(
        ("java", "ours"),
        [
            ("org.apache.kafka.clients.consumer.RangeAssignor", "range"),
            ("org.apache.kafka.clients.consumer.RoundRobinAssignor", "roundrobin"),
            ("org.apache.kafka.clients.consumer.CooperativeStickyAssignor", "cooperative-sticky"),
            ("cooperative-sticky", "cooperative-sticky"),
            (
                "org.apache.kafka.clients.consumer.RoundRobinAssignor, org.apache.kafka.clients.consumer.RangeAssignor",
                "roundrobin,range",
            ),
            # Apache's default: both are offered, and the group rebalances eagerly.
            (
                "org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
                "range",
            ),
        ],
    )
    def test_assignors(self, java: str, ours: str) -> None:
        assert config(CONSUMER, partition_assignment_strategy=java) == {"partition.assignment.strategy": ours}
        make(CONSUMER, {"partition.assignment.strategy": java})

    @pytest.mark.parametrize("java", ["org.apache.kafka.clients.consumer.StickyAssignor", "com.acme.Mine", ""])
    def test_other_assignors_cannot_be_done(self, java: str) -> None:
        with pytest.raises(ClientConfigError, match="use RangeAssignor, RoundRobinAssignor or CooperativeSticky"):
            config(CONSUMER, partition_assignment_strategy=java)

    def test_uncommitted_records_are_read_unless_said_otherwise_as_in_java(self) -> None:
        assert translate(CONSUMER, {}).config == {"isolation.level": "read_uncommitted"}
        assert translate(CONSUMER, {"isolation.level": "READ_COMMITTED"}).config == {
            "isolation.level": "read_committed"
        }

    def test_fetch_settings(self) -> None:
        assert config(CONSUMER, fetch_max_wait_ms="100") == {"fetch.wait.max.ms": "100"}
        make(CONSUMER, {"fetch.max.bytes": "2000"})
        make(CONSUMER, {"fetch.max.bytes": MAX_INT, "max.partition.fetch.bytes": MAX_INT})

    def test_new_topics_are_noticed_at_the_age_that_java_refreshes_at(self) -> None:
        assert config(CONSUMER, metadata_max_age_ms="5000") == {"topic.metadata.refresh.interval.ms": "5000"}


class TestIgnored:
    @pytest.mark.parametrize("kind", ClientKind)
    def test_what_only_javas_clients_have_is_dropped_and_reported(self, kind: ClientKind) -> None:
        keys = (
            "key.serializer",
            "value.deserializer",
            "max.poll.records",
            "interceptor.classes",
            "metric.reporters",
            "metrics.sample.window.ms",
            "default.api.timeout.ms",
            "max.block.ms",
            "ssl.protocol",
            "ssl.enabled.protocols",
            "offset.storage.topic",
            "no.such.key",
        )
        assert translate(kind, dict.fromkeys(keys, "x")).ignored == keys

    def test_settings_of_another_kind_of_client_are_dropped(self) -> None:
        settings = {"group.id": "connect", "session.timeout.ms": "10000", "acks": "all", "bootstrap.servers": "b:1"}
        found = translate(ADMIN, settings)
        assert (found.config, found.ignored) == (
            {"bootstrap.servers": "b:1"},
            ("group.id", "session.timeout.ms", "acks"),
        )

    def test_settings_of_librdkafka_pass_as_they_stand(self) -> None:
        found = translate(CONSUMER, {"queued.min.messages": "10", "socket.keepalive.enable": "true", "debug": "cgrp"})
        assert found.ignored == ()
        assert found.config["queued.min.messages"] == "10"
        with pytest.raises(ClientConfigError, match=r"queued\.min\.messages"):
            translate(CONSUMER, {"queued.min.messages": "few"})

    @pytest.mark.parametrize(
        "key",
        [
            "plugin.library.paths",
            "ssl.engine.location",
            "ssl.providers",
            "sasl.kerberos.kinit.cmd",
            "offset.store.method",
            "offset.store.path",
        ],
    )
    def test_no_setting_runs_foreign_code(self, key: str) -> None:
        assert translate(CONSUMER, {key: "/tmp/evil"}).ignored == (key,)

    @pytest.mark.parametrize(
        "key",
        ["error_cb", "stats_cb", "logger", "on_delivery", "default.topic.config", "opaque", "interceptors", "", "é"],
    )
    def test_keys_that_take_no_text_are_dropped(self, key: str) -> None:
        assert translate(PRODUCER, {key: "x"}).ignored == (key,)

    def test_a_value_that_librdkafka_refuses_is_an_error_in_its_words(self) -> None:
        with pytest.raises(ClientConfigError, match=r"refuses .* \"sideways\" .*security\.protocol"):
            translate(ADMIN, {"security.protocol": "sideways"})
        with pytest.raises(ClientConfigError, match=r"enable\.idempotence must be true or false, not 'maybe'"):
            translate(PRODUCER, {"enable.idempotence": "maybe"})


class TestTls:
    BASE = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL"}

    def test_stores_in_pem_files(self, tmp_path: Path) -> None:
        trust, key = tmp_path / "ca.pem", tmp_path / "client.pem"
        trust.write_text(CERTIFICATE)
        key.write_text(KEY + CERTIFICATE)
        settings = {
            **self.BASE,
            "ssl.truststore.location": str(trust),
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": str(key),
            "ssl.keystore.type": "PEM",
        }
        made = translate(ADMIN, settings)
        assert made.config["ssl.ca.location"] == str(trust)
        assert made.config["ssl.certificate.location"] == made.config["ssl.key.location"] == str(key)
        assert made.ignored == ()
        make(ADMIN, settings)

    @pytest.mark.parametrize("newline", ["\n", " ", ""])
    def test_certificates_and_key_as_text_on_one_line_or_many(self, newline: str) -> None:
        settings = {
            **self.BASE,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": (CERTIFICATE + CERTIFICATE).replace("\n", newline),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": CERTIFICATE.replace("\n", newline),
            "ssl.keystore.key": ENCRYPTED_KEY.replace("\n", newline),
            "ssl.key.password": "secret",
        }
        made = translate(ADMIN, settings).config
        assert made["ssl.ca.pem"] == CERTIFICATE + CERTIFICATE
        assert made["ssl.key.pem"] == ENCRYPTED_KEY
        make(ADMIN, settings)

    def test_text_that_is_no_certificate_is_an_error_that_does_not_show_it(self) -> None:
        with pytest.raises(ClientConfigError, match=r"^ssl\.keystore\.key must be PEM text"):
            translate(ADMIN, {**self.BASE, "ssl.keystore.key": "hunter2"})

    @pytest.mark.parametrize("stated", ["PKCS12", "JKS", None])
    def test_a_key_store_in_pkcs12_whatever_it_is_called(self, tmp_path: Path, stated: str | None) -> None:
        store = tmp_path / "client.jks"  # since Java 9, keytool writes PKCS12 under any name
        store.write_bytes(PKCS12)
        settings = {**self.BASE, "ssl.keystore.location": str(store), "ssl.keystore.password": "secret"}
        if stated is not None:
            settings["ssl.keystore.type"] = stated
        made = translate(ADMIN, settings).config
        assert made["ssl.keystore.location"] == str(store)
        make(ADMIN, settings)

    @pytest.mark.parametrize("content", [b"\xfe\xed\xfe\xed", PKCS12])
    def test_a_java_trust_store_is_an_error_that_says_how_to_convert_it(self, tmp_path: Path, content: bytes) -> None:
        store = tmp_path / "trust.jks"
        store.write_bytes(content)
        with pytest.raises(ClientConfigError, match=f"convert it with `keytool -list -rfc -keystore {store} > ca.pem`"):
            translate(ADMIN, {**self.BASE, "ssl.truststore.location": str(store), "ssl.truststore.password": "x"})

    def test_a_java_key_store_is_an_error_that_says_how_to_convert_it(self, tmp_path: Path) -> None:
        store = tmp_path / "client.jks"
        store.write_bytes(b"\xfe\xed\xfe\xed")
        with pytest.raises(ClientConfigError, match=f"`keytool -importkeystore -srckeystore {store} -destkeystore"):
            translate(ADMIN, {**self.BASE, "ssl.keystore.location": str(store)})

    def test_a_store_that_is_not_there_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ClientConfigError, match="names /no/such/store, which cannot be read: No such file"):
            translate(ADMIN, {**self.BASE, "ssl.truststore.location": "/no/such/store"})

    def test_host_names_are_not_checked_when_the_algorithm_is_empty(self) -> None:
        key = "ssl.endpoint.identification.algorithm"
        assert translate(ADMIN, {**self.BASE, key: ""}).config[key] == "none"
        assert translate(ADMIN, {**self.BASE, key: "HTTPS"}).config[key] == "https"

    def test_javas_names_of_cipher_suites_are_an_error(self) -> None:
        with pytest.raises(ClientConfigError, match="write OpenSSL's instead"):
            translate(ADMIN, {**self.BASE, "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"})

    def test_without_tls_its_settings_do_not_matter(self) -> None:
        settings = {"ssl.truststore.location": "/no/such/store.jks", "ssl.key.password": "x"}
        found = translate(ADMIN, {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **settings})
        assert found.ignored == tuple(settings)


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


class TestSasl:
    BASE = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT"}

    @pytest.mark.parametrize(
        ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
    )
    @pytest.mark.parametrize(
        "options",
        [
            'username="alice" password="p=;w \\"q\\" \\\\"',
            "password='p=;w \"q\" \\\\' \n username=alice",
        ],
    )
    def test_name_and_password(self, mechanism: str, module: str, options: str) -> None:
        settings = {**self.BASE, "sasl.mechanism": mechanism, "sasl.jaas.config": f"{module} required {options} ;"}
        made = translate(CONSUMER, settings)
        assert made.config["sasl.username"] == "alice"
        assert made.config["sasl.password"] == 'p=;w "q" \\'
        assert made.config["sasl.mechanism"] == mechanism
        assert made.ignored == ()
        make(CONSUMER, settings)

    def test_tokens_from_an_identity_provider(self) -> None:
        settings = {
            **self.BASE,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.jaas.config": f'{OAUTH} required clientId="id" clientSecret="secret" scope="kafka";',
        }
        made = translate(ADMIN, settings).config
        assert made["sasl.oauthbearer.method"] == "oidc"
        assert made["sasl.oauthbearer.client.id"] == "id"
        assert made["sasl.oauthbearer.client.secret"] == "secret"
        assert made["sasl.oauthbearer.scope"] == "kafka"
        assert made["sasl.oauthbearer.token.endpoint.url"] == "https://127.0.0.1:1/token"
        make(ADMIN, settings)

    def test_kerberos_keytab(self) -> None:
        jaas = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="me@X";'
        made = translate(ADMIN, {**self.BASE, "sasl.jaas.config": jaas}).config
        assert (made["sasl.kerberos.keytab"], made["sasl.kerberos.principal"]) == ("/k", "me@X")

    @pytest.mark.parametrize(
        ("jaas", "message"),
        [
            ("software.amazon.msk.auth.iam.IAMLoginModule required;", "names software.amazon.msk.auth.iam.IAMLogin"),
            (f'{SCRAM} required username="hunter" password="hunter2" tokenauth="true";', "delegation token"),
            (f'{PLAIN} required username="hunter2";', "must give username and password"),
            (f'{PLAIN} required username="hunter2" password="x"', "must read `<login module> required"),
            (f'{PLAIN} required username="hunter2', "must read `<login module> required"),
            (f'{PLAIN} username="hunter2" password="x";', "must read `<login module> required"),
            (f"{PLAIN} required; {SCRAM} required;", "with one login module"),
            ("hunter2", "must read `<login module> required"),
        ],
    )
    def test_other_logins_are_errors_that_show_no_password(self, jaas: str, message: str) -> None:
        with pytest.raises(ClientConfigError) as caught:
            translate(ADMIN, {**self.BASE, "sasl.jaas.config": jaas})
        assert message in str(caught.value)
        assert "hunter" not in str(caught.value)

    def test_a_callback_class_of_java_is_an_error(self) -> None:
        with pytest.raises(ClientConfigError, match=r"names com\.acme\.Handler, a Java class, which cannot run here"):
            translate(ADMIN, {**self.BASE, "sasl.client.callback.handler.class": "com.acme.Handler"})

    def test_without_sasl_its_settings_do_not_matter(self) -> None:
        found = translate(ADMIN, {"sasl.jaas.config": "nonsense", "sasl.login.callback.handler.class": "x.Y"})
        assert (found.config, found.ignored) == ({}, ("sasl.jaas.config", "sasl.login.callback.handler.class"))


@given(st.sampled_from(ClientKind), st.dictionaries(st.sampled_from([key for _, key in EACH]) | st.text(), st.text()))
def test_any_settings_are_translated_or_refused_and_nothing_else(kind: ClientKind, settings: dict[str, str]) -> None:
    try:
        found = translate(kind, settings)
    except ClientConfigError:
        return
    assert set(found.ignored) <= set(settings)
