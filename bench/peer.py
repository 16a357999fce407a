"""Apache Kafka Connect 4.3.1, the peer to measure against: its jars and its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headgate.jars.find import find_java
from headgate.jars.jars import JarSet, fetch

CONNECT: Final = JarSet(
    "connect-4.3.1",
    (
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.kafka:connect-file:4.3.1",
        "org.apache.kafka:connect-json:4.3.1",
        "org.apache.kafka:connect-transforms:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
    transitive=True,
    title="Apache Kafka Connect 4.3.1",
    expected=90,
)
AVRO: Final = JarSet(
    "apicurio-2.6.13",
    (
        "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final",
        # Without these two, Ivy takes older ones that a bill of materials names.
        "io.apicurio:apicurio-registry-serdes-avro-serde:2.6.13.Final",
        "io.apicurio:apicurio-registry-client:2.6.13.Final",
    ),
    transitive=True,
    title="Apicurio's converter of Avro 2.6.13",
    expected=30,
)
"""Apache has none."""
_MAIN: Final = {
    "standalone": "org.apache.kafka.connect.cli.ConnectStandalone",
    "distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
}
_JVM: Final = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
)
"""Heap and collector as in Apache's own start scripts."""
_LOG: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""


def command(mode: str, folder: Path) -> list[str]:
    """Files of the worker and of connectors are to follow."""
    logging = folder / "log4j2.properties"
    logging.write_text(_LOG)
    jars = fetch(CONNECT)
    return [
        *(str(find_java()), *_JVM, f"-Dlog4j2.configurationFile={logging}"),
        *("-cp", f"{jars[0].parent}/*", _MAIN[mode]),
    ]


def avro_plugin(folder: Path) -> Path:
    """A `plugin.path` with the converter of Avro alone in it."""
    jars = fetch(AVRO)
    plugins = folder / "plugins"
    plugins.mkdir()
    (plugins / "avro").symlink_to(jars[0].parent)
    return plugins
