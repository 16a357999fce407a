"""Retry-After: how long a server asks to be left alone."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile("[0-9]{1,10}")


def retry_after_s(text: str | None, now: float) -> float | None:
    """In seconds from `now`, which are those since the epoch; None where nothing is asked, or nothing that can be
    understood. The header has seconds or a date of HTTP's."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip()):
        return float(text)
    try:
        when = parsedate_to_datetime(text)
        # HTTP's dates are all GMT, also those that do not say so.
        return max(0.0, (when if when.tzinfo else when.replace(tzinfo=dt.UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return None
