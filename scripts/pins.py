"""Writes the digests of all jars that Headgate fetches: fetched anew, past every cache, by the coordinates of today.

They are to be looked at in the difference before it is committed: a version that did not change keeps its digest.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from headgate.jars import pins
from headgate.jars.jars import DELTA, HDFS_SERVERS, JDBC_DRIVERS, KAFKA_BROKER, SPARK_KAFKA, fetch

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        sets = (KAFKA_BROKER, SPARK_KAFKA, JDBC_DRIVERS, DELTA, HDFS_SERVERS)
        used = {jar.name for jars in sets for jar in fetch(replace(jars, pins=None), cache)}
        # Only Ivy's own cache has the groups: group/artifact/type/file.
        kept = {path: path.relative_to(cache / "ivy").parts for path in (cache / "ivy").glob("*/*/*/*.jar")}
        digests = {
            f"{group}:{artifact}:{name.removeprefix(f'{artifact}-').removesuffix('.jar')}": pins.digest_of(path)
            for path, (group, artifact, _, name) in kept.items()
            if name in used
        }
    pins.write(pins.OURS, digests)
    print(f"{len(digests)} digests of {len(used)} jars are in {pins.OURS}")
