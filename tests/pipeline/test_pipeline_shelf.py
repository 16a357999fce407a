"""A shelf: large payloads are handed over as files; where that cannot be, they travel as before."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipeline_plugins import JSON, FailTimes, chain_spec, consumed, step

from headgate.api import SourceTable
from headgate.model import ChainSpec
from headgate.pipeline import blob
from headgate.pipeline.blob import Job, Result
from headgate.pipeline.shelf import SMALL, Shelf, Shelved, drop, opened
from headgate.pipeline.sink_chain import Kind, Output

RECORDS = Output(Kind.RECORDS)
VALUES = Output(Kind.TABLE, ("value",))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf.new(str(tmp_path))
    assert made is not None
    return made


def files(shelf: Shelf) -> list[str]:
    return os.listdir(shelf.folder)


def put(shelf: Shelf, data: bytes) -> Shelved | None:
    return shelf.put(lambda file: file.write(data))


# --- the shelf --------------------------------------------------------------------------------------------------------


def test_what_is_put_on_a_shelf_is_there_until_it_is_dropped(shelf: Shelf) -> None:
    one, two = put(shelf, b"one"), put(shelf, b"two")
    assert one is not None
    assert two is not None
    assert (bytes(opened(one)), bytes(opened(two))) == (b"one", b"two")
    drop(one)
    assert files(shelf) == [os.path.basename(two.path)]
    drop(one)  # harmless


def test_what_was_opened_stays_readable_after_it_was_dropped(shelf: Shelf) -> None:
    large = os.urandom(1_000_000)
    payload = put(shelf, large)
    assert payload is not None
    mapped = opened(payload)
    drop(payload)
    shelf.remove()
    assert bytes(mapped) == large


def test_only_this_user_may_look_at_it(shelf: Shelf) -> None:
    assert os.stat(shelf.folder).st_mode & 0o777 == 0o700


def test_a_shelf_travels(shelf: Shelf) -> None:
    payload = put(pickle.loads(pickle.dumps(shelf)), b"from there")
    assert bytes(opened(pickle.loads(pickle.dumps(payload)))) == b"from there"


def test_bytes_need_no_shelf() -> None:
    assert opened(b"bytes") == b"bytes"
    drop(b"bytes")
    drop(None)


def test_clearing_leaves_the_shelf(shelf: Shelf) -> None:
    put(shelf, b"one")
    shelf.clear()
    assert files(shelf) == []
    assert put(shelf, b"two") is not None


def test_removing_leaves_nothing(shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, b"one")
    shelf.remove()
    assert list(tmp_path.iterdir()) == []
    shelf.remove()  # harmless, as is clearing what is gone
    shelf.clear()


def test_whoever_is_late_finds_no_shelf(shelf: Shelf, tmp_path: Path) -> None:
    """One who has begun to write when it is removed, and one who comes afterwards."""

    def remove_meanwhile(file: Any) -> None:
        file.write(b"begun, ")
        shelf.remove()
        file.write(b"ended")

    shelf.put(remove_meanwhile)
    assert put(shelf, b"afterwards") is None
    assert list(tmp_path.iterdir()) == []


def test_no_room_leaves_no_half_of_a_file(shelf: Shelf) -> None:
    def write(file: Any) -> None:
        file.write(b"half of it")
        raise OSError("No space left on device")

    assert shelf.put(write) is None
    assert files(shelf) == []


def test_no_shelf_where_there_is_no_folder(tmp_path: Path) -> None:
    assert Shelf.new(str(tmp_path / "cleaned away")) is None


# --- jobs -------------------------------------------------------------------------------------------------------------


def done(job: Job) -> Result:
    return blob.unpack(blob.run(blob.pack(job)))


def lines(count: int) -> list[bytes]:
    return [b'"line %d"' % number for number in range(count)]


def run_sink(shelf: Shelf | None, count: int, output: Output, spec: ChainSpec | None = None) -> Result:
    chain = blob.pack_spec(spec or chain_spec(value=JSON))
    return blob.unpack(blob.run_sink(Job(chain, output, shelf=shelf), consumed(lines(count))))


def run_source(shelf: Shelf | None, count: int) -> tuple[Job, Result]:
    table = pa.table({"value": [line.decode() for line in lines(count)]})
    source = SourceTable(topic="t", table=table, source_partition=None, source_offset=None)
    job = blob.source_columns_job(blob.pack_spec(chain_spec()), source, shelf)
    return job, done(job)


def content(result: Result, output: Output | None) -> Any:
    return result.records() if output is RECORDS else result.table().to_pylist()


@pytest.mark.parametrize("output", [RECORDS, VALUES])
@pytest.mark.parametrize(("count", "shelved"), [(1, False), (20_000, True)])
def test_a_sinks_result_is_the_same_with_a_shelf(shelf: Shelf, output: Output, count: int, shelved: bool) -> None:
    """Only if it is large does it go there; who takes it, takes it away."""
    result = run_sink(shelf, count, output)
    assert isinstance(result.payload, Shelved) is shelved
    assert len(files(shelf)) == shelved
    assert content(result, output) == content(run_sink(None, count, output), output)
    assert files(shelf) == []


@pytest.mark.parametrize(("count", "shelved"), [(1, False), (20_000, True)])
def test_a_sources_job_is_the_same_with_a_shelf(shelf: Shelf, count: int, shelved: bool) -> None:
    """The job stays until it is dropped: Spark may have to repeat it."""
    job, result = run_source(shelf, count)
    assert [isinstance(each, Shelved) for each in (job.payload, result.payload)] == [shelved] * 2
    assert content(result, None) == content(run_source(None, count)[1], None) == content(done(job), None)
    assert len(files(shelf)) == shelved
    drop(job.payload)
    assert files(shelf) == []


@pytest.mark.parametrize("gone", [Shelf.remove, lambda shelf: os.chmod(shelf.folder, 0o500)], ids=["gone", "no room"])
def test_without_room_everything_travels(
    shelf: Shelf, gone: Callable[[Shelf], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone(shelf)
    if os.access(shelf.folder, os.W_OK):  # root may write everywhere
        monkeypatch.setattr(pa, "OSFile", _full)
    job, result = run_source(shelf, 20_000)
    assert isinstance(job.payload, bytes)
    assert isinstance(result.payload, bytes)
    assert isinstance(run_sink(shelf, 20_000, VALUES).payload, bytes)
    assert content(result, None) == content(run_source(None, 20_000)[1], None)


def _full(*_: object) -> None:
    raise OSError("No space left on device")


def test_what_is_not_larger_than_small_travels(shelf: Shelf) -> None:
    output = Output(Kind.TABLE, ("offset",))  # eight bytes a record
    assert isinstance(run_sink(shelf, SMALL // 8, output).payload, bytes)
    assert isinstance(run_sink(shelf, SMALL // 8 + 1, output).payload, Shelved)


def test_what_is_to_be_tried_again_travels(shelf: Shelf) -> None:
    """It goes back to the executors at another time, when the shelf may be gone."""
    late = step(FailTimes, {"value": "line 10000", "times": "1"})
    errors = {"errors.tolerance": "all", "errors.retry.timeout": "1000"}
    FailTimes.seen.clear()
    result = run_sink(shelf, 20_000, VALUES, chain_spec(late, value=JSON, errors=errors))
    assert isinstance(result.payload, Shelved)
    assert result.rest is not None
    assert isinstance(result.rest.job.payload, bytes)
    shelf.remove()
    assert blob.unpack(blob.run(result.rest.blob(elapsed_ms=0.0))).table().num_rows == 10_000


def test_an_error_leaves_nothing_on_the_shelf(shelf: Shelf) -> None:
    broken = Job(blob.pack_spec(chain_spec(value=JSON)), VALUES, shelf=shelf)
    result = blob.unpack(blob.run_sink(broken, consumed([b"no json"] * 20_000)))
    assert result.payload is None
    assert files(shelf) == []
