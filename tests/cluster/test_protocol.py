"""The bytes that workers exchange when their group rebalances, compared with samples of Apache's workers."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster.protocol import (
    OFFERED,
    Assignment,
    AssignmentProblem,
    MalformedMessage,
    MemberState,
    Protocol,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_member,
)
from headgate.cluster.work import NOTHING, Work
from headgate.model import TaskId

LEADER = "connect-10.0.0.1:8083-" + "6d5b3e1c-6f0e-4a9e-8f0e-2f6c1c0a9b7d"  # 58 bytes
LEADER_BYTES = b"\x00\x3a" + LEADER.encode()
LEADER_URL = b"\x00\x15http://10.0.0.1:8083/"
OFFSET = bytes.fromhex("0000000000000098")
EMPTY = bytes(4)

TWO_CONNECTORS = b"".join(
    [
        bytes.fromhex("0002 0000"),
        LEADER_BYTES,
        LEADER_URL,
        OFFSET,
        bytes.fromhex("00000002"),
        b"\x00\x05conn1" + bytes.fromhex("00000001 FFFFFFFF"),
        b"\x00\x05conn2" + bytes.fromhex("00000001 FFFFFFFF"),
        EMPTY,
        EMPTY,
    ]
)
EMPTY_HANDS = b"".join(
    [
        bytes.fromhex("0002"),
        b"\x00\x15http://10.0.0.2:8083/",
        OFFSET,
        bytes.fromhex("0000006B"),
        bytes.fromhex("0002 0000"),
        LEADER_BYTES,
        LEADER_URL,
        OFFSET,
        EMPTY,
        EMPTY,
        EMPTY,
    ]
)


def assignment(**changes: object) -> Assignment:
    given: dict[str, object] = {"leader": LEADER, "leader_url": "http://10.0.0.1:8083/", "offset": 152} | changes
    return Assignment(**given)  # type: ignore[arg-type]


def tasks(connector: str, *numbers: int) -> set[TaskId]:
    return {TaskId(connector, number) for number in numbers}


# --- samples of Apache's workers --------------------------------------------------------------------------------------


def test_an_assignment_of_two_connectors() -> None:
    expected = assignment(assigned=Work.of(["conn1", "conn2"]))
    assert encode_assignment(Protocol.SESSIONED, expected) == TWO_CONNECTORS
    assert decode_assignment(TWO_CONNECTORS) == expected


def test_a_member_with_empty_hands_that_knows_the_leader() -> None:
    expected = MemberState("http://10.0.0.2:8083/", 152, assignment())
    assert encode_member(Protocol.SESSIONED, expected) == EMPTY_HANDS
    assert decode_member(EMPTY_HANDS) == expected


def test_a_member_that_was_never_given_anything_holds_null() -> None:
    data = encode_member(Protocol.COMPATIBLE, MemberState("http://w/", 7))
    assert data == b"\x00\x01\x00\x09http://w/" + struct.pack(">q", 7) + b"\xff\xff\xff\xff"
    assert decode_member(data) == MemberState("http://w/", 7, None)


def test_the_eager_protocol_says_less() -> None:
    state = MemberState("http://w/", 7, assignment(assigned=Work.of(["a"])))
    assert encode_member(Protocol.EAGER, state) == b"\x00\x00\x00\x09http://w/" + struct.pack(">q", 7)
    told = assignment(assigned=Work.of([], tasks("a", 1, 0)), revoked=Work.of(["b"]), delay_ms=9)
    data = encode_assignment(Protocol.EAGER, told)
    tail = bytes.fromhex("00000001") + b"\x00\x01a" + bytes.fromhex("00000002 00000000 00000001")
    assert data == bytes.fromhex("0000 0000") + LEADER_BYTES + LEADER_URL + OFFSET + tail
    assert decode_assignment(data) == assignment(assigned=told.assigned)


def test_a_connector_stands_before_its_tasks() -> None:
    told = assignment(assigned=Work.of(["a"], tasks("a", 2, 10) | tasks("b", 0)), delay_ms=300_000)
    data = encode_assignment(Protocol.COMPATIBLE, told)
    assert b"\x00\x01a" + bytes.fromhex("00000003 FFFFFFFF 00000002 0000000A") + b"\x00\x01b" in data
    assert data.endswith(struct.pack(">ii", 0, 300_000))


def test_versions_one_and_two_differ_only_in_their_number() -> None:
    told = assignment(assigned=Work.of(["a"], tasks("a", 0)), revoked=Work.of(["b"]), delay_ms=5)
    one, two = (encode_assignment(each, told) for each in (Protocol.COMPATIBLE, Protocol.SESSIONED))
    assert (one[:2], two[:2]) == (b"\x00\x01", b"\x00\x02")
    assert one[2:] == two[2:]


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("eager", ["default"]),
        ("compatible", ["compatible", "default"]),
        ("sessioned", ["sessioned", "compatible", "default"]),
    ],
)
def test_what_is_offered_most_wanted_first(setting: str, names: list[str]) -> None:
    assert [protocol.value for protocol in OFFERED[setting]] == names


# --- what readers put up with -----------------------------------------------------------------------------------------


def test_trailing_fields_may_be_missing() -> None:
    assert decode_assignment(TWO_CONNECTORS[:-4]) == assignment(assigned=Work.of(["conn1", "conn2"]))
    assert decode_assignment(TWO_CONNECTORS[:-8]) == assignment(assigned=Work.of(["conn1", "conn2"]))
    assert decode_member(EMPTY_HANDS[: 2 + 23 + 8]) == MemberState("http://10.0.0.2:8083/", 152)


def test_arrays_may_be_null() -> None:
    null = b"\xff\xff\xff\xff"
    head = bytes.fromhex("0001 0000") + LEADER_BYTES + LEADER_URL + OFFSET
    assert decode_assignment(head + null + null + bytes(4)) == assignment()


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert decode_assignment(b"\x00\x63" + TWO_CONNECTORS[2:] + b"more") == decode_assignment(TWO_CONNECTORS)
    assert decode_member(b"\x00\x63" + EMPTY_HANDS[2:] + b"more") == decode_member(EMPTY_HANDS)


@pytest.mark.parametrize(
    ("code", "problem"),
    [(0, AssignmentProblem.NONE), (1, AssignmentProblem.CONFIG_MISMATCH), (77, AssignmentProblem.CONFIG_MISMATCH)],
)
def test_a_code_that_is_not_known_is_a_problem(code: int, problem: AssignmentProblem) -> None:
    assert decode_assignment(b"\x00\x02" + struct.pack(">h", code) + TWO_CONNECTORS[4:]).problem is problem


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\xff\xff" + TWO_CONNECTORS[2:],
        b"\x00\x02\x00\x00\xff\xfe",
        b"\x00\x02\x00\x00\x00\x02\xff\xfe" + TWO_CONNECTORS[64:],
        TWO_CONNECTORS[:-1],
        TWO_CONNECTORS.replace(bytes.fromhex("00000002 0005"), bytes.fromhex("7FFFFFFF 0005")),
        TWO_CONNECTORS.replace(bytes.fromhex("00000002 0005"), bytes.fromhex("FFFFFFF0 0005")),
        TWO_CONNECTORS.replace(bytes.fromhex("00000001 FFFFFFFF"), bytes.fromhex("70000001 FFFFFFFF")),
    ],
    ids=[
        "nothing",
        "half a number",
        "a negative version",
        "a negative length",
        "not UTF-8",
        "a byte too few",
        "too many connectors",
        "a negative number of connectors",
        "too many tasks",
    ],
)
def test_other_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_assignment(data)


def test_what_a_member_holds_may_be_malformed_too() -> None:
    with pytest.raises(MalformedMessage):
        decode_member(EMPTY_HANDS[:-1])
    with pytest.raises(MalformedMessage):
        decode_member(bytes.fromhex("0001 0000 0000000000000001 00000002 FFFF"))


def test_a_name_that_has_no_room() -> None:
    with pytest.raises(MalformedMessage, match="32768 bytes"):
        encode_assignment(Protocol.SESSIONED, assignment(assigned=Work.of(["ä" * 16384])))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    for decode in (decode_member, decode_assignment):
        with suppress(MalformedMessage):
            decode(data)


@given(st.binary(max_size=40), st.integers(0, len(EMPTY_HANDS)))
def test_so_are_bytes_that_begin_well(data: bytes, size: int) -> None:
    for decode, sample in ((decode_member, EMPTY_HANDS), (decode_assignment, TWO_CONNECTORS)):
        with suppress(MalformedMessage):
            decode(sample[:size] + data)


# --- there and back ---------------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
task_ids = st.builds(TaskId, names, st.integers(0, 2**31 - 1))
works = st.builds(Work, st.frozensets(names, max_size=6), st.frozensets(task_ids, max_size=12))
offsets = st.integers(-1, 2**63 - 1)
assignments = st.builds(
    Assignment, names, names, offsets, works, works, st.integers(0, 2**31 - 1), st.sampled_from(AssignmentProblem)
)
members = st.builds(MemberState, names, offsets, st.none() | assignments)
cooperative = st.sampled_from([Protocol.COMPATIBLE, Protocol.SESSIONED])


@given(cooperative, assignments)
def test_an_assignment_there_and_back(protocol: Protocol, told: Assignment) -> None:
    assert decode_assignment(encode_assignment(protocol, told)) == told


@given(cooperative, members)
def test_a_member_there_and_back(protocol: Protocol, state: MemberState) -> None:
    assert decode_member(encode_member(protocol, state)) == state


@given(assignments, members)
def test_eagerly_there_and_back_without_what_it_does_not_say(told: Assignment, state: MemberState) -> None:
    back = decode_assignment(encode_assignment(Protocol.EAGER, told))
    assert (back.assigned, back.revoked, back.delay_ms) == (told.assigned, NOTHING, 0)
    assert decode_member(encode_member(Protocol.EAGER, state)) == MemberState(state.url, state.offset)


@given(st.permutations(range(5)))
def test_the_same_work_is_always_the_same_bytes(order: list[int]) -> None:
    told = assignment(assigned=Work.of([f"c{n}" for n in order], [TaskId("c", n) for n in order]))
    ordered = assignment(assigned=Work.of([f"c{n}" for n in range(5)], [TaskId("c", n) for n in range(5)]))
    assert encode_assignment(Protocol.SESSIONED, told) == encode_assignment(Protocol.SESSIONED, ordered)
