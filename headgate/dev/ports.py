"""TCP ports on the loopback address."""

import errno
import random
import socket
from typing import Final

HOST: Final = "127.0.0.1"
# Below the ports that Linux (32768 up) and macOS (49152 up) give to outgoing connections: otherwise a client that
# keeps trying to reach a broker which is down can be given that very port, connect to itself and block the restart.
_RANGE: Final = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; OSError when that is not ours to do, such as below 1024."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the JVM does
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def pick_free(count: int, avoid: int = 0) -> list[int]:
    """Different ports that were free a moment ago; someone else may still be quicker."""
    picked: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if len(picked) == count:
            break
        if port != avoid and is_free(port):
            picked.append(port)
    if len(picked) < count:
        raise OSError(f"no free port between {_RANGE.start} and {_RANGE.stop} on {HOST}: stop something that listens")
    return picked
