"""What the converters ask of a registry, how often, and what they say of its answers."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from registry_stand_in import StandIn
from registry_support import configured

from headgate.api import ConfigError, DataError, RetriableError, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.registry import client
from headgate.pipeline.converters.registry.avro import AvroConverter
from headgate.pipeline.converters.registry.converter import RegistryConverter
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter

pytestmark = pytest.mark.process

every_converter = pytest.mark.parametrize("cls", [AvroConverter, JsonSchemaConverter, ProtobufConverter])
STRATEGIES = "io.confluent.kafka.serializers.subject."


def user() -> tuple[Any, Any]:
    """A schema, made anew each time, as some sources do."""
    schema = s.struct({"id": s.INT32, "name": s.OPTIONAL_STRING}, name="com.acme.User")
    return schema, Struct(schema, {"id": 1, "name": "Ann"})


# --- how often --------------------------------------------------------------------------------------------------------


@every_converter
def test_ten_thousand_records_need_one_call_each_way(registry: StandIn, cls: type[RegistryConverter]) -> None:
    schema, value = user()
    writer, reader = configured(cls, registry.url), configured(cls, registry.url)
    data = {writer.from_connect("t", schema, value) for _ in range(10_000)}
    assert len(data) == 1
    assert [each.split("?")[0] for each in registry.requests] == ["POST /subjects/t-value/versions"]
    first = data.pop()
    for _ in range(10_000):
        reader.to_connect("t", first)
    assert [each.split("?")[0] for each in registry.requests[1:]] == ["GET /schemas/ids/1"]


@every_converter
def test_topics_with_one_schema_are_told_apart_in_errors(registry: StandIn, cls: type[RegistryConverter]) -> None:
    converter = configured(cls, registry.url)
    data = converter.from_connect("one", *user())
    assert data is not None
    converter.to_connect("one", data)
    for topic in ("other", "one"):
        with pytest.raises(DataError, match=f"of topic {topic}\\b"):
            converter.to_connect(topic, data[:-2])
    gets = [each.split("?")[0] for each in registry.requests if each.startswith("GET")]
    assert gets == ["GET /schemas/ids/1"], "the client keeps what it was given"


def test_equal_schemas_are_one_schema(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    for _ in range(50):
        converter.from_connect("t", *user())
    assert len(registry.requests) == 1


def test_a_full_cache_begins_anew(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url, schemas_cache_size=2)
    for name in ("A", "B", "C", "A"):
        schema = s.struct({"x": s.INT32}, name=name)
        converter.from_connect("t", schema, Struct(schema, {"x": 1}))
    assert converter._by_schema.cache_info().currsize <= 2


def test_a_refusal_is_remembered_for_a_while(registry: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.incompatible = True
    converter = configured(AvroConverter, registry.url)
    for _ in range(100):
        with pytest.raises(DataError, match="incompatible"):
            converter.from_connect("t", *user())
    assert len(registry.requests) == 1
    registry.incompatible = False
    later = time.monotonic() + client.REFUSED_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert converter.from_connect("t", *user()) is not None


# --- what is refused --------------------------------------------------------------------------------------------------


@every_converter
def test_an_incompatible_schema(registry: StandIn, cls: type[RegistryConverter]) -> None:
    registry.incompatible = True
    with pytest.raises(DataError, match=r"topic t, subject t-value: .*incompatible.* \(HTTP 409\)"):
        configured(cls, registry.url).from_connect("t", *user())


@every_converter
def test_an_id_that_the_registry_does_not_know(registry: StandIn, cls: type[RegistryConverter]) -> None:
    with pytest.raises(DataError, match=r"to give schema 9: topic t, subject t-key: Schema 9 not found \(HTTP 404\)"):
        configured(cls, registry.url, is_key=True).to_connect("t", b"\0\0\0\0\x09\0")


@pytest.mark.parametrize("registered", [True, False])
def test_a_schema_that_must_be_there_already(registry: StandIn, registered: bool) -> None:
    if registered:
        configured(AvroConverter, registry.url).from_connect("t", *user())
        registry.requests.clear()
    converter = configured(AvroConverter, registry.url, auto_register_schemas=False)
    if registered:
        assert converter.from_connect("t", *user()) is not None
    else:
        with pytest.raises(DataError, match=r"to find a schema: topic t, subject t-value: Subject 't-value' not found"):
            converter.from_connect("t", *user())
    assert [each.split("?")[0] for each in registry.requests] == ["POST /subjects/t-value"]


def test_no_latest_version(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url, auto_register_schemas=False, use_latest_version=True)
    with pytest.raises(DataError, match="to give its latest schema: topic t, subject t-value"):
        converter.from_connect("t", *user())


def test_registering_goes_before_the_latest_version(registry: StandIn) -> None:
    configured(AvroConverter, registry.url, use_latest_version=True).from_connect("t", *user())
    assert registry.requests[0].startswith("POST /subjects/t-value/versions")


def test_normalizing_is_left_to_the_registry(registry: StandIn) -> None:
    configured(AvroConverter, registry.url, normalize_schemas=True).from_connect("t", *user())
    assert registry.requests == ["POST /subjects/t-value/versions?normalize=True"]


def test_a_schema_of_another_kind(registry: StandIn) -> None:
    registry.add("t-value", json.dumps({"type": "string"}), "JSON")
    with pytest.raises(DataError, match="is JSON: topic t, subject t-value, which needs JsonSchemaConverter"):
        configured(AvroConverter, registry.url).to_connect("t", b"\0\0\0\0\x01\0")


# --- what may be tried again ------------------------------------------------------------------------------------------


@every_converter
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_in_trouble(registry: StandIn, cls: type[RegistryConverter], status: int) -> None:
    registry.fail_with = status
    converter = configured(cls, registry.url)
    with pytest.raises(RetriableError, match=rf"topic t, subject t-value: told to fail \(HTTP {status}\)"):
        converter.from_connect("t", *user())
    with pytest.raises(RetriableError, match=r"to give schema 1"):
        converter.to_connect("t", b"\0\0\0\0\x01\0")
    registry.fail_with = None
    assert converter.from_connect("t", *user()) is not None


@every_converter
def test_a_registry_that_is_not_there(cls: type[RegistryConverter]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        converter = configured(cls, f"http://me:secret@127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(
            RetriableError, match="gave no answer to register a schema: topic t, subject t-value"
        ) as found:
            converter.from_connect("t", *user())
    assert "secret" not in str(found.value)


def test_a_registry_that_does_not_answer_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        converter = configured(AvroConverter, url, http_read_timeout_ms=50)
        with pytest.raises(RetriableError, match="Timeout"):
            converter.to_connect("t", b"\0\0\0\0\x01\0")


# --- login ------------------------------------------------------------------------------------------------------------


def test_login(registry: StandIn) -> None:
    registry.user = "me:secret"
    with_user: dict[str, Any] = {"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "me:secret"}
    in_url = registry.url.replace("//", "//me:secret@")
    assert configured(AvroConverter, registry.url, **with_user).from_connect("t", *user()) is not None
    assert configured(AvroConverter, in_url).from_connect("t", *user()) is not None
    wrong = {**with_user, "basic_auth_user_info": "me:guess"}
    for config in ({}, wrong):
        with pytest.raises(DataError, match=r"topic t, subject t-value: Unauthorized \(HTTP 401\)") as found:
            configured(AvroConverter, registry.url, **config).from_connect("t", *user())
        assert "guess" not in str(found.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"basic.auth.credentials.source": "USER_INFO"}, "needs basic.auth.user.info"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "String must be one of: URL, USER_INFO"),
        ({"basic.auth.user.info": "nobody"}, "cannot be made: basic.auth.user.info must be"),
        ({"schema.registry.url": "localhost:8081"}, "Expected URLs that start with http"),
        ({"schema.registry.url": ""}, "String must be non-empty"),
        ({"schema.registry.ssl.ca.location": "nowhere.pem"}, "cannot be made: "),
        ({"schema.registry.ssl.key.location": "nowhere.pem"}, "ssl.certificate.location required"),
        ({"schema.registry.ssl.truststore.location": "x.jks"}, "Only PEM can be read here"),
        ({"value.subject.name.strategy": "com.acme.Mine"}, "String must be one of"),
        ({"schemas.cache.config": "0"}, "Value must be at least 1"),
        ({"schemas.cache.size": "0"}, "Value must be at least 1"),
    ],
    ids=str,
)
def test_what_cannot_be_configured(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AvroConverter().configure({"schema.registry.url": "http://127.0.0.1:1", **config}, is_key=False)


def test_a_url_is_needed() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "schema.registry.url"'):
        AvroConverter().configure({}, is_key=False)


def test_a_pem_truststore_is_the_ca(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text("no certificate")
    config = {"schema.registry.ssl.truststore.location": str(pem), "schema.registry.ssl.truststore.type": "PEM"}
    with pytest.raises(ConfigError, match="cannot be made: "):  # it was read, and is none
        AvroConverter().configure({"schema.registry.url": "https://127.0.0.1:1", **config}, is_key=False)


# --- subjects ---------------------------------------------------------------------------------------------------------


@every_converter
@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (f"{STRATEGIES}TopicNameStrategy", "t-value"),
        (f"{STRATEGIES}RecordNameStrategy", "com.acme.User"),
        (f"{STRATEGIES}TopicRecordNameStrategy", "t-com.acme.User"),
        ("RecordNameStrategy", "com.acme.User"),
    ],
)
def test_names_of_subjects(registry: StandIn, cls: type[RegistryConverter], strategy: str, subject: str) -> None:
    converter = configured(cls, registry.url, value_subject_name_strategy=strategy)
    data = converter.from_connect("t", *user())
    assert list(registry.subjects) == [subject]
    assert converter.to_connect("t", data)[1]["id"] == 1


def test_subjects_of_keys(registry: StandIn) -> None:
    configured(AvroConverter, registry.url, is_key=True).from_connect("t", s.STRING, "k")
    config = {"key_subject_name_strategy": "RecordNameStrategy"}
    configured(AvroConverter, registry.url, is_key=True, **config).from_connect("t", *user())
    assert list(registry.subjects) == ["t-key", "com.acme.User"]


def test_a_value_without_name_has_no_record_subject(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url, value_subject_name_strategy="RecordNameStrategy")
    with pytest.raises(DataError, match="The schema of the value for topic t has no record name"):
        converter.from_connect("t", s.STRING, "x")


def test_topics_of_any_name(registry: StandIn) -> None:
    configured(AvroConverter, registry.url).from_connect("a/b c", *user())
    assert list(registry.subjects) == ["a/b c-value"]


# --- bytes of others --------------------------------------------------------------------------------------------------


@every_converter
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1}', "Unknown magic byte! Data of topic orders starts with 0x7b"),
        (b"\x01\x00\x00\x00\x01", "Unknown magic byte! Data of topic orders"),
        (b"\x00\x00\x00\x01", "Bytes of topic orders are too short for a schema id"),
        (b"", "Bytes of topic orders are too short for a schema id"),
    ],
)
def test_bytes_that_no_serializer_wrote(
    registry: StandIn, cls: type[RegistryConverter], data: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        configured(cls, registry.url).to_connect("orders", data)
    assert registry.requests == []
