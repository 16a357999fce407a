"""Address: where a request goes, taken apart so that it cannot mean one host to us and another to others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote_plus, urlencode, urljoin

from headgate.log import is_secret_key

# No credentials, no backslashes, nothing but ASCII: parsers disagree about all of these.
_URL: Final = re.compile(
    r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?((?:[/?][!-\"$-\[\]-~]*)?)", re.IGNORECASE
)
_PORTS: Final = {"http": 80, "https": 443}
_WHAT: Final = "It must be a URL such as https://api.example/orders"


@dataclass(frozen=True, slots=True)
class Address:
    scheme: str
    host: str
    port: int
    target: str
    """Path and query."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ValueError, whose words do not repeat the text: it may hold a password."""
        if "@" in re.split("[/?#]", text.partition("://")[2])[0]:
            raise ValueError("A URL with a user or a password in it would be seen by many: set auth.type instead")
        if "#" in text:
            raise ValueError("A URL without the part behind #, which is never sent")
        found = _URL.fullmatch(text)
        if found is None:
            raise ValueError(f"{_WHAT}, with all but ASCII characters percent-encoded")
        scheme, host, port, target = found[1].lower(), found[2].lower(), found[3], found[4]
        number = int(port) if port else _PORTS[scheme]
        if not 0 < number < 1 << 16:
            raise ValueError(f"{_WHAT}; its port is none")
        return cls(scheme, host, number, target if target.startswith("/") else f"/{target}")

    @property
    def url(self) -> str:
        return self._origin + self.target

    @property
    def shown(self) -> str:
        """For people and offsets: without the query, which may hold what is not for them."""
        return self._origin + self.path

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def _origin(self) -> str:
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @property
    def secrets(self) -> list[str]:
        """What the names of parameters give away as secrets, as it is written and as it is meant."""
        pairs = [each.partition("=") for each in self.target.partition("?")[2].split("&")]
        written = [value for name, _, value in pairs if value and is_secret_key(unquote_plus(name))]
        return [*written, *map(unquote_plus, written)]

    def resolve(self, reference: str) -> Address:
        """Where a link or a redirect in the answer leads. Raises ValueError."""
        return self.parse(urljoin(self.url, reference.strip()).partition("#")[0])

    def is_home_of(self, other: Address) -> bool:
        """Whether it is the same host and port, and what is sent there as safe as here."""
        upgraded = (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        same = (self.scheme, self.port) == (other.scheme, other.port)
        return self.host == other.host and (same or upgraded)

    def with_parameters(self, parameters: Mapping[str, str]) -> Address:
        """Of the query, in place of those with the same names; the others stay as they are written."""
        query = self.target.partition("?")[2]
        kept = [each for each in query.split("&") if each and unquote_plus(each.partition("=")[0]) not in parameters]
        whole = "&".join([*kept, *filter(None, [urlencode(parameters)])])
        return replace(self, target=f"{self.path}?{whole}" if whole else self.path)
