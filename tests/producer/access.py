"""Users of the test broker's SASL door, and what they may do."""

from __future__ import annotations

import time
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

USER: Final = "alice"
PASSWORD: Final = "alice-secret"
JAAS: Final = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
LOGIN: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}
_ANYTHING: Final = (AclOperation.ANY, AclPermissionType.ANY)


class Access:
    """What the user may do; changes are in force when a call returns."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def grant(self, resource: ResourceType, name: str, *operations: AclOperation) -> None:
        rules = [_rule(AclBinding, resource, name, operation, AclPermissionType.ALLOW) for operation in operations]
        for made in self._admin.create_acls(rules).values():
            made.result(20)
        self._await(resource, name, lambda found: set(operations) <= found)

    def revoke(self, resource: ResourceType, name: str) -> None:
        """Everything that was granted on it."""
        for gone in self._admin.delete_acls([_rule(AclBindingFilter, resource, name, *_ANYTHING)]).values():
            gone.result(20)
        self._await(resource, name, lambda found: not found)

    def _await(self, resource: ResourceType, name: str, enough: Any) -> None:
        # The controller has written it; the authorizer, which this asks, hears of it a moment later.
        deadline = time.monotonic() + 20
        while True:
            rules = self._admin.describe_acls(_rule(AclBindingFilter, resource, name, *_ANYTHING)).result(20)
            if enough({rule.operation for rule in rules}):
                return
            assert time.monotonic() < deadline, f"the rules of {name} did not change"
            time.sleep(0.02)


def _rule(kind: Any, resource: ResourceType, name: str, operation: AclOperation, permission: AclPermissionType) -> Any:
    return kind(resource, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, permission)
