"""The fleet: connectors of all kinds, the files that they read, and the ledgers of what must arrive where."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cluster_harness import lines, sink_config, source_config
from ledger import Source, Verdict, judge
from mirror_support import seen
from sightings import witness_config

JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_APACHE: Final = "org.apache.kafka.connect.transforms."
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_STAMP: Final = " stamped"
_OFTEN_S: Final = 5.0
_RARELY_S: Final = 20.0
"""Statements and frames are Spark jobs of their own, and the machine is small."""
_PER_S: Final = 2
"""Lines of each file."""
_WIDTH: Final = 80
"""Of lines that are JSON."""
_NOTHING: Final[Mapping[str, str]] = {}
_PLAIN: Final = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
_SCHEMA: Final = {"value.converter": JSON, "value.converter.schemas.enable": "true"}


Parse = Callable[[str], str]
"""What arrived, as the line that it was."""
Read = Callable[[str], list[str]]
"""With the address of Kafka: what is at a place, in its order, as the lines that it was."""


# --- where lines arrive, and what they look like there ----------------------------------------------------------------


def _in_topic(topic: str, parse: Parse) -> Read:
    return lambda bootstrap: [parse(value) for value in committed(bootstrap, topic)]


def committed(bootstrap: str, topic: str) -> list[str]:
    """The values of a topic, none while there is no topic."""
    return [(each.value or b"").decode() for each in seen(bootstrap, topic, 60.0)]


def _in_file(file: Path, parse: Parse) -> Read:
    return lambda _: [parse(line) for line in lines(file)]


def _in_ledger(folder: Path) -> Read:
    """Of the exactly-once file sink: sorted, its files have the lines in their order."""
    return lambda _: [line for file in sorted(folder.glob("*/until-*.txt")) for line in lines(file)]


def _text(value: str) -> str:
    return value


def _object(text: str) -> str:
    """All of the same length."""
    return json.dumps({"line": text}).ljust(_WIDTH - 1)


def _unstamped(value: str) -> str:
    return value.removesuffix(_STAMP) if value.endswith(_STAMP) else f"not stamped: {value}"


def _chained(value: str) -> str:
    payload = json.loads(value)["payload"]
    return str(payload["line"]) if payload.get("seven") == 7 else value


def _normal(value: str) -> str:
    found = json.loads(value)
    return _object(found["line"]) if found.keys() == {"line"} else value


def _framed(value: str) -> str:
    """Frames have values as JSON. A line that was cut off when its worker was killed is no record, and comes again."""
    try:
        return _unstamped(json.loads(json.loads(value)["value"]))
    except ValueError:
        return value


def _number(value: str) -> str:
    return str(json.loads(value)["number"])


def _transforms(chain: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    keys = {f"transforms.{alias}.{key}": value for alias, of in chain.items() for key, value in of.items()}
    return {"transforms": ",".join(chain), **keys}


# --- connectors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member:
    """A connector, and what is to be seen of it while all is well."""

    kind: str
    name: str
    config: Mapping[str, str]
    tasks: int = 1
    state: str = "RUNNING"

    @property
    def initial(self) -> str | None:
        return None if self.state == "RUNNING" else self.state

    @property
    def task_names(self) -> set[tuple[str, int]]:
        return {(self.name, number) for number in range(self.tasks)}


class JsonSource(Source):
    """Each line is an object; where `mixed`, every tenth is nothing that JSON knows."""

    mixed = False

    def line(self, number: int) -> str:
        text = f"{self.name} {number:010d}"
        bad = self.mixed and number % 10 == 3
        return f"not JSON {text}".ljust(_WIDTH - 1, "!") if bad else _object(text)


class MixedSource(JsonSource):
    mixed = True


class Numbers(Source):
    """Of a source that counts by itself; how far it came is known at the end."""

    def line(self, number: int) -> str:
        return str(number)

    def grow(self, count: int) -> None:
        pass


class Share(Source):
    """Those lines of a source that have to be at one place, under the name of who brings them there."""

    def __init__(self, name: str, whole: Source, wanted: Callable[[str], bool] = lambda _: True) -> None:
        super().__init__(name, whole.file, whole.topic)
        self.whole, self._wanted = whole, wanted

    def expected(self) -> list[str]:
        return [line for line in self.whole.expected() if self._wanted(line)]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What must have arrived at one place."""

    kind: str
    share: Share
    read: Read
    exactly_once: bool = True

    def verdict(self, bootstrap: str) -> Verdict:
        return judge(self.share, self.read(bootstrap))

    def clean(self, verdict: Verdict) -> bool:
        return verdict.good if self.exactly_once else verdict.lost == 0


