"""ConfigDef: keys declared once, then parsed, validated and described from there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.java.regex import RegexError, compiled


class Type(Enum):
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 - the name of a type


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = Type

_RANGES: Final = {Type.SHORT: 15, Type.INT: 31, Type.LONG: 63}
_PASSWORD_SHOWN: Final = "[hidden]"  # noqa: S105 - shown in place of one


class Importance(Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


HIGH, MEDIUM, LOW = Importance


class Width(Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _Required(Enum):
    REQUIRED = "REQUIRED"


REQUIRED: Final = _Required.REQUIRED
"""The default of a key that must be given."""

Validator = Callable[[str, Any], None]
"""Gets the key's name and its parsed value; raises ConfigError."""


class Recommender:
    """Suggests values for a key, and hides it where it has no meaning, given the rest of the configuration."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return ()

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _Below(Recommender):
    """Of a plugin whose keys stand below a prefix."""

    prefix: str
    base: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return self.base.valid_values(name.removeprefix(self.prefix), self._own(parsed))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        return self.base.visible(name.removeprefix(self.prefix), self._own(parsed))

    def _own(self, parsed: Mapping[str, Any]) -> Mapping[str, Any]:
        return {key[len(self.prefix) :]: value for key, value in parsed.items() if key.startswith(self.prefix)}


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key."""

    name: str
    type: Type
    default: Any = REQUIRED
    validator: Validator | None = None
    importance: Importance = MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    """Keys whose recommended values or visibility depend on this one."""
    recommender: Recommender | None = None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, raw: object) -> Any:
        """The value of this type that `raw` stands for. Raises ConfigError."""
        return parse_value(self.name, self.type, raw)


