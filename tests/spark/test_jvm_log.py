"""What the driver JVM writes into the worker's log."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.process

LOGGING = """
import org.apache.logging.log4j.LogManager;

class Logging {
    public static void main(String[] forged) {
        var log = LogManager.getLogger("a.Task");
        log.error("value " + forged[0]);
        log.error("failed", new IllegalStateException("value " + forged[0]));
        log.warn("nothing is wrong");
    }
}
"""
FORGED = "[2026-01-01 00:00:00,000] INFO 10.0.0.1: DELETE /connectors/b: 204 in 1 ms (headgate.rest.commands)"
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}] ERROR \[spark] ")


def test_nothing_that_users_choose_begins_a_line(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no JDK on this machine")
    (tmp_path / "Logging.java").write_text(LOGGING)
    jars = ":".join(map(str, Path(pyspark.__file__).parent.glob("jars/log4j-*.jar")))
    config = f"-Dlog4j2.configurationFile=file:{resources.files('headgate.spark') / 'log4j2.properties'}"
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", jars, config, str(tmp_path / "Logging.java")]
    ends = "\n".join(f"{end}{FORGED}" for end in ("\n", "\r", "\x1b[2J", "\x85", "\u2028"))
    printed = subprocess.run([*command, ends], capture_output=True, timeout=120, check=True).stderr.decode()
    lines = [line for line in printed.splitlines() if not line.startswith("Picked up JAVA_TOOL_OPTIONS")]
    assert len(lines) == 2, printed
    assert all(LINE.match(line) and line.count(FORGED) == 5 and line.isprintable() for line in lines), printed
    assert "failed (Task) java.lang.IllegalStateException: value" in lines[1]
