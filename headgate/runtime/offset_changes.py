"""Reads, alters and resets a connector's offsets (KIP-875): the steps, in their order; `offsets.py` has the rules."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headgate.api.connector import SinkConnector, SourceConnector
from headgate.model import Config, ConnectorType, Offset, Partition, TopicPartition
from headgate.runtime import offsets as rules
from headgate.runtime import task_spec
from headgate.runtime.config import reaches
from headgate.runtime.config.connector_config import CONNECTOR_CLASS
from headgate.runtime.config.overrides import Client
from headgate.runtime.config.secrets import Secrets
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.connector import in_thread
from headgate.runtime.context import OffsetsContext
from headgate.runtime.errors import OffsetsError, PluginNotFound
from headgate.runtime.herder_ports import no_session
from headgate.runtime.plugins import Found, Plugins
from headgate.runtime.ports import GroupNotEmpty, GroupOffsets, OpenOffsets
from headgate.runtime.view import ConnectorView

log = logging.getLogger(__name__)

_HOOK_TIMEOUT_S: Final = 90.0


@dataclass(eq=False)
class OffsetChanges:
    _config: WorkerConfig
    _plugins: Plugins
    _open: OpenOffsets
    _groups: GroupOffsets
    _secrets: Secrets = field(default_factory=Secrets)
    _session: Callable[[], Any] = no_session

    async def read(self, connector: ConnectorView) -> list[tuple[Partition, Offset]]:
        """Also of a connector whose class is not installed. Raises OffsetsLost, which has what is left of them."""
        connector = await self._resolved(connector)
        kind = self._plugins.connector_type(connector.config.get(CONNECTOR_CLASS))
        if kind is ConnectorType.UNKNOWN:
            kind = rules.type_of(connector.config)
        if kind is ConnectorType.SINK:
            problem = f"Failed to retrieve consumer group offsets for sink connector {connector.name}"
            return rules.sink_entries(await self._read_group(connector, problem))
        return await self._read_source(connector, f"Failed to retrieve offsets for source connector {connector.name}")

    async def alter(self, connector: ConnectorView, changes: Sequence[rules.Change]) -> str:
        rules.require_stopped(connector)
        connector = await self._resolved(connector)
        found = self._found(connector)
        if found.connector_type is ConnectorType.SINK:
            wanted = rules.parse_sink_changes(changes)
            if any(offset is not None and offset < 0 for offset in wanted.values()):
                raise OffsetsError(f"Failed to modify offsets for sink connector {connector.name}")
            known = await self._hook(found, connector, wanted)
            await self._alter_group(connector, wanted)
        else:
            entries = rules.parse_source_changes(changes)
            # Before anybody is asked: where they are kept may not be there.
            await self._read_source(connector, f"Failed to modify offsets for source connector {connector.name}")
            known = await self._hook(found, connector, entries)
            await self._write_source(connector, entries)
        return rules.success("altered", known)

    async def reset(self, connector: ConnectorView) -> str:
        rules.require_stopped(connector)
        connector = await self._resolved(connector)
        found = self._found(connector)
        if found.connector_type is ConnectorType.SINK:
            problem = f"Failed to list offsets prior to resetting offsets for sink connector {connector.name}"
            current = await self._read_group(connector, problem)
            known = await self._hook(found, connector, dict.fromkeys(current))
            await self._delete_group(connector)
        else:
            problem = f"Failed to modify offsets for source connector {connector.name}"
            stored = await self._read_source(connector, problem)
            gone: list[tuple[Partition, Offset | None]] = [(partition, None) for partition, _ in stored]
            known = await self._hook(found, connector, gone)
            await self._write_source(connector, gone)
        return rules.success("reset", known)

    async def _resolved(self, connector: ConnectorView) -> ConnectorView:
        """With its values looked up. Raises ProviderFailed."""
        return replace(connector, config=(await self._secrets.look_up(connector.config)).config)

    def _found(self, connector: ConnectorView) -> Found:
        """For its hook."""
        try:
            return self._plugins.find_connector(connector.config.get(CONNECTOR_CLASS, ""))
        except PluginNotFound as missing:
            raise OffsetsError(f"Failed to modify offsets for connector {connector.name}: {missing}") from missing

    async def _hook(self, found: Found, connector: ConnectorView, changes: Any) -> bool:
        """Asks a fresh connector that was never started. Nothing has been written yet, also when it refuses."""
        kind = found.connector_type.value

        def ask() -> bool:
            try:
                reaches.require(connector.config, self._plugins, self._config.sandbox)
                plugin = found.connector()
                assert isinstance(plugin, SourceConnector | SinkConnector)
                plugin.context = OffsetsContext(connector.name, self._session)  # type: ignore[assignment]
                return bool(plugin.alter_offsets(dict(connector.config), changes))
            except Exception as error:
                log.warning("Connector refused to have its offsets changed", exc_info=True)
                raise rules.hook_failure(error, kind, connector.name) from error

        try:
            return await asyncio.wait_for(in_thread(ask, f"alter-offsets-{connector.name}"), _HOOK_TIMEOUT_S)
        except TimeoutError:
            problem = f"Timed out while calling the 'alterOffsets' method for {kind} connector {connector.name}"
            raise OffsetsError(problem) from None

    async def _read_source(self, connector: ConnectorView, problem: str) -> list[tuple[Partition, Offset]]:
        def read() -> list[tuple[Partition, Offset]]:
            with self._open(connector.name, connector.config, to_change=False, at_once=True) as store:
                return store.all(connector.name)

        with _told(f"Reading the offsets of {connector.name}", problem):
            return await in_thread(read, "read-offsets")

    async def _write_source(self, connector: ConnectorView, entries: list[tuple[Partition, Offset | None]]) -> None:
        def write() -> None:
            with self._open(connector.name, connector.config, to_change=True) as store:
                store.put(connector.name, entries)
                store.all(connector.name)  # KIP-875: they count when they have been read back

        problem = f"Failed to modify offsets for source connector {connector.name}"
        with _told(f"Writing the offsets of {connector.name}", problem):
            if entries:
                await in_thread(write, "write-offsets")

    # --- sinks: the consumer group is the truth -----------------------------------------------------------------------

    def _group(self, connector: ConnectorView) -> tuple[Config, str]:
        self._config.overrides.require(Client.ADMIN, ConnectorType.SINK, connector.config)
        admin = task_spec.admin_config(connector.name, connector.config, self._config)
        group = rules.group_of(connector.name, connector.config, self._config.prefixed("consumer."))
        return admin, group

    async def _read_group(self, connector: ConnectorView, problem: str) -> Mapping[TopicPartition, int]:
        admin, group = self._group(connector)
        with _told(f"Reading group {group}", problem):
            return await in_thread(lambda: self._groups.read(admin, group), "read-group")

    async def _alter_group(self, connector: ConnectorView, wanted: Mapping[TopicPartition, int | None]) -> None:
        admin, group = self._group(connector)
        problem = f"Failed to alter consumer group offsets for connector {connector.name}"
        with _told(f"Altering group {group}", problem, rules.group_not_empty(connector.name, "alter")):
            await in_thread(lambda: self._groups.alter(admin, group, wanted), "alter-group")

    async def _delete_group(self, connector: ConnectorView) -> None:
        admin, group = self._group(connector)
        problem = f"Failed to reset consumer group offsets for sink connector {connector.name}"
        with _told(f"Deleting group {group}", problem, rules.group_not_empty(connector.name, "reset")):
            await in_thread(lambda: self._groups.delete(admin, group), "delete-group")


@contextmanager
def _told(doing: str, problem: str, not_empty: OffsetsError | None = None) -> Iterator[None]:
    """What fails within it is logged as it is, and told as the `problem`; or as `not_empty`, if that is it; or as it is
    if it was meant for the user."""
    try:
        yield
    except OffsetsError:
        raise
    except Exception as error:
        if isinstance(error, GroupNotEmpty) and not_empty is not None:
            raise not_empty from error
        log.exception("%s", doing)
        raise OffsetsError(problem) from error
