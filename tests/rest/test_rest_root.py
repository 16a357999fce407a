"""/, /health, /metrics and start-up: `rest.md` section 3, as changed by `decisions.md`."""

from __future__ import annotations

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate import __version__
from headgate.rest.app import build_app
from headgate.rest.settings import RestSettings
from headgate.runtime.errors import RequestTimeout, ShuttingDown
from headgate.runtime.herder import KafkaReach

STAGE = "The worker is currently starting connector a, which began at 2026-01-01T00:00:00.000Z."
KAFKA = {"reached": True, "since": "1970-01-01T00:00:00Z"}


@pytest.mark.parametrize("cluster", ["cluster-1", None])
def test_the_root_tells_whose_api_it_is_commit_cluster_and_our_own_version(
    client: TestClient, herder: FakeHerder, cluster: str | None
) -> None:
    herder.kafka_cluster_id = cluster
    response = client.get("/")
    assert response.status_code == 200
    assert list(response.json().items()) == [
        ("version", "4.3.1"),
        ("commit", "unknown"),
        ("kafka_cluster_id", cluster),
        ("headgate_version", __version__),
    ]


def test_a_worker_is_healthy_when_its_herder_got_to_the_check_in_ten_seconds(
    client: TestClient, herder: FakeHerder
) -> None:
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json() == {
        "status": "healthy",
        "message": "Worker has completed startup and is ready to handle requests.",
        "kafka": KAFKA,
        "warnings": [],
    }
    assert (herder.calls, herder.timeouts) == ([("noop",)], [10.0])


def test_a_worker_is_healthy_without_kafka_and_says_since_when_it_is_away(
    client: TestClient, herder: FakeHerder
) -> None:
    herder.kafka = KafkaReach(False, 1_700_000_000_000)
    response = client.get("/health")
    assert response.status_code == 200
    assert response.json()["kafka"] == {"reached": False, "since": "2023-11-14T22:13:20Z"}
    herder.kafka = None
    assert client.get("/health").json()["kafka"] is None


def test_a_worker_whose_topics_are_gone_is_unhealthy_and_says_why(client: TestClient, herder: FakeHerder) -> None:
    herder.trouble = lambda: "Topic connect-status was deleted."
    response = client.get("/health")
    expected = {"status": "unhealthy", "message": "Topic connect-status was deleted.", "kafka": KAFKA, "warnings": []}
    assert (response.status_code, response.json()) == (500, expected)


@pytest.mark.parametrize("error", [RequestTimeout("Request timed out"), ShuttingDown()])
@pytest.mark.parametrize(("stage", "suffix"), [(None, ""), (STAGE, f" {STAGE}")])
def test_a_herder_that_does_not_answer_is_unhealthy(
    client: TestClient, herder: FakeHerder, error: Exception, stage: str | None, suffix: str
) -> None:
    herder.errors["noop"] = error
    herder.stage = stage
    response = client.get("/health")
    text = "Worker was unable to handle this request and may be unable to handle other requests."
    assert (response.status_code, response.json()) == (
        500,
        {"status": "unhealthy", "message": text + suffix, "kafka": KAFKA, "warnings": []},
    )


@pytest.mark.parametrize(("stage", "suffix"), [(None, ""), (STAGE, f" {STAGE}")])
def test_a_starting_worker_says_so_at_once(
    client: TestClient, herder: FakeHerder, stage: str | None, suffix: str
) -> None:
    herder.ready = False
    herder.stage = stage
    message = "Worker is still starting up." + suffix
    response = client.get("/health")
    assert (response.status_code, response.json()) == (
        503,
        {"status": "starting", "message": message, "kafka": KAFKA, "warnings": []},
    )
    assert herder.calls == []


@pytest.mark.parametrize("ready", [True, False])
def test_warnings_stand_beside_the_rest_and_change_nothing(herder: FakeHerder, ready: bool) -> None:
    herder.ready = ready
    app = build_app(herder.as_herder(), RestSettings(), warnings=lambda: ["The certificate expires."])
    response = TestClient(app).get("/health")
    assert response.status_code == (200 if ready else 503)
    assert response.json()["warnings"] == ["The certificate expires."]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/connectors"), ("POST", "/connectors"), ("GET", "/nowhere"), ("DELETE", "/connectors/a")],
)
def test_during_start_up_every_other_path_answers_503_in_json(
    client: TestClient, herder: FakeHerder, method: str, path: str
) -> None:
    herder.ready = False
    response = client.request(method, path)
    assert response.status_code == 503
    assert response.json() == {"error_code": 503, "message": "Worker is still starting up."}
    assert response.headers["content-type"] == "application/json"
    assert herder.calls == []
    herder.ready = True
    assert client.request(method, path).status_code != 503


@pytest.mark.parametrize("accept", [None, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "text/html"])
def test_metrics_are_prometheus_text(client: TestClient, accept: str | None) -> None:
    response = client.get("/metrics", headers={} if accept is None else {"accept": accept})
    assert (response.status_code, response.text) == (200, "up 1\n")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
