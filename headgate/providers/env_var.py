"""EnvVarConfigProvider: `${env:VARIABLE}`, from the worker's environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Set
from typing import Final

from headgate.api import ConfigData, ConfigError, ConfigProvider

ALLOWLIST_PATTERN: Final = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """The environment is read once, when the worker starts."""

    aliases = ("org.apache.kafka.common.config.provider.EnvVarConfigProvider",)

    def configure(self, params: Mapping[str, str]) -> None:
        given = params.get(ALLOWLIST_PATTERN, ".*")
        try:
            allowed = re.compile(given)
        except re.error as error:
            reason = f"Invalid regular expression: {error}"
            raise ConfigError.invalid(ALLOWLIST_PATTERN, given, reason) from None
        self._variables = {name: value for name, value in os.environ.items() if allowed.fullmatch(name)}

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        if path:
            raise ConfigError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return ConfigData({key: self._variables[key] for key in keys if key in self._variables})
