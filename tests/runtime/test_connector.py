from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from runtime_fakes import Script, ScriptedSinkConnector, ScriptedSourceConnector

from headgate.api import ConnectError
from headgate.model import TargetState
from headgate.runtime.connector import ConnectorInstance, in_thread
from headgate.runtime.errors import StartFailed, Superseded
from headgate.runtime.lifecycle import PHASES, Phase, PluginCall
from headgate.runtime.plugins import Plugins

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
PLUGINS = Plugins([ScriptedSourceConnector, ScriptedSinkConnector])
CONTEXT = object()


def instance(kind: str = "ScriptedSource", **config: str) -> ConnectorInstance:
    return ConnectorInstance("orders", {"name": "orders", **config}, PLUGINS.find_connector(kind), CONTEXT)


def run(steps: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await steps()

    asyncio.run(main())


async def in_phase(phase: Phase) -> ConnectorInstance:
    made = instance()
    if phase is Phase.FAILED:
        made.fail("boom")
    elif phase is not Phase.INIT:
        await made.to(TargetState[phase.name])
    assert made.phase is phase
    return made


class TestTo:
    @pytest.mark.parametrize(("phase", "target"), list(PHASES))
    def test_every_phase_and_target_as_the_table_says(self, script: Script, phase: Phase, target: TargetState) -> None:
        call, following = PHASES[phase, target]

        async def steps() -> None:
            made = await in_phase(phase)
            script.journal.clear()
            if call is PluginCall.REFUSED:
                text = f"^Cannot transition connector to {target.value} since it has failed$"
                with pytest.raises(StartFailed, match=text):
                    await made.to(target)
                assert made.trace == "boom"
            else:
                assert await made.to(target) is (following is not phase)
            assert made.phase is following
            assert script.journal == ([f"{call.value} orders"] if call in (PluginCall.START, PluginCall.STOP) else [])

        run(steps)

    def test_the_plugin_gets_its_context_and_its_config(self, script: Script) -> None:
        async def steps() -> None:
            await instance(color="red").to(STARTED)
            assert script.plugins[-1].context is CONTEXT
            assert script.plugins[-1].settings == {"name": "orders", "color": "red"}

        run(steps)

    def test_a_paused_plugin_is_started_again_and_a_stopped_one_is_made_anew(self, script: Script) -> None:
        async def steps() -> None:
            made = instance()
            for target in (STARTED, PAUSED, STARTED, STOPPED, STARTED):
                await made.to(target)
            assert (len(script.plugins), script.count("start orders")) == (2, 3)

        run(steps)

    @pytest.mark.kip(875, "Can resume a connector after its `Connector` has failed both before and during shutdown ...")
    def test_stopping_a_failed_one_forgets_why_it_failed(self, script: Script) -> None:
        async def steps() -> None:
            made = await in_phase(Phase.FAILED)
            await made.to(STOPPED)
            assert made.trace is None
            await made.to(STARTED)
            assert made.phase is Phase.STARTED

        run(steps)

    def test_a_start_that_fails_leaves_its_trace(self, script: Script) -> None:
        def fail(plugin: Any) -> None:
            raise ConnectError("no such file")

        script.on_start = fail

        async def steps() -> None:
            made = instance()
            with pytest.raises(StartFailed, match=r"^Failed to transition connector orders to state STARTED$"):
                await made.to(STARTED)
            assert made.phase is Phase.FAILED
            assert (made.trace or "").startswith("ConnectError: no such file\nTraceback (most recent call last):\n")
            assert (made.trace or "").endswith("headgate.api.errors.ConnectError: no such file")

        run(steps)

    def test_even_an_exit_is_only_a_failure(self, script: Script) -> None:
        def leave(plugin: Any) -> None:
            raise SystemExit(3)

        script.on_start = leave

        async def steps() -> None:
            made = instance()
            with pytest.raises(StartFailed):
                await made.to(STARTED)
            assert (made.trace or "").endswith("SystemExit: 3")

        run(steps)


class TestShutdown:
    @pytest.mark.parametrize("phase", [Phase.INIT, Phase.PAUSED, Phase.STOPPED, Phase.FAILED])
    def test_what_does_not_run_is_not_stopped(self, script: Script, phase: Phase) -> None:
        async def steps() -> None:
            made = await in_phase(phase)
            script.journal.clear()
            await made.shutdown()
            assert script.journal == []

        run(steps)

    def test_what_runs_is_stopped(self, script: Script) -> None:
        async def steps() -> None:
            made = await in_phase(Phase.STARTED)
            await made.shutdown()
            assert (made.phase, script.journal[-1]) == (Phase.STOPPED, "stop orders")

        run(steps)

    def test_a_failure_in_stop_is_kept(self, script: Script) -> None:
        def fail(plugin: Any) -> None:
            raise ConnectError("still busy")

        script.on_stop = fail

        async def steps() -> None:
            made = await in_phase(Phase.STARTED)
            await made.shutdown()
            assert made.phase is Phase.FAILED
            assert (made.trace or "").endswith("ConnectError: still busy")

        run(steps)

    def test_a_stop_that_hangs_is_given_up_on(self, script: Script) -> None:
        script.on_stop = script.hang

        async def steps() -> None:
            made = await in_phase(Phase.STARTED)
            await made.shutdown()
            assert made.phase is Phase.STOPPED

        run(steps)


class TestTaskConfigs:
    def test_a_source(self, script: Script) -> None:
        script.tasks = [{"n": 1, 2: None}, {}]  # type: ignore[dict-item]

        async def steps() -> None:
            made = instance(topics="t")
            await made.to(STARTED)
            assert await made.task_configs(5, sink=False) == [
                {"n": "1", "2": "None", "task.class": "runtime_fakes.ScriptedSourceTask"},
                {"task.class": "runtime_fakes.ScriptedSourceTask"},
            ]
            assert script.journal[-1] == "task_configs 5"

        run(steps)

    def test_a_class_that_java_workers_have_goes_by_its_name_there(
        self, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script.tasks = [{}]
        monkeypatch.setattr(ScriptedSourceConnector.task_class, "aliases", ("org.acme.ScriptedTask",), raising=False)

        async def steps() -> None:
            made = instance(topics="t")
            await made.to(STARTED)
            assert await made.task_configs(1, sink=False) == [{"task.class": "org.acme.ScriptedTask"}]

        run(steps)

    def test_what_the_runtime_adds_wins(self, script: Script) -> None:
        script.tasks = [{"task.class": "mine", "topics": "mine"}]

        async def steps() -> None:
            made = instance("ScriptedSink", topics="t", **{"topics.regex": ""})
            await made.to(STARTED)
            assert await made.task_configs(1, sink=True) == [
                {"task.class": "runtime_fakes.ScriptedSinkTask", "topics": "t"}
            ]

        run(steps)

    def test_what_the_plugin_raises_is_raised(self, script: Script) -> None:
        script.tasks = ConnectError("database away")

        async def steps() -> None:
            made = instance()
            await made.to(STARTED)
            with pytest.raises(ConnectError, match="database away"):
                await made.task_configs(1, sink=False)
            assert made.phase is Phase.STARTED

        run(steps)


class TestAbandon:
    def test_who_waits_for_a_call_that_hangs_is_told(self, script: Script) -> None:
        script.on_start = script.hang

        async def steps() -> None:
            made = instance()
            starting = asyncio.create_task(made.to(STARTED))
            await asyncio.to_thread(script.hanging.wait, 5)
            made.abandon()
            with pytest.raises(Superseded, match=r"^Connector orders was given up on: a newer request came in$"):
                await starting
            assert made.phase is Phase.FAILED
            assert made.trace == "The connector did not return from start() before a newer request came in"

        run(steps)

    def test_nothing_to_give_up_on(self, script: Script) -> None:
        async def steps() -> None:
            made = await in_phase(Phase.STARTED)
            made.abandon()
            assert made.phase is Phase.STARTED

        run(steps)


class TestInThread:
    def test_the_result_or_the_error_comes_back(self) -> None:
        async def steps() -> None:
            assert await in_thread(lambda: threading.current_thread().name, "mine") == "mine"
            with pytest.raises(ZeroDivisionError):
                await in_thread(lambda: 1 / 0, "mine")

        run(steps)

    def test_a_stop_iteration_cannot_be_carried_and_is_wrapped(self) -> None:
        async def steps() -> None:
            with pytest.raises(RuntimeError, match="StopIteration: done"):
                await in_thread(lambda: _stop("done"), "mine")

        run(steps)

    def test_the_thread_keeps_nobody_from_leaving(self) -> None:
        async def steps() -> None:
            assert await in_thread(lambda: threading.current_thread().daemon, "mine")

        run(steps)

    def test_a_late_result_is_handed_over(self) -> None:
        release, late = threading.Event(), threading.Event()

        async def steps() -> None:
            waiting = in_thread(lambda: release.wait(5), "mine", late=lambda result: late.set())
            waiting.cancel()
            release.set()
            assert await asyncio.to_thread(late.wait, 5)

        run(steps)

    def test_one_that_comes_back_when_nobody_is_there_disturbs_nobody(self) -> None:
        release = threading.Event()

        async def steps() -> None:
            in_thread(lambda: release.wait(5), "forgotten")

        run(steps)
        (forgotten,) = (thread for thread in threading.enumerate() if thread.name == "forgotten")
        release.set()
        forgotten.join(5)
        assert not forgotten.is_alive()


def _stop(what: str) -> None:
    raise StopIteration(what)
