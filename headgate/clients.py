"""Kafka client settings by Apache's Java names, as librdkafka takes them.

One table per kind of client. A key that is in a table is renamed and converted; a key that is in none is passed on as
it stands if librdkafka knows it, else it is reported as ignored: serializers, interceptors, metric reporters and other
things of the Java client have no meaning here. A number beyond librdkafka's range becomes the nearest one within it.
Only what would change the meaning of the user's configuration raises `ClientConfigError`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from confluent_kafka import KafkaException, Producer


class ClientKind(Enum):
    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class ClientConfigError(ValueError):
    """A setting that cannot be done; the message is one sentence that says what to use instead."""


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

QUIET: Final[Mapping[str, Any]] = {"log_level": 3}
"""librdkafka warns of what it is about to put right by itself; what lasts comes through the error callback."""


def translate(kind: ClientKind, config: Mapping[str, str]) -> Translated:
    """`config` for a client of this kind. Needs no broker, makes no client. Raises ClientConfigError."""
    rules = _RULES[kind]
    others = frozenset[str]().union(*(table for other, table in _RULES.items() if other is not kind))
    made: Settings = dict(_DEFAULTS.get(kind, {}))
    ignored: list[str] = []
    for key, value in config.items():
        if key in rules:
            made |= rules[key](key, value.strip())
        elif _TLS.match(key):
            if not _over_tls(config):
                ignored.append(key)
        elif _LOGIN.match(key):
            if not _with_login(config):
                ignored.append(key)
        elif key in _MEANINGLESS or key in others or not _known(key):
            ignored.append(key)
        else:
            made[key] = value
    if _over_tls(config):
        made |= _ssl(config)
    if _with_login(config):
        made |= _sasl(config)
    made |= _level(made.get("compression.type", "none"), config)
    _check(made)
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
    names = [_ASSIGNORS.get(part.strip().rpartition(".")[2]) for part in value.split(",") if part.strip()]
    if not names or None in names:
        raise ClientConfigError(
            f"{key} is {value!r}, which cannot be done here: use RangeAssignor, RoundRobinAssignor or"
            " CooperativeStickyAssignor of org.apache.kafka.clients.consumer."
        )
    known = [name for name in names if name is not None]
    # librdkafka refuses to mix; a Java consumer that is given both rebalances eagerly, so the eager ones stay.
    eager = [name for name in known if name != "cooperative-sticky"]
    return {key: ",".join(eager or known)}


_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "range": "range",
    "roundrobin": "roundrobin",
    "cooperative-sticky": "cooperative-sticky",
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


# --- TLS --------------------------------------------------------------------------------------------------------------

# Keys that only count together, read by `_ssl` and `_sasl`.
_TLS: Final = re.compile(r"ssl\.(truststore|keystore)\.|ssl\.key\.password$")
_LOGIN: Final = re.compile(r"sasl\.jaas\.config$|sasl\..*\.callback\.handler\.class$")


def _over_tls(config: Mapping[str, str]) -> bool:
    return config.get("security.protocol", "").strip().upper().endswith("SSL")


def _with_login(config: Mapping[str, str]) -> bool:
    return config.get("security.protocol", "").strip().upper().startswith("SASL")


def _ssl(config: Mapping[str, str]) -> Settings:
    made: Settings = {}
    if path := config.get("ssl.truststore.location"):
        if _format("ssl.truststore.location", path, config.get("ssl.truststore.type")) != "PEM":
            raise ClientConfigError(
                f"ssl.truststore.location names {path}, a Java trust store, which cannot be read here: convert it with"
                f" `keytool -list -rfc -keystore {path} > ca.pem`, set ssl.truststore.location to ca.pem and"
                " ssl.truststore.type to PEM."
            )
        made["ssl.ca.location"] = path
    if certificates := config.get("ssl.truststore.certificates"):
        made["ssl.ca.pem"] = _pem("ssl.truststore.certificates", certificates)
    if path := config.get("ssl.keystore.location"):
        made |= _key_store(path, config)
    if chain := config.get("ssl.keystore.certificate.chain"):
        made["ssl.certificate.pem"] = _pem("ssl.keystore.certificate.chain", chain)
    if key := config.get("ssl.keystore.key"):
        made["ssl.key.pem"] = _pem("ssl.keystore.key", key)
    if password := config.get("ssl.key.password"):
        made["ssl.key.password"] = password
    return made


def _key_store(path: str, config: Mapping[str, str]) -> Settings:
    match _format("ssl.keystore.location", path, config.get("ssl.keystore.type")):
        case "PEM":  # the certificates and the key, in one file
            return {"ssl.certificate.location": path, "ssl.key.location": path}
        case "PKCS12":
            return {"ssl.keystore.location": path, "ssl.keystore.password": config.get("ssl.keystore.password", "")}
        case _:
            raise ClientConfigError(
                f"ssl.keystore.location names {path}, a JKS key store, which cannot be read here: convert it with"
                f" `keytool -importkeystore -srckeystore {path} -destkeystore client.p12 -deststoretype PKCS12`, set"
                " ssl.keystore.location to client.p12 and ssl.keystore.type to PKCS12."
            )


def _format(key: str, path: str, declared: str | None) -> str:
    """PEM, PKCS12 or JKS. The file is asked first: since Java 9, keytool makes PKCS12 files that are called JKS."""
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
    except OSError as error:
        stated = (declared or "").strip().upper()
        if stated in ("PEM", "PKCS12"):
            return stated
        raise ClientConfigError(f"{key} names {path}, which cannot be read: {error.strerror}.") from error
    if b"-----BEGIN " in head:
        return "PEM"
    return "PKCS12" if head.startswith(b"\x30") else "JKS"


def _pem(key: str, text: str) -> str:
    """OpenSSL wants the line breaks that Java can do without."""
    blocks = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", text, re.DOTALL)
    if not blocks:
        raise ClientConfigError(f"{key} must be PEM text, from -----BEGIN to -----END.")
    lines: list[str] = []
    for label, body in blocks:
        wrapped = body.strip().splitlines() if ":" in body else textwrap.wrap("".join(body.split()), 64)
        lines += [f"-----BEGIN {label}-----", *wrapped, f"-----END {label}-----"]
    return "\n".join(lines) + "\n"


# --- SASL -------------------------------------------------------------------------------------------------------------


def _sasl(config: Mapping[str, str]) -> Settings:
    for key in ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class"):
        handler = config.get(key, "").rpartition(".")[2]
        if handler not in ("", "OAuthBearerLoginCallbackHandler", "OAuthBearerSaslClientCallbackHandler"):
            raise ClientConfigError(
                f"{key} names {config[key]}, a Java class, which cannot run here: use sasl.mechanism PLAIN,"
                " SCRAM-SHA-256, SCRAM-SHA-512, or OAUTHBEARER with sasl.oauthbearer.token.endpoint.url."
            )
    made: Settings = {}
    if config.get("sasl.oauthbearer.token.endpoint.url"):
        made["sasl.oauthbearer.method"] = config.get("sasl.oauthbearer.method", "oidc")
    if text := config.get("sasl.jaas.config", "").strip():
        made |= _login(*_jaas(text))
    return made


def _login(module: str, options: Mapping[str, str]) -> Settings:
    match module.rpartition(".")[2]:
        case "PlainLoginModule" | "ScramLoginModule":
            if options.get("tokenauth", "false").lower() == "true":
                raise ClientConfigError(
                    "sasl.jaas.config asks for a delegation token (tokenauth), which cannot be done here: use a user's"
                    " name and password."
                )
            if "username" not in options or "password" not in options:
                raise ClientConfigError("sasl.jaas.config must give username and password.")
            return {"sasl.username": options["username"], "sasl.password": options["password"]}
        case "OAuthBearerLoginModule":
            names = {
                "clientId": "sasl.oauthbearer.client.id",
                "clientSecret": "sasl.oauthbearer.client.secret",
                "scope": "sasl.oauthbearer.scope",
            }
            return {target: options[name] for name, target in names.items() if name in options}
        case "Krb5LoginModule":
            names = {
                "keyTab": "sasl.kerberos.keytab",
                "principal": "sasl.kerberos.principal",
                "serviceName": "sasl.kerberos.service.name",
            }
            return {target: options[name] for name, target in names.items() if name in options}
        case _:
            raise ClientConfigError(
                f"sasl.jaas.config names {module}, a Java class, which cannot run here: use PlainLoginModule,"
                " ScramLoginModule or OAuthBearerLoginModule of org.apache.kafka.common.security."
            )


_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([=;])|([^\s=;"\']+))', re.DOTALL)


def _jaas(text: str) -> tuple[str, dict[str, str]]:
    """Module and options of `module flag key="value" ...;`. Errors do not repeat the text: it holds passwords."""
    wrong = ClientConfigError(
        'sasl.jaas.config must read `<login module> required <key>="<value>" ...;`, with one login module.'
    )
    tokens: list[str] = []
    signs: list[bool] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise wrong
        quoted = token[1] if token[1] is not None else token[2]
        tokens.append(_unescape(quoted) if quoted is not None else token[3] or token[4])
        signs.append(token[3] is not None)
        position = token.end()
    shape = "".join(token if sign else "w" for token, sign in zip(tokens, signs, strict=True))
    flags = ("required", "requisite", "sufficient", "optional")
    if not re.fullmatch(r"ww(w=w)*;", shape) or tokens[1].lower() not in flags:
        raise wrong
    return tokens[0], dict(zip(tokens[2:-1:3], tokens[4:-1:3], strict=True))


def _unescape(text: str) -> str:
    letters = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}
    return re.sub(r"\\(.)", lambda match: letters.get(match[1], match[1]), text, flags=re.DOTALL)


# --- what librdkafka knows --------------------------------------------------------------------------------------------

_NOWHERE: Final = "headgate.no.such.property"


def _complaint(config: Mapping[str, str]) -> str | None:
    """What librdkafka has against these settings. They are tried in order before a client is made, and the last one
    here is always refused: so no client ever is."""
    try:
        Producer({**config, _NOWHERE: ""})
    except KafkaException as error:
        text: str = error.args[0].str()
        return None if _NOWHERE in text else text
    raise AssertionError("librdkafka took a property that does not exist")


@cache
def _known(key: str) -> bool:
    # Without a dot or with an underscore are confluent_kafka's own keys, which take functions and objects.
    if not re.fullmatch(r"[a-z0-9]+(\.[a-z0-9]+)+|debug|partitioner", key):
        return False
    text = _complaint({key: ""})
    return text is None or not text.startswith(("No such configuration", "Internal property"))


def _check(made: Settings) -> None:
    if text := _complaint(made):
        raise ClientConfigError(f"Kafka's client refuses this configuration: {text}.")
