"""A REST API into a topic, and from there to another one; what that refuses is a dead letter with its answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from dead_letters_support import Dead, committed, header, send
from harness import JSON, STRING, Client, await_
from http_server import Asked, HttpServer, Reply

pytestmark = pytest.mark.spark

SECRET = "a-token-of-tests"
SCHEMALESS = {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false"}
LOGIN = {"auth.type": "bearer", "auth.token": SECRET}
QUICK = {"poll.interval.ms": "50", "retry.backoff.ms": "20"}


class Shop:
    """Its orders, three on a page; and those that it was sent, of which it does not like all."""

    def __init__(self) -> None:
        self.orders = [{"id": f"o-{number}", "total": number / 2} for number in range(10)]
        self.server = HttpServer(self.answer)

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != f"Bearer {SECRET}":
            return Reply(401)
        if asked.method == "GET":
            start = int(asked.query.get("page", 0))
            more = {"Link": f'<?page={start + 3}>; rel="next"'} if start + 3 < len(self.orders) else {}
            return Reply(body={"orders": self.orders[start : start + 3]}, headers=more)
        if asked.path.endswith("o-7"):
            return Reply(422, {"error": "seven is refused", "heard": asked.headers["authorization"]})
        return Reply(201)

    @property
    def taken(self) -> list[tuple[str, str, float]]:
        sent = [asked for asked in self.server.asked if asked.method == "PUT" and not asked.path.endswith("o-7")]
        return [(asked.path, asked.json["id"], asked.json["total"]) for asked in sent]


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    with made.server:
        yield made


def test_records_go_from_one_api_to_another_and_what_is_refused_is_kept(
    client: Client, dead: Dead, name: str, topic: str, shop: Shop
) -> None:
    shop.server.replies = [Reply(503, headers={"Retry-After": "0"})]
    source = {
        "connector.class": "headgate.connectors.HttpSource", "url": f"{shop.server.url}/orders", "topic": topic,
        "records.pointer": "/orders", "key.pointer": "/id", "page.by": "link", **QUICK, **LOGIN, **SCHEMALESS,
    }  # fmt: skip
    sink = {
        "connector.class": "headgate.connectors.HttpSink", "url": f"{shop.server.url}/copies/${{key}}", "method": "PUT",
        "topics": topic, "errors.tolerance": "all", **QUICK, **LOGIN, **SCHEMALESS, **dead.config,
    }  # fmt: skip
    client.create(f"{name}-in", source)
    client.create(f"{name}-out", sink)
    expected = [
        (f"/copies/{order['id']}", order["id"], order["total"]) for order in shop.orders if order["id"] != "o-7"
    ]
    await_(lambda: shop.taken == expected, "all orders but one", 60)
    letter = dead.one()
    assert (letter.key(), letter.value()) == (b"o-7", b'{"id":"o-7","total":3.5}')
    said = header(letter, "exception.message")
    assert said.startswith(f"PUT {shop.server.url}/copies/o-7 was answered with 422 Unprocessable")
    assert said.endswith(': {"error": "seven is refused", "heard": "[hidden]"}')
    assert header(letter, "class.name") == "headgate.connectors.http.sink_task.HttpSinkTask"
    assert SECRET not in str(letter.headers())
    await_(lambda: committed(client, f"{name}-out") == 10, "the commit of all")
    partition = {"url": f"{shop.server.url}/orders"}
    offset = {"link": f"{shop.server.url}/orders?page=9", "records": 1}
    await_(lambda: client.offsets(f"{name}-in") == [{"partition": partition, "offset": offset}], "the offsets")
    # New orders, after a restart in the middle of a page.
    client.call("POST", f"/connectors/{name}-in/restart?includeTasks=true", 202)
    shop.orders += [{"id": "o-10", "total": 5.0}, {"id": "o-11", "total": 5.5}, {"id": "o-12", "total": 6.0}]
    expected += [(f"/copies/o-{number}", f"o-{number}", number / 2) for number in (10, 11, 12)]
    await_(lambda: shop.taken == expected, "the new orders", 60)
    # Once more from the third page.
    client.put(f"{name}-in", "stop")
    client.await_states(f"{name}-in", "STOPPED")
    altered = {"offsets": [{"partition": partition, "offset": {"link": f"{shop.server.url}/orders?page=9"}}]}
    client.call("PATCH", f"/connectors/{name}-in/offsets", 200, json=altered)
    client.put(f"{name}-in", "resume")
    expected += expected[-4:]
    await_(lambda: shop.taken == expected, "the last page again", 60)


def test_a_server_that_refuses_fails_the_task_and_tells_no_secret(
    client: Client, name: str, topic: str, shop: Shop, producer: Producer
) -> None:
    send(producer, topic, b'{"a": 1}')
    config = {"topics": topic, "url": shop.server.url, "auth.type": "bearer", "auth.token": "a-wrong-token"}
    client.create(name, {"connector.class": "HttpSink", **config, **SCHEMALESS})
    status = client.await_states(name, "RUNNING", "FAILED")
    trace = status["tasks"][0]["trace"]
    assert trace.startswith(f"ConnectError: POST {shop.server.url}/ was answered with 401 Unauthorized")
    assert "a-wrong-token" not in str(status)


def test_a_configuration_that_cannot_work_is_refused(client: Client, name: str) -> None:
    config = {
        "connector.class": "HttpSource",
        "url": "https://me:my-password@api.example",
        "topic": "t",
        "page.by": "cursor",
    }
    answer = client.create(name, config, expected=400)
    assert "set auth.type instead" in answer["message"]
    assert "my-password" not in answer["message"]
