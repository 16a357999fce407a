"""A flame graph of Headgate at one workload, by py-spy: the worker and the Python workers of Spark, side by side.

`make profile ARGS=json-sink` runs it. py-spy must be allowed to look into other processes: root is.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rates import run, worker
from side import HEADGATE
from stage import Stage
from turn import Sizes, add_sizes
from workloads import WORKLOADS

FOLDER: Final = Path("build") / "profile"


@contextmanager
def recorded(pid: int, file: Path) -> Iterator[None]:
    """Stacks of all Python processes that descend from this one, until the end."""
    py_spy = Path(sys.executable).parent / "py-spy"
    command = [str(py_spy), "record", "--pid", str(pid), "--subprocesses", "--threads", "--output", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as spy:
        try:
            yield
        finally:
            spy.send_signal(signal.SIGINT)  # then it writes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--into", type=Path, default=FOLDER, help=f"folder of the picture ({FOLDER})")
    add_sizes(parser)
    chosen = parser.parse_args()
    workload, file = WORKLOADS[chosen.workload], chosen.into / f"{chosen.workload}.svg"
    chosen.into.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(chosen.lines, chosen.size, chosen.tasks)
    with (
        Stage.of(sizes) as stage,
        stage.turn(workload.name, HEADGATE, 0) as turn,
        worker(turn, [workload]) as side,
        recorded(side.pid, file),
    ):
        for figure in run(turn, side, workload):
            print(f"{figure.what}: {figure.quantity.show(figure.value)}")
    print(f"The picture is in {file}.")


if __name__ == "__main__":
    main()
