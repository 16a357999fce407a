"""`headgate broker`: the one-node broker in the foreground."""

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from headgate.dev.broker import Broker, BrokerFailed
from headgate.jars.find import JavaMissing
from headgate.jars.jars import KAFKA_BROKER, FetchFailed, fetch


def main(argv: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C or SIGTERM, then stop the broker cleanly; 0, or 1 with the reason on standard error.

    To be called in the main thread, for only that one can take signals."""
    arguments = _parser().parse_args(argv)
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if arguments.fetch_only:
            print(f"Kafka's {len(fetch(KAFKA_BROKER))} jars are in place.")
            return 0
        return _serve(Broker(arguments.data, arguments.port, dict(arguments.property), heap=arguments.heap))
    except (BrokerFailed, FetchFailed, JavaMissing, ValueError, OSError) as error:
        print(f"headgate broker: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # before it served, so there was no clean run to report
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(broker: Broker) -> int:
    with broker:
        kept = "kept in" if broker.kept else "until it stops in"
        try:
            print(f"Kafka serves at {broker.bootstrap}, data {kept} {broker.data}; Ctrl-C stops it.", flush=True)
            broker.wait()
        except KeyboardInterrupt:
            return 0
        raise BrokerFailed(f"The broker ended by itself; its log says:\n{broker.log_excerpt()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headgate broker",
        description="A one-node Apache Kafka for trying things out. The first run fetches its jars.",
    )
    parser.add_argument("--port", type=int, default=9092, help="port on 127.0.0.1 (default 9092; 0 takes a free one)")
    parser.add_argument("--data", metavar="DIR", help="folder to keep its data in (default: a temporary one)")
    parser.add_argument(
        "--property",
        metavar="KEY=VALUE",
        type=_property,
        action="append",
        default=[],
        help="a property of Kafka's server.properties; may be repeated",
    )
    parser.add_argument("--heap", default="512m", help="most memory for its heap (default 512m)")
    parser.add_argument("--fetch-only", action="store_true", help="fetch the jars and start nothing")
    return parser


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} does not read KEY=VALUE")
    return key.strip(), value.strip()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
