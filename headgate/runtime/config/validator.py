"""Validates a connector's configuration: framework, connector, transforms, converters and client settings together."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.api.config import ConfigDef, ConfigValue, Key
from headgate.api.connector import Connector, SourceConnector
from headgate.api.errors import ConfigError
from headgate.api.plugin import Plugin
from headgate.api.transform import Transform
from headgate.java.regex import compiled
from headgate.log import masked
from headgate.model import SINK_GROUP_PREFIX, Config, ConnectorType
from headgate.runtime.config import connector_config as keys
from headgate.runtime.config import exactly_once, masking, reaches, unknown_keys
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.secrets import Resolved, Secrets, has_variables
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos
from headgate.runtime.config.worker_config import SIMPLE_HEADER_CONVERTER
from headgate.runtime.errors import BadRequest, PluginNotFound, ProviderFailed
from headgate.runtime.plugins import Found, PluginKind, Plugins
from headgate.sandbox import Sandbox

_NULL = "Null value can not be supplied as the configuration value."

TryStep = Callable[[type[Plugin], Config], Mapping[str, str]]
"""What is wrong with the settings of a transform, by key, as far as only the engine can judge it: SQL, for one."""


@dataclass(frozen=True, slots=True)
class Validator:
    """`worker` is the worker file, whose converters stand in where a connector names none."""

    plugins: Plugins
    worker: Config
    secrets: Secrets = field(default_factory=Secrets)
    clients: ClientCheck | None = None
    """Without it no client settings are looked at."""
    try_step: TryStep = lambda cls, settings: {}
    sandbox: Sandbox = field(default_factory=Sandbox)

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """All that is wrong, key by key, without telling a secret. Raises BadRequest when there is no class to ask, or
        a value cannot be looked up. Runs plugin code, and blocks."""
        stored = {key: value for key, value in config.items() if value is not None}
        try:
            resolved = self.secrets.resolve(stored)
        except ProviderFailed as error:
            raise BadRequest(str(error)) from error
        found = self._connector(config, resolved)
        version = resolved.config.get(keys.CONNECTOR_VERSION)
        if version is not None and not _matches(version, found.version):
            return _wrong_version(config, found, version)
        infos = self._validate(config, resolved.config, found)
        return _without_secrets(infos, stored, masking.literals(stored, self.plugins))

    def _validate(self, config: Mapping[str, str | None], given: Config, found: Found) -> ConfigInfos:
        connector = found.connector()
        refused = reaches.refused(given, self.plugins, self.sandbox)
        described = self._described(keys.definition(found.connector_type) + self._steps(given), found, given)
        framework = _unlooked(described, refused)
        values = {value.name: value for value in framework.validate(given)}
        for each in (each for each in framework if each.name.endswith(keys.VERSION)):
            values[each.name].recommended_values = [each.default] if each.default else []
        self._check_classes(values, given)
        self._check_guards(values, given)
        self._try_steps(values, given)
        if found.connector_type is ConnectorType.SINK:
            _check_topics(values, given)
            _check_group(values, given, self.worker.get("group.id"))
        if isinstance(connector, SourceConnector):
            enabled = self.clients is not None and self.clients.worker.exactly_once_sources
            exactly_once.check(connector, given, values, enabled)
        # Keys that a transform or predicate says depend on others, and does not declare.
        undefined = [ConfigInfo(None, value) for name, value in values.items() if name not in framework]
        for key in (key for key, value in config.items() if value is None):
            values.setdefault(key, ConfigValue(key)).errors.append(_NULL)
            if key not in framework:
                undefined.append(ConfigInfo(None, values[key]))
        own_def, own_values = self._own(found, connector, given, refused)
        may = {key: value for key, value in given.items() if key not in refused}
        clients = self.clients.infos(found.connector_type, may) if self.clients else []
        converters = [info for key in sorted(keys.CONVERTERS) for info in self._converter_keys(key, values, given)]
        declared = [
            *(each for each in undefined if each.value and each.value.name not in own_def),
            *(ConfigInfo(key, values[key.name]) for key in framework if key.name not in own_def),
            *(ConfigInfo(own_def.get(name), value) for name, value in own_values.items()),
        ]
        told = {info.value.name: info.value for info in (*declared, *clients, *converters) if info.value is not None}
        for key, reason in refused.items():
            if key not in told:
                told[key] = ConfigValue(key)
                clients.append(ConfigInfo(None, told[key]))
            told[key].errors.append(reason)
        groups = dict.fromkeys([*framework.groups, *own_def.groups, *_groups(converters)])
        # As Apache counts: every message of the connector's keys, but each client's or converter's key once.
        count = sum(len(info.value.errors) for info in declared if info.value is not None)
        count += sum(1 for info in (*clients, *converters) if info.value is not None and info.value.errors)
        names = {info.value.name for info in (*declared, *converters) if info.value is not None}
        unknown = unknown_keys.find(
            given, found.connector_type, {*framework.names, *names}, self._open_prefixes(given, values), own_def
        )
        infos = [*declared, *clients, *converters]
        return ConfigInfos(str(config[keys.CONNECTOR_CLASS]), count, list(groups), infos, unknown)

    def _connector(self, config: Mapping[str, str | None], resolved: Resolved) -> Found:
        name = resolved.config.get(keys.CONNECTOR_CLASS)
        if not name:
            given = {key: "null" if value is None else value for key, value in config.items()}
            shown = ", ".join(f"{key}={value}" for key, value in masking.masked(given, self.plugins).items())
            raise BadRequest(f"Connector config {{{shown}}} contains no connector type")
        try:
            found = self.plugins.find_connector(name)
        except PluginNotFound as error:
            raise BadRequest(str(error)) from None
        problem = found.cls.unavailable()
        if problem is not None:
            raise BadRequest(str(ConfigError.invalid(keys.CONNECTOR_CLASS, name, problem)))
        return found

    @staticmethod
    def _own(
        found: Found, connector: Connector, config: Config, refused: Collection[str]
    ) -> tuple[ConfigDef, dict[str, ConfigValue]]:
        if not isinstance(connector.config, ConfigDef):
            raise BadRequest(f"{found.name}.config must be a ConfigDef.")
        limited = any(reach.key in refused for reach in found.cls.reaches(config))
        values = _unlooked(connector.config, refused).validate(config) if limited else connector.validate(config)
        if values is None:
            raise BadRequest(f"{found.name}.validate() must return a list of ConfigValue that is not None.")
        return connector.config, {value.name: value for value in values}

    # --- transforms and predicates ------------------------------------------------------------------------------------

    def _steps(self, config: Config) -> ConfigDef:
        """The keys of every alias: type, version, then the rest by name."""
        merged = ConfigDef()
        for alias in keys.aliases(config, "transforms"):
            own = self._plugin_keys(f"transforms.{alias}.", f"Transforms: {alias}", PluginKind.TRANSFORMATION, config)
            merged += _sorted_after(keys.transform_keys(alias), own)
        for alias in keys.aliases(config, "predicates"):
            own = self._plugin_keys(f"predicates.{alias}.", f"Predicates: {alias}", PluginKind.PREDICATE, config)
            merged += _sorted_after(keys.predicate_keys(alias), own)
        return merged

    def _plugin_keys(self, prefix: str, group: str, kind: PluginKind, config: Config) -> ConfigDef:
        found = self.plugins.get(config.get(f"{prefix}type", ""), kind)
        definition: ConfigDef = getattr(found.cls, "config", ConfigDef()) if found else ConfigDef()
        return definition.embedded(prefix, group)

    def _open_prefixes(self, config: Config, values: Mapping[str, ConfigValue]) -> list[str]:
        """Where keys cannot be told from slips: below plugins that declare none, or that could not be found."""
        named = {f"{key}.": (key, kind) for key, kind in keys.CONVERTERS.items() if config.get(key)}
        named |= {prefix: (f"{prefix}type", kind) for prefix, kind in keys.steps(config).items()}
        return [
            prefix
            for prefix, (key, kind) in named.items()
            if values[key].errors or not list(self._plugin_keys("", "", kind, {"type": config[key]}))
        ]

    def _described(self, framework: ConfigDef, connector: Found, config: Config) -> ConfigDef:
        """With defaults that this worker has: its converters, and the versions of the plugins in use."""
        defaults: dict[str, str | None] = {keys.CONNECTOR_VERSION: connector.version}
        for key, kind in keys.classes(config).items():
            found = self._in_use(key, kind, config)
            defaults[keys.version_of(key)] = found.version if found else None
            if key in keys.CONVERTERS:
                standard = self._in_use(key, kind, {})
                defaults[key] = standard.name if standard else self.worker.get(key)
        return ConfigDef(*(replace(key, default=defaults.get(key.name, key.default)) for key in framework))

    def _in_use(self, key: str, kind: PluginKind, config: Config) -> Found | None:
        """What the connector names, else the worker's."""
        standard = SIMPLE_HEADER_CONVERTER if key == "header.converter" else ""
        return self.plugins.get(config.get(key, self.worker.get(key) or standard), kind)

    def _check_classes(self, values: dict[str, ConfigValue], config: Config) -> None:
        for key, kind in keys.classes(config).items():
            name, version = config.get(key), values[keys.version_of(key)]
            values[key].recommended_values = [each.name for each in self.plugins.all if each.kind is kind]
            found = self._in_use(key, kind, config)
            if found is not None:
                values[key].value = found.name
            if name is None:
                self._check_worker_converter(key, kind, values[key])
                continue
            reason = f"Class {name} could not be found." if found is None else found.cls.unavailable()
            if reason is not None:
                values[key].errors.append(str(ConfigError.invalid(key, name, reason)))
            elif found is not None and version.value is not None and not _matches(version.value, found.version):
                _add(version_error(found, version.value), values[key], version)

    def _check_worker_converter(self, key: str, kind: PluginKind, value: ConfigValue) -> None:
        """It stands in for the connector's: one that cannot be used is to be told now, and not by an executor."""
        name = self.worker.get(key)
        if key not in keys.CONVERTERS or not name:
            return
        found = self.plugins.get(name, kind)
        if found is None:  # the worker was not started without it
            return
        problem = found.cls.unavailable()
        if problem is None:
            errors = [error for own in _keys_of(found, key).validate(self.worker) for error in own.errors]
            problem = " ".join(errors) or None
        if problem is not None:
            value.value = name
            value.errors.append(str(ConfigError.invalid(key, name, f"{problem} (the worker's converter)")))

    def _check_guards(self, values: dict[str, ConfigValue], config: Config) -> None:
        predicates = keys.aliases(config, "predicates")
        for alias in keys.aliases(config, "transforms"):
            negate, guard = f"transforms.{alias}.negate", f"transforms.{alias}.predicate"
            named = config.get(guard)
            if negate in config and named is None:
                values[negate].errors.append(
                    f"Config '{negate}' was provided but there is no config '{guard}' defining a predicate to be"
                    " negated."
                )
            if named is not None and named not in predicates:
                reason = f"No predicate of this alias in 'predicates': {', '.join(predicates) or 'there are none'}"
                values[guard].errors.append(str(ConfigError.invalid(guard, named, reason)))
            found = self.plugins.get(config.get(f"transforms.{alias}.type", ""), PluginKind.TRANSFORMATION)
            transform = found.cls if found else None
            if named is not None and transform and issubclass(transform, Transform) and not transform.takes_predicate:
                reason = "This transform works on whole batches: a predicate cannot decide about single records"
                values[guard].errors.append(str(ConfigError.invalid(guard, named, reason)))

    def _try_steps(self, values: dict[str, ConfigValue], config: Config) -> None:
        for prefix, kind in keys.steps(config).items():
            found = self.plugins.get(config.get(f"{prefix}type", ""), kind)
            wrong = self.try_step(found.cls, keys.with_prefix(config, prefix)) if found else {}
            for key, reason in ((prefix + name, reason) for name, reason in wrong.items()):
                if not values[key].errors:
                    values[key].errors.append(str(ConfigError.invalid(key, config[key], reason)))

    # --- converters ---------------------------------------------------------------------------------------------------

    def _converter_keys(self, key: str, values: dict[str, ConfigValue], config: Config) -> Iterable[ConfigInfo]:
        """The keys of a converter that the connector itself names."""
        if not config.get(key) or values[key].errors:
            return ()
        found = self.plugins.find(config[key], keys.CONVERTERS[key])
        definition = _keys_of(found, key)
        return [ConfigInfo(definition.get(value.name), value) for value in definition.validate(config)]


