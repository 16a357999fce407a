"""Residents without Spark: a job is a thread of this process, the lines and the pipeline are real."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar

import pytest
from pipeline_plugins import Append, chain_spec, consumed, step

from headgate.api import Record, Transform
from headgate.backoff import Backoff
from headgate.model import EngineUnavailable, TaskId
from headgate.pipeline import blob as blobs
from headgate.pipeline.blob import Packed
from headgate.pipeline.sink_chain import Kind, Output
from headgate.spark import pool as pool_module
from headgate.spark import residents as residents_module
from headgate.spark.line import Invitation, Line
from headgate.spark.pool import Blob, Pool
from headgate.spark.residents import Residents, ResidentsKilled
from headgate.spark.session import Session
from headgate.spark.settings import ResidentSettings

RECORDS = Output(Kind.RECORDS)
WAIT_S = 30.0
A, B = TaskId("a", 0), TaskId("b", 0)
Eventually = Callable[..., None]


class Killed(BaseException):
    """The process of a resident has ended: no `except Exception` of a plugin sees that."""


class Act(Transform[Record]):
    """Does what the value says: `die` ends the resident, `die 2` the first two, `wait` waits for the gate."""

    gate: ClassVar[threading.Event]
    entered: ClassVar[threading.Semaphore]
    deaths: ClassVar[dict[str, int]]
    together: ClassVar[threading.Barrier | None]

    @classmethod
    def reset(cls) -> None:
        cls.gate, cls.entered, cls.deaths, cls.together = threading.Event(), threading.Semaphore(0), {}, None

    def apply(self, record: Record) -> Record:
        what, *times = str(record.value).split()
        if what == "wait":
            self.entered.release()
            assert self.gate.wait(WAIT_S)
        if what == "meet":
            assert self.together is not None
            self.together.wait(WAIT_S)
        if what == "die" and (not times or self.deaths.get(record.value, 0) < int(times[0])):
            self.deaths[record.value] = self.deaths.get(record.value, 0) + 1
            raise Killed
        return record


class Job:
    """What `parallelize([0], 1).mapPartitions(...)` gives: a task, which is repeated when it fails, as Spark does."""

    def __init__(self, context: Context, function: Callable[[Iterable[object]], Iterator[int]]) -> None:
        self._context = context
        self._function = function

    def collect(self) -> list[int]:
        context, number = self._context, self._function.invitation.number  # type: ignore[attr-defined]
        if context.refuses:
            raise RuntimeError("Job aborted: no slot\n\tat java.lang.Thread")
        for _ in range(context.tries - 1):
            try:
                return self._run(number)
            except RuntimeError:
                continue
        return self._run(number)

    def _run(self, number: int) -> list[int]:
        try:
            if number in context_cancelled(self._context):
                raise RuntimeError("Job was cancelled")
            return list(self._function(iter([0])))
        except (Killed, OSError) as error:
            raise RuntimeError(f"Python worker exited unexpectedly: {type(error).__name__}") from None


def context_cancelled(context: Context) -> set[int]:
    return {int(group.removeprefix("resident-")) for group in context.cancelled}


class Context:
    """As much of a SparkContext as residents use."""

    def __init__(self, slots: int = 4, tries: int = 1) -> None:
        self.defaultParallelism = slots
        self.tries = tries
        self.refuses = False
        self.groups: list[str] = []
        self.cancelled: set[str] = set()
        self.conf: dict[str, str] = {"spark.driver.host": "127.0.0.1"}

    def getConf(self) -> dict[str, str]:  # noqa: N802
        return self.conf

    def setJobGroup(self, group: str, _: str, interruptOnCancel: bool) -> None:  # noqa: N802, N803
        assert interruptOnCancel
        self.groups.append(group)

    def setLocalProperty(self, key: str, value: str) -> None:  # noqa: N802
        assert (key, value) == ("spark.scheduler.pool", "residents")

    def parallelize(self, data: Sequence[int], parts: int) -> Context:
        assert (data, parts) == ([0], 1)
        return self

    def mapPartitions(self, function: Callable[[Iterable[object]], Iterator[int]]) -> Job:  # noqa: N802
        return Job(self, function)


class FakeSession(Session):
    """Has a context at once; `problem` stands for a Spark that cannot be had."""

    def __init__(self, context: Any) -> None:
        super().__init__({}, list, lambda: None)  # type: ignore[arg-type, return-value]
        self.made = context
        self.problem: EngineUnavailable | None = None
        self.asked = 0

    def context(self, cancelled: Callable[[], bool] = lambda: False) -> Any:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        return self.made

    def explain(self, error: Exception) -> Exception:
        return EngineUnavailable("The JVM is gone") if isinstance(error, ConnectionError) else error

    def cancel(self, group: str) -> None:
        self.made.cancelled.add(group)


@pytest.fixture(autouse=True)
def _acts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(residents_module, "_PAUSE_S", 0.1)
    monkeypatch.setattr(pool_module, "WITNESS_S", 0.05)
    Act.reset()
    yield
    Act.gate.set()


@pytest.fixture
def context() -> Context:
    return Context()


@pytest.fixture
def session(context: Context) -> FakeSession:
    return FakeSession(context)


@pytest.fixture
def begin(session: FakeSession) -> Iterator[Callable[..., Residents]]:
    """Starts residents, which are stopped when the test ends."""
    started: list[Residents] = []

    def start(
        least: int = 1, most: int = 4, quick: int = 2, idle_s: float = 60.0, encrypted: bool = False
    ) -> Residents:
        made = Residents(session, ResidentSettings(least, most, quick, idle_s, encrypted=encrypted))
        started.append(made)
        made.start()
        return made

    yield start
    Act.gate.set()
    for each in started:
        each.stop()
    for each in started:
        threads = [each._keeper, *each._jobs]
        for thread in threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), f"{thread.name} has not ended"


def packed(*values: str) -> bytes:
    chain = blobs.pack_spec(chain_spec(step(Act), step(Append, {"suffix": "!"})))
    return blobs.pack(blobs.sink_job(chain, RECORDS, consumed([value.encode() for value in values])))


def values(results: Sequence[Packed]) -> list[list[Any]]:
    return [[record.value for record in blobs.unpack(each).records()] for each in results]


def run(residents: Residents, task: TaskId, *work: str) -> list[list[Any]]:
    return values(residents.submit(task, [packed(each) for each in work]).result(WAIT_S))


def submit(residents: Residents, task: TaskId, *work: str) -> Future[list[Packed]]:
    return residents.submit(task, [packed(each) for each in work])


def there(residents: Residents) -> list[int]:
    """Numbers of those that have called."""
    return [number for number, each in dict(residents._pool.residents).items() if each.there]


def threads(prefix: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(prefix)]


# --- work -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encrypted", [False, True])
def test_results_come_in_the_order_of_their_blobs(begin: Callable[..., Residents], encrypted: bool) -> None:
    residents = begin(encrypted=encrypted)
    assert run(residents, A, *(str(number) for number in range(20))) == [[f"{number}!"] for number in range(20)]


def test_nothing_in_nothing_out(begin: Callable[..., Residents]) -> None:
    assert begin().submit(A, []).result(WAIT_S) == []


def test_many_tasks_at_once(begin: Callable[..., Residents]) -> None:
    residents = begin(most=4, quick=3)
    tasks = [TaskId(f"c{number}", number) for number in range(12)]
    found: dict[TaskId, list[list[list[Any]]]] = {}

    def work(task: TaskId) -> None:
        found[task] = [run(residents, task, f"{task} {turn}", f"{turn}") for turn in range(10)]

    workers = [threading.Thread(target=work, args=(task,)) for task in tasks]
    for each in workers:
        each.start()
    for each in workers:
        each.join(WAIT_S)
    assert found == {task: [[[f"{task} {turn}!"], [f"{turn}!"]] for turn in range(10)] for task in tasks}
    assert not residents._submissions, "nothing is kept of what is done"


def test_an_error_in_a_blob_is_its_result(begin: Callable[..., Residents]) -> None:
    residents = begin()
    results = residents.submit(A, [b"no blob", packed("x")]).result(WAIT_S)
    assert blobs.unpack(results[0]).error_type == "_pickle.UnpicklingError"
    assert values(results[1:]) == [["x!"]]


def test_a_large_blob(begin: Callable[..., Residents]) -> None:
    text = "x" * 5_000_000
    assert run(begin(encrypted=True), A, text) == [[f"{text}!"]]


def test_what_is_submitted_before_there_is_a_resident_waits_for_one(
    begin: Callable[..., Residents], session: FakeSession
) -> None:
    residents = begin(least=0)
    assert there(residents) == []
    assert run(residents, A, "x") == [["x!"]]


# --- how many ---------------------------------------------------------------------------------------------------------


def test_the_pool_grows_while_work_waits_and_shrinks_when_there_is_none(
    begin: Callable[..., Residents], eventually: Eventually
) -> None:
    residents = begin(least=1, most=4, quick=3, idle_s=0.2)
    assert run(residents, A, "x") == [["x!"]]
    Act.together = threading.Barrier(3)
    # Each waits for the two others: they can only be done when there are three residents.
    assert run(residents, A, "meet", "meet", "meet") == [["meet!"]] * 3
    eventually(lambda: len(there(residents)) == 1)
    eventually(lambda: len([each for each in residents._jobs if each.is_alive()]) == 1)
    assert len(residents._lines) == 1
    assert run(residents, A, "x") == [["x!"]]


def test_a_chain_that_never_ends_has_one_more_come_for_the_others(begin: Callable[..., Residents]) -> None:
    residents = begin(least=1, most=4, quick=1)
    stuck = submit(residents, A, "wait")
    assert Act.entered.acquire(timeout=WAIT_S)
    for turn in range(5):
        assert run(residents, B, str(turn)) == [[f"{turn}!"]]
    assert not stuck.done()
    Act.gate.set()
    assert values(stuck.result(WAIT_S)) == [["wait!"]]


def test_a_cluster_is_measured_again_while_work_waits(
    begin: Callable[..., Residents], context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its executors come after the driver: at first there seem to be two slots."""
    monkeypatch.setattr(residents_module, "_MEASURE_S", 0.05)
    context.defaultParallelism = 2
    residents = begin(least=1, most=0, quick=0)
    assert run(residents, A, "x") == [["x!"]]
    assert residents._pool.settings.most == 1
    context.defaultParallelism = 8
    Act.together = threading.Barrier(3)
    assert run(residents, A, "meet", "meet", "meet") == [["meet!"]] * 3
    assert residents._pool.settings.most == 4


