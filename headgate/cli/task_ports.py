"""What tasks work with, joined: Spark for an engine, Kafka's clients, the worker's offsets."""

from __future__ import annotations

from functools import partial

from headgate.kafka.admin_clients import admin_client
from headgate.kafka.asking import Asker
from headgate.kafka.consumer import GroupConsumer
from headgate.kafka.native.delivery import Delivery
from headgate.kafka.sender import Sender
from headgate.kafka.topics import TopicAdmin
from headgate.model import Config
from headgate.producer.rows import RowProducer
from headgate.sandbox import Sandbox
from headgate.spark.engine import SparkEngine
from headgate.tasks.ports import AskAgain, Ports
from headgate.tasks.source.offsets import OffsetsFor


def task_ports(engine: SparkEngine, offsets: OffsetsFor, sandbox: Sandbox) -> Ports:
    return Ports(
        engine=engine,
        offsets=offsets,
        consumer=GroupConsumer,
        sender=Delivery,
        transactional=RowProducer,
        letters=Sender,
        topics=_topics,
        require=sandbox.require,
    )


def _topics(admin: Config, patience: AskAgain) -> TopicAdmin:
    return TopicAdmin(partial(admin_client, admin), Asker(patience.may_go_on, patience.pause, tries=patience.tries))
