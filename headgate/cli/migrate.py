"""`headgate migrate`: can Headgate take over this Kafka Connect cluster? Reads all of it, changes none of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Final

from headgate.api.errors import ConfigError
from headgate.cli.files import FileError, read_properties
from headgate.log import configure

ALL_CAN_RUN: Final = 0
SOME_CANNOT: Final = 1
UNREADABLE: Final = 2

_EPILOG = """\
Run it where Headgate shall run, with the file of one of the old workers. It tells which connectors can run here, what
the others need, where each will go on, and the steps of a take-over. It reads the three internal topics to their end,
asks for the worker group and for the sinks' consumer groups, and lets plugins validate their configurations. It writes,
creates and joins nothing, and shows no secrets.

exit code: 0 all can run; 1 some cannot, or the worker file must be changed; 2 the cluster could not be read
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="headgate migrate",
        description="Checks whether the connectors of a Kafka Connect cluster can run on Headgate.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("worker", metavar="connect-distributed.properties", help="the configuration of an old worker")
    made.add_argument("--json", action="store_true", help="for machines")
    made.add_argument(
        "--timeout", type=_seconds, default=30.0, metavar="SECONDS", help="for each answer of Kafka's (30)"
    )
    levels = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    made.add_argument("--log-level", default="CRITICAL", choices=levels, help="what to log on standard error")
    return made


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"between 0.1 and 3600, not {text}")
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    configure(arguments.log_level)
    from headgate.cli.migration.hiding import shown
    from headgate.cli.migration.machine import failure, json_text
    from headgate.cli.migration.report import printable, text
    from headgate.cli.migration.survey import survey
    from headgate.cli.migration.worker import NotAWorkerFile
    from headgate.runtime.config.worker_config import DISTRIBUTED
    from headgate.runtime.plugins import Plugins
    from headgate.storage.snapshot import UnreadableTopic

    try:
        warnings: list[str] = []
        raw = read_properties(arguments.worker, warnings)
        with redirect_stdout(sys.stderr):  # where plugins print belongs the report
            plugins = Plugins.discover(DISTRIBUTED["plugin.path"].parse(raw.get("plugin.path")) or ())
            findings = survey(arguments.worker, raw, plugins, arguments.timeout, warnings)
    except NotAWorkerFile as error:
        problem = f"The file '{arguments.worker}' {error}."
    except (ConfigError, FileError, UnreadableTopic) as error:
        problem = shown(str(error))
    else:
        print(json_text(findings) if arguments.json else text(findings), end="")
        return ALL_CAN_RUN if findings.all_can_run else SOME_CANNOT
    if arguments.json:
        print(failure(problem), end="")
    for line in problem.splitlines():
        print(f"headgate migrate: {printable(line)}", file=sys.stderr)
    return UNREADABLE


if __name__ == "__main__":
    sys.exit(main())
