"""Names from the certificates of clients, by the rules that Kafka's brokers have in ssl.principal.mapping.rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.java.regex import RegexError, Replacement, compiled

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))?"
    r"\s*(?:,|$)"
)

# Attributes as OpenSSL and as Java name them. Java has numbers for all others, and their values as bytes.
_NAMES: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_NUMBERS: Final = {
    "businessCategory": "2.5.4.15",
    "description": "2.5.4.13",
    "dnQualifier": "2.5.4.46",
    "emailAddress": "1.2.840.113549.1.9.1",
    "generationQualifier": "2.5.4.44",
    "givenName": "2.5.4.42",
    "initials": "2.5.4.43",
    "name": "2.5.4.41",
    "organizationIdentifier": "2.5.4.97",
    "postalCode": "2.5.4.17",
    "pseudonym": "2.5.4.65",
    "serialNumber": "2.5.4.5",
    "surname": "2.5.4.4",
    "title": "2.5.4.12",
    "unstructuredName": "1.2.840.113549.1.9.2",
}
_UTF8, _PRINTABLE, _IA5 = 0x0C, 0x13, 0x16
_TYPES: Final = {"dnQualifier": _PRINTABLE, "emailAddress": _IA5, "serialNumber": _PRINTABLE}
"""Of strings, as certificates commonly have them: what Python gives does not tell."""


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: re.Pattern[str]
    replacement: Replacement
    case: str = ""
    """`L` or `U`: all letters become lower or upper ones."""

    def apply(self, subject: str) -> str | None:
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self.replacement, subject)
        return {"L": name.lower, "U": name.upper}.get(self.case, lambda: name)()


@dataclass(frozen=True, slots=True)
class CertificateRules:
    rules: tuple[Rule | None, ...]
    """None: DEFAULT, the subject as it is."""

    @classmethod
    def parse(cls, key: str, text: str) -> CertificateRules:
        """Raises ConfigError, where a broker would skip what is no rule and take a wrong `$3` as it stands."""
        rules: list[Rule | None] = []
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                what = f"From {text[position:]!r} on it is no list of DEFAULT and RULE:<pattern>/<replacement>/[L|U]"
                raise ConfigError.invalid(key, text, what)
            position = found.end()
            if found["default"]:
                rules.append(None)
            elif found["pattern"] is not None:
                try:
                    pattern = compiled(found["pattern"])
                    rules.append(Rule(pattern, Replacement(pattern, found["replacement"]), found["case"]))
                except RegexError as error:
                    raise ConfigError.invalid(key, text, f"{found[0].strip()} is no rule: {error}") from None
        if not rules:
            raise ConfigError.invalid(key, text, "There must be a rule, such as DEFAULT")
        return cls(tuple(rules))

    def name(self, subject: str) -> str | None:
        """By the first rule that matches; None: nobody's."""
        if not subject:
            return None
        for rule in self.rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name or None
        return None


def subject_of(certificate: Mapping[str, Any]) -> str:
    """As Java writes it, by RFC 2253: `CN=a,OU=b,O=c`. From what `ssl.SSLSocket.getpeercert` returns."""
    return ",".join(
        "+".join(_attribute(*each) for each in several) for several in reversed(certificate.get("subject", ()))
    )


def _attribute(name: str, value: str) -> str:
    if name in _NAMES:
        return f"{_NAMES[name]}={_escaped(value)}"
    number = _NUMBERS.get(name, name)
    if not number[0].isdigit():  # one more that OpenSSL knows: Java would write its number
        return f"{number}={_escaped(value)}"
    return f"{number}=#{_der(_TYPES.get(name, _UTF8), value.encode()).hex()}"


def _escaped(value: str) -> str:
    text = re.sub(r'([,=+<>#;"\\])', r"\\\1", value).replace("\0", r"\00")
    # Of blanks, those at the ends.
    return re.sub(r"^ +| +$", lambda blanks: r"\ " * len(blanks[0]), text)


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
