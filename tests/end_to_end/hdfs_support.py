"""A real HDFS on this machine: a name node and a data node."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark
from harness import await_

from headgate.dev import ports
from headgate.dev.guarded import GuardedProcess
from headgate.jars.find import find_java
from headgate.jars.jars import HDFS_SERVERS, fetch

_SERVER = "org.apache.hadoop.hdfs.server"


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Its address."""
    uri = f"hdfs://{ports.HOST}:{ports.pick_free(1)[0]}"
    _settings(folder, uri)
    path = os.pathsep.join([str(folder), *map(str, fetch(HDFS_SERVERS)), f"{Path(pyspark.__file__).parent}/jars/*"])
    java = [str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path]
    name_node, data_node = [*java, f"{_SERVER}.namenode.NameNode"], [*java, f"{_SERVER}.datanode.DataNode"]
    subprocess.run([*name_node, "-format", "-nonInteractive"], check=True, capture_output=True)
    with ExitStack() as running, (folder / "lock").open("w") as lock:
        for what, command in (("name", name_node), ("data", data_node)):
            console = folder / f"{what}.log"
            process = GuardedProcess(command, console=console, grace=10, lock=lock.fileno())
            running.callback(process.kill)
        blocks = folder / "data" / "current"
        await_(lambda: any(blocks.glob("BP-*/current")), "a data node that has found its name node", 120)
        yield uri


def _settings(folder: Path, uri: str) -> None:
    anywhere = f"{ports.HOST}:0"
    settings = {
        "fs.defaultFS": uri,
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.datanode.data.dir": str(folder / "data"),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.namenode.fs-limits.min-block-size": "1024",
        "dfs.namenode.http-address": anywhere,
        **{f"dfs.datanode.{each}": anywhere for each in ("address", "http.address", "ipc.address")},
    }
    rows = [f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items()]
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(f"<configuration>{''.join(rows)}</configuration>")
