"""librdkafka's own mock cluster: brokers inside this process that give the errors they are told to give.

It keeps no log as a broker does, knows no last stable offset and forgets who was fenced: what was committed cannot be
read from it. Its functions are exported by the library that confluent_kafka has loaded, but not wrapped in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, c_char_p, c_int, c_int16, c_int32, c_size_t, c_void_p
from functools import cache
from typing import Any, Final, Self

from confluent_kafka import cimpl
from spoken import Api

_PRODUCER: Final = 0
_FUNCTIONS: Final[Mapping[str, tuple[Any, tuple[Any, ...]]]] = {
    "rd_kafka_conf_new": (c_void_p, ()),
    "rd_kafka_conf_set": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_size_t)),
    "rd_kafka_new": (c_void_p, (c_int, c_void_p, c_char_p, c_size_t)),
    "rd_kafka_destroy": (None, (c_void_p,)),
    "rd_kafka_mock_cluster_new": (c_void_p, (c_void_p, c_int)),
    "rd_kafka_mock_cluster_destroy": (None, (c_void_p,)),
    "rd_kafka_mock_cluster_bootstraps": (c_char_p, (c_void_p,)),
    "rd_kafka_mock_topic_create": (c_int, (c_void_p, c_char_p, c_int, c_int)),
    "rd_kafka_mock_push_request_errors_array": (None, (c_void_p, c_int16, c_size_t, POINTER(c_int))),
    "rd_kafka_mock_clear_request_errors": (None, (c_void_p, c_int16)),
    "rd_kafka_mock_broker_set_down": (c_int, (c_void_p, c_int32)),
    "rd_kafka_mock_broker_set_up": (c_int, (c_void_p, c_int32)),
    "rd_kafka_mock_broker_set_rtt": (c_int, (c_void_p, c_int32, c_int)),
    "rd_kafka_mock_start_request_tracking": (None, (c_void_p,)),
    "rd_kafka_mock_clear_requests": (None, (c_void_p,)),
    "rd_kafka_mock_get_requests": (POINTER(c_void_p), (c_void_p, POINTER(c_size_t))),
    "rd_kafka_mock_request_api_key": (c_int16, (c_void_p,)),
    "rd_kafka_mock_request_destroy_array": (None, (POINTER(c_void_p), c_size_t)),
}


@cache
def _library() -> ctypes.CDLL:
    # Symbols of a module are looked up in what it was linked with too, so this finds the library that is loaded anyway.
    library = ctypes.CDLL(cimpl.__file__)
    for name, (returned, taken) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = returned, taken
    return library


class MockCluster:
    """From `with` to its end; brokers are numbered from 1."""

    def __init__(self, brokers: int = 1) -> None:
        self._brokers = brokers
        self._client: int | None = None
        self._cluster: int | None = None

    @property
    def bootstrap(self) -> str:
        bootstraps: bytes = _library().rd_kafka_mock_cluster_bootstraps(self._cluster)
        return bootstraps.decode()

    def topic(self, name: str, partitions: int = 1) -> str:
        assert _library().rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0
        return name

    def fail(self, api: Api, *codes: int) -> None:
        """The next requests of this API get these codes, one each; 0 lets one through."""
        array = (c_int * len(codes))(*codes)
        _library().rd_kafka_mock_push_request_errors_array(self._cluster, api, len(codes), array)

    def heal(self, api: Api) -> None:
        """Forget the codes that were not given yet."""
        _library().rd_kafka_mock_clear_request_errors(self._cluster, api)

    def down(self, broker: int = 1) -> None:
        assert _library().rd_kafka_mock_broker_set_down(self._cluster, broker) == 0

    def up(self, broker: int = 1) -> None:
        assert _library().rd_kafka_mock_broker_set_up(self._cluster, broker) == 0

    def rtt(self, milliseconds: int, broker: int = 1) -> None:
        """How long the broker takes to answer."""
        assert _library().rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds) == 0

    def requests(self, api: Api) -> int:
        """How many requests of this API came since the last `forget`."""
        count = c_size_t()
        requests = _library().rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        try:
            keys = [_library().rd_kafka_mock_request_api_key(requests[i]) for i in range(count.value)]
        finally:
            _library().rd_kafka_mock_request_destroy_array(requests, count)
        return keys.count(api)

    def forget(self) -> None:
        _library().rd_kafka_mock_clear_requests(self._cluster)

    def __enter__(self) -> Self:
        library = _library()
        error = ctypes.create_string_buffer(512)
        settings = library.rd_kafka_conf_new()
        assert library.rd_kafka_conf_set(settings, b"log_level", b"0", error, len(error)) == 0, error.value
        self._client = library.rd_kafka_new(_PRODUCER, settings, error, len(error))
        assert self._client, error.value
        self._cluster = library.rd_kafka_mock_cluster_new(self._client, self._brokers)
        assert self._cluster
        library.rd_kafka_mock_start_request_tracking(self._cluster)
        return self

    def __exit__(self, *_: object) -> None:
        library = _library()
        library.rd_kafka_mock_cluster_destroy(self._cluster)
        library.rd_kafka_destroy(self._client)
        self._cluster = self._client = None
