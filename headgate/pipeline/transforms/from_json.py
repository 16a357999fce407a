"""FromJson: bytes or text become the value that they are the JSON of, without a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError, Record
from headgate.api.frame import Frame, NotByColumns, Values
from headgate.pipeline.columns.refusing import refuse
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

    def apply_to_columns(self, frame: Frame) -> list[Frame]:
        data = self.take_columns(frame).data
        known = data.is_valid()
        made = []
        if data.null_count:
            made.append(self.put_columns(frame.where(pc.invert(known)), Values.nulls(data.null_count)))
        for rows, values in self._read(frame, data.filter(known), np.flatnonzero(known)):
            made.append(self.put_columns(frame.where(rows), values))
        return made

    def _read(self, frame: Frame, data: pa.Array, places: Any) -> Iterator[tuple[pa.Array, Values]]:
        """What is in these places of the frame, each with a mask of its rows."""
        if not len(data):
            return
        left = np.zeros(frame.count, bool)
        left[places] = True
        if not (pa.types.is_string(data.type) or pa.types.is_binary(data.type)):
            raise NotByColumns("neither bytes nor text", pa.array(left))
        read = getattr(self._json, "read_columns", None)
        if read is None:
            raise NotByColumns("JSON that is read one by one", pa.array(left))
        for group in read(frame.topic[0].as_py(), data.cast(pa.binary())):
            rows = np.zeros(frame.count, bool)
            rows[places[group.rows]] = True
            left &= ~rows
            yield pa.array(rows), group.values
        refuse("JSON of no common shape", pa.array(left))


class FromJsonKey(OfKey, FromJson):
    aliases = ("headgate.transforms.FromJson$Key",)


class FromJsonValue(OfValue, FromJson):
    aliases = ("headgate.transforms.FromJson$Value",)
