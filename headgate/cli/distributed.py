"""`headgate distributed`: a worker in a group, whose connectors come over REST and live in Kafka."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from headgate.api.errors import ConfigError
from headgate.cli.files import FileError
from headgate.cli.standalone import ended_by_signals, fail, leave, read_worker_file
from headgate.log import configure

log = logging.getLogger(__name__)

_EPILOG = """\
The worker file is Kafka Connect's connect-distributed.properties. Workers of one group.id on one Kafka cluster share
the connectors and tasks; all of their state is in the topics config.storage.topic, offset.storage.topic and
status.storage.topic. Connectors are created over the REST API of any worker.

  headgate distributed worker.properties
"""


def parser(program: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=program,
        description="Runs a worker of a cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("worker", metavar="worker.properties", help="the worker's configuration")
    made.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    return made


def main(argv: Sequence[str] | None = None, program: str = "headgate distributed") -> int:
    arguments = parser(program).parse_args(argv)
    configure(arguments.log_level)
    ending = ended_by_signals()
    try:
        return leave(_run(read_worker_file(arguments.worker), ending, [Path(arguments.worker)]))
    except FileError as error:
        return fail(str(error))


def connect_distributed() -> int:
    """The name of Apache's script, with its arguments."""
    return main(program="connect-distributed")


def _run(raw: dict[str, str], ending: threading.Event, own: Sequence[Path]) -> int:
    from headgate.cli.cluster_worker import DistributedWorker
    from headgate.kafka.settings import ClientConfigError
    from headgate.rest.listeners import ListenerError
    from headgate.runtime.errors import PluginNotFound
    from headgate.storage.internal_topics import InternalTopicError

    try:
        worker = DistributedWorker(raw, own)
    except (ConfigError, ListenerError, PluginNotFound, InternalTopicError, ClientConfigError) as error:
        return fail(str(error))
    worker.start()
    try:
        while not ending.wait(0.2) and not worker.failed.is_set():
            pass
    finally:
        log.info("Stopping")
        worker.stop()
        log.info("Stopped")
    return fail(str(worker.problem)) if worker.problem is not None else 0


if __name__ == "__main__":
    sys.exit(main())