@dataclass
class Fleet:
    """So many connectors, kind after kind; `prefix` begins all names."""

    folder: Path
    count: int
    prefix: str = ""
    members: list[Member] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    """Those whose files grow."""
    _every_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self._in, self._out):
            folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while len(self.members) < self.count:
            self._one_of_each(number)
            number += 1
        self.members = self.members[: self.count]
        known = {member.name for member in self.members}
        self.ledgers = [ledger for ledger in self.ledgers if ledger.share.name in known]
        self.sources = [source for source in self.sources if source.name in known]

    @property
    def _in(self) -> Path:
        return self.folder / "in"

    @property
    def _out(self) -> Path:
        return self.folder / "out"

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.state == "RUNNING"]

    @property
    def topics(self) -> list[str]:
        """Those that must be there before a sink looks for them."""
        named = [member.config.get("topic") or member.config.get("topics", "") for member in self.members]
        return sorted({topic for each in named for topic in each.split(",")})

    @property
    def lines(self) -> int:
        return sum(source.lines for source in self.sources)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Ever more lines meanwhile."""
        ending = threading.Event()

        def write() -> None:
            now = time.monotonic()
            due = {source.name: now + n * 0.1 for n, source in enumerate(self.sources)}
            while not ending.wait(0.1):
                for source in self.sources:
                    if time.monotonic() >= due[source.name]:
                        every_s = self._every_s[source.name]
                        source.grow(round(every_s * _PER_S))
                        due[source.name] += every_s

        thread = threading.Thread(target=write, name="growth")
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    # --- the kinds ----------------------------------------------------------------------------------------------------

    def _one_of_each(self, number: int) -> None:
        at_poll = self._source("poll", number, {"transaction.boundary": "poll"})
        self._file_sink("plain", number, at_poll)
        interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
        by_time = self._source("interval", number, interval)
        self._exact_sink("exact", number, at_poll, by_time)
        self._mirror("mirror", number, by_time)
        self._chain("chain", "unchain", number)
        self._python("python", number)
        self._schemaless("objects", "fields", number)
        self._tolerant("mixed", "tolerant", number)
        self._statement("sql", "frame", number)
        self._witness("witness", number)
        self._still("idle", "paused", "stopped", number, at_poll)

    def _lines(self, kind: str, number: int, made: type[Source] = Source, every_s: float = _OFTEN_S) -> Source:
        name = f"{self.prefix}{kind}-{number}"
        source = made(name, self._in / f"{name}.txt", name, width=40 if made is Source else _WIDTH)
        source.file.touch()
        self.sources.append(source)
        self._every_s[name] = every_s
        return source

    def _add(self, kind: str, name: str, config: Mapping[str, str], tasks: int = 1, state: str = "RUNNING") -> None:
        self.members.append(Member(kind, name, {"tasks.max": str(max(tasks, 1)), **config}, tasks, state))

    def _source(self, kind: str, number: int, config: Mapping[str, str]) -> Source:
        source = self._lines(kind, number)
        self._read_file(kind, source, config)
        return source

    def _read_file(self, kind: str, source: Source, config: Mapping[str, str] = _NOTHING, parse: Parse = _text) -> None:
        """A connector that reads the file, and the ledger of its topic."""
        self._add(kind, source.name, source_config(source.file, source.topic, **config))
        self.ledgers.append(Ledger(kind, Share(source.name, source), _in_topic(source.topic, parse)))

    def _file_sink(
        self, kind: str, number: int, source: Source, config: Mapping[str, str] = _NOTHING, parse: Parse = _text
    ) -> None:
        name = f"{self.prefix}{kind}-{number}"
        file = self._out / f"{name}.txt"
        self._add(kind, name, sink_config(file, source.topic, **config))
        self.ledgers.append(Ledger(kind, Share(name, source), _in_file(file, parse), exactly_once=False))

    def _exact_sink(self, kind: str, number: int, *sources: Source) -> None:
        """Two tasks, a partition for each."""
        name = f"{self.prefix}{kind}-{number}"
        folder, topics = self._out / name, ",".join(source.topic for source in sources)
        self._add(kind, name, sink_config(folder, topics, **{"exactly.once": "true"}), len(sources))
        for source in sources:
            self.ledgers.append(Ledger(kind, Share(name, source), _in_ledger(folder / f"{source.topic}-0")))

    def _mirror(self, kind: str, number: int, source: Source) -> None:
        name = f"{self.prefix}{kind}-{number}"
        config = {
            "connector.class": "headgate.connectors.Mirror",
            "topics": source.topic,
            "topic.format": f"{name}-of-${{topic}}",
            "key.converter": _BYTES,
            "value.converter": _BYTES,
        }
        self._add(kind, name, config)
        self.ledgers.append(Ledger(kind, Share(name, source), _in_topic(f"{name}-of-{source.topic}", _text)))

    def _chain(self, kind: str, sink: str, number: int) -> None:
        """JSON with a schema, and back."""
        chain = {
            "hoist": {"type": f"{_APACHE}HoistField$Value", "field": "text"},
            "insert": {"type": f"{_APACHE}InsertField$Value", "static.field": "seven", "static.value": "7"},
            "rename": {"type": f"{_APACHE}ReplaceField$Value", "renames": "text:line"},
            "cast": {"type": f"{_APACHE}Cast$Value", "spec": "seven:int32"},
        }
        source = self._lines(kind, number)
        self._read_file(kind, source, {**_SCHEMA, **_transforms(chain)}, _chained)
        extract = {"extract": {"type": f"{_APACHE}ExtractField$Value", "field": "line"}}
        self._file_sink(sink, number, source, {**_SCHEMA, **_transforms(extract)})

    def _python(self, kind: str, number: int) -> None:
        chain = {"stamp": {"type": "headgate.transforms.Python", "function": "soak_lines.stamped"}}
        self._read_file(kind, self._lines(kind, number), _transforms(chain), _unstamped)

    def _schemaless(self, kind: str, sink: str, number: int) -> None:
        """JSON without a schema, and back."""
        source = self._lines(kind, number, JsonSource)
        chain = {
            "read": {"type": "headgate.transforms.FromJson$Value"},
            "insert": {"type": f"{_APACHE}InsertField$Value", "static.field": "of", "static.value": source.name},
            "drop": {"type": f"{_APACHE}ReplaceField$Value", "exclude": "of"},
        }
        self._read_file(kind, source, {**_PLAIN, **_transforms(chain)}, _normal)
        extract = {"extract": {"type": f"{_APACHE}ExtractField$Value", "field": "line"}}
        self._file_sink(sink, number, source, {**_PLAIN, **_transforms(extract)}, _object)

    def _tolerant(self, kind: str, sink: str, number: int) -> None:
        """Some lines are bad: the sink leaves them to a topic for dead letters."""
        source = self._lines(kind, number, MixedSource)
        self._read_file(kind, source)
        name = f"{self.prefix}{sink}-{number}"
        file, dead = self._out / f"{name}.txt", f"{name}-dead"
        extract = {"extract": {"type": f"{_APACHE}ExtractField$Value", "field": "line"}}
        config = {
            **_PLAIN,
            **_transforms(extract),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": dead,
        }
        self._add(sink, name, sink_config(file, source.topic, **config))
        good, bad = Share(name, source, lambda line: line[0] == "{"), Share(name, source, lambda line: line[0] != "{")
        self.ledgers.append(Ledger(sink, good, _in_file(file, _object), exactly_once=False))
        self.ledgers.append(Ledger("dead letters", bad, _in_topic(dead, _text), exactly_once=False))

    def _statement(self, kind: str, sink: str, number: int) -> None:
        source = self._lines(kind, number, every_s=_RARELY_S)
        statement = f"SELECT concat(value, '{_STAMP}') AS value FROM records"
        chain = {"stamp": {"type": "headgate.transforms.Sql", "statement": statement}}
        self._read_file(kind, source, _transforms(chain), _unstamped)
        name = f"{self.prefix}{sink}-{number}"
        file = self._out / f"{name}.txt"
        self._add(sink, name, {"connector.class": "FrameLines", "topics": source.topic, "file": str(file)})
        self.ledgers.append(Ledger(sink, Share(name, source), _in_file(file, _framed), exactly_once=False))

    def _witness(self, kind: str, number: int) -> None:
        """A plugin that gives records, and counts them itself."""
        name = f"{self.prefix}{kind}-{number}"
        self._add(kind, name, witness_config(name, 1, every_ms="1000"))
        source = Numbers(name, self._in / name, name)
        self.ledgers.append(Ledger(kind, Share(name, source), _in_topic(name, _number)))

    def _still(self, idle: str, paused: str, stopped: str, number: int, read: Source) -> None:
        """One that waits for its file, one that is paused, one that is stopped: nothing may come of them."""
        for kind, state in ((idle, "RUNNING"), (paused, "PAUSED")):
            name = f"{self.prefix}{kind}-{number}"
            source = Source(name, self._in / f"{name}.txt", name)
            if state == "PAUSED":
                source.grow(10)
            self._add(kind, name, source_config(source.file, name), int(state == "RUNNING"), state)
            self.ledgers.append(Ledger(kind, Share(name, source, lambda _: False), _in_topic(name, _text)))
        name = f"{self.prefix}{stopped}-{number}"
        file = self._out / f"{name}.txt"
        self._add(stopped, name, sink_config(file, read.topic), 0, "STOPPED")
        self.ledgers.append(Ledger(stopped, Share(name, read, lambda _: False), _in_file(file, _text)))

    def count_numbers(self, next_of: Callable[[str], int]) -> None:
        """Asks how far the sources came that count by themselves."""
        for ledger in self.ledgers:
            if isinstance(ledger.share.whole, Numbers):
                ledger.share.whole.lines = next_of(ledger.share.name)
