"""The description is true: same paths and methods as the routes, and examples that fit its own schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.rest.app import build_app
from headgate.rest.openapi import document
from headgate.rest.routing import Resource
from headgate.rest.settings import RestSettings

METHODS = ("get", "put", "post", "patch", "delete")
OURS_ALONE = {("/internal/members/{member}", "delete")}
"""Nothing that Kafka Connect has, and for nobody but our own workers."""


@pytest.fixture
def routes(herder: FakeHerder) -> list[Resource]:
    app = build_app(herder.as_herder(), RestSettings(), metrics=lambda: b"")
    return [route for route in app.routes if isinstance(route, Resource)]


@pytest.fixture
def described(client: TestClient) -> dict[str, Any]:
    found = client.get("/openapi.json")
    assert (found.status_code, found.headers["content-type"]) == (200, "application/json")
    body: dict[str, Any] = found.json()
    return body


def test_every_call_is_described_and_nothing_else(routes: list[Resource], described: dict[str, Any]) -> None:
    served = {(route.path, method.lower()) for route in routes for method in route.endpoints}
    assert served >= OURS_ALONE
    assert served - OURS_ALONE == {
        (path, method) for path, item in described["paths"].items() for method in item if method in METHODS
    }


def test_every_path_parameter_is_described(described: dict[str, Any]) -> None:
    for path, item in described["paths"].items():
        in_path = [segment.strip("{}") for segment in path.split("/") if segment.startswith("{")]
        assert [parameter["name"] for parameter in item.get("parameters", [])] == in_path


def test_operations_have_names_of_their_own(described: dict[str, Any]) -> None:
    names = [
        item[method]["operationId"] for item in described["paths"].values() for method in item if method in METHODS
    ]
    assert len(names) == len(set(names))


def _contents(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in described["paths"].items():
        for method in METHODS:
            call = item.get(method, {})
            bodies = [*call.get("responses", {}).values(), call.get("requestBody", {})]
            for body in bodies:
                for content in body.get("content", {}).values():
                    yield f"{method} {path}", content


def test_every_example_fits_its_schema(described: dict[str, Any]) -> None:
    checked = 0
    for where, content in _contents(described):
        schema = {**content["schema"], "components": described["components"]}
        for name, example in content.get("examples", {}).items():
            assert jsonschema_rs.is_valid(schema, example["value"]), f"{where}: example {name}"
            checked += 1
    assert checked > 20


def test_every_schema_is_used_and_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, each in value.items():
                if key == "$ref":
                    yield each.removeprefix("#/components/schemas/")
                else:
                    yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    assert set(references(described)) == set(described["components"]["schemas"])


def test_tags_in_use_are_explained(described: dict[str, Any]) -> None:
    used = {tag for item in described["paths"].values() for key in METHODS if key in item for tag in item[key]["tags"]}
    assert {tag["name"] for tag in described["tags"]} == used


def test_a_path_that_is_not_served_is_not_described() -> None:
    assert list(document({"/": {}})["paths"]) == ["/"]
