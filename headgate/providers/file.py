"""FileConfigProvider: `${file:/path/to/secrets.properties:key}`."""

from __future__ import annotations

from collections.abc import Mapping, Set

import javaproperties

from headgate.api import ConfigData, ConfigError, ConfigProvider, Reach
from headgate.providers.allowed_paths import AllowedPaths, reaches


class FileConfigProvider(ConfigProvider):
    aliases = ("org.apache.kafka.common.config.provider.FileConfigProvider",)

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> list[Reach]:
        return reaches(config)

    def configure(self, params: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths.parse(params)

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        file = self._allowed.find(path)
        if file is None:
            return ConfigData({})
        try:
            with file.open(encoding="utf-8") as opened:
                properties = javaproperties.load(opened)
        except (OSError, ValueError) as error:
            raise ConfigError(f"Could not read properties from file {path}") from error
        return ConfigData({key: properties[key] for key in keys if key in properties})
