"""FromJson: bytes or text become the value that they are the JSON of, without a schema."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api import DataError, Record
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.transforms.part import OfKey, OfValue, PartTransform


class FromJson(PartTransform):
    """For what is JSON and was not read by a JsonConverter, such as lines of a file. Null stays null."""

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._json = JsonConverter()
        self._json.configure({"schemas.enable": "false"})

    def apply(self, record: Record) -> Record:
        _, given = self.take(record)
        if given is None:
            return self.put(record, None, None)
        if not isinstance(given, str | bytes | bytearray | memoryview):
            raise DataError(f"Only bytes and text can be read as JSON, not a value of the class {type(given).__name__}")
        data = given.encode(errors="surrogatepass") if isinstance(given, str) else bytes(given)
        return self.put(record, *self._json.to_connect(record.topic, data))


class FromJsonKey(OfKey, FromJson):
    aliases = ("headgate.transforms.FromJson$Key",)


class FromJsonValue(OfValue, FromJson):
    aliases = ("headgate.transforms.FromJson$Value",)
