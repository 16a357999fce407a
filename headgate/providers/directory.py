"""DirectoryConfigProvider: `${dir:/path/to/folder:file}`, the content of a file, e.g. of a mounted secret."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from pathlib import Path

from headgate.api import ConfigData, ConfigError, ConfigProvider, Reach
from headgate.providers.allowed_paths import AllowedPaths, reaches

log = logging.getLogger(__name__)


class DirectoryConfigProvider(ConfigProvider):
    aliases = ("org.apache.kafka.common.config.provider.DirectoryConfigProvider",)

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> list[Reach]:
        return reaches(config)

    def configure(self, params: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths.parse(params)

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        folder = self._allowed.find(path)
        if folder is None:
            return ConfigData({})
        if not folder.is_dir():
            log.warning("The path %s is not a directory", path)
            return ConfigData({})
        try:
            # Listed, and not opened by name: a key with a slash in it would lead out of the folder.
            found = {each.name: self._allowed.find(str(each)) for each in folder.iterdir() if each.name in keys}
        except OSError as error:
            raise ConfigError(f"Could not list directory {folder}") from error
        return ConfigData({name: _text(file, name) for name, file in found.items() if file and file.is_file()})


def _text(file: Path, name: str) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"Could not read file {file} for property {name}") from error
