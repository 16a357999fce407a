"""Protobuf messages of Connect's values, and back: functions made once for each schema, as each record needs them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.java.numbers import wrap
from headgate.pipeline import logical
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.converters.registry.protobuf_connect import real_oneofs
from headgate.pipeline.schemas import BITS, inner

Fill = Callable[[Any, Any], None]
"""Puts a value into a message."""
Take = Callable[[Any], Any]
"""Takes a value out of what a message holds."""


def _same(value: Any) -> Any:
    return value


# --- to Protobuf ------------------------------------------------------------------------------------------------------


def filler(schema: Schema, descriptor: Any) -> Fill:
    """Fills a message of this descriptor with a struct of this schema. It raises DataError."""
    parts: list[tuple[str, Schema, Fill]] = []
    for member in schema.fields:
        within = member.schema
        put = _union(within, descriptor) if names.is_union(within) else _setter(member.name, within, descriptor)
        parts.append((member.name, within, put))

    def fill(message: Any, value: Struct) -> None:
        for (name, its_schema, put), each in zip(parts, value.values, strict=True):
            found = its_schema.default if each is None else each
            try:
                if found is not None:
                    put(message, found)
                elif not its_schema.optional:
                    raise DataError(f"Found null value for non-optional schema {its_schema}")
            except DataError as error:
                error.within(name)
                raise

    return fill


def _union(schema: Schema, descriptor: Any) -> Fill:
    setters = [_setter(member.name, member.schema, descriptor) for member in schema.fields]

    def put(message: Any, value: Struct) -> None:
        for setter, each in zip(setters, value.values, strict=True):
            if each is not None:
                setter(message, each)
                return

    return put


def _setter(name: str, schema: Schema, descriptor: Any) -> Fill:
    field = descriptor.fields_by_name.get(name)
    if field is None:
        raise DataError(f"Message {descriptor.full_name} has no field {name}")
    if schema.type is SchemaType.MAP:
        return _map_setter(name, schema, field.message_type)
    if schema.type is SchemaType.ARRAY:
        (items,) = inner(schema)
        return _array_setter(name, items, field)
    if field.message_type is not None:
        fill = _message_filler(schema, field.message_type)

        def put_message(message: Any, value: Any) -> None:
            found = getattr(message, name)
            found.SetInParent()
            fill(found, value)

        return put_message
    scalar = _scalar(schema, field)
    return lambda message, value: setattr(message, name, scalar(value))


def _array_setter(name: str, items: Schema, field: Any) -> Fill:
    def whole(value: Any) -> Any:
        if any(item is None for item in value):
            raise DataError(f"Array {name} has a null in it, which Protobuf does not have")
        return value

    if field.message_type is not None:
        fill = _message_filler(items, field.message_type)

        def put_messages(message: Any, value: Any) -> None:
            container = getattr(message, name)
            for item in whole(value):
                fill(container.add(), item)

        return put_messages
    scalar = _scalar(items, field)
    return lambda message, value: getattr(message, name).extend([scalar(item) for item in whole(value)])


def _map_setter(name: str, schema: Schema, entry: Any) -> Fill:
    keys, values = inner(schema)
    if not entry.GetOptions().map_entry:
        put_key, put_value = _setter("key", keys, entry), _setter("value", values, entry)

        def put(container: Any, key: Any, item: Any) -> None:
            made = container.add()
            put_key(made, key)
            put_value(made, item)
    elif (field := entry.fields_by_name["value"]).message_type is not None:
        fill = _message_filler(values, field.message_type)

        def put(container: Any, key: Any, item: Any) -> None:
            fill(container[key], item)
    else:
        scalar = _scalar(values, field)

        def put(container: Any, key: Any, item: Any) -> None:
            container[key] = scalar(item)

    def put_all(message: Any, value: Any) -> None:
        container = getattr(message, name)
        for key, item in value.items():
            if key is None or item is None:
                raise DataError(f"Map {name} has a null in it, which Protobuf does not have")
            put(container, key, item)

    return put_all


def _scalar(schema: Schema, field: Any) -> Take:
    if field.enum_type is not None:
        numbers = {each.name: each.number for each in field.enum_type.values}

        def number(value: str) -> int:
            if value not in numbers:
                raise DataError(f"{value!r} is no symbol of enum {field.enum_type.full_name}")
            return int(numbers[value])

        return number
    return bytes if schema.type is SchemaType.BYTES else _same


def _message_filler(schema: Schema, descriptor: Any) -> Fill:
    if schema.name == DECIMAL_NAME:
        return partial(_fill_decimal, schema)
    if found := _FILLS.get(schema.name or ""):
        return found
    if schema.type is SchemaType.STRUCT:
        return filler(schema, descriptor)
    return _setter("value", schema, descriptor)  # a wrapper


def _fill_decimal(schema: Schema, message: Any, value: Decimal) -> None:
    message.value = logical.bytes_of_decimal(schema, value)
    message.scale = logical.scale_of(schema)
    message.precision = len(value.as_tuple().digits)


def _fill_date(message: Any, value: dt.date) -> None:
    message.year, message.month, message.day = value.year, value.month, value.day


def _fill_time(message: Any, value: dt.time) -> None:
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * 1_000_000


def _fill_timestamp(message: Any, value: dt.datetime) -> None:
    message.seconds, rest = divmod(logical.ms_of(value), 1000)
    message.nanos = rest * 1_000_000


_FILLS: Final[Mapping[str, Fill]] = {DATE_NAME: _fill_date, TIME_NAME: _fill_time, TIMESTAMP_NAME: _fill_timestamp}


# --- from Protobuf ----------------------------------------------------------------------------------------------------


def taker(schema: Schema, descriptor: Any) -> Take:
    """Makes a struct of this schema of a message of this descriptor. It raises DataError."""
    marked = names.optional_fields(descriptor)
    unions = {f"{each.name}_{each.index}": each.name for each in real_oneofs(descriptor)}
    parts: list[Take] = []
    for member in schema.fields:
        if member.name in unions:
            parts.append(_union_taker(member.schema, unions[member.name], descriptor))
        else:
            field = descriptor.fields_by_name[member.name]
            may_miss = not field.is_repeated and (field.message_type is not None or member.name in marked)
            parts.append(_getter(member.schema, field, may_miss))

    def take(message: Any) -> Struct:
        values = []
        for member, part in zip(schema.fields, parts, strict=True):
            try:
                values.append(part(message))
            except DataError as error:
                error.within(member.name)
                raise
        return Struct.of(schema, values)

    return take


def _getter(schema: Schema, field: Any, may_miss: bool) -> Take:
    name, take = field.name, _taker(schema, field)
    if may_miss:
        return lambda message: take(getattr(message, name)) if message.HasField(name) else None
    return lambda message: take(getattr(message, name))


def _union_taker(schema: Schema, oneof: str, descriptor: Any) -> Take:
    takers = {
        each.name: (each.index, _getter(each.schema, descriptor.fields_by_name[each.name], False))
        for each in schema.fields
    }

    def take(message: Any) -> Struct | None:
        which = message.WhichOneof(oneof)
        if which is None:
            return None
        index, get = takers[which]
        values: list[Any] = [None] * len(takers)
        values[index] = get(message)
        return Struct.of(schema, values)

    return take


def _taker(schema: Schema, field: Any) -> Take:
    if schema.type is SchemaType.ARRAY:
        (items,) = inner(schema)
        item = _single(items, field)
        return list if item is _same else lambda found: list(map(item, found))
    if schema.type is SchemaType.MAP:
        return _map_taker(schema, field.message_type)
    return _single(schema, field)


def _map_taker(schema: Schema, entry: Any) -> Take:
    keys, values = inner(schema)
    key, item = _single(keys, entry.fields_by_name["key"]), _single(values, entry.fields_by_name["value"])
    if entry.GetOptions().map_entry:
        return lambda found: {key(name): item(each) for name, each in found.items()}
    return lambda found: {key(each.key): item(each.value) for each in found}


def _single(schema: Schema, field: Any) -> Take:
    if schema.name == DECIMAL_NAME:
        return partial(_take_decimal, schema)
    if known := _TAKES.get(schema.name or ""):
        return known
    if schema.type is SchemaType.STRUCT:
        return taker(schema, field.message_type)
    if field.message_type is not None:  # a wrapper
        take = _single(schema, field.message_type.fields_by_name["value"])
        return lambda found: take(found.value)
    if field.enum_type is not None:
        symbols = {each.number: each.name for each in field.enum_type.values}
        kind = field.enum_type.name
        return lambda found: symbols.get(found) or f"UNKNOWN_ENUM_VALUE_{kind}_{found}"
    # Protobuf has none of 8 and 16 bits, and Connect no unsigned ones, which 4 and 6 are.
    if schema.type in (SchemaType.INT8, SchemaType.INT16) or (schema.type is SchemaType.INT64 and field.type in (4, 6)):
        bits = BITS[schema.type]
        return lambda found: wrap(found, bits)
    return _same


def _take_decimal(schema: Schema, found: Any) -> Decimal:
    number = int.from_bytes(found.value, "big", signed=True)
    made = Decimal(number).scaleb(-found.scale) if found.value else Decimal(0)
    scale = logical.scale_of(schema)
    # Scales differ where the field's options do not tell; a struct must hold what its schema says.
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)) if found.scale == scale else made


def _take_date(found: Any) -> dt.date:
    try:
        return dt.date(found.year, found.month, found.day)
    except ValueError as error:
        raise DataError(f"Date is out of range: {found.year}-{found.month}-{found.day}") from error


def _take_time(found: Any) -> dt.time:
    try:
        return dt.time(found.hours, found.minutes, found.seconds, found.nanos // 1_000_000 * 1000)
    except ValueError as error:
        raise DataError(f"Time is out of range: {found.hours}:{found.minutes}:{found.seconds}") from error


def _take_timestamp(found: Any) -> dt.datetime:
    return logical.datetime_of(found.seconds * 1000 + found.nanos // 1_000_000)


_TAKES: Final[Mapping[str, Take]] = {DATE_NAME: _take_date, TIME_NAME: _take_time, TIMESTAMP_NAME: _take_timestamp}
