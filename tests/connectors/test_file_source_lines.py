"""However a file grows and however polls are cut, the lines are those of the whole file, and every offset is exact."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext
from headgate.connectors.file_source import FileStreamSourceTask, LineBuffer

pytestmark = pytest.mark.process

# Mostly line ends and broken characters: that is where the errors would be.
PIECES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"a", "é".encode(), "€".encode()[:2], b"\xff", b"\x85", b"\x00"]),
        st.binary(max_size=8),
    ),
    max_size=12,
).map(b"".join)
APPENDS = st.lists(PIECES.filter(bool), max_size=6)


def reference(content: bytes) -> list[tuple[str, int]]:
    """Every complete line and the position after it, one byte at a time."""
    found, begin, here = [], 0, 0
    while here < len(content):
        end = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL).match(content, here)
        if end is None:
            here += 1
            continue
        found.append((content[begin:here].decode("utf-8", "replace"), end.end()))
        begin = here = end.end()
    return found


@contextmanager
def started(file: Path, position: int, batch_size: int) -> Iterator[FileStreamSourceTask]:
    config = {"topic": "t", "file": str(file), "batch.size": str(batch_size)}
    task = FileStreamSourceTask()
    offsets = MemoryOffsets([({"filename": str(file)}, {"position": position})])
    task.context = MemorySourceTaskContext(config, offsets)
    task.start(config)
    task.stop_requested()  # from now on polls do not wait
    try:
        yield task
    finally:
        task.stop()


def polls(task: FileStreamSourceTask) -> list[tuple[list[str], int]]:
    found = []
    while (table := task.poll()) is not None:
        assert table.source_offset is not None
        found.append((table.table["value"].to_pylist(), table.source_offset["position"]))
    return found


@settings(max_examples=3 * settings().max_examples // 2, deadline=None)
@given(appends=APPENDS, batch_size=st.integers(1, 7))
def test_any_growth_and_any_batch_size_give_the_lines_of_the_file(appends: list[bytes], batch_size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f")
        file.touch()
        found = []
        with started(file, 0, batch_size) as task:
            for data in appends:
                with file.open("ab") as out:
                    out.write(data)
                found += polls(task)
        content = b"".join(appends)
        expected = reference(content)
        assert [line for lines, _ in found for line in lines] == [line for line, _ in expected]
        ends = [end for _, end in expected]
        done = 0
        for lines, position in found:
            assert 0 < len(lines) <= batch_size
            done += len(lines)
            assert position == ends[done - 1]
            with started(file, position, batch_size) as resumed:
                assert [line for lines, _ in polls(resumed) for line in lines] == [line for line, _ in expected[done:]]


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(blocks=APPENDS, most=st.integers(1, 5))
def test_blocks_may_be_cut_anywhere(blocks: list[bytes], most: int) -> None:
    buffer, found, position = LineBuffer(), [], 0
    for block in blocks:
        buffer.feed(block)
        while len(buffer):
            before = len(buffer)
            lines, size = buffer.take(most)
            assert len(lines) == min(most, before) == before - len(buffer)
            position += size
            found += lines.to_pylist()
    expected = reference(b"".join(blocks))
    assert found == [line for line, _ in expected]
    assert position == (expected[-1][1] if expected else 0)
    assert buffer.unfinished == sum(map(len, blocks)) - position


def test_a_long_line_in_many_blocks_takes_time_in_proportion_to_its_length() -> None:
    """In quadratic time this would copy half a terabyte."""
    buffer = LineBuffer()
    for _ in range(16_384):
        buffer.feed(b"x" * 4096)
    buffer.feed(b"\n")
    lines, size = buffer.take(1)
    assert len(lines[0].as_py()) == 16_384 * 4096 == size - 1
