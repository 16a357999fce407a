"""/connectors/{connector}/offsets: `rest.md` section 6 (KIP-875), as changed by `decisions.md`."""

from __future__ import annotations

from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.runtime.errors import BadRequest, NotStopped, OffsetsError
from headgate.runtime.ports import OffsetsLost

PARTITION = {"filename": "/d/in.txt"}
NEEDED = "Partitions / offsets need to be provided for an alter offsets request"


@pytest.mark.kip(875, "reading offsets: response format, symmetrical to that of altering")
def test_offsets_are_read_as_a_list_of_partitions_with_offsets(client: TestClient, herder: FakeHerder) -> None:
    assert client.get("/connectors/a/offsets").json() == {"offsets": []}
    herder.stored_offsets = [(PARTITION, {"position": 9}), ({"kafka_topic": "t", "kafka_partition": 0}, {"big": 2**70})]
    response = client.get("/connectors/a/offsets")
    assert response.status_code == 200
    assert response.json() == {
        "offsets": [
            {"partition": PARTITION, "offset": {"position": 9}},
            {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"big": 2**70}},
        ]
    }
    assert client.patch("/connectors/a/offsets", json=response.json()).status_code == 200
    assert herder.calls[-1] == ("alter_offsets", "a", herder.stored_offsets)


@pytest.mark.kip(875, "an offset of null resets that partition")
@pytest.mark.parametrize(
    ("entry", "passed"),
    [
        ({"partition": PARTITION, "offset": {"position": 9}}, (PARTITION, {"position": 9})),
        ({"partition": PARTITION, "offset": None}, (PARTITION, None)),
        ({"partition": PARTITION}, (PARTITION, None)),
        ({"partition": None, "offset": {"kafka_offset": 1}}, (None, {"kafka_offset": 1})),
        ({"partition": {}, "offset": {}}, ({}, {})),
        (
            {"partition": {"b": True, "n": None, "f": 1.5, "l": [1, {"x": 2}]}, "offset": {"s": "5"}},
            ({"b": True, "n": None, "f": 1.5, "l": [1, {"x": 2}]}, {"s": "5"}),
        ),
    ],
)
def test_offsets_are_passed_on_as_values(
    client: TestClient, herder: FakeHerder, entry: dict[str, Any], passed: tuple[Any, Any]
) -> None:
    response = client.patch("/connectors/a/offsets", json={"offsets": [entry, entry]})
    assert response.status_code == 200
    assert response.json() == {"message": "The offsets for this connector have been altered successfully"}
    assert herder.calls == [("alter_offsets", "a", [passed, passed])]
    assert all(type(value) in (int, float, str, bool, list, type(None)) for value in (passed[0] or {}).values())


@pytest.mark.kip(875, "DELETE /connectors/{connector}/offsets resets")
def test_offsets_can_be_reset(client: TestClient, herder: FakeHerder) -> None:
    response = client.delete("/connectors/a/offsets")
    assert response.status_code == 200
    assert response.json() == {"message": "The offsets for this connector have been reset successfully"}
    assert herder.calls == [("reset_offsets", "a")]


@pytest.mark.kip(875, "viewing the in-memory offsets to recover from accidental deletion of the offsets topic")
def test_offsets_whose_topic_was_deleted_are_read_from_memory_and_not_changed(
    client: TestClient, herder: FakeHerder
) -> None:
    lost = OffsetsLost("connect-offsets", [(PARTITION, {"position": 9})])
    herder.errors = dict.fromkeys(("offsets", "alter_offsets", "reset_offsets"), lost)
    response = client.get("/connectors/a/offsets")
    assert (response.status_code, response.headers["Warning"]) == (
        200,
        '199 - "from memory: topic connect-offsets of source offsets was deleted"',
    )
    assert response.json() == {"offsets": [{"partition": PARTITION, "offset": {"position": 9}}]}
    for refused in (
        client.delete("/connectors/a/offsets"),
        client.patch("/connectors/a/offsets", json=response.json()),
    ):
        assert refused.status_code == 500
        assert "Topic connect-offsets of source offsets was deleted" in refused.json()["message"]
    herder.errors = {}
    assert "Warning" not in client.get("/connectors/a/offsets").headers


@pytest.mark.kip(875, "404 if the connector does not exist")
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_offsets_of_an_unknown_connector_are_404(client: TestClient, method: str) -> None:
    body: Any = {"offsets": [{"partition": {}}]} if method == "PATCH" else None
    response = client.request(method, "/connectors/x/offsets", json=body)
    assert (response.status_code, response.json()["message"]) == (404, "Connector x not found")


@pytest.mark.kip(875, "400 if the connector is not stopped, 500 with the exception's message if anything fails")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotStopped("a"), 400),
        (BadRequest("Offsets may only use String keys"), 400),
        (OffsetsError("Failed to alter consumer group offsets for connector a"), 500),
    ],
)
@pytest.mark.parametrize(("method", "call"), [("PATCH", "alter_offsets"), ("DELETE", "reset_offsets")])
def test_refused_and_failed_changes_are_answered_with_the_reason(
    client: TestClient, herder: FakeHerder, method: str, call: str, error: Exception, status: int
) -> None:
    herder.errors[call] = error
    body: Any = {"offsets": [{"partition": {}}]} if method == "PATCH" else None
    response = client.request(method, "/connectors/a/offsets", json=body)
    assert (response.status_code, response.json()) == (status, {"error_code": status, "message": str(error)})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", NEEDED),
        ('{"offsets":null}', NEEDED),
        ('{"offsets":[]}', NEEDED),
        ("", "Request body is empty: expected JSON"),
        ("null", "request body must be an object, not null"),
        ("[]", "request body must be an object, not an array"),
        ('{"offsets":{}}', '"offsets" must be an array, not an object'),
        ('{"offsets":[{}]}', '"offsets"[0] has no partition: an entry needs a partition'),
        ('{"offsets":[{"offset":{}}]}', '"offsets"[0] has no partition: an entry needs a partition'),
        ('{"offsets":[5]}', '"offsets"[0] must be an object, not a number'),
        ('{"offsets":[null]}', '"offsets"[0] must be an object, not null'),
        (
            '{"offsets":[{"partition":{}},{"partition":"x"}]}',
            '"offsets"[1].partition must be an object or null, not a string',
        ),
        ('{"offsets":[{"partition":{},"offset":3}]}', '"offsets"[0].offset must be an object or null, not a number'),
        (
            '{"offsets":[{"partition":{},"offsets":3}]}',
            '"offsets"[0] has unknown fields: "offsets"; known fields are partition, offset',
        ),
        ('{"offsets":[{"partition":{}}],"x":1}', 'request body has unknown fields: "x"; known fields are offsets'),
        (
            '{"offsets":[{"partition":{"n":1e999}}]}',
            "Malformed JSON in request body: number is infinity when parsed as double: line 1 column 31 (char 30)",
        ),
    ],
)
def test_a_wrong_request_is_refused_with_what_is_wrong_and_where(
    client: TestClient, herder: FakeHerder, body: str, message: str
) -> None:
    response = client.patch("/connectors/a/offsets", content=body)
    assert (response.status_code, response.json()) == (400, {"error_code": 400, "message": message})
    assert herder.calls == []


def test_an_integer_of_thousands_of_digits_is_refused(client: TestClient) -> None:
    response = client.patch("/connectors/a/offsets", content='{"offsets":[{"partition":{"n":%s}}]}' % ("9" * 5000))
    assert response.status_code == 400
    assert "number is infinity" in response.json()["message"]
