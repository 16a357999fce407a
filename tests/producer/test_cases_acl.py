"""Cases 9 to 11: what a user may not do, and who is not a user."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from access import LOGIN, Access
from confluent_kafka.admin import AclOperation, ResourceType
from job import Job, MakeJob, T, assert_finished

from headgate.dev.broker import Broker
from headgate.producer import (
    AuthenticationError,
    AuthorizationError,
    GroupAuthorizationError,
    InvalidConfigurationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    TransactionalProducer,
)

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "authorization errors are fatal")]

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


@pytest.fixture
def access(broker: Broker) -> Access:
    return Access(broker.bootstrap)


@pytest.fixture
def job(new_job: MakeJob, broker: Broker, access: Access) -> Job:
    """Its user may do what the job needs, and no more."""
    job = new_job()
    job.settings |= {"bootstrap.servers": broker.address("SASL"), **LOGIN}
    access.grant(TRANSACTIONAL_ID, job.transactional_id, WRITE, DESCRIBE)
    access.grant(TOPIC, job.target, WRITE, DESCRIBE)
    access.grant(TOPIC, job.source, READ)
    access.grant(GROUP, job.group, READ)
    return job


@pytest.fixture
def forbidden(new_job: MakeJob, access: Access) -> str:
    """A topic that the user may look at, but not write to."""
    topic = new_job().target
    access.grant(TOPIC, topic, DESCRIBE)
    return topic


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_case_09_a_topic_that_may_not_be_written_to_ends_the_producer(
    job: Job, access: Access, forbidden: str, first: bool
) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    producer.begin()
    if not first:
        job.send(producer, 2, 3)
        producer.flush(T)
    producer.send(forbidden, b"refused")
    with pytest.raises(TopicAuthorizationError) as caught:
        producer.commit(T)
    assert (caught.value.resource_type, caught.value.code) == ("topic", 29)
    assert_finished(job, producer, TopicAuthorizationError)
    producer.close(T)
    access.grant(TOPIC, forbidden, WRITE)
    restarted = job.start()
    restarted.begin()
    restarted.send(forbidden, b"allowed")
    restarted.flush(T)
    restarted.abort(T)
    job.finish(restarted)
    job.check()


def without_the_group(job: Job, access: Access) -> None:
    access.revoke(GROUP, job.group)


def without_the_source(job: Job, access: Access) -> None:
    access.revoke(TOPIC, job.source)


@pytest.mark.parametrize(
    ("revoke", "why"),
    [(without_the_group, GroupAuthorizationError), (without_the_source, TopicAuthorizationError)],
)
def test_case_10_offsets_that_may_not_be_committed_end_the_producer(
    job: Job, access: Access, revoke: Callable[[Job, Access], None], why: type[AuthorizationError]
) -> None:
    producer = job.start()
    job.move(producer, 0, 2)
    revoke(job, access)
    producer.begin()
    job.send(producer, 2, 4)
    with pytest.raises(why):
        job.offsets(producer, 4)
    assert_finished(job, producer, why)
    producer.close(T)
    access.grant(GROUP, job.group, READ)
    access.grant(TOPIC, job.source, READ)
    job.finish(job.start())
    job.check()


def test_case_10_an_id_that_may_not_be_used_ends_the_producer_at_its_start(job: Job, access: Access) -> None:
    access.revoke(TRANSACTIONAL_ID, job.transactional_id)
    producer = job.make()
    with pytest.raises(TransactionalIdAuthorizationError) as caught:
        producer.init(T)
    assert caught.value.resource_name == job.transactional_id
    assert isinstance(caught.value, InvalidConfigurationError)  # which nobody restarts in a loop
    assert_finished(job, producer, TransactionalIdAuthorizationError)
    access.grant(TRANSACTIONAL_ID, job.transactional_id, WRITE, DESCRIBE)
    job.finish(job.start())
    job.check()


def commit(job: Job, producer: TransactionalProducer) -> None:
    producer.commit(T)


def send(job: Job, producer: TransactionalProducer) -> None:
    job.send(producer, 3, 4)
    producer.flush(T)


@pytest.mark.parametrize(
    ("resource", "detect", "why"),
    [(TRANSACTIONAL_ID, commit, TransactionalIdAuthorizationError), (TOPIC, send, TopicAuthorizationError)],
    ids=["id", "topic"],
)
def test_case_10_rights_revoked_within_a_transaction_end_the_producer(
    job: Job,
    access: Access,
    resource: ResourceType,
    detect: Callable[[Job, TransactionalProducer], None],
    why: type[AuthorizationError],
) -> None:
    name = job.target if resource is TOPIC else job.transactional_id
    producer = job.start()
    job.move(producer, 0, 2)
    job.fill(producer, 2, 3)
    access.revoke(resource, name)
    with pytest.raises(why):
        detect(job, producer)
    assert_finished(job, producer, why)
    producer.close(T)
    access.grant(resource, name, WRITE, DESCRIBE)
    job.finish(job.start())
    job.check()


def test_case_11_a_wrong_password_is_told_as_such_and_in_time(job: Job) -> None:
    producer = job.make(**{"sasl.password": "wrong"})
    begun = time.monotonic()
    with pytest.raises(AuthenticationError):
        producer.init(3.0)
    assert time.monotonic() - begun < 6.0
    assert_finished(job, producer, AuthenticationError)
    job.finish(job.start())
    job.check()
