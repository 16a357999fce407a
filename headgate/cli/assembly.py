"""Joins the parts of a worker: stores, Spark, herder, REST. The one place that knows them all."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headgate.cli.version import commit
from headgate.clients import ClientKind, translate
from headgate.java.find import find_java
from headgate.java.jars import SPARK_KAFKA, fetch
from headgate.rest.app import build_admin_app, build_app
from headgate.rest.exposition import exposition
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings
from headgate.runtime import task_spec
from headgate.runtime.plugins import Kind, Plugins
from headgate.runtime.secrets import resolve_worker
from headgate.runtime.standalone import StandaloneHerder
from headgate.runtime.worker_config import STANDALONE, WorkerConfig, unknown_keys
from headgate.spark.ride import Rides
from headgate.spark.runner import SparkTaskRunner
from headgate.spark.session import SparkEngine
from headgate.storage.cluster_id import cluster_id
from headgate.storage.file import FileOffsetStore
from headgate.storage.group_offsets import KafkaGroupOffsets
from headgate.storage.memory import MemoryConfigStore, MemoryStatusStore

log = logging.getLogger(__name__)

LOCAL_LISTENER: Final = "http://127.0.0.1:8083"


class StandaloneWorker:
    """A worker alone. The constructor binds the REST sockets and opens the stores, which is where most things that can
    be wrong show; `start` returns when REST answers."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        for key in unknown_keys(raw, STANDALONE):
            log.warning("Unknown key in the worker's configuration is ignored: %s", key)
        self.plugins = Plugins.discover(STANDALONE["plugin.path"].parse(raw.get("plugin.path")) or ())
        raw, self._secrets = resolve_worker(raw, self.plugins, STANDALONE.names)
        self.config = WorkerConfig.parse(raw, STANDALONE, self.plugins)
        settings = RestSettings.parse(raw, default_listeners=(LOCAL_LISTENER,))
        self._settings = settings
        self.server = Server(settings)
        self._offsets = FileOffsetStore(raw["offset.storage.file.filename"])
        self._groups = KafkaGroupOffsets()
        self._require_converters()
        self.engine = SparkEngine(
            {key: value for key, value in raw.items() if key.startswith("spark.")},
            jars=lambda: fetch(SPARK_KAFKA),
            require_java=find_java,
            plugin_folders=self.plugins.folders,
        )
        self.rides = Rides(self.engine)
        self.runner = SparkTaskRunner(self.engine, self.rides, self._offsets)
        self.herder = StandaloneHerder(
            config=self.config,
            plugins=self.plugins,
            configs=MemoryConfigStore(),
            statuses=MemoryStatusStore(),
            offsets=self._offsets,
            groups=self._groups,
            runner=self.runner,
            worker_id=self.server.worker_id,
            cluster_id=lambda: cluster_id(task_spec.admin_config("", {}, self.config)),
            secrets=self._secrets,
            try_client=lambda kind, config: translate(ClientKind(kind), config),
        )

    def start(self) -> None:
        app = build_app(
            self.herder,
            self._settings,
            metrics=lambda: exposition(self.herder, self.runner.metrics),
            commit=commit(),
        )
        self.herder.start()
        self.server.start(app, build_admin_app(self.herder, self._settings))
        log.info("REST API answers after %.2f s", time.monotonic() - self._began)
        self.engine.start()
        self.rides.start()

    def stop(self) -> None:
        """Ends everything in order, offsets committed."""
        self.server.stop(timeout=1.0)
        self.herder.shutdown()
        self.rides.stop()
        self.engine.stop()
        self._groups.close()
        self._offsets.close()
        self._secrets.close()

    def _require_converters(self) -> None:
        """A converter that cannot be found would fail every connector; better to say so once, at the start."""
        for key in ("key.converter", "value.converter", "header.converter"):
            ref = task_spec.converter(key, {}, self.config, self.plugins).ref
            problem = self.plugins.find(str(ref), Kind.CONVERTER, Kind.HEADER_CONVERTER).cls.unavailable()
            if problem is not None:
                log.warning("No connector can use %s of the worker's configuration: %s", key, problem)


def defaults_without_file(data: Path) -> dict[str, str]:
    """What Apache's sample worker file says."""
    return {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": str(data / "offsets.json"),
        "offset.flush.interval.ms": "10000",
    }


__all__: Sequence[str] = ["LOCAL_LISTENER", "StandaloneWorker", "defaults_without_file"]
