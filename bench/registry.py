"""A schema registry for both sides: for Headgate's converter as Confluent's is asked, for the peer's as Apicurio's is.

It is asked once for each schema, so that its speed does not matter.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

from registry_stand_in import StandIn


class Registry(StandIn):
    """Answers on a free port of the loopback address until `close`."""

    def answer(self, method: str, path: str, body: Any, login: str | None) -> tuple[int, Any]:
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match (method, *parts):
            case ("POST", "apis", "registry", "v2", "groups", group, "artifacts"):
                number = self.add(group, json.dumps(body))
                made = {"groupId": group, "id": "any", "version": "1", "type": "AVRO"}
                return 200, {**made, "globalId": number, "contentId": number}
            case ("GET", "apis", "registry", "v2", "ids", _, number):
                return 200, self.schema(int(number))
            case ("GET", "apis", "registry", "v2", "ids", _, _, "references"):
                return 200, []
        return super().answer(method, path, body, login)
