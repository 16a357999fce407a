"""ConnectorSuite: what is expected of every connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from headgate.api.config import ConfigDef
from headgate.api.connector import Connector
from headgate.api.errors import ConfigError, UnsupportedOperation
from headgate.api.testing.doubles import MemoryConnectorContext


class ConnectorSuite:
    """Base of the suites. Set `connector` and `config`; a fixture may set `config` on `self`."""

    connector: ClassVar[type[Connector]]
    config: Mapping[str, str]
    """A valid configuration, as a user would write it."""
    cluster: Mapping[str, str] = {}
    """What the contexts say of the cluster that records go to."""
    session: Any = None
    """The SparkSession, for those that ask their context for it."""
    max_tasks: int = 3
    patience: float = 10.0
    """Seconds until a test gives up waiting for the connector."""

    @contextmanager
    def running_connector(self) -> Iterator[Connector]:
        """A started connector; it is stopped at the end."""
        connector = self.connector()
        connector.context = MemoryConnectorContext(cluster=self.cluster)
        connector.start(self.config)
        try:
            yield connector
        finally:
            connector.stop()

    def test_the_plugin_is_described(self) -> None:
        assert self.connector.version(), "version() is empty"
        assert (self.connector.__doc__ or "").strip(), f"{self.connector.__name__} has no docstring"

    def test_every_key_is_documented(self) -> None:
        undocumented = [key.name for key in self.connector.config if not key.doc.strip()]
        assert not undocumented, f"keys without doc: {undocumented}"

    def test_every_default_is_valid(self) -> None:
        for key in self.connector.config:
            if not key.required:
                (found,) = ConfigDef(key).validate({})
                assert not found.errors, f"the default of {key.name}: {found.errors}"

    def test_every_dependent_key_is_declared(self) -> None:
        unknown = {
            name for key in self.connector.config for name in key.dependents if name not in self.connector.config
        }
        assert not unknown, f"named as dependents, but not declared: {sorted(unknown)}"

    def test_the_configuration_is_accepted(self) -> None:
        errors = {found.name: found.errors for found in self.connector().validate(self.config) if found.errors}
        assert not errors, f"validate() finds errors in the suite's config: {errors}"

    def test_every_required_key_is_asked_for(self) -> None:
        for key in self.connector.config:
            if key.required:
                config = {name: value for name, value in self.config.items() if name != key.name}
                found = {value.name: value for value in self.connector().validate(config)}
                expected = str(ConfigError.missing(key.name))
                assert key.name in found, f"validate() says nothing about {key.name}"
                assert expected in found[key.name].errors, f"without {key.name}: {found[key.name].errors}"

    def test_there_are_at_most_max_tasks(self) -> None:
        with self.running_connector() as connector:
            for max_tasks in (1, self.max_tasks):
                configs = connector.task_configs(max_tasks)
                assert len(configs) <= max_tasks, f"{len(configs)} tasks, but at most {max_tasks} were allowed"
                for config in configs:
                    wrong = {key: value for key, value in config.items() if not _is_text(key, value)}
                    assert not wrong, f"task configurations hold text only: {wrong}"

    def test_the_same_connector_can_be_started_again(self) -> None:
        connector = self.connector()
        connector.context = MemoryConnectorContext(cluster=self.cluster)
        for _ in range(2):
            connector.start(self.config)
            connector.task_configs(self.max_tasks)
            connector.stop()

    def test_a_task_that_failed_to_start_can_be_stopped(self) -> None:
        task = self.connector.task_class_for(self.config)()
        with suppress(Exception):
            task.start({})
        task.stop()

    def _alter(self, offsets: Any) -> None:
        """As the kind of the connector takes them."""
        connector: Any = self.connector()
        connector.context = MemoryConnectorContext(session=self.session)
        try:
            answer = connector.alter_offsets(self.config, offsets)
        except UnsupportedOperation:
            return
        assert isinstance(answer, bool), f"alter_offsets() answers {answer!r}, not True or False"


def _is_text(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, str)
