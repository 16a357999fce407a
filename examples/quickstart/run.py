"""The quickstart: a broker, a worker on Spark, and two connectors, driven over REST as you would with curl.

Run it with `make quickstart`; `make quickstart ARGS=--stay` leaves everything running until Ctrl-C.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = Path("quickstart-data")


def say(text: str) -> None:
    print(f"\n\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"\n==> {text}", flush=True)


def rest(method: str, url: str, body: Any = None) -> Any:
    """One call, shown as the curl command that does the same."""
    data = None if body is None else json.dumps(body).encode()
    shown = f" -H 'Content-Type: application/json' -d '{json.dumps(body)}'" if body is not None else ""
    print(f"    curl -X {method} {url}{shown}", flush=True)
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=100) as answer:
        text = answer.read().decode()
    if text:
        print(f"    {text}", flush=True)
    return json.loads(text) if text else None


def until(what: str, condition: Any, worker: subprocess.Popen[bytes], seconds: float = 240) -> Any:
    """Waits, with a dot each second, until `condition` is true."""
    deadline, dots = time.monotonic() + seconds, time.monotonic() + 1
    while not (value := condition()):
        if worker.poll() is not None:
            sys.exit(f"The worker ended with exit code {worker.returncode}: its log above says why")
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not happen within {seconds:.0f} s: the log above may say why")
        if time.monotonic() > dots:
            print(".", end="", flush=True)
            dots += 1
        time.sleep(0.05)
    return value


def free_port(wanted: int) -> int:
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise SystemExit("No free port for the REST API")


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False


def running(url: str, name: str) -> bool:
    with urllib.request.urlopen(f"{url}/connectors/{name}/status", timeout=10) as answer:
        status = json.load(answer)
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    if "FAILED" in states:
        sys.exit(json.dumps(status, indent=2))
    return len(states) > 1 and set(states) == {"RUNNING"}


def main() -> None:
    began = time.monotonic()
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    (DATA / "in.txt").write_text("Hello from a file\n")
    port = free_port(8083)
    url = f"http://127.0.0.1:{port}"
    settings = (HERE / "worker.properties").read_text() + f"\nlisteners={url}\n"
    (DATA / "worker.properties").write_text(settings)

    say("Starting a Kafka broker and a worker on Spark (the first time, jars are downloaded)")
    command = [str(Path(sys.executable).parent / "headgate"), "standalone"]
    command += [str(DATA / "worker.properties"), "--data", str(DATA)]
    print(f"    {' '.join(command)}", flush=True)
    worker = subprocess.Popen(command, start_new_session=True)
    try:
        until("The worker answering", lambda: answers(url), worker)
        tour(url, worker)
        say(f"Done in {time.monotonic() - began:.0f} s. The REST API is at {url}")
        if "--stay" in sys.argv:
            say(f"Staying up: append to {DATA / 'in.txt'}, watch {DATA / 'out.txt'}; Ctrl-C ends it")
            worker.wait()
    except KeyboardInterrupt:
        pass
    finally:
        say("Stopping")
        worker.send_signal(signal.SIGINT)
        worker.wait(60)


def tour(url: str, worker: subprocess.Popen[bytes]) -> None:
    say("Creating a source that reads quickstart-data/in.txt")
    rest("POST", f"{url}/connectors", json.loads((HERE / "file-source.json").read_text()))
    say("Creating a sink that writes quickstart-data/out.txt, in the state STOPPED (KIP-980)")
    rest("POST", f"{url}/connectors", json.loads((HERE / "file-sink.json").read_text()))
    rest("GET", f"{url}/connectors/quickstart-sink/status")
    say("Resuming the sink")
    rest("PUT", f"{url}/connectors/quickstart-sink/resume")
    for name in ("quickstart-source", "quickstart-sink"):
        until(f"{name} running", lambda each=name: running(url, each), worker)

    say("Appending lines to in.txt and waiting for them in out.txt: file -> Spark -> Kafka -> Spark -> file")
    with (DATA / "in.txt").open("a") as file:
        file.writelines(f"Line {number}\n" for number in range(1, 4))
    out = DATA / "out.txt"
    until("The lines arriving", lambda: out.exists() and out.read_text() == (DATA / "in.txt").read_text(), worker)
    print("".join(f"    out.txt: {line}\n" for line in out.read_text().splitlines()), end="")

    say("Status and offsets (KIP-875)")
    rest("GET", f"{url}/connectors?expand=status")
    for name in ("quickstart-source", "quickstart-sink"):
        offsets = f"{url}/connectors/{name}/offsets"
        until("Offsets being committed", lambda at=offsets: json.load(urllib.request.urlopen(at))["offsets"], worker)
        rest("GET", offsets)


if __name__ == "__main__":
    main()
