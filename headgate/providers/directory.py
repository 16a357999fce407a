"""DirectoryConfigProvider: `${dir:/path/to/folder:file}`, the content of a file, e.g. of a mounted secret."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from pathlib import Path

from headgate.api import ConfigData, ConfigError, ConfigProvider
from headgate.providers.allowed_paths import AllowedPaths

log = logging.getLogger(__name__)


class DirectoryConfigProvider(ConfigProvider):
    aliases = ("org.apache.kafka.common.config.provider.DirectoryConfigProvider",)

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
            found = [file for file in folder.iterdir() if file.name in keys and file.is_file()]
        except OSError as error:
            raise ConfigError(f"Could not list directory {folder}") from error
        return ConfigData({file.name: _text(file) for file in found})


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"Could not read file {file} for property {file.name}") from error
