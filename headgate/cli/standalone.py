"""`headgate standalone`: one worker, connectors from files and over REST."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from headgate.api.errors import ConfigError
from headgate.cli.files import ConnectorFile, FileError, read_connector, read_properties
from headgate.log import configure

log = logging.getLogger(__name__)

WORKER_FAILED: Final = 2
CONNECTOR_FAILED: Final = 3
_LAST_S: Final = 3.0

_EPILOG = """\
Connector files are told apart by their content (KIP-980): Java properties, a flat JSON object of the connector's keys,
or a JSON object with "name", "config" and, if wanted, "initial_state" (RUNNING, PAUSED or STOPPED).

Without a worker file, or without bootstrap.servers in it, a broker of its own is started and its data kept in
--data. The REST API is at http://127.0.0.1:8083 unless the worker file's `listeners` says otherwise.

  headgate standalone                                          a broker, a worker, nothing else needed
  headgate standalone --plugin-path plugins                    the same, with connectors of your own
  headgate standalone worker.properties source.json sink.properties
"""


def parser(program: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=program,
        description="Runs connectors in this one process.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("worker", nargs="?", metavar="worker.properties", help="the worker's configuration")
    made.add_argument("connectors", nargs="*", metavar="connector", help="files of connectors to create")
    made.add_argument(
        "--plugin-path", metavar="DIR", help="folder of plugins; wins over plugin.path of the worker file"
    )
    made.add_argument("--data", type=_absolute, default="headgate-data", help="folder of the broker started here")
    made.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return made


def _absolute(folder: str) -> Path:
    return Path(folder).absolute()


def main(argv: Sequence[str] | None = None, program: str = "headgate standalone") -> int:
    arguments = parser(program).parse_args(argv)
    configure(arguments.log_level)
    stop = ended_by_signals()
    try:
        worker_file, files = _sort(arguments.worker, arguments.connectors)
        connectors = [read_connector(file) for file in files]
        for warning in (each for connector in connectors for each in connector.warnings):
            log.warning("%s", warning)
    except FileError as error:
        return fail(str(error), CONNECTOR_FAILED)
    with ExitStack() as opened:
        try:
            raw = _worker_settings(worker_file, arguments.plugin_path, arguments.data, opened)
        except Exception as error:
            return fail(str(error))
        own = [Path(each) for each in (worker_file, *files) if each]
        code = _run(raw, connectors, stop, [*own, arguments.data / "broker"])
    return leave(code)


def connect_standalone() -> int:
    """The name of Apache's script, with its arguments."""
    return main(program="connect-standalone")


def ended_by_signals() -> threading.Event:
    """Set when somebody wants this process to end."""
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    return ending


def leave(code: int) -> int:
    """The code to exit with, when all is committed and closed. Python would wait for threads that a plugin has started,
    or that hang in one, for ever: here so long and no longer."""
    main = threading.main_thread()

    def end() -> None:
        others = [each.name for each in threading.enumerate() if not each.daemon and each is not main]
        log.warning("Ended without threads that did not end: %s", ", ".join(others) or "none of Python's own")
        os._exit(code)

    timer = threading.Timer(_LAST_S, end)
    timer.daemon = True
    timer.start()
    return code


def read_worker_file(file: str) -> dict[str, str]:
    """Raises FileError."""
    warnings: list[str] = []
    raw = read_properties(file, warnings)
    for warning in warnings:
        log.warning("%s", warning)
    return raw


def _sort(worker: str | None, connectors: list[str]) -> tuple[str | None, list[str]]:
    """The first file is the worker's, unless it evidently is a connector's."""
    if worker is None:
        return None, connectors
    try:
        read_connector(worker)
    except FileError:
        return worker, connectors
    if "connector.class" in read_connector(worker).config:
        return None, [worker, *connectors]
    return worker, connectors


def _worker_settings(file: str | None, plugin_path: str | None, data: Path, opened: ExitStack) -> dict[str, str]:
    from headgate.cli.assembly import defaults_without_file

    if file is None:
        raw = defaults_without_file(data)
        log.info("No worker file: converters and flush interval as in Apache's sample, offsets in %s", data)
    else:
        raw = read_worker_file(file)
    if plugin_path is not None:
        raw["plugin.path"] = plugin_path
    if not raw.get("bootstrap.servers", "").strip():
        raw["bootstrap.servers"] = _start_broker(data, opened)
    return raw


def _start_broker(data: Path, opened: ExitStack) -> str:
    from headgate.dev.broker import Broker

    log.info("No bootstrap.servers: starting a broker of our own, data kept in %s", data / "broker")
    data.mkdir(parents=True, exist_ok=True)
    broker = Broker(data=data / "broker", port=None)
    opened.callback(broker.stop)
    broker.start()
    log.info("Embedded Kafka broker serves at %s", broker.bootstrap)
    return broker.bootstrap


def _run(raw: dict[str, str], connectors: Sequence[ConnectorFile], stop: threading.Event, own: Sequence[Path]) -> int:
    from headgate.cli.assembly import StandaloneWorker
    from headgate.rest.listeners import ListenerError
    from headgate.runtime.errors import PluginNotFound
    from headgate.storage.file import OffsetFileError

    try:
        worker = StandaloneWorker(raw, own)
    except (ConfigError, ListenerError, OffsetFileError, PluginNotFound) as error:
        return fail(str(error))
    worker.start()
    if "listeners" not in raw:
        log.info("The REST API is for this machine only; set listeners=http://:8083 to open it to others")
    try:
        for connector in connectors:
            if stop.is_set():
                break
            worker.herder.submit(
                lambda each=connector: worker.herder.create(each.name, each.config, each.initial_state)  # type: ignore[misc]
            ).result()
            log.info("Created connector %s", connector.name)
        stop.wait()
    except Exception as error:
        return fail(f"Connector {connector.name} could not be created: {error}", CONNECTOR_FAILED)
    finally:
        log.info("Stopping")
        worker.stop()
        log.info("Stopped")
    return 0


def fail(message: str, code: int = WORKER_FAILED) -> int:
    log.error("%s", message)
    return code


if __name__ == "__main__":
    sys.exit(main())
