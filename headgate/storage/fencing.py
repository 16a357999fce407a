"""Shuts out producers by their transactional ids (KIP-618): nothing that they still send counts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from headgate.model import Config
from headgate.storage.transactional_writer import claimed

_AT_ONCE: Final = 8


def fence(clients: Config, ids: Sequence[str]) -> None:
    """Returns when all of them are shut out: Kafka lets only the newest producer of an id go on. Raises the errors of
    `headgate.producer`. `clients` are settings by Apache's names."""

    def shut_out(each: str) -> None:
        claimed(clients, each).close(1.0)

    if ids:
        with ThreadPoolExecutor(min(len(ids), _AT_ONCE), thread_name_prefix="fencing") as pool:
            list(pool.map(shut_out, ids))