# --- deaths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tries", [1, 4])
def test_what_a_dead_resident_worked_on_is_given_to_another(
    begin: Callable[..., Residents], context: Context, tries: int
) -> None:
    context.tries = tries
    residents = begin(least=2)
    assert run(residents, A, "die 1") == [["die 1!"]]
    assert Act.deaths == {"die 1": 1}
    assert run(residents, B, "x") == [["x!"]]


def test_an_idle_resident_gets_it_although_nobody_comes(
    begin: Callable[..., Residents], context: Context, eventually: Eventually
) -> None:
    """There are as many as shall stay, or more, and so no new one is begun."""
    residents = begin(least=3, most=4, quick=1)
    eventually(lambda: len(there(residents)) == 3)
    with residents._condition:
        residents._settings = residents._pool.settings = ResidentSettings(2, 4, 1)
    assert run(residents, A, "die 1") == [["die 1!"]]
    assert len(context.groups) == 3


def test_a_line_that_is_cut_is_a_death(begin: Callable[..., Residents], eventually: Eventually) -> None:
    residents = begin(least=3)
    eventually(lambda: len(there(residents)) == 3)
    future = submit(residents, A, "wait")
    assert Act.entered.acquire(timeout=WAIT_S)
    with residents._condition:
        busy = next(each for each in residents._pool.residents.values() if each.blob is not None)
        line = residents._lines[busy.number][0]
    line.close()
    assert Act.entered.acquire(timeout=WAIT_S), "another one has it"
    Act.gate.set()
    assert values(future.result(WAIT_S)) == [["wait!"]]


