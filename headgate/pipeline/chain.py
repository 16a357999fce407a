"""Chain: the converters and the steps of one task, built from its ChainSpec."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from headgate.api import ConfigError, ConnectError, Converter, HeaderConverter
from headgate.model import ChainSpec, PluginRef, PluginSpec, StepSpec
from headgate.pipeline.converters.byte_array import ByteArrayConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import is_utf8
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.steps import Step, Steps


@dataclass(frozen=True, slots=True)
class Chain:
    """Configured and ready. Not for two threads at once, as no plugin is."""

    key: Converter
    value: Converter
    headers: HeaderConverter
    steps: Steps
    policy: ErrorPolicy

    @classmethod
    def build(cls, spec: ChainSpec) -> Chain:
        """Raises ConnectError for a class that is not here, and whatever `configure` raises."""
        key = _converter("key.converter", spec.key_converter, Converter, is_key=True)
        value = _converter("value.converter", spec.value_converter, Converter, is_key=False)
        headers = _converter("header.converter", spec.header_converter, HeaderConverter)
        steps = Steps([_step(step) for step in spec.steps])
        return cls(key, value, headers, steps, ErrorPolicy.of(spec.errors))

    @property
    def fallible(self) -> frozenset[str]:
        """The parts of a record whose bytes a converter may not be able to read."""
        converters: dict[str, object] = {"key": self.key, "value": self.value, "headers": self.headers}
        read_all = (ByteArrayConverter, SimpleHeaderConverter)
        return frozenset(name for name, each in converters.items() if type(each) not in read_all and not is_utf8(each))

    def close(self) -> None:
        self.steps.close()


def load(ref: PluginRef) -> Any:
    """The plugin's class, imported. Raises ConnectError."""
    try:
        found: Any = importlib.import_module(ref.module)
        for name in ref.qualname.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ConnectError(f"Plugin {ref} cannot be imported here: {error}") from error
    return found


def _step(spec: StepSpec) -> Step:
    return Step(
        transform=_configured(spec.transform),
        predicate=_configured(spec.predicate) if spec.predicate else None,
        negate=spec.negate,
    )


def _configured(spec: PluginSpec) -> Any:
    plugin = load(spec.ref)()
    plugin.configure(spec.config)
    return plugin


def _converter(key: str, spec: PluginSpec, kind: type[Any], **how: bool) -> Any:
    plugin = load(spec.ref)()
    if not isinstance(plugin, kind):
        raise ConnectError(f"Plugin {spec.ref} is not a {kind.__name__}")
    try:
        plugin.configure(spec.config, **how)
    except ConfigError as error:
        # Told by the keys that users write, if it is one of those that were declared.
        plugin.config.embedded(f"{key}.").parse({f"{key}.{name}": value for name, value in spec.config.items()})
        raise ConfigError(f"{key}: {error}") from error
    return plugin
