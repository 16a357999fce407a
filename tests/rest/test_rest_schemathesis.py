"""Generated requests, good and bad, against the description: what we serve is what we say, to whomever."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from named_logins import RIGHTS, NamedLogins
from rest_fakes import FakeHerder
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from headgate.access.logins import Logins
from headgate.access.rights import Role
from headgate.rest.access import Access
from headgate.rest.app import build_app
from headgate.rest.loggers import Loggers
from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process

_BRIEF: Any = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def _api(access: Access | None = None, **headers: str) -> BaseSchema:
    loggers = Loggers(logging.Manager(logging.RootLogger(logging.INFO)))
    app = build_app(
        FakeHerder("a").as_herder(), RestSettings(), metrics=lambda: b"up 1\n", loggers=loggers, access=access
    )
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers)


schema = _api()
guarded = _api(Access(cast(Logins, NamedLogins()), lambda: RIGHTS), Authorization="admin")


def _beyond(case: schemathesis.Case[Any]) -> Any:
    # A path and a body can each be right and yet name two different plugins, which no schema can tell.
    return [positive_data_acceptance] if case.path.endswith("/validate") else []


@schema.parametrize()
@settings(max_examples=5, **_BRIEF)
def test_what_is_served_is_what_is_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(excluded_checks=_beyond(case))


@pytest.mark.parametrize("who", [role.word for role in Role])
@guarded.parametrize()
@settings(max_examples=2, **_BRIEF)
def test_so_it_is_for_every_role(case: schemathesis.Case[Any], who: str) -> None:
    # A request that is wrong only because it has no login is right with one.
    beyond = [*_beyond(case), negative_data_rejection]
    case.call_and_validate(headers={"Authorization": who}, excluded_checks=beyond)