def test_the_culprit_fails_its_task_alone(begin: Callable[..., Residents]) -> None:
    residents = begin(least=3, most=4)
    others = [submit(residents, B, f"{number}") for number in range(10)]
    with pytest.raises(ResidentsKilled, match="A batch of a-0 has ended 3 residents"):
        run(residents, A, "die")
    assert [values(each.result(WAIT_S)) for each in others] == [[[f"{number}!"]] for number in range(10)]
    assert Act.deaths["die"] in (3, 4), "once more when nobody else was there yet"
    assert run(residents, A, "x") == [["x!"]]
    assert not residents._submissions


def test_parts_of_a_batch_that_all_end_their_residents_are_culprits(begin: Callable[..., Residents]) -> None:
    residents = begin(least=3, most=4, quick=3)
    assert run(residents, A, "x") == [["x!"]]
    with pytest.raises(ResidentsKilled):
        run(residents, A, "die", "die", "die")
    assert run(residents, B, "x") == [["x!"]]


def test_the_only_resident_that_there_may_be(begin: Callable[..., Residents]) -> None:
    residents = begin(most=1, quick=1)
    with pytest.raises(ResidentsKilled):
        run(residents, A, "die")
    assert Act.deaths == {"die": 3}
    assert run(residents, B, "x") == [["x!"]]