def _unlooked(definition: ConfigDef, refused: Collection[str]) -> ConfigDef:
    """What may not be reached is not looked at either: to import a module, for one, is to run it."""
    return ConfigDef(*(replace(key, validator=None) if key.name in refused else key for key in definition))


def _keys_of(found: Found, key: str) -> ConfigDef:
    """By the names that users write."""
    definition: ConfigDef = getattr(found.cls, "config", ConfigDef())
    return definition.embedded(f"{key}.")


def failure_message(infos: ConfigInfos) -> str:
    """The text of a refused configuration."""
    errors = [error for info in infos.configs if info.value is not None for error in info.value.errors]
    listed = "\n".join(errors)
    return (
        f"Connector configuration is invalid and contains the following {infos.error_count} error(s):\n{listed}\n"
        "You can also find the above list of errors at the endpoint"
        " `/connector-plugins/{connectorType}/config/validate`"
    )


def _without_secrets(infos: ConfigInfos, stored: Config, literals: Mapping[str, str]) -> ConfigInfos:
    """With variables in place of what they stand for, and without secrets in messages; `literals` are its own."""

    def shown(value: Any) -> Any:
        return masked(value) if isinstance(value, str) else value

    for value in (info.value for info in infos.configs if info.value is not None):
        sent = stored.get(value.name, "")
        if value.value != sent.strip():  # else it is what everybody sees who may see the configuration
            value.value = sent if has_variables(sent) else shown(value.value)
        value.errors = [masked(error, literals.values()) for error in value.errors]
        if value.name in literals:
            value.errors = [masking.without(error, literals[value.name]) for error in value.errors]
        value.recommended_values = [shown(each) for each in value.recommended_values]
    return infos


