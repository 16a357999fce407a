"""`headgate`: one program, one word for each thing it does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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


def _standalone(argv: Sequence[str]) -> int:
    from headgate.cli.standalone import main as run

    return run(argv)


def _distributed(argv: Sequence[str]) -> int:
    from headgate.cli.distributed import main as run

    return run(argv)


def _migrate(argv: Sequence[str]) -> int:
    from headgate.cli.migrate import main as run

    return run(argv)


def _broker(argv: Sequence[str]) -> int:
    from headgate.dev.command import main as run

    return run(argv)


def _version(_: Sequence[str]) -> int:
    print(__version__)
    return 0


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "standalone": _standalone,
    "distributed": _distributed,
    "migrate": _migrate,
    "broker": _broker,
    "version": _version,
    "--version": _version,
}


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return 0
    command = _COMMANDS.get(arguments[0]) if arguments else None
    if command is None:
        problem = f"headgate: there is no command {arguments[0]!r}\n\n" if arguments else ""
        print(f"{problem}{_USAGE}", end="", file=sys.stderr)
        return 1
    return command(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