def test_a_job_that_ends_while_its_line_does_not_is_a_death(
    begin: Callable[..., Residents], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine of an executor was lost without a word, and Spark has noticed."""
    collect = Job.collect

    def lose_the_first(job: Job) -> list[int]:
        if job._function.invitation.number != 1:  # type: ignore[attr-defined]
            return collect(job)
        line = job._function.invitation.accept()  # type: ignore[attr-defined]
        assert line.receive() is not None
        kept.append(line)
        raise RuntimeError("Executor heartbeat timed out")

    kept: list[Line] = []
    monkeypatch.setattr(Job, "collect", lose_the_first)
    residents = begin()
    assert run(residents, A, "x") == [["x!"]]
    for each in kept:
        each.close()


def test_results_that_nobody_understands_end_the_resident(
    begin: Callable[..., Residents], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever listens to a line never ends unseen."""
    done, failed = Pool.done, threading.Event()

    def fail_once(pool: Pool, *arguments: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise MemoryError("no room for it")
        return done(pool, *arguments)

    monkeypatch.setattr(Pool, "done", fail_once)
    assert run(begin(least=2), A, "x") == [["x!"]]
    assert "it is given up" in caplog.text


# --- copies by speculation --------------------------------------------------------------------------------------------


def test_a_copy_gets_no_work_and_does_not_end_before_the_first(
    begin: Callable[..., Residents], monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    accept, seen = Invitation.accept, []

    def keep(invitation: Invitation) -> Line:
        seen.append(invitation)
        return accept(invitation)

    monkeypatch.setattr(Invitation, "accept", keep)
    residents = begin(most=1, quick=1)
    assert run(residents, A, "x") == [["x!"]]
    copy = accept(seen[0])
    ended: Future[object] = Future()
    threading.Thread(target=lambda: ended.set_result(copy.receive())).start()
    eventually(lambda: len(residents._lines[1]) == 2)
    assert run(residents, A, *"abcdef") == [[f"{each}!"] for each in "abcdef"]
    assert not ended.done()
    residents.stop()
    assert ended.result(WAIT_S) is None
    copy.close()


# --- strangers --------------------------------------------------------------------------------------------------------


def test_strangers_are_refused_and_nobody_waits_for_them(
    begin: Callable[..., Residents], caplog: pytest.LogCaptureFixture, eventually: Eventually
) -> None:
    residents = begin()
    assert run(residents, A, "x") == [["x!"]]
    assert residents._listener is not None
    where = residents._listener.getsockname()
    with socket.create_connection(where) as silent, socket.create_connection(where) as loud:
        loud.sendall(b"GET / HTTP/1.1\r\n\r\n" + b" " * 100)
        eventually(lambda: "A call from 127.0.0.1 was refused" in caplog.text)
        assert run(residents, A, "y") == [["y!"]]
        silent.close()
    late = Invitation("127.0.0.1", where[1], 99, residents._secret).accept()
    assert late.receive() is None, "nobody has this number any more"
    late.close()


def test_who_answers_calls_goes_on_after_an_error(
    begin: Callable[..., Residents],
    session: FakeSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A process that has no file left for a moment still has residents afterwards."""
    monkeypatch.setattr(residents_module, "_PAUSE_S", 0.01)
    accept, failed = socket.socket.accept, threading.Event()

    def fail_once(listener: socket.socket) -> Any:
        if not failed.is_set():
            failed.set()
            raise OSError(24, "Too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", fail_once)
    assert run(begin(), A, "x") == [["x!"]]
    assert "Too many open files" in caplog.text


# --- cancelling and stopping ------------------------------------------------------------------------------------------


def test_cancelling_fails_what_waits_and_ends_who_works_on_it(
    begin: Callable[..., Residents], session: FakeSession, eventually: Eventually
) -> None:
    residents = begin(most=1, quick=1)
    first = submit(residents, A, "wait")
    assert Act.entered.acquire(timeout=WAIT_S)
    second, other = submit(residents, A, "x"), submit(residents, B, "y")
    residents.cancel(A)
    for each in (first, second):
        with pytest.raises(EngineUnavailable, match="What a-0 had submitted was cancelled"):
            each.result(WAIT_S)
    assert session.made.cancelled == {"resident-1"}
    assert not other.done()
    # The cancelled job is done after all, before Spark has ended it: it gets nothing any more, and what waits is done.
    Act.gate.set()
    assert values(other.result(WAIT_S)) == [["y!"]]
    eventually(lambda: there(residents) == [2])
    assert not residents._submissions


def test_dropping_fails_what_waits_and_lets_the_others_finish(
    begin: Callable[..., Residents], session: FakeSession
) -> None:
    residents = begin(most=1, quick=1)
    first = submit(residents, A, "wait")
    assert Act.entered.acquire(timeout=WAIT_S)
    second = submit(residents, A, "x")
    residents.drop(A)
    with pytest.raises(EngineUnavailable, match="What a-0 had submitted was cancelled"):
        second.result(WAIT_S)
    Act.gate.set()
    assert first.result(WAIT_S)
    assert session.made.cancelled == set()
    assert not residents._submissions


def test_cancelling_who_has_nothing(begin: Callable[..., Residents], session: FakeSession) -> None:
    residents = begin()
    residents.cancel(A)
    residents.forget(A)
    assert session.made.cancelled == set()
    assert run(residents, A, "x") == [["x!"]]


def test_cancelling_what_is_being_judged(begin: Callable[..., Residents], monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()
    die = Pool.die

    def tell(pool: Pool, *arguments: Any) -> Blob | None:
        found = die(pool, *arguments)
        if found is not None:  # not one that had no work, such as those of the test before
            died.set()
        return found

    monkeypatch.setattr(Pool, "die", tell)
    monkeypatch.setattr(pool_module, "WITNESS_S", WAIT_S)  # the judgement comes late, however busy the machine is
    residents = begin(least=2)
    future = submit(residents, A, "die")
    assert died.wait(WAIT_S)
    residents.cancel(A)
    with pytest.raises(EngineUnavailable, match="cancelled"):
        future.result(WAIT_S)
    assert run(residents, B, "x") == [["x!"]]
    assert Act.deaths == {"die": 1}


def test_stopping_fails_what_waits_and_what_is_under_way(begin: Callable[..., Residents]) -> None:
    residents = begin(most=1, quick=1)
    futures = [submit(residents, A, "wait")]
    assert Act.entered.acquire(timeout=WAIT_S)
    futures.append(submit(residents, B, "x"))
    threading.Timer(0.1, Act.gate.set).start()
    residents.stop()
    futures.append(submit(residents, B, "later"))
    for each in futures:
        with pytest.raises(EngineUnavailable, match="shutting down"):
            each.result(WAIT_S)
    assert not residents._submissions


def test_stopping_ends_all_threads_and_frees_the_port(begin: Callable[..., Residents], eventually: Eventually) -> None:
    others = threads("resident")
    residents = begin(least=2)
    assert run(residents, A, "x") == [["x!"]]
    assert residents._listener is not None
    where = residents._listener.getsockname()
    eventually(lambda: len(there(residents)) == 2)
    residents.stop()
    eventually(lambda: not set(threads("resident")) - set(others))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(where, WAIT_S)


def test_stopping_before_spark_is_there(session: FakeSession, begin: Callable[..., Residents]) -> None:
    waits = threading.Event()

    def wait(cancelled: Callable[[], bool]) -> Any:
        waits.set()
        while not cancelled():
            threading.Event().wait(0.01)
        raise EngineUnavailable("The worker is shutting down")

    session.context = wait  # type: ignore[assignment, method-assign]
    residents = begin()
    future = submit(residents, A, "x")
    assert waits.wait(WAIT_S)
    residents.stop()
    with pytest.raises(EngineUnavailable):
        future.result(WAIT_S)


def test_stopping_what_was_never_started(session: FakeSession) -> None:
    Residents(session, ResidentSettings(1, 1, 1)).stop()


# --- starts that come to nothing --------------------------------------------------------------------------------------


@pytest.fixture
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    fail = Pool.fail

    def at_once(pool: Pool, now: float, hopeless: bool) -> tuple[float, list[Blob]]:
        found = fail(pool, now, hopeless)
        pool._not_before = now + 0.01
        return found

    monkeypatch.setattr(Pool, "fail", at_once)


@pytest.mark.usefixtures("_quick_retries")
def test_whoever_waits_is_told_when_no_resident_can_be_started(
    begin: Callable[..., Residents], context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    context.refuses = True
    residents = begin(least=0)
    future = submit(residents, A, "x")
    with pytest.raises(EngineUnavailable, match=r"No Spark task could be started.*no slot$"):
        future.result(WAIT_S)
    assert len(context.groups) >= 3
    assert "trying again in" in caplog.text
    assert not residents._submissions
    context.refuses = False
    assert run(residents, A, "x") == [["x!"]]


@pytest.mark.usefixtures("_quick_retries")
def test_whoever_waits_is_told_at_once_when_spark_cannot_be_had(
    begin: Callable[..., Residents], session: FakeSession
) -> None:
    session.problem = EngineUnavailable("Spark could not be started: no Java")
    residents = begin()
    with pytest.raises(EngineUnavailable, match="no Java"):
        run(residents, A, "x")
    session.problem = None
    assert run(residents, A, "x") == [["x!"]]


@pytest.mark.usefixtures("_quick_retries")
@pytest.mark.parametrize("error", [ConnectionResetError("gone"), RuntimeError("Answer from Java side is empty")])
def test_a_jvm_that_dies_while_a_resident_is_begun_does_not_end_the_pool(
    begin: Callable[..., Residents], context: Context, error: Exception
) -> None:
    failed = threading.Event()

    class Conf(dict[str, str]):
        def get(self, key: str, default: Any = None) -> Any:
            if not failed.is_set():
                failed.set()
                raise error
            return super().get(key, default)

    context.conf = Conf(context.conf)
    assert run(begin(), A, "x") == [["x!"]], "what was submitted has waited for the next one"


def test_the_keeper_goes_on_whatever_happens(
    begin: Callable[..., Residents], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(residents_module, "_PAUSE_S", 0.01)
    judge, failed = Pool.judge, threading.Event()

    def fail_once(pool: Pool, now: float) -> list[Blob]:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError("nobody thought of this")
        return judge(pool, now)

    monkeypatch.setattr(Pool, "judge", fail_once)
    with caplog.at_level(logging.ERROR):
        assert run(begin(), A, "x") == [["x!"]]
    assert "nobody thought of this" in caplog.text


def test_an_address_that_cannot_be_listened_at_is_said(
    begin: Callable[..., Residents], context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "RETRY", Backoff(0.01))
    context.conf["spark.driver.bindAddress"] = "203.0.113.1"
    residents = begin()
    with residents._condition:
        residents._pool._failures = 1
    with pytest.raises(EngineUnavailable, match="assign requested address"):
        run(residents, A, "x")


def test_what_was_given_is_sent_once_although_its_resident_has_come_again(
    session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that is late with its frame must not send what the resident was given since: there would be two results
    for one blob, and the second would be taken for that of the next."""
    residents = Residents(session, ResidentSettings(1, 1, 1))
    with residents._condition:
        resident = residents._pool.begin(0.0)
        first, second = (FakeLine(), FakeLine())
        residents._lines[resident.number] = [first]  # type: ignore[list-item]
        residents._pool.seat(resident.number, 0.0)
        late = residents._frames(residents._pool.add([Blob(A, b"one")], 0.0))
    residents._on_death(resident)
    with residents._condition:
        residents._pool.cancel(A)
        residents._lines[resident.number] = [second]  # type: ignore[list-item]
        residents._pool.add([Blob(B, b"two")], 1.0)
        residents._pool.seat(resident.number, 1.0)
        assert resident.blob is not None
    residents_module._send(late)
    assert (first.sent, second.sent) == ([b"one"], [])


class FakeLine:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        pass
