"""Keeps secrets out of the report: what a key's name gives away as one is shown in no text of anybody's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from headgate.log import HIDDEN, hide, is_secret_key, masked
from headgate.runtime.config import masking
from headgate.runtime.config.secrets import has_variables

_WITHIN: Final = re.compile(
    r"(?P<begin>\b(?:password|passwd|pwd|secret|token)\b\"?\s*(?:=\s*\"?|:\s*\"))[^\s\"&;,]+", re.IGNORECASE
)
_USER_INFO: Final = re.compile(r"(?P<begin>://[^\s/:@]+:)[^\s/@]+@")
_QUOTED: Final = re.compile(r'"([^"]+)"')


def hide_secrets(config: Mapping[str, str], more: Iterable[str] = ()) -> None:
    """From now on `shown` leaves out the values of keys that sound like secrets, and of `more` keys. Variables may be
    seen: they only say where a secret is."""
    told = {*more}
    values = [
        value for key, value in config.items() if (is_secret_key(key) or key in told) and not has_variables(value)
    ]
    hide(values)
    hide(quoted for value in values for quoted in _QUOTED.findall(value))  # passwords of a login module


def shown(text: str) -> str:
    """A text that others wrote, such as an error's, without secrets."""
    return _USER_INFO.sub(rf"\g<begin>{HIDDEN}@", _WITHIN.sub(rf"\g<begin>{HIDDEN}", masked(text)))


def without(text: str, key: str, value: str | None) -> str:
    """The message about a key, without its value if that is a secret: `shown` lets short ones pass."""
    if value and is_secret_key(key) and not has_variables(value):
        text = masking.without(text, value)
    return shown(text)