def _check_topics(values: dict[str, ConfigValue], config: Config) -> None:
    topics, regex = values[keys.TOPICS], values[keys.TOPICS_REGEX]
    listed = [topic for topic in topics.value or () if topic]
    dead = config.get("errors.deadletterqueue.topic.name", "").strip()
    if listed and regex.value:
        _add(f"{keys.TOPICS} and {keys.TOPICS_REGEX} are mutually exclusive options, but both are set.", topics, regex)
    elif not listed and not regex.value and not regex.errors:
        _add(f"Must configure one of {keys.TOPICS} or {keys.TOPICS_REGEX}", topics, regex)
    if dead and dead in listed:
        shown = f"topics=[{', '.join(listed)}]"
        _add(
            f"The DLQ topic '{dead}' may not be included in the list of topics ('{shown}') consumed by the connector",
            topics,
        )
    if dead and regex.value and not regex.errors and compiled(regex.value).fullmatch(dead):
        _add(
            f"The DLQ topic '{dead}' may not be matched by the regex for the topics ('topics.regex={regex.value}')"
            " consumed by the connector",
            regex,
        )


def _check_group(values: dict[str, ConfigValue], config: Config, workers: str | None) -> None:
    """A sink's consumers would throw the workers out of their own group. `workers`: None for a worker alone."""
    override = config.get(keys.GROUP_OVERRIDE)
    if workers is None:
        return
    if override == workers:
        told = values.setdefault(keys.GROUP_OVERRIDE, ConfigValue(keys.GROUP_OVERRIDE, override))
        _add(f"Consumer group {override} conflicts with Connect worker group {workers}", told)
    elif not override and f"{SINK_GROUP_PREFIX}{config.get(keys.NAME)}" == workers:
        name = config[keys.NAME]
        told = values[keys.NAME]
        _add(f"Consumer group for sink connector named {name} conflicts with Connect worker group {workers}", told)