@dataclass(slots=True)
class ConfigValue:
    """What validation found for one key."""

    name: str
    value: Any = None
    recommended_values: Sequence[Any] = ()
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered set of keys. `a + b` has the keys of both, those of `b` winning."""

    def __init__(self, *keys: Key) -> None:
        self._keys: dict[str, Key] = {key.name: key for key in keys}
        if len(self._keys) != len(keys):
            names = [key.name for key in keys]
            raise ValueError(f"keys declared twice: {sorted({n for n in names if names.count(n) > 1})}")

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> Key:
        return self._keys[name]

    def get(self, name: str) -> Key | None:
        return self._keys.get(name)

    def __add__(self, other: ConfigDef) -> ConfigDef:
        merged = ConfigDef()
        merged._keys = {**self._keys, **other._keys}
        return merged

    def embedded(self, prefix: str, group: str | None = None) -> ConfigDef:
        """These keys as part of a larger configuration: below `prefix`, in a group of their own if it has a name.
        Recommenders still see them, and nothing else, by their own names."""
        return ConfigDef(
            *(
                replace(
                    key,
                    name=prefix + key.name,
                    group=": ".join(filter(None, (group, key.group))) or None,
                    dependents=tuple(prefix + name for name in key.dependents),
                    recommender=None if key.recommender is None else _Below(prefix, key.recommender),
                )
                for key in self
            )
        )

    @property
    def names(self) -> list[str]:
        return list(self._keys)

    @property
    def groups(self) -> list[str]:
        """In the order of their first key."""
        return list(dict.fromkeys(key.group for key in self if key.group is not None))

    def parse(self, config: Mapping[str, object]) -> dict[str, Any]:
        """All declared keys with their typed values; keys not declared are left out. Raises the first ConfigError."""
        parsed = {}
        for key in self:
            value = config.get(key.name)
            if value is None and key.name not in config:
                if key.required:
                    raise ConfigError.missing(key.name)
                value = key.default
            parsed[key.name] = typed = key.parse(value)
            if key.validator is not None:
                key.validator(key.name, typed)
        return parsed

    def validate(self, config: Mapping[str, object]) -> list[ConfigValue]:
        """Every declared key with its value and all that is wrong with it; never raises for a bad value."""
        values = [self._validate_key(key, config) for key in self]
        parsed = {value.name: value.value for value in values}
        for key, value in zip(self, values, strict=True):
            if key.recommender is not None:
                try:
                    value.recommended_values = list(key.recommender.valid_values(key.name, parsed))
                    value.visible = key.recommender.visible(key.name, parsed)
                except ConfigError as error:
                    value.errors.append(str(error))
        named = dict.fromkeys(name for key in self for name in key.dependents if name not in self)
        missing = "is referred in the dependents, but not defined."
        return values + [ConfigValue(name, errors=[f"{name} {missing}"], visible=False) for name in named]

    @staticmethod
    def _validate_key(key: Key, config: Mapping[str, object]) -> ConfigValue:
        found = ConfigValue(key.name)
        if key.name in config:
            try:
                found.value = key.parse(config[key.name])
            except ConfigError as error:
                found.errors.append(str(error))
        elif key.required:
            found.errors.append(str(ConfigError.missing(key.name)))
        else:
            found.value = key.parse(key.default)
        # As in Kafka, a value that is missing or could not be parsed is validated too, as null.
        if key.validator is not None:
            try:
                key.validator(key.name, found.value)
            except ConfigError as error:
                found.errors.append(str(error))
        return found


def parse_value(name: str, kind: Type, raw: object) -> Any:
    """Text (or a value that has the type already) as a value of `kind`; None stays None."""
    if raw is None:
        return None
    text = raw.strip() if isinstance(raw, str) else None
    match kind:
        case Type.BOOLEAN:
            if isinstance(raw, bool):
                return raw
            if text is not None and text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise ConfigError.invalid(name, raw, "Expected value to be either true or false")
        case Type.STRING | Type.CLASS | Type.PASSWORD:
            if text is not None:
                return text
            raise ConfigError.invalid(name, raw, f"Expected value to be a string, but it was a {type(raw).__name__}")
        case Type.LIST:
            if isinstance(raw, list | tuple):
                return list(raw)
            if text is None:
                raise ConfigError.invalid(name, raw, "Expected a comma separated list.")
            return [item.strip() for item in text.split(",")] if text else []
        case Type.DOUBLE:
            return _parse_double(name, raw if text is None else text)
    return _parse_integer(name, kind, raw if text is None else text)


def _parse_integer(name: str, kind: Type, raw: object) -> int:
    limit = 1 << _RANGES[kind]
    # Java's parsers take an optional sign and ASCII digits: no blanks, underscores or other scripts' digits inside.
    is_text = isinstance(raw, str) and re.fullmatch(r"[+-]?[0-9]{1,20}", raw)
    if isinstance(raw, bool) or not (isinstance(raw, int) or is_text) or not -limit <= int(raw) < limit:  # type: ignore[call-overload]
        raise ConfigError.invalid(name, raw, f"Not a number of type {kind.value}")
    return int(raw)  # type: ignore[call-overload, no-any-return]


def _parse_double(name: str, raw: object) -> float:
    # Python would also take underscores, other scripts' digits and, as numbers, booleans.
    is_text = isinstance(raw, str) and re.fullmatch(r"[+-]?([0-9.]+([eE][+-]?[0-9]+)?[dDfF]?|NaN|Infinity)", raw)
    if is_text or (isinstance(raw, int | float) and not isinstance(raw, bool)):
        try:
            return float(raw.rstrip("dDfF") if isinstance(raw, str) else raw)  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            pass
    raise ConfigError.invalid(name, raw, "Not a number of type DOUBLE")


def text_of(kind: Type, value: Any) -> str | None:
    """How a value is shown in descriptions and validation results."""
    if value is None or value is REQUIRED:
        return None
    if kind is Type.PASSWORD:
        return _PASSWORD_SHOWN
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


# --- validators -------------------------------------------------------------------------------------------------------


def at_least(minimum: float) -> Validator:
    def check(name: str, value: Any) -> None:
        if value is None:
            raise ConfigError.invalid(name, value, "Value must be non-null")
        if value < minimum:
            raise ConfigError.invalid(name, value, f"Value must be at least {minimum}")

    return check


def one_of(*allowed: str) -> Validator:
    def check(name: str, value: Any) -> None:
        if value not in allowed:
            raise ConfigError.invalid(name, value, f"String must be one of: {', '.join(allowed)}")

    return check


def one_of_any_case(*allowed: str) -> Validator:
    lowered = {item.lower() for item in allowed}

    def check(name: str, value: Any) -> None:
        if value is None or str(value).lower() not in lowered:
            raise ConfigError.invalid(name, value, f"String must be one of (case insensitive): {', '.join(allowed)}")

    return check


def non_empty(name: str, value: Any) -> None:
    if value is not None and not value:
        raise ConfigError.invalid(name, value, "String must be non-empty")


def no_duplicates(name: str, value: Any) -> None:
    if value is not None and len(set(value)) != len(value):
        raise ConfigError.invalid(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


def valid_regex(name: str, value: Any) -> None:
    try:
        re.compile(value or "")
    except re.error as error:
        raise ConfigError.invalid(name, value, f"Invalid regular expression: {error}") from None


def java_regex(name: str, value: Any) -> None:
    """In Java's dialect, which Kafka's own keys are written in."""
    try:
        compiled(value or "")
    except RegexError as error:
        raise ConfigError.invalid(name, value, f"Invalid regex: {error}") from None


def or_null(validator: Validator) -> Validator:
    """For a key that need not be given."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            validator(name, value)

    return check


def all_of(*validators: Validator) -> Validator:
    def check(name: str, value: Any) -> None:
        for validator in validators:
            validator(name, value)

    return check
