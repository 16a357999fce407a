"""Formats of files that folders may have, and which of Spark's options a configuration may set for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TEXT: Final = "text"
CSV: Final = "csv"
JSON: Final = "json"
PARQUET: Final = "parquet"

MODE: Final = "mode"
FAILFAST: Final = "FAILFAST"
_MODES: Final = ("PERMISSIVE", "DROPMALFORMED", FAILFAST)

_DATES: Final = ("dateFormat", "timestampFormat", "timestampNTZFormat", "locale", "timeZone")
_PARSED: Final = (MODE, "columnNameOfCorruptRecord", "samplingRatio", "encoding", "lineSep", "multiLine", *_DATES)

# None of them names a class, a file or a host: more than these is refused, whatever Spark will know one day.
ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    TEXT: ("lineSep", "wholetext"),
    CSV: (
        *_PARSED, "charset", "charToEscapeQuoteEscaping", "comment", "delimiter", "emptyValue", "enforceSchema",
        "escape", "header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "inferSchema", "maxCharsPerColumn",
        "maxColumns", "nanValue", "negativeInf", "nullValue", "positiveInf", "preferDate", "quote", "sep",
        "unescapedQuoteHandling",
    ),
    JSON: (
        *_PARSED, "allowBackslashEscapingAnyCharacter", "allowComments", "allowNonNumericNumbers",
        "allowNumericLeadingZeros", "allowSingleQuotes", "allowUnquotedControlChars", "allowUnquotedFieldNames",
        "dropFieldIfAllNull", "prefersDecimal", "primitivesAsString",
    ),
    PARQUET: ("datetimeRebaseMode", "int96RebaseMode"),
}  # fmt: skip


def refusal(kind: str, option: str, value: str) -> str | None:
    """Why a configuration may not set it; None: it may."""
    allowed = ALLOWED[kind]
    if option.lower() not in {each.lower() for each in allowed}:
        return f"Files of format {kind} have these options: {', '.join(sorted(allowed, key=str.lower))}"
    if option.lower() == MODE and value.strip().upper() not in _MODES:
        return f"It must be one of {', '.join(_MODES)}"
    return None


def reader_options(kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """What Spark is told. A record that cannot be read fails the task, unless the user wants it otherwise: Spark alone
    would make nulls of it without a word."""
    strict = {MODE: FAILFAST} if kind in (CSV, JSON) and MODE not in map(str.lower, given) else {}
    return {**given, **strict, "__globPaths__": "false"}


def is_pattern(path: str) -> bool:
    """Whether Spark would take it for a pattern. With `__globPaths__` it does not; but of several such paths it would
    then read each as often as there are paths, so that these must be read one by one."""
    return any(character in path for character in "{}[]*?\\")