def _add(error: str, *values: ConfigValue) -> None:
    for value in values:
        value.errors.append(error)


def _sorted_after(framework: ConfigDef, own: ConfigDef) -> ConfigDef:
    merged = list(framework + own)
    return ConfigDef(*merged[:2], *sorted(merged[2:], key=lambda key: key.name))


def _groups(infos: Iterable[ConfigInfo]) -> list[str]:
    return [info.key.group for info in infos if info.key is not None and info.key.group is not None]


# --- plugin versions --------------------------------------------------------------------------------------------------

_RANGE = re.compile(r"([\[(])\s*([^,\])]*)\s*(?:(,)\s*([^\])]*))?\s*([\])])")


def _number(version: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.\-+]", version))


def _matches(wanted: str, version: str | None) -> bool:
    """An exact version, or a Maven range such as `[1.0,2.0)`."""
    if version is None:
        return False
    found = _RANGE.fullmatch(wanted.strip())
    if found is None:
        return wanted.strip() == version
    opening, low, comma, high, closing = found.groups()
    if comma is None:
        return _number(low) == _number(version)
    above = not low or _number(low) < _number(version) or (opening == "[" and _number(low) == _number(version))
    below = not high or _number(version) < _number(high) or (closing == "]" and _number(high) == _number(version))
    return above and below


def version_error(found: Found, wanted: str) -> str:
    spec = wanted.strip() if _RANGE.fullmatch(wanted.strip()) else f"[{wanted.strip()},{wanted.strip()}]"
    return f"Plugin {found.name} not found that matches the version range {spec}, available versions: [{found.version}]"


def require_version(found: Found, wanted: str | None) -> None:
    """Raises BadRequest unless the plugin has this version."""
    if wanted is None or _matches(wanted, found.version):
        return
    if wanted.strip()[:1] in "[(" and not _RANGE.fullmatch(wanted.strip()):
        raise BadRequest(f"Invalid version specification: {wanted}")
    raise BadRequest(version_error(found, wanted))


def _wrong_version(config: Mapping[str, str | None], found: Found, wanted: str) -> ConfigInfos:
    framework = keys.definition(found.connector_type)
    message = version_error(found, wanted)

    def info(name: str) -> ConfigInfo:
        key: Key = framework[name]
        return ConfigInfo(key, ConfigValue(name, config.get(name), errors=[message]))

    infos = [info(keys.CONNECTOR_CLASS), info(keys.CONNECTOR_VERSION)]
    return ConfigInfos(str(config[keys.CONNECTOR_CLASS]), 2, ["Common"], infos)
