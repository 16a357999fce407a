"""HttpSource: polls a REST API, and gives its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from headgate.api import ConfigValue, ConnectError, ExactlyOnceSupport, SourceConnector
from headgate.api.reach import Reach
from headgate.connectors.http import client_config
from headgate.connectors.http.address import Address
from headgate.connectors.http.pages import PageBy
from headgate.connectors.http.source_config import CONFIG, LINK_HOSTS, PAGE_BY, HttpSourceConfig, validated
from headgate.connectors.http.source_task import HttpSourceTask


class HttpSource(SourceConnector):
    """Asks a REST API for its records, page by page, and again for new ones. It has one task."""

    aliases = ("headgate.connectors.HttpSource",)
    config = CONFIG
    task_class: ClassVar[type[HttpSourceTask]] = HttpSourceTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return client_config.reaches(config, LINK_HOSTS)

    def start(self, config: Mapping[str, str]) -> None:
        HttpSourceConfig.of(config)  # a wrong configuration fails here, not in the task
        self._task_config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config]

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        own = HttpSourceConfig.of(config)
        for partition, offset in offsets:
            if offset is None:  # anything may be reset: what is of no use must be possible to clean up
                continue
            if not own.paging.keeps_offsets:
                raise ConnectError(f"With {PAGE_BY}={PageBy.NONE.value} there are no offsets: all is read every time")
            if partition != own.partition:
                raise ConnectError(f"The partition of this connector is {own.partition}, not {partition}")
            position = own.paging.position(offset)
            if own.paging.by is PageBy.LINK and position.page is not None:
                link = Address.parse(str(position.page))
                if not own.may_follow(link):
                    raise ConnectError(f"No link is followed to {link.shown}: see {LINK_HOSTS}")
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        by = config.get(PAGE_BY, PageBy.NONE.value).strip()
        return ExactlyOnceSupport.UNSUPPORTED if by == PageBy.NONE.value else ExactlyOnceSupport.SUPPORTED
