"""The messages between a transactional producer and its broker, as far as tests change them.

Read and written with kafka-python's schemas, which the client under test does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


class Api(IntEnum):
    PRODUCE = 0
    FIND_COORDINATOR = 10
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


# The versions that librdkafka 2.16 speaks with Kafka 4.3. With another the same test would prove something else: from
# version 5 on, for one, EndTxn gives the producer a new epoch.
VERSIONS: Final = {
    Api.PRODUCE: 10,
    Api.FIND_COORDINATOR: 2,
    Api.INIT_PRODUCER_ID: 4,
    Api.ADD_PARTITIONS: 0,
    Api.ADD_OFFSETS: 0,
    Api.END_TXN: 1,
    Api.TXN_OFFSET_COMMIT: 3,
}
_MESSAGES: Final[dict[Api, tuple[Any, Any]]] = {
    Api.PRODUCE: (ProduceRequest, ProduceResponse),
    Api.FIND_COORDINATOR: (FindCoordinatorRequest, FindCoordinatorResponse),
    Api.INIT_PRODUCER_ID: (InitProducerIdRequest, InitProducerIdResponse),
    Api.ADD_PARTITIONS: (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    Api.ADD_OFFSETS: (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    Api.END_TXN: (EndTxnRequest, EndTxnResponse),
    Api.TXN_OFFSET_COMMIT: (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
}


def kind(api: int, version: int, frame: bytes) -> str:
    """Which of its uses a request is: commit or abort, group or transaction; empty where there is only one."""
    if api == Api.END_TXN and version == VERSIONS[Api.END_TXN]:
        return "commit" if _request(Api.END_TXN, frame).committed else "abort"
    if api == Api.FIND_COORDINATOR and version == VERSIONS[Api.FIND_COORDINATOR]:
        return "transaction" if _request(Api.FIND_COORDINATOR, frame).key_type == 1 else "group"
    return ""


def refusal(api: Api, frame: bytes, number: int, code: int) -> bytes:
    """The response of a broker that refuses everything in the request."""
    fields = _REFUSED.get(api, lambda _: {})(_request(api, frame))
    response = _MESSAGES[api][1](version=VERSIONS[api], **fields)
    return _encoded(_with_code(response, code), number)


def rewritten(api: Api, frame: bytes, number: int, code: int) -> bytes:
    """The broker's response with another code, everywhere in it where there is one."""
    response = _MESSAGES[api][1].decode(frame, version=VERSIONS[api], header=True)
    return _encoded(_with_code(response, code), number)


def _request(api: Api, frame: bytes) -> Any:
    return _MESSAGES[api][0].decode(frame, version=VERSIONS[api], header=True)


def _encoded(response: Any, number: int) -> bytes:
    response.with_header(correlation_id=number)
    return bytes(response.encode(header=True))


def _with_code(message: Any, code: int) -> Any:
    for part in _parts(message):
        for name in ("error_code", "partition_error_code"):
            if name in part.fields:
                setattr(part, name, code)
    return message


def _parts(part: Any) -> Iterator[Any]:
    yield part
    for name in part.fields:
        inner = getattr(part, name)
        for each in inner if isinstance(inner, list) else ():
            if hasattr(each, "fields"):
                yield from _parts(each)


def _produced(request: Any) -> dict[str, Any]:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    return {
        "responses": [
            topic(
                name=each.name,
                partition_responses=[
                    partition(index=one.index, base_offset=-1, record_errors=[]) for one in each.partition_data
                ],
            )
            for each in request.topic_data
        ]
    }


def _partitions_added(request: Any) -> dict[str, Any]:
    topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
    partition = topic.AddPartitionsToTxnPartitionResult
    return {
        "results_by_topic_v3_and_below": [
            topic(name=each.name, results_by_partition=[partition(partition_index=one) for one in each.partitions])
            for each in request.v3_and_below_topics
        ]
    }


def _offsets_committed(request: Any) -> dict[str, Any]:
    topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition = topic.TxnOffsetCommitResponsePartition
    return {
        "topics": [
            topic(
                name=each.name,
                partitions=[partition(partition_index=one.partition_index) for one in each.partitions],
            )
            for each in request.topics
        ]
    }


_REFUSED: Final[dict[Api, Callable[[Any], dict[str, Any]]]] = {
    Api.PRODUCE: _produced,
    Api.ADD_PARTITIONS: _partitions_added,
    Api.TXN_OFFSET_COMMIT: _offsets_committed,
    Api.FIND_COORDINATOR: lambda _: {"node_id": -1, "host": "", "port": -1},
    Api.INIT_PRODUCER_ID: lambda _: {"producer_id": -1, "producer_epoch": -1},
}
