"""Generated requests, good and bad, against the description: what we serve is what we say."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from rest_fakes import FakeHerder
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance

from headgate.rest.app import build_app
from headgate.rest.loggers import Loggers
from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process


def _api() -> BaseSchema:
    loggers = Loggers(logging.Manager(logging.RootLogger(logging.INFO)))
    app = build_app(FakeHerder("a").as_herder(), RestSettings(), metrics=lambda: b"up 1\n", loggers=loggers)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = _api()


@schema.parametrize()
@settings(max_examples=5, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_what_is_served_is_what_is_described(case: schemathesis.Case[Any]) -> None:
    # A path and a body can each be right and yet name two different plugins, which no schema can tell.
    beyond: Any = [positive_data_acceptance] if case.path.endswith("/validate") else []
    case.call_and_validate(excluded_checks=beyond)
