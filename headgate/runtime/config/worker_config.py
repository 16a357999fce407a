"""The worker file: its keys, declared once, and what the runtime reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headgate.api.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    SHORT,
    STRING,
    ConfigDef,
    Key,
    at_least,
    one_of_any_case,
)
from headgate.model import BUFFER_BYTES, Config
from headgate.runtime.config.overrides import ALLOWLIST, POLICY, Overrides
from headgate.runtime.config.reaches import sandbox_of
from headgate.runtime.config.unknown_keys import closest
from headgate.runtime.distributed import signatures
from headgate.runtime.distributed.signatures import Signatures
from headgate.runtime.plugins import Plugins
from headgate.sandbox import KEYS, Sandbox

SIMPLE_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

COMMON: Final = KEYS + ConfigDef(
    Key("bootstrap.servers", LIST, importance=HIGH, doc="Kafka brokers to begin with."),
    Key("key.converter", CLASS, importance=HIGH, doc="Default converter of record keys."),
    Key("value.converter", CLASS, importance=HIGH, doc="Default converter of record values."),
    Key("header.converter", CLASS, SIMPLE_HEADER_CONVERTER, None, LOW, "Default converter of record headers."),
    Key("task.shutdown.graceful.timeout.ms", LONG, 5000, at_least(0), LOW, "Time for tasks to end by themselves."),
    Key("offset.flush.interval.ms", LONG, 60000, at_least(1), LOW, "How often offsets are committed."),
    Key("offset.flush.timeout.ms", LONG, 5000, at_least(1), LOW, "How long a commit may take."),
    Key("headgate.task.buffer.bytes", INT, BUFFER_BYTES, at_least(1048576), MEDIUM,
        "Most bytes of records that wait in a task: polled and not yet sent, or fetched ahead."),
    Key("plugin.path", LIST, None, None, LOW, "Folders with plugins."),
    Key("config.providers", LIST, [], None, LOW, "Aliases of the config providers, each with its class and params."),
    Key(POLICY, STRING, "All", None, MEDIUM, "Which client settings connectors may override; or a class."),
    Key(ALLOWLIST, LIST, [], None, MEDIUM, "The settings that the policy Allowlist allows."),
    Key("listeners", LIST, None, None, LOW, "URLs the REST API listens on."),
    Key("admin.listeners", LIST, None, None, LOW, "URLs of the admin endpoints; empty: none of them."),
    Key("rest.advertised.host.name", STRING, None, None, LOW, "Host that others reach this worker at."),
    Key("rest.advertised.port", INT, None, None, LOW, "Port that others reach this worker at."),
    Key("rest.advertised.listener", STRING, None, None, LOW, "http or https."),
    Key("access.control.allow.origin", STRING, "", None, LOW, "CORS origins."),
    Key("access.control.allow.methods", STRING, "", None, LOW, "CORS methods."),
    Key("response.http.headers.config", STRING, "", None, LOW, "Rules for extra response headers."),
    Key("headgate.mask.secrets", BOOLEAN, False, None, MEDIUM, "Whether the REST API shows masks instead of secrets."),
    Key("headgate.allowed.hosts", LIST, [], None, MEDIUM, "Names that listeners answer to, besides their own."),
    Key("headgate.rest.headers.timeout.ms", LONG, 20000, at_least(1), LOW, "Time for TLS and for the headers."),
    Key("headgate.rest.body.timeout.ms", LONG, 60000, at_least(1), LOW, "Time for the body of a request."),
    Key("headgate.rest.idle.timeout.ms", LONG, 75000, at_least(1), LOW, "When an idle connection is closed."),
    Key("headgate.rest.max.connections", INT, 1000, at_least(1), LOW, "Most connections of the REST API."),
    Key("headgate.rest.max.connections.per.address", INT, 200, at_least(1), LOW, "Most of them from one address."),
    Key("headgate.rest.max.header.bytes", INT, 32768, at_least(1024), LOW, "Most bytes of headers of a request."),
    Key("headgate.rest.max.headers", INT, 100, at_least(1), LOW, "Most headers of a request."),
    Key("headgate.rest.max.url.bytes", INT, 8192, at_least(256), LOW, "Most bytes of a request's path and query."),
    Key("headgate.rest.max.body.bytes", INT, 10485760, at_least(1024), LOW, "Most bytes of the body of a request."),
    Key("rest.extension.classes", LIST, [], None, LOW, "Apache's BasicAuthSecurityRestExtension, for logins."),
    Key("headgate.ignore.rest.extensions", BOOLEAN, False, None, LOW, "Whether to start without the other ones."),
    Key("headgate.login.htpasswd", STRING, None, None, MEDIUM, "File of users and hashed passwords."),
    Key("headgate.login.tokens", STRING, None, None, MEDIUM, "File of users and hashed bearer tokens."),
    Key("headgate.login.jwks", STRING, None, None, MEDIUM, "Keys of those who sign JSON Web Tokens: URL or file."),
    Key("headgate.login.jwt.issuer", STRING, None, None, MEDIUM, "Who must have issued a token."),
    Key("headgate.login.jwt.audience", LIST, [], None, MEDIUM, "Whom a token must be for, one of them."),
    Key("headgate.login.jwt.algorithms", LIST, ["RS256", "PS256", "ES256", "Ed25519"], None, LOW,
        "How tokens may be signed."),
    Key("headgate.login.jwt.clock.skew.ms", LONG, 30000, at_least(0), LOW, "How far the issuer's clock may be off."),
    Key("headgate.login.jwt.name.claim", STRING, "sub", None, LOW, "Claim that has the name."),
    Key("headgate.login.jwt.groups.claim", STRING, "groups", None, LOW, "Claim that has the groups."),
    Key("headgate.login.certificates", BOOLEAN, False, None, MEDIUM, "Whether a client's certificate is a login."),
    Key("headgate.login.certificate.rules", STRING, "DEFAULT", None, LOW,
        "Names from certificates, as ssl.principal.mapping.rules of brokers."),
    Key("headgate.require.login", BOOLEAN, False, None, MEDIUM, "Whether to start only with logins."),
    Key("headgate.rights.file", STRING, None, None, MEDIUM, "Who may do what; without it, who logged in everything."),
    Key("headgate.audit.file", STRING, None, None, MEDIUM, "File that every command is written down in."),
    Key("headgate.audit.topic", STRING, None, None, MEDIUM, "Topic that it is written to."),
    Key("topic.creation.enable", BOOLEAN, True, None, LOW, "Whether sources may create topics with their settings."),
    Key("topic.tracking.enable", BOOLEAN, True, None, LOW, "Whether the topics of connectors are tracked."),
    Key("topic.tracking.allow.reset", BOOLEAN, True, None, LOW, "Whether the tracked topics may be reset."),
    Key("metrics.sample.window.ms", LONG, 30000, at_least(0), LOW, "Length of a metric's window."),
    Key("metrics.num.samples", INT, 2, at_least(1), LOW, "Number of a metric's windows."),
)  # fmt: skip

STANDALONE: Final = COMMON + ConfigDef(
    Key("offset.storage.file.filename", STRING, importance=HIGH, doc="File that keeps the offsets of sources.")
)

DISTRIBUTED: Final = COMMON + ConfigDef(
    Key("group.id", STRING, importance=HIGH, doc="Name of the group of workers."),
    Key("config.storage.topic", STRING, importance=HIGH, doc="Topic of the connectors' configs."),
    Key("offset.storage.topic", STRING, importance=HIGH, doc="Topic of the sources' offsets."),
    Key("status.storage.topic", STRING, importance=HIGH, doc="Topic of the states."),
    Key("config.storage.replication.factor", SHORT, 3, None, LOW, "Replicas of the config topic."),
    Key("offset.storage.replication.factor", SHORT, 3, None, LOW, "Replicas of the offsets topic."),
    Key("status.storage.replication.factor", SHORT, 3, None, LOW, "Replicas of the status topic."),
    Key("offset.storage.partitions", INT, 25, None, LOW, "Partitions of the offsets topic."),
    Key("status.storage.partitions", INT, 5, None, LOW, "Partitions of the status topic."),
    Key("exactly.once.source.support", STRING, "disabled", one_of_any_case("disabled", "preparing", "enabled"), HIGH,
        "Whether sources write records and offsets in one transaction."),
    Key("session.timeout.ms", INT, 10000, None, HIGH, "When a silent worker counts as gone."),
    Key("heartbeat.interval.ms", INT, 3000, None, HIGH, "How often a worker shows that it lives."),
    Key("rebalance.timeout.ms", INT, 60000, None, HIGH, "How long workers have to rejoin."),
    Key("scheduled.rebalance.max.delay.ms", INT, 300000, at_least(0), LOW, "How long lost work waits for its worker."),
    Key("request.timeout.ms", INT, 40000, at_least(0), HIGH, "How long Kafka may take to answer a request."),
    Key("retry.backoff.ms", LONG, 100, at_least(0), LOW, "How long to wait before a request is made again."),
    Key("worker.sync.timeout.ms", INT, 3000, None, MEDIUM, "How long reading the config topic to its end may take."),
    Key("worker.unsync.backoff.ms", INT, 300000, None, MEDIUM, "How long a worker that could not stays away."),
    Key("connect.protocol", STRING, "sessioned", one_of_any_case("eager", "compatible", "sessioned"), LOW,
        "Protocol of the group."),
    Key(signatures.KEY_ALGORITHM, STRING, "HmacSHA256", signatures.known_algorithm, LOW, "Of the keys a leader makes."),
    Key(signatures.KEY_SIZE, INT, None, signatures.key_size, LOW, "Bits of such a key; the algorithm's own if absent."),
    Key(signatures.KEY_TTL, INT, 3600000, at_least(0), LOW, "When a key is replaced; 0: keys do not age."),
    Key(signatures.SIGNATURE_ALGORITHM, STRING, "HmacSHA256", signatures.known_algorithm, LOW,
        "How requests to other workers are signed."),
    Key(signatures.VERIFICATION_ALGORITHMS, LIST, ["HmacSHA256"], signatures.known_algorithms, LOW,
        "Signatures of other workers that are accepted."),
    Key(signatures.MODE, STRING, "compatible", one_of_any_case("compatible", "strict"), MEDIUM,
        "Whether a signature over the body of a request, as Apache's workers make it, is enough."),
)  # fmt: skip

# Known to Apache's workers, without effect here, or read elsewhere by their prefix.
_OTHER_NAMES: Final = frozenset(
    {
        "client.dns.lookup", "plugin.discovery", "metrics.recording.level", "metric.reporters", "client.id",
        "security.protocol", "request.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "send.buffer.bytes", "receive.buffer.bytes",
        "connections.max.idle.ms", "metadata.max.age.ms", "metadata.recovery.strategy", "auto.include.jmx.reporter",
        "worker.sync.timeout.ms", "worker.unsync.backoff.ms", "rest.host.name", "rest.port",
        "offset.storage.file.filename", *DISTRIBUTED.names,
    }
)  # fmt: skip
_OTHER_PREFIXES: Final = (
    "spark.", "producer.", "consumer.", "admin.", "key.converter.", "value.converter.", "header.converter.",
    "config.providers.", "ssl.", "sasl.", "listeners.https.", "admin.listeners.https.", "internal.key.converter",
    "internal.value.converter", "config.storage.", "offset.storage.", "status.storage.",
    "socket.connection.", "metrics.context.", "headgate.residents.", "headgate.spark.",
)  # fmt: skip

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "plugin.discovery": "plugins are found by entry points and in plugin.path",
    "metric.reporters": "metrics are served at /metrics",
    "metrics.recording.level": "metrics are served at /metrics",
    "metrics.sample.window.ms": "windows are 30 s, two of them",
    "metrics.num.samples": "windows are 30 s, two of them",
    "auto.include.jmx.reporter": "metrics are served at /metrics",
    "offset.storage.file.filename": "the key is for standalone mode",
    "internal.key.converter": "records of the internal topics have one form",
    "internal.value.converter": "records of the internal topics have one form",
    "rest.host.name": "use listeners",
    "rest.port": "use listeners",
}
"""Keys of Kafka Connect that have none here, and what there is instead."""


def unknown_keys(config: Mapping[str, str], known: ConfigDef) -> list[str]:
    """The keys nobody reads, each with a guess at what was meant."""
    candidates = [*known.names, *_OTHER_NAMES]
    unknown = []
    for key in config:
        if key in known or key in _OTHER_NAMES or key.startswith(_OTHER_PREFIXES):
            continue
        guess = closest(key, candidates, 0.75)
        unknown.append(f"{key} (did you mean {guess}?)" if guess else key)
    return unknown


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What the runtime reads of the worker file."""

    raw: Config
    plugin_path: tuple[str, ...]
    graceful_timeout_s: float
    flush_interval_ms: int
    flush_timeout_ms: int
    topic_tracking: bool
    topic_tracking_reset: bool
    bootstrap_servers: str
    topic_creation: bool = True
    buffer_bytes: int = BUFFER_BYTES
    """Of each task, for records that wait."""
    overrides: Overrides = field(default_factory=Overrides)
    exactly_once_sources: bool = False
    group_id: str = ""
    """Of workers in a group."""
    session_timeout_ms: int | None = None
    """Of those: when a silent one counts as gone."""
    signatures: Signatures = field(default_factory=Signatures)
    """Of requests to and from other workers."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    """What connectors may reach."""

    @classmethod
    def parse(
        cls,
        raw: Config,
        keys: ConfigDef = STANDALONE,
        plugins: Plugins | None = None,
        own: Iterable[Path] = (),
        logins: Iterable[str | Path] = (),
    ) -> WorkerConfig:
        """Raises ConfigError. Only classes that the file names are looked for among the `plugins`. `own` are files and
        folders of the worker that its file does not name, `logins` those that say who is let in."""
        parsed = keys.parse(raw)
        return cls(
            raw=dict(raw),
            plugin_path=tuple(parsed["plugin.path"] or ()),
            graceful_timeout_s=parsed["task.shutdown.graceful.timeout.ms"] / 1000,
            flush_interval_ms=parsed["offset.flush.interval.ms"],
            flush_timeout_ms=parsed["offset.flush.timeout.ms"],
            topic_tracking=parsed["topic.tracking.enable"],
            topic_tracking_reset=parsed["topic.tracking.allow.reset"],
            bootstrap_servers=",".join(parsed["bootstrap.servers"]),
            topic_creation=parsed["topic.creation.enable"],
            buffer_bytes=parsed["headgate.task.buffer.bytes"],
            overrides=Overrides.parse(parsed, raw, plugins),
            exactly_once_sources=parsed.get("exactly.once.source.support", "disabled").lower() == "enabled",
            group_id=parsed.get("group.id", ""),
            session_timeout_ms=parsed.get("session.timeout.ms"),
            signatures=Signatures.parse(parsed) if signatures.KEY_ALGORITHM in parsed else Signatures(),
            sandbox=sandbox_of(raw, plugins or Plugins(()), own, logins),
        )

    def prefixed(self, prefix: str) -> dict[str, str]:
        return {key[len(prefix) :]: value for key, value in self.raw.items() if key.startswith(prefix)}
