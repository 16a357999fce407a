"""The Accept header: whether the client takes the one media type we have."""

from __future__ import annotations

from collections.abc import Iterable


def accepts(headers: Iterable[str], media_type: str) -> bool:
    """False only if the headers name ranges and none of them lets `media_type` in; the most precise range decides."""
    ranges = [_parse(text) for header in headers for text in header.split(",") if text.strip()]
    if not ranges:
        return True
    family = media_type.partition("/")[0] + "/*"
    # Java's HttpURLConnection writes a bare * for "anything".
    precision = {media_type: 3, family: 2, "*/*": 1, "*": 1}
    fitting = [(precision[name], quality) for name, quality in ranges if name in precision]
    return bool(fitting) and max(fitting)[1] > 0


def _parse(text: str) -> tuple[str, float]:
    name, *params = (part.strip().lower() for part in text.split(";"))
    for param in params:
        key, _, value = param.partition("=")
        if key.strip() == "q":
            try:
                return name, float(value)
            except ValueError:
                return name, 1.0  # An unreadable quality is no reason to refuse.
    return name, 1.0
