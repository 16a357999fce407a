"""`headgate`: one program, one word for each thing it does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from headgate import __version__

_USAGE: Final = f"""\
headgate {__version__}: Kafka connectors in Python, with Kafka Connect's control plane and Spark's data plane

usage: headgate <command> [arguments]

commands:
  standalone [worker.properties] [connector files…]   run a worker alone, with its REST API
  distributed worker.properties                        run a worker of a cluster
  migrate connect-distributed.properties [--json]      can Headgate take over this Kafka Connect cluster? only reads
  broker [--port 9092] [--data DIR]                    run a one-node Kafka broker, for trying things out
  version                                              print the version

`headgate <command> --help` explains each.
"""


_COMMANDS: Final = {
    "standalone": "headgate.cli.standalone",
    "distributed": "headgate.cli.distributed",
    "migrate": "headgate.cli.migrate",
    "broker": "headgate.dev.command",
}
"""Modules, imported when they are asked for: that takes its time."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return 0
    if arguments and arguments[0] in ("version", "--version"):
        print(__version__)
        return 0
    if not arguments or arguments[0] not in _COMMANDS:
        problem = f"headgate: there is no command {arguments[0]!r}\n\n" if arguments else ""
        print(f"{problem}{_USAGE}", end="", file=sys.stderr)
        return 1
    return int(import_module(_COMMANDS[arguments[0]]).main(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main())
