"""Kafka client settings by Apache's Java names, as librdkafka takes them.

One table per kind of client. A key that is in a table is renamed and converted; a key that is in none is passed on as
it stands if librdkafka knows it, else it is reported as ignored: serializers, interceptors, metric reporters and other
things of the Java client have no meaning here. A number beyond librdkafka's range becomes the nearest one within it.
Only what would change the meaning of the user's configuration raises `ClientConfigError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from headgate.kafka.settings.errors import ClientConfigError
from headgate.kafka.settings.librdkafka import check, knows
from headgate.kafka.settings.security import LOGIN, TLS, login_settings, over_tls, tls_settings, with_login


class ClientKind(Enum):
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Translated:
    config: dict[str, Any]
    """For confluent_kafka's constructors. May hold passwords: do not log it."""
    ignored: tuple[str, ...]
    """Keys that have no meaning here, in the order they were given."""


Settings = dict[str, str]
Rule = Callable[[str, str], Settings]
"""From a Java key and its value to librdkafka's settings; none of them when the value needs no setting."""

INT: Final = 2**31 - 1

USUAL: Final[Mapping[str, Any]] = {"log_level": 0, "metadata.recovery.rebootstrap.trigger.ms": 5_000}
"""Of every client, unless it is told otherwise. librdkafka logs what it is about to put right by itself, many times a
second; what lasts is told as an error. And a broker that is about to end may say that there are no brokers: librdkafka
then forgets the last one, and has none until it begins anew with bootstrap.servers, after five minutes by default."""
ONE_AT_A_TIME: Final[Mapping[str, Any]] = {"max.in.flight.requests.per.connection": 1}
"""For producers without transactions, as Apache's workers have it. A broker that refuses a batch for a moment, as one
that does not lead a new partition yet, may take the next one that is under way, for it does not know the producer. From
that librdkafka concludes that it has the refused one, too: it would be lost without a word."""


def translate(kind: ClientKind, config: Mapping[str, str]) -> Translated:
    """`config` for a client of this kind. Needs no broker, makes no client. Raises ClientConfigError."""
    rules = _RULES[kind]
    others = frozenset[str]().union(*(table for other, table in _RULES.items() if other is not kind))
    made: Settings = dict(_DEFAULTS.get(kind, {}))
    ignored: list[str] = []
    for key, value in config.items():
        if key in rules:
            made |= rules[key](key, value.strip())
        elif TLS.match(key):
            if not over_tls(config):
                ignored.append(key)
        elif LOGIN.match(key):
            if not with_login(config):
                ignored.append(key)
        elif key in _MEANINGLESS or key in others or not knows(key):
            ignored.append(key)
        else:
            made[key] = value
    if over_tls(config):
        made |= tls_settings(config)
    if with_login(config):
        made |= login_settings(config)
    made |= _level(made.get("compression.type", "none"), config)
    check(made)
    _fit(kind, made)
    return Translated(dict(made), tuple(ignored))


# --- rules ------------------------------------------------------------------------------------------------------------


def _same(key: str, value: str) -> Settings:
    return {key: value}


