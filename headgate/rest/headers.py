"""Extra response headers by the rules of `response.http.headers.config`.

A rule is `<action> <name>:<value>`; rules are separated by commas, and one that has a comma itself stands in double
quotes: `add X-Frame-Options: DENY, "set Cache-Control: no-cache, no-store", setDate Expires: 86400000`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.api.errors import ConfigError

KEY: Final = "response.http.headers.config"

_RULES: Final = re.compile(r'\s*(?:"([^"]*)"|([^",]*))\s*(?:,|$)')
_RULE: Final = re.compile(r"(?P<action>\w+)\s+(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*:\s*(?P<value>[^\r\n]*)")


class Action(Enum):
    SET = "set"
    ADD = "add"
    SET_DATE = "setDate"
    ADD_DATE = "addDate"


@dataclass(frozen=True, slots=True)
class HeaderRule:
    action: Action
    name: str
    value: str
    """The text of the header; for dates, milliseconds from now."""

    def apply(self, headers: MutableHeaders, now: float) -> None:
        dated = self.action in (Action.SET_DATE, Action.ADD_DATE)
        text = formatdate(now + int(self.value) / 1000, usegmt=True) if dated else self.value
        if self.action in (Action.SET, Action.SET_DATE):
            headers[self.name] = text
        else:
            headers.append(self.name, text)


def parse_rules(text: str) -> tuple[HeaderRule, ...]:
    """Raises ConfigError."""
    rules = []
    position = 0
    while position < len(text):
        found = _RULES.match(text, position)
        if found is None:
            raise ConfigError.invalid(KEY, text, f"Cannot read the rule at '{text[position:].strip()}'")
        rules.append(_parse_rule((found[1] or found[2] or "").strip()))
        position = found.end()
    return tuple(rules)


def _parse_rule(text: str) -> HeaderRule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConfigError.invalid(KEY, text, "Expected '[action] [header name]:[header value]'")
    action = next((each for each in Action if each.value.lower() == found["action"].lower()), None)
    if action is None:
        known = ", ".join(each.value for each in Action)
        raise ConfigError.invalid(KEY, text, f"Invalid action '{found['action']}', expected one of: {known}")
    value = found["value"].strip()
    if action in (Action.SET_DATE, Action.ADD_DATE) and not re.fullmatch(r"[+-]?[0-9]{1,15}", value):
        raise ConfigError.invalid(KEY, text, "A date is given in milliseconds from now")
    return HeaderRule(action, found["name"], value)


@dataclass(frozen=True, slots=True)
class ResponseHeaders:
    """ASGI middleware that applies the rules to every response."""

    app: ASGIApp
    rules: Sequence[HeaderRule]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for rule in self.rules:
                    rule.apply(headers, time.time())
            await send(message)

        await self.app(scope, receive, with_headers)
