"""Mirror on workers with exactly-once support: one is killed, another goes on, and every message is copied once."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks import position
from cluster_harness import await_, cluster
from mirror_support import MIRROR, by_partition, create, partitions, seen, some, write

from headgate.dev.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.kip(618, "exactly-once source"), pytest.mark.timeout(600)]


def test_a_worker_that_is_killed_doubles_and_loses_nothing(
    broker: Broker, tmp_path: Path, name: str, topic: str, group: str
) -> None:
    copy = f"source.{topic}"
    create(broker.bootstrap, topic, 2)
    sent = write(broker.bootstrap, topic, some(500, 2))
    with cluster(tmp_path, broker.bootstrap, group, 1, exactly_once_source_support="enabled") as workers:
        config = {**MIRROR, "topics": topic, "tasks.max": "2", "exactly.once.support": "required"}
        workers.alive[0].create(name, config)

        def check() -> None:
            def there() -> bool:
                return bool(partitions(broker.bootstrap, copy)) and len(seen(broker.bootstrap, copy)) >= len(sent)

            await_(there, f"{len(sent)} copies", 240)
            assert seen(broker.bootstrap, copy) == by_partition(sent)
            assert position(broker.bootstrap, f"mirror-{name}", topic) == len(sent) // 2

        check()
        sent += write(broker.bootstrap, topic, some(5_000, 2, start=500))
        workers.alive[0].kill()
        workers.add().await_ready()
        check()
        sent += write(broker.bootstrap, topic, some(100, 2, start=5_500))
        check()
        offsets = workers.alive[0].offsets(name)
        assert {each["partition"]["partition"]: each["offset"]["offset"] for each in offsets} == {0: 2_800, 1: 2_800}