def _number(low: int, high: int, *targets: str, divide: int = 1) -> Rule:
    def rule(key: str, value: str) -> Settings:
        number = -(-_integer(key, value) // divide)
        return {target: str(min(max(number, low), high)) for target in targets or (key,)}

    return rule


def _integer(key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ClientConfigError(f"{key} must be a whole number, not {value!r}.") from None


def _buffer_memory(key: str, value: str) -> Settings:
    # Java counts bytes only; librdkafka's own limit of 100,000 messages would be reached first by small records.
    return {
        **_number(1, INT, "queue.buffering.max.kbytes", divide=1024)(key, value),
        "queue.buffering.max.messages": "0",
    }


def _partitioner_class(key: str, value: str) -> Settings:
    name = value.rpartition(".")[2]
    if name in ("", "DefaultPartitioner"):
        return {}
    if name in ("RoundRobinPartitioner", "UniformStickyPartitioner"):
        return {"partitioner": "random"}  # what both are for: an even spread that does not look at the record's key
    raise ClientConfigError(
        f"{key} names {value}, a Java class, which cannot run here: leave it out for Kafka's default partitioner, or"
        " set partitioner to one of librdkafka's."
    )


def _partitioner_ignore_keys(key: str, value: str) -> Settings:
    return {"partitioner": "random"} if _boolean(key, value)[key] == "true" else {}


def _boolean(key: str, value: str) -> Settings:
    if value.lower() not in ("true", "false"):
        raise ClientConfigError(f"{key} must be true or false, not {value!r}.")
    return {key: value.lower()}


def _lower(key: str, value: str) -> Settings:
    return {key: value.lower()}


def _later(key: str, value: str) -> Settings:
    _integer(key, value)
    return {}  # what counts is made by `_level`


def _level(codec: str, config: Mapping[str, str]) -> Settings:
    """Java has a level for each codec, librdkafka one for the codec in use."""
    key = f"compression.{codec}.level"
    return _number(-1, 12, "compression.level")(key, config[key]) if key in config else {}


def _offset_reset(key: str, value: str) -> Settings:
    policy = value.lower()
    if policy in ("latest", "earliest"):
        return {key: policy}
    if policy == "none":
        return {key: "error"}
    raise ClientConfigError(f"{key} is {value!r}, which cannot be done here: use earliest, latest or none.")


def _assignors(key: str, value: str) -> Settings:
    given = [part.strip().rpartition(".")[2] for part in value.split(",") if part.strip()]
    known = [_ASSIGNORS.get(name, name) for name in given]
    if not known or not set(known) <= set(_ASSIGNORS.values()):
        raise ClientConfigError(
            f"{key} is {value!r}, which cannot be done here: use RangeAssignor, RoundRobinAssignor or"
            " CooperativeStickyAssignor of org.apache.kafka.clients.consumer."
        )
    # librdkafka refuses to mix; a Java consumer that is given both rebalances eagerly, so the eager ones stay.
    eager = [name for name in known if name != "cooperative-sticky"]
    return {key: ",".join(eager or known)}


_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def _identification(key: str, value: str) -> Settings:
    return {key: value.lower() or "none"}


def _cipher_suites(key: str, value: str) -> Settings:
    if re.search(r"(^|,)\s*(TLS|SSL)_", value):
        raise ClientConfigError(
            f"{key} holds Java's names of cipher suites: write OpenSSL's instead (`openssl ciphers -stdname` lists"
            " both), joined by colons."
        )
    return {key: value}


_COMMON: Final[Mapping[str, Rule]] = {
    "bootstrap.servers": _same,
    "client.id": _same,
    "client.dns.lookup": _same,
    "security.protocol": _same,
    "sasl.mechanism": _same,
    "sasl.kerberos.service.name": _same,
    "ssl.endpoint.identification.algorithm": _identification,
    "ssl.cipher.suites": _cipher_suites,
    # The longest wait for any answer; producers also tell the broker, below.
    "request.timeout.ms": _number(10, 300_000, "socket.timeout.ms"),
    # Java refreshes at this age. librdkafka's key of the same name is the age at which it forgets.
    "metadata.max.age.ms": _number(100, 3_600_000, "topic.metadata.refresh.interval.ms"),
    "reconnect.backoff.ms": _number(0, 3_600_000),
    "reconnect.backoff.max.ms": _number(0, 3_600_000),
    "retry.backoff.ms": _number(1, 300_000),
    "retry.backoff.max.ms": _number(1, 300_000),
    "socket.connection.setup.timeout.ms": _number(1000, INT),
    "connections.max.idle.ms": _number(0, INT),  # never: -1 in Java, 0 here
    "receive.buffer.bytes": _number(0, 100_000_000, "socket.receive.buffer.bytes"),  # the system's choice: -1, here 0
    "send.buffer.bytes": _number(0, 100_000_000, "socket.send.buffer.bytes"),
}

_RULES: Final[Mapping[ClientKind, Mapping[str, Rule]]] = {
    ClientKind.PRODUCER: {
        **_COMMON,
        "acks": _same,
        "enable.idempotence": _boolean,
        "transactional.id": _same,
        "transaction.timeout.ms": _number(1000, INT),
        "request.timeout.ms": lambda key, value: {
            **_number(10, 300_000, "socket.timeout.ms")(key, value),
            **_number(1, 900_000)(key, value),
        },
        "delivery.timeout.ms": _number(1, INT),  # 0 would mean for ever
        "max.in.flight.requests.per.connection": _number(1, 1_000_000),
        "retries": _number(0, INT),
        "linger.ms": _number(0, 900_000),
        "batch.size": _number(1, INT),
        "buffer.memory": _buffer_memory,
        "max.request.size": _number(1000, 1_000_000_000, "message.max.bytes"),
        "compression.type": _same,
        "compression.gzip.level": _later,
        "compression.lz4.level": _later,
        "compression.zstd.level": _later,
        "partitioner.class": _partitioner_class,
        "partitioner.ignore.keys": _partitioner_ignore_keys,
    },
    ClientKind.CONSUMER: {
        **_COMMON,
        "group.id": _same,
        "group.instance.id": _same,
        "group.protocol": _lower,
        "group.remote.assignor": _same,
        "client.rack": _same,
        "session.timeout.ms": _number(1, 3_600_000),
        "heartbeat.interval.ms": _number(1, 3_600_000),
        "max.poll.interval.ms": _number(1, 86_400_000),
        "enable.auto.commit": _boolean,
        "auto.commit.interval.ms": _number(0, 86_400_000),
        "auto.offset.reset": _offset_reset,
        "isolation.level": _lower,
        "check.crcs": _boolean,
        "allow.auto.create.topics": _boolean,
        "partition.assignment.strategy": _assignors,
        "fetch.min.bytes": _number(0, INT),
        "fetch.max.bytes": _number(1000, INT - 512),
        "fetch.max.wait.ms": _number(0, 300_000, "fetch.wait.max.ms"),
        "max.partition.fetch.bytes": _number(1, 1_000_000_000),
    },
    ClientKind.ADMIN: _COMMON,
}

# Where librdkafka's default would send records elsewhere, or hide some, than Apache's.
_DEFAULTS: Final[Mapping[ClientKind, Settings]] = {
    ClientKind.PRODUCER: {"partitioner": "murmur2_random"},
    ClientKind.CONSUMER: {"isolation.level": "read_uncommitted"},
}

_MEANINGLESS: Final = frozenset(
    {
        "max.poll.records",  # librdkafka has a key of this name, for share groups
        "default.topic.config",  # confluent_kafka's, takes no text
        # These let librdkafka load a library or run a command: not for whoever may write a connector's configuration.
        "plugin.library.paths",
        "ssl.engine.location",
        "ssl.providers",
        "sasl.kerberos.kinit.cmd",
        "offset.store.method",  # and this would let it write a file
        "offset.store.path",
    }
)


def _fit(kind: ClientKind, made: Settings) -> None:
    """Settle what is free in Java but must fit together in librdkafka."""

    def number(key: str, default: int) -> int:
        return _integer(key, made.get(key, str(default)))

    def at_least(key: str, floor: str, default: int) -> None:
        if floor in made and number(key, default) < number(floor, default):
            made[key] = made[floor]

    def at_most(key: str, ceiling: int) -> None:
        if number(key, ceiling) > ceiling:
            made[key] = str(ceiling)

    at_least("reconnect.backoff.max.ms", "reconnect.backoff.ms", 10_000)
    at_least("retry.backoff.max.ms", "retry.backoff.ms", 1000)
    if kind is ClientKind.CONSUMER and number("fetch.max.bytes", INT) < 1_000_000:
        made["message.max.bytes"] = made["fetch.max.bytes"]
    if "transactional.id" in made:
        transaction = number("transaction.timeout.ms", 60_000)
        at_most("delivery.timeout.ms", transaction)  # a record cannot outlive its transaction
        at_most("socket.timeout.ms", transaction)
