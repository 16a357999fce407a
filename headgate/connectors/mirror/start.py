"""Start: the offset at which a partition is begun, given what it has and what the policy says."""

from __future__ import annotations

import logging

from headgate.api import TopicPartition
from headgate.connectors.mirror.offset_policy import Begin, OffsetPolicy

log = logging.getLogger(__name__)


def start(policy: OffsetPolicy, wanted: int | None, low: int, high: int) -> int:
    """`wanted` is what the group or the clock says; None: nothing."""
    if policy.begin is Begin.LATEST:
        return high
    if policy.begin is Begin.EARLIEST:
        return low
    if wanted is None:  # a group that has nothing yet; a moment after the last record
        return high if policy.begin is Begin.TIMESTAMP else low
    return min(max(wanted, low), high)


def warn(where: TopicPartition, was: int, at: int, low: int, high: int, policy: OffsetPolicy) -> None:
    """Reading was to go on at `was`, which the partition does not have; it goes on at `at`."""
    if was < low:
        log.warning(
            "Topic %s, partition %d: offsets %d to %d were deleted before they were read. Up to %d records were missed;"
            " going on at offset %d, as offset.policy=%s says",
            *(where.topic, where.partition, was, low - 1, max(at, low) - was, at, policy),
        )
    else:
        log.warning(
            "Topic %s, partition %d ends at offset %d, before %d, where reading was to go on: it was made anew, or has"
            " lost records. Up to %d records were missed; going on at offset %d, as offset.policy=%s says",
            *(where.topic, where.partition, high, was, at - low, at, policy),
        )
