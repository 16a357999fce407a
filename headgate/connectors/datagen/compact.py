"""Compact: a schema in our own notation, such as `id sequence, user long(1, 99), city city by user, note word ?0.2`."""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, get_type_hints

from headgate.connectors.datagen.generator import BadSchema, Generator, NullableValues, check_text
from headgate.connectors.datagen.nested import DEEPEST, StructMember, Structs
from headgate.connectors.datagen.recipes import RECIPES

LIKE: Final = "like"
"""Instead of a recipe: like another field."""
_BY: Final = "by"
_NULL: Final = 0.1
"""How often a field is null that may be, unless it is said."""
_TOKEN: Final = re.compile(
    r"\s+|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>[\w.:+\-]+)|(?P<sign>[(){},;=?])", re.DOTALL
)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WHOLE: Final = re.compile("-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def read_compact(text: str, name: str | None = None) -> Structs:
    """Raises BadSchema."""
    check_text(text)
    return _Reading(text).read(name)


class _Wrong(BadSchema):
    """With the place in it."""


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: Final = list(self._cut())
        self._at = 0
        self._depth = 0

    def read(self, name: str | None) -> Structs:
        return self._struct("", name)

    # --- tokens -------------------------------------------------------------------------------------------------------

    def _cut(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._wrong(at, f"{self._text[at]!r} has no meaning there")
            if found.lastgroup is not None:
                yield _Token(found.lastgroup, found[0], at)
            at = found.end()
        yield _Token("end", "", at)

    def _wrong(self, at: int, reason: object) -> _Wrong:
        before = self._text[:at]
        line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
        return _Wrong(f"line {line}, column {column}: {reason}")

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _takes(self, *signs: str) -> bool:
        """Whether one of these comes next, which is taken then."""
        found = self._next.kind == "sign" and self._next.text in signs
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected(f"a {sign}")

    def _unexpected(self, wanted: str) -> _Wrong:
        found = "the end" if self._next.kind == "end" else f"{self._next.text}"
        return self._wrong(self._next.at, f"{wanted} is expected there, not {found}")

    # --- fields -------------------------------------------------------------------------------------------------------

    def _struct(self, end: str, name: str | None = None) -> Structs:
        begun = self._next.at
        members: list[StructMember] = []
        known: dict[str, Generator] = {}
        while self._next.text != end:
            members.append(self._field(known))
            known[members[-1].name] = members[-1].generator
            if not self._takes(",", ";"):
                break
        if self._next.text != end:
            raise self._unexpected("a comma or the end")
        made: Structs = self._made(begun, lambda: Structs.of(members, name))
        return made

    def _field(self, before: Mapping[str, Generator]) -> StructMember:
        token = self._next
        if token.kind != "word" or not _NAME.fullmatch(token.text):
            raise self._unexpected("the name of a field")
        self._take()
        generator = self._generator(before)
        by = None
        if self._next == _Token("word", _BY, self._next.at):
            self._take()
            by = self._take().text
        if self._takes("?"):
            at = self._next.at
            probability = self._value(self._take(), float) if self._next.kind == "word" else _NULL
            generator = self._made(at, lambda: NullableValues.of(generator, probability))
        member = StructMember(token.text, generator, by)
        self._made(token.at, lambda: member.check(before))
        return member

    def _made(self, at: int, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except _Wrong:
            raise
        except BadSchema as error:
            raise self._wrong(at, error) from None

    # --- generators ---------------------------------------------------------------------------------------------------

    def _generator(self, known: Mapping[str, Generator]) -> Generator:
        self._depth += 1
        if self._depth > DEEPEST + 1:
            raise self._wrong(self._next.at, f"structs, arrays and maps are at most {DEEPEST} deep")
        made = self._shallow_generator(known)
        self._depth -= 1
        return made

    def _shallow_generator(self, known: Mapping[str, Generator]) -> Generator:
        if self._takes("{"):
            inner = self._struct("}")
            self._expect("}")
            return inner
        token = self._next
        if token.kind != "word":
            raise self._unexpected("a generator")
        self._take()
        if token.text == LIKE:
            return self._like(known)
        recipe = RECIPES.get(token.text)
        if recipe is None:
            raise self._wrong(token.at, f"there is no generator {token.text}; there are {', '.join((*RECIPES, LIKE))}")
        arguments = self._arguments(token, recipe) if self._takes("(") else {}
        missing = [each.name for each in inspect.signature(recipe).parameters.values() if each.default is each.empty]
        if any(name not in arguments for name in missing):
            raise self._wrong(token.at, f"{token.text} needs {' and '.join(missing)}")
        made: Generator = self._made(token.at, lambda: recipe(**arguments))
        return made

    def _like(self, known: Mapping[str, Generator]) -> Generator:
        self._expect("(")
        token = self._take()
        if token.text not in known:
            raise self._wrong(token.at, f"there is no field {token.text} before this one")
        self._expect(")")
        return known[token.text]

    def _arguments(self, of: _Token, recipe: Callable[..., Generator]) -> dict[str, Any]:
        """Up to the bracket that ends them."""
        kinds = {name: kind for name, kind in get_type_hints(recipe).items() if name != "return"}
        if set(kinds) == {"options"}:
            return {"options": self._options()}
        left = list(kinds)
        found: dict[str, Any] = {}
        while not self._takes(")"):
            token = self._next
            name = left[0] if left else None
            following = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
            if token.kind == "word" and following.text == "=" and following.kind == "sign":
                name = token.text if token.text in left else None
                self._at += 2
            if name is None:
                told = f"there are {', '.join(kinds)}" if kinds else "it has none"
                raise self._wrong(token.at, f"{of.text} has no such argument, or has it already: {told}")
            left.remove(name)
            if kinds[name] is Generator:
                found[name] = self._generator({})
            else:
                found[name] = self._value(self._take(), kinds[name])
            if not self._takes(",") and self._next.text != ")":
                raise self._unexpected("a comma or a )")
        return found

    def _options(self) -> dict[int | str, float]:
        """With their weights. What is quoted is a text, whatever it looks like."""
        found: dict[int | str, float] = {}
        while not self._takes(")"):
            token = self._take()
            option = self._value(token, int if token.kind == "word" and _WHOLE.fullmatch(token.text) else str)
            if option in found:
                raise self._wrong(token.at, f"{option!r} is there already")
            found[option] = self._value(self._take(), float) if self._takes("=") else 1.0
            if not self._takes(",") and self._next.text != ")":
                raise self._unexpected("a comma or a )")
        return found

    def _value(self, token: _Token, kind: Any) -> Any:
        if token.kind not in ("word", "text"):
            self._at -= token.kind != "end"
            raise self._unexpected("a value")
        text = re.sub(r"\\(['\"\\])", r"\1", token.text[1:-1]) if token.kind == "text" else token.text
        read, wanted = _KINDS[kind]
        try:
            return read(text)
        except (ValueError, OverflowError):
            raise self._wrong(token.at, f"{text} is not {wanted}") from None


def moment(text: str) -> dt.datetime:
    """A date or an instant; without a zone, UTC. Raises ValueError."""
    found = dt.datetime.fromisoformat(text)
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)


def _decimal(text: str) -> Decimal:
    """Raises ValueError; also for exponents, which may say numbers that no memory has room for."""
    if not re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text):
        raise ValueError(text)
    return Decimal(text)


_KINDS: Final[Mapping[Any, tuple[Callable[[str], Any], str]]] = {
    int: (int, "a whole number"),
    int | None: (int, "a whole number"),
    float: (float, "a number"),
    Decimal: (_decimal, "a number"),
    str: (str, "a text"),
    dt.datetime: (moment, "a date or an instant, such as 2024-01-31 or 2024-01-31T12:00:00Z"),
}


def described() -> Iterator[tuple[str, Sequence[str], str]]:
    """Of each recipe its name, its arguments with their defaults, and what it makes."""
    for name, recipe in RECIPES.items():
        arguments = [
            each.name if each.default in (each.empty, None) else f"{each.name}={_shown(each.default)}"
            for each in inspect.signature(recipe).parameters.values()
        ]
        yield name, arguments, inspect.getdoc(recipe) or ""


def _shown(default: object) -> str:
    return default.date().isoformat() if isinstance(default, dt.datetime) else str(default)
