"""Joins the parts of a worker: stores, Spark, herder, REST. The one place that knows them all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from headgate.api.config import ConfigDef
from headgate.cli.access import WorkerAccess
from headgate.cli.open_files import raise_limit
from headgate.cli.task_ports import task_ports
from headgate.cli.version import commit
from headgate.jars.find import find_java
from headgate.jars.jars import SPARK_KAFKA, cache_folder, fetch
from headgate.kafka.settings import ClientKind, translate
from headgate.kafka.statistics import client_figures
from headgate.log import Complaints
from headgate.metrics import AccessFigures, GroupFigures
from headgate.rest.app import build_admin_app, build_app
from headgate.rest.exposition import exposition
from headgate.rest.loggers import Loggers
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings
from headgate.runtime import task_spec
from headgate.runtime.config.connector_config import CONVERTERS
from headgate.runtime.config.secrets import resolve_worker
from headgate.runtime.config.worker_config import STANDALONE, WorkerConfig, unknown_keys
from headgate.runtime.herder import Herder
from headgate.runtime.herder_ports import HerderPorts, offsets_in
from headgate.runtime.plugins import PluginKind, Plugins
from headgate.runtime.ports import ConfigStore, OpenOffsets, StatusStore
from headgate.runtime.standalone import StandaloneHerder
from headgate.sandbox import warnings
from headgate.spark.engine import SparkEngine
from headgate.storage.cluster_id import cluster_id
from headgate.storage.file import FileOffsetStore
from headgate.storage.group_offsets import KafkaGroupOffsets
from headgate.storage.memory import MemoryConfigStore, MemoryStatusStore
from headgate.tasks.runner import ThreadRunner
from headgate.tasks.source.offsets import shared

log = logging.getLogger(__name__)

LOCAL_LISTENER: Final = "http://127.0.0.1:8083"
_CLOSE_S: Final = 5.0


class AnyWorker:
    """What every worker is made of, whether alone or in a group. The constructor opens all that can be wrong, the REST
    sockets among it; `start` returns when REST answers. Who derives from it makes the runner and the herder."""

    runner: ThreadRunner
    herder: Herder
    without_kafka = "and what needs it waits"
    """What comes of it when no broker answers."""

    def __init__(
        self, raw: Mapping[str, str], keys: ConfigDef, default_listener: str, own: Sequence[Path] = ()
    ) -> None:
        """`own` are files and folders of the worker that its file does not name."""
        self._began = time.monotonic()
        raise_limit()
        for key in unknown_keys(raw, keys):
            log.warning("Unknown key in the worker's configuration is ignored: %s", key)
        self.plugins = Plugins.discover(keys["plugin.path"].parse(raw.get("plugin.path")) or ())
        self.raw, self._secrets = resolve_worker(raw, self.plugins, keys.names)
        for warning in warnings(self.raw):
            log.warning("%s", warning)
        self._access = WorkerAccess(self.raw, keys)
        self.config = WorkerConfig.parse(self.raw, keys, self.plugins, (cache_folder(), *own), self._access.files)
        self.settings = RestSettings.parse(self.raw, default_listeners=(default_listener,))
        self.server = Server(self.settings)
        self._open_to_everybody = self.server.open_to_everybody(has_logins=self._access.logins is not None)
        self._groups = KafkaGroupOffsets()
        self._loggers = Loggers()
        self._require_converters()
        self.engine = SparkEngine(
            self.raw,
            jars=lambda: fetch(SPARK_KAFKA),
            require_java=find_java,
            plugin_folders=self.plugins.folders,
            cache=cache_folder(),
            sandbox=self.config.sandbox,
        )

    def _for_herder(self, configs: ConfigStore, statuses: StatusStore, open_offsets: OpenOffsets) -> HerderPorts:
        complaints = Complaints(log, f"Kafka does not answer, {self.without_kafka}")
        return HerderPorts(
            config=self.config,
            plugins=self.plugins,
            configs=configs,
            statuses=statuses,
            open_offsets=open_offsets,
            groups=self._groups,
            runner=self.runner,
            worker_id=self.server.worker_id,
            cluster_id=lambda: cluster_id(task_spec.admin_config("", {}, self.config), complaints.say),
            secrets=self._secrets,
            try_client=lambda kind, config: translate(ClientKind(kind), config),
            try_step=self.engine.problems,
            session=self.engine.session,
        )

    def start(self) -> None:
        app = build_app(
            self.herder,
            self.settings,
            metrics=self._metrics,
            commit=commit(),
            loggers=self._loggers,
            warnings=self._warnings,
            access=self._access.access,
        )
        self.herder.start()
        access = self._access.access
        admin_app = build_admin_app(self.herder, self.settings, loggers=self._loggers, access=access)
        self.server.start(app, admin_app, access.audit)
        log.info("REST API answers after %.2f s", time.monotonic() - self._began)
        if self._open_to_everybody is not None:
            log.warning("%s", self._open_to_everybody)
        self.engine.start()

    def _metrics(self) -> bytes:
        figures = client_figures(), self.group_figures(), self.engine.jvm_figures()
        logins, audit = self._access.logins, self._access.audit
        access = AccessFigures(
            self.server.certificate_ends, logins.failed if logins else {}, audit.failed if audit else 0
        )
        return exposition(self.herder, self.runner.metrics, *figures, access)

    def _warnings(self) -> list[str]:
        """What /health shows."""
        return [
            *([] if self._open_to_everybody is None else [self._open_to_everybody]),
            *self.server.warnings(),
            *self._access.warnings(),
        ]

    def group_figures(self) -> GroupFigures | None:
        """None: this worker is alone."""
        return None

    def stop(self) -> None:
        """Ends everything in order, offsets committed."""
        self.server.stop(timeout=1.0)
        self.herder.shutdown()
        self.engine.stop()
        self._groups.close()
        self._access.close()
        # Plugins that never come back do not keep the worker from its end.
        closing = threading.Thread(target=self._secrets.close, name="close-providers", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)

    def _require_converters(self) -> None:
        """A converter that cannot be found would fail every connector; better to say so once, at the start."""
        for key in CONVERTERS:
            ref = task_spec.converter(key, {}, self.config, self.plugins).ref
            problem = self.plugins.find(str(ref), PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER).cls.unavailable()
            if problem is not None:
                log.warning("No connector can use %s of the worker's configuration: %s", key, problem)


class StandaloneWorker(AnyWorker):
    """A worker alone."""

    def __init__(self, raw: Mapping[str, str], own: Sequence[Path] = ()) -> None:
        super().__init__(raw, STANDALONE, LOCAL_LISTENER, own)
        self._offsets = FileOffsetStore(self.raw["offset.storage.file.filename"])
        self.runner = ThreadRunner(task_ports(self.engine, shared(self._offsets), self.config.sandbox))
        self.herder = StandaloneHerder(
            self._for_herder(MemoryConfigStore(), MemoryStatusStore(), offsets_in(self._offsets))
        )

    def stop(self) -> None:
        super().stop()
        self._offsets.close()


def defaults_without_file(data: Path) -> dict[str, str]:
    """What Apache's sample worker file says."""
    return {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": str(data / "offsets.json"),
        "offset.flush.interval.ms": "10000",
    }
