"""Which role somebody has: grants for names and groups, patterns of connectors and classes, files that are wrong."""

from __future__ import annotations

import pytest

from headgate.access.principal import ANYBODY, Principal
from headgate.access.rights import Rights, Role

ALICE = Principal("alice", "basic")
BOB = Principal("bob", "jwt", frozenset({"data", "ops"}))

RIGHTS = Rights.parse("""
    [[grant]]
    to = "alice"
    role = "viewer"

    [[grant]]
    to = ["alice", "group:data"]
    role = "editor"
    connectors = ["orders-*", "stock"]
    plugins = "*FileStream*"

    [[grant]]
    to = "group:ops"
    role = "admin"
    connectors = "orders-*"
""")
FILE = {"FileStreamSource", "org.apache.kafka.connect.file.FileStreamSourceConnector"}


@pytest.mark.parametrize(
    ("who", "connector", "classes", "role"),
    [
        (ALICE, "orders-eu", FILE, Role.EDITOR),
        (ALICE, "orders-eu", {"Mirror"}, Role.VIEWER),
        (ALICE, "stock", FILE, Role.EDITOR),
        (ALICE, "stocks", FILE, Role.VIEWER),
        (ALICE, "Orders-eu", FILE, Role.VIEWER),  # names differ by case, as in Kafka Connect
        (ALICE, None, None, Role.EDITOR),
        (BOB, "orders-eu", {"Mirror"}, Role.ADMIN),
        (BOB, "stock", FILE, Role.EDITOR),
        (BOB, "stock", {"Mirror"}, None),
        (BOB, "stock", None, Role.EDITOR),
        (Principal("data", "basic"), "stock", FILE, None),  # a group is not a name
        (Principal("group:data", "basic"), "stock", FILE, None),
        (Principal("carol", "basic", frozenset({"alice"})), "stock", FILE, None),  # nor a name a group
        (ANYBODY, "stock", FILE, None),
    ],
)
def test_the_highest_role_of_all_that_fits(
    who: Principal, connector: str | None, classes: set[str] | None, role: Role | None
) -> None:
    assert RIGHTS.role(who, connector, classes) is role


def test_the_worker_itself_is_for_those_whose_role_is_for_all_connectors() -> None:
    assert RIGHTS.role_everywhere(ALICE) is Role.VIEWER
    assert RIGHTS.role_everywhere(BOB) is None
    assert Rights.parse('[[grant]]\nto="*"\nrole="admin"\nplugins="a.*"').role_everywhere(ALICE) is None


def test_everybody_who_logged_in_is_a_star() -> None:
    rights = Rights.parse('[[grant]]\nto = "*"\nrole = "operator"')
    assert rights.role(ALICE, "any", {"Any"}) is Role.OPERATOR


def test_in_an_empty_file_nobody_is_anything() -> None:
    assert Rights.parse("").role(ALICE) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[grant]\nto='a'", "only \\[\\[grant\\]\\]"),
        ("[[grants]]\nto='a'", "only .* not grants"),
        ("grant = [1]", "grant 1 is no table"),
        ("[[grant]]\nrole='admin'", "grant 1 has no to"),
        ("[[grant]]\nto='a'", "grant 1 has no role"),
        ("[[grant]]\nto='a'\nrole='boss'", "must be one of viewer, operator, editor, admin"),
        ("[[grant]]\nto='a'\nrole=['admin']", "must be one of viewer"),
        ("[[grant]]\nto='a'\nrole='admin'\n[[grant]]\nto=[]\nrole='admin'", "grant 2: to must be a text"),
        ("[[grant]]\nto=[1]\nrole='admin'", "grant 1: to must be a text"),
        ("[[grant]]\nto=''\nrole='admin'", "grant 1: to must be a text"),
        ("[[grant]]\nto='a'\nrole='admin'\nconnector='x'", "connector is not known"),
        ("[[grant]]\nto=\nrole='admin'", "line 2"),
    ],
)
def test_a_file_that_is_wrong_says_where(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Rights.parse(text)
