"""Settings of Spark and of its residents, from the worker file."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headgate.api.config import INT, LONG, LOW, MEDIUM, STRING, ConfigDef, Key, all_of, at_least
from headgate.api.errors import ConfigError

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.app.name": "headgate",
    # Plain local[*] never repeats a failed Spark task.
    "spark.master": "local[*,4]",
    "spark.scheduler.mode": "FAIR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    # A worker lives for months: keep no history of jobs that nobody looks at.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
}


def _at_most_a_port(name: str, value: Any) -> None:
    if value > 65535:
        raise ConfigError.invalid(name, value, "Value must be a port, at most 65535")


KEYS: Final = ConfigDef(
    Key("headgate.spark.ui.host", STRING, "127.0.0.1", None, LOW,
        "Address of Spark's UI, if spark.ui.enabled; beyond loopback only with spark.ui.filters."),
    Key("headgate.residents.min", INT, 1, at_least(0), LOW, "Spark tasks that stay although there is no work."),
    Key("headgate.residents.max", INT, 0, at_least(0), MEDIUM,
        "Most Spark tasks that stay; 0: four for each core on this machine, half of a cluster's cores."),
    Key("headgate.residents.idle.ms", LONG, 60_000, at_least(1), LOW, "When one without work ends, if more stay."),
    Key("headgate.residents.host", STRING, None, None, LOW,
        "Where executors reach this worker; spark.driver.host if absent."),
    Key("headgate.residents.bind.host", STRING, None, None, LOW,
        "Address to listen at; spark.driver.bindAddress, or else spark.driver.host, if absent."),
    Key("headgate.residents.port", INT, 0, all_of(at_least(0), _at_most_a_port), LOW,
        "Port to listen at; 0: any that is free."),
)  # fmt: skip

_LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:\s*,\s*(?P<tries>\d+))?\])?")
_PER_CORE: Final = 4
_ENCRYPTION: Final = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled")


@dataclass(frozen=True, slots=True)
class ResidentSettings:
    least: int = 1
    most: int = 0
    """0: not known before there is a cluster."""
    quick: int = 0
    """As many as chains that are not slow may have."""
    idle_s: float = 60.0
    host: str | None = None
    bind: str | None = None
    port: int = 0
    encrypted: bool = False

    def on(self, parallelism: int) -> ResidentSettings:
        """On a cluster with so many slots: half of them are left to jobs."""
        half = max(1, parallelism // 2)
        most = self.most or max(half, self.least)
        return replace(self, most=most, quick=min(self.quick or half, most))


def on_this_machine(master: str) -> bool:
    return _LOCAL.fullmatch(master) is not None


def settings_of(raw: Mapping[str, str]) -> tuple[dict[str, str], ResidentSettings]:
    """For Spark, and for its residents. Raises ConfigError.

    The slots of a local master are for jobs, as the file says, and those of residents come on top."""
    spark = {**DEFAULTS, **{key: value for key, value in raw.items() if key.startswith("spark.")}}
    given = KEYS.parse(raw)
    residents = ResidentSettings(
        least=given["headgate.residents.min"],
        most=given["headgate.residents.max"],
        idle_s=given["headgate.residents.idle.ms"] / 1000,
        host=given["headgate.residents.host"],
        bind=given["headgate.residents.bind.host"],
        port=given["headgate.residents.port"],
        encrypted=any(spark.get(key, "false").lower() == "true" for key in _ENCRYPTION),
    )
    if 0 < residents.most < residents.least:
        reason = f"Value must be at most that of headgate.residents.max, {residents.most}"
        raise ConfigError.invalid("headgate.residents.min", residents.least, reason)
    local = _LOCAL.fullmatch(spark["spark.master"])
    if local is None:
        if "spark.driver.host" not in raw:
            del spark["spark.driver.host"]  # executors elsewhere must find the driver
        return spark, residents
    cores = len(os.sched_getaffinity(0)) if local["cores"] == "*" else int(local["cores"] or 1)
    if not cores:
        raise ConfigError.invalid("spark.master", spark["spark.master"], "There must be a core at least")
    most = residents.most or max(cores * _PER_CORE, residents.least)
    spark["spark.master"] = f"local[{cores + most},{local['tries'] or 1}]"
    spark.setdefault("spark.default.parallelism", str(cores))
    spark.setdefault("spark.python.daemon.module", "headgate.spark.daemon")
    return spark, replace(residents, most=most, quick=min(cores, most))


def ui_host(raw: Mapping[str, str], spark: Mapping[str, str]) -> str | None:
    """Where Spark's UI listens; None: there is none. Raises ConfigError where anybody could look at it."""
    if spark["spark.ui.enabled"].strip().lower() != "true":
        return None
    host: str = KEYS.parse(raw)["headgate.spark.ui.host"]
    if not _is_loopback(host) and not spark.get("spark.ui.filters", "").strip():
        reason = "Beyond loopback anybody could see and end jobs: set spark.ui.filters to a filter that asks who it is"
        raise ConfigError.invalid("headgate.spark.ui.host", host, reason)
    if "spark.driver.host" not in spark:
        reason = "On a cluster it needs spark.driver.host too: executors would look for the driver where its UI is"
        raise ConfigError.invalid("spark.ui.enabled", "true", reason)
    return host


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
