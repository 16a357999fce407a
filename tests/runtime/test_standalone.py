from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from runtime_fakes import PATIENCE_S, TASK_GRACE_MS, WORKER_ID, Script, World, eventually

from headgate.api import ConnectError
from headgate.model import ConnectorType, RestartRequest, State, Status, TargetState, TaskId, TopicPartition
from headgate.runtime.errors import (
    AlreadyExists,
    AlreadyRestarting,
    BadRequest,
    ConnectorNotFound,
    Forbidden,
    HerderError,
    InvalidConfig,
    NotStopped,
    RequestTimeout,
    ShuttingDown,
    StartFailed,
    StatusNotFound,
    Superseded,
    TaskNotFound,
    TooManyTasks,
)

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
TASK_0, TASK_1 = TaskId("orders", 0), TaskId("orders", 1)
TASK_CLASS = "runtime_fakes.ScriptedSourceTask"
UNKNOWN = "^Connector orders not found$"


def raising(error: Exception) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise error

    return call


def error_of(future: Future[Any]) -> BaseException | None:
    return future.exception(PATIENCE_S)


class TestCreate:
    @pytest.mark.kip(
        980, "Creating a connector with no explicit state specified results in a `RUNNING` state connector"
    )
    def test_the_connector_is_started_and_its_tasks_with_it(self, world: World) -> None:
        info = world.create(color="red")
        assert (info.name, info.type, info.tasks) == ("orders", ConnectorType.SOURCE, (TASK_0, TASK_1))
        assert info.config == World.config(color="red")
        assert world.script.journal == ["start orders", "task_configs 2", "start task orders-0", "start task orders-1"]
        status = world.status()
        assert status.connector == Status(State.RUNNING, WORKER_ID, None, "7.1")
        assert [each.status for each in status.tasks] == [Status(State.RUNNING, WORKER_ID, None, "7.1")] * 2

    def test_task_configs_are_text_and_name_their_class(self, world: World) -> None:
        world.script.tasks = [{"part": 5, "deep": True}]
        world.create()
        expected = {"part": "5", "deep": "True", "task.class": TASK_CLASS}
        assert world.herder.task_configs("orders") == [(TASK_0, expected)]
        assert world.runner.task(0).spec.config == expected

    def test_tasks_of_a_sink_get_its_topics(self, world: World) -> None:
        world.script.tasks = [{}]
        world.create(connector_class="ScriptedSink", topics="a,b")
        ((_, config),) = world.herder.task_configs("orders")
        assert config == {"task.class": "runtime_fakes.ScriptedSinkTask", "topics": "a,b"}
        assert world.herder.connector_info("orders").type is ConnectorType.SINK

    def test_a_sink_by_pattern_gives_its_tasks_the_pattern(self, world: World) -> None:
        world.script.tasks = [{}]
        world.do(
            lambda: world.herder.create(
                "orders", {**World.config(connector_class="ScriptedSink"), "topics.regex": "a.*"}, None
            )
        )
        ((_, config),) = world.herder.task_configs("orders")
        assert config == {"task.class": "runtime_fakes.ScriptedSinkTask", "topics.regex": "a.*"}

    @pytest.mark.kip(980, "Can create a connector in the `PAUSED` state in standalone mode")
    @pytest.mark.kip(980, "Can create a connector in the `STOPPED` state in standalone mode")
    @pytest.mark.kip(980, "No tasks are spawned for a connector created in the `PAUSED` or `STOPPED` state")
    @pytest.mark.parametrize(("initial", "state"), [(PAUSED, State.PAUSED), (STOPPED, State.STOPPED)])
    def test_a_connector_may_begin_paused_or_stopped_and_is_not_started_then(
        self, world: World, initial: TargetState, state: State
    ) -> None:
        info = world.create(initial=initial)
        assert (info.tasks, world.state(), world.task_states()) == ((), state, [])
        assert world.script.journal == []
        assert world.target() is initial

    @pytest.mark.kip(980, "Can resume a connector created in the `PAUSED` or `STOPPED` state")
    @pytest.mark.parametrize("initial", [PAUSED, STOPPED])
    def test_what_began_otherwise_can_be_resumed(self, world: World, initial: TargetState) -> None:
        world.create(initial=initial)
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    @pytest.mark.kip(980, "created with initial_state STOPPED, then paused: no tasks until it is resumed")
    def test_what_began_stopped_and_is_paused_makes_no_tasks_until_it_is_resumed(self, world: World) -> None:
        world.create(initial=STOPPED)
        world.pause()
        assert (world.state(), world.task_states(), world.script.journal) == (State.PAUSED, [], [])
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    @pytest.mark.kip(980, "created with initial_state STOPPED, then paused: no tasks until it is resumed")
    @pytest.mark.parametrize("initial", [PAUSED, STOPPED])
    def test_nor_if_it_is_stopped_in_between(self, world: World, initial: TargetState) -> None:
        world.create(initial=initial)
        for _ in range(2):
            world.stop()
            world.pause()
            assert (world.state(), world.task_states(), world.script.journal) == (State.PAUSED, [], [])
        assert State.UNASSIGNED not in world.connector_history()
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    @pytest.mark.kip(980, "a connector created STOPPED is never UNASSIGNED")
    def test_what_began_stopped_is_stopped_and_nothing_else(self, world: World) -> None:
        world.create(initial=STOPPED)
        world.put(color="red")
        world.restart()
        assert world.connector_history() == [State.STOPPED]

    @pytest.mark.kip(980, "Can delete a connector created in the `PAUSED` or `STOPPED` state")
    @pytest.mark.parametrize("initial", [PAUSED, STOPPED])
    def test_what_began_otherwise_can_be_deleted(self, world: World, initial: TargetState) -> None:
        world.create(initial=initial)
        world.delete()
        assert (world.herder.connector_names(), world.script.journal) == ([], [])

    @pytest.mark.kip(980, "Can modify the offsets for a connector created in the `STOPPED` state")
    def test_what_began_stopped_can_have_its_offsets_altered(self, world: World) -> None:
        world.create(initial=STOPPED)
        told = world.do(lambda: world.herder.alter_offsets("orders", [({"file": "a"}, {"position": 3})]))
        assert told.startswith("The framework-managed offsets for this connector have been altered successfully.")
        assert world.do(lambda: world.herder.offsets("orders")) == [({"file": "a"}, {"position": 3})]

    def test_a_name_can_be_used_once(self, world: World) -> None:
        world.create()
        with pytest.raises(AlreadyExists, match=r"^Connector orders already exists$"):
            world.create()

    def test_an_invalid_config_is_refused_before_anything_is_looked_at(self, world: World) -> None:
        world.create()
        with pytest.raises(InvalidConfig, match="Invalid value x for configuration size: Not a number of type INT"):
            world.create(size="x")
        with pytest.raises(InvalidConfig, match=r"Null value can not be supplied as the configuration value."):
            world.do(lambda: world.herder.create("other", World.config("other", anything=None), None))
        assert world.herder.connector_names() == ["orders"]

    def test_without_a_known_class_it_is_the_callers_mistake(self, world: World) -> None:
        with pytest.raises(BadRequest, match="Failed to find any class that implements Connector"):
            world.create(connector_class="Nobody")
        with pytest.raises(BadRequest, match="contains no connector type"):
            world.do(lambda: world.herder.create("orders", {"name": "orders"}, None))
        assert world.herder.connector_names() == []

    def test_a_class_name_with_blanks_around_it_is_that_class(self, world: World) -> None:
        info = world.create(connector_class=" ScriptedSource ", value_converter="StringConverter ")
        assert (info.type, world.state()) == (ConnectorType.SOURCE, State.RUNNING)

    @pytest.mark.parametrize("hook", ["on_init", "on_start"])
    def test_one_that_fails_to_start_is_kept_and_shown_as_failed(self, world: World, hook: str) -> None:
        built = 0

        def fail(*_: object) -> None:
            nonlocal built
            built += 1
            if hook == "on_start" or built > 1:  # the first object is the one that validates
                raise ConnectError("no such file")

        setattr(world.script, hook, fail)
        with pytest.raises(StartFailed, match=r"^Failed to transition connector orders to state STARTED$"):
            world.create()
        status = world.status()
        assert (status.connector.state, status.tasks) == (State.FAILED, ())
        trace = (status.connector.trace or "").splitlines()
        assert trace[:2] == ["ConnectError: no such file", "Traceback (most recent call last):"]
        assert trace[-1].endswith("ConnectError: no such file")
        assert world.herder.connector_names() == ["orders"]

    def test_too_many_tasks_are_told_at_once(self, world: World) -> None:
        world.script.tasks = [{}] * 3
        text = "The connector orders has generated 3 tasks, which is greater than 2, the maximum number of tasks"
        with pytest.raises(TooManyTasks, match=f"^{text}"):
            world.create()
        status = world.status()
        assert (status.connector.state, status.tasks) == (State.FAILED, ())
        assert text in (status.connector.trace or "")
        assert world.herder.task_configs("orders") == []

    def test_too_many_tasks_are_fine_if_nobody_minds(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        world.script.tasks = [{}] * 3
        with caplog.at_level(logging.WARNING):
            world.create(tasks_max_enforce="false")
        assert world.task_states() == [State.RUNNING] * 3
        assert "Connector made 3 tasks, more than tasks.max=2" in caplog.text

    def test_one_that_cannot_say_what_its_tasks_are_is_failed(self, world: World) -> None:
        world.script.tasks = ConnectError("database away")
        text = "^Connector orders failed to generate its task configs: database away$"
        with pytest.raises(StartFailed, match=text):
            world.create()
        assert world.state() is State.FAILED
        assert (world.status().connector.trace or "").endswith("ConnectError: database away")

    def test_one_without_tasks_runs(self, world: World) -> None:
        world.script.tasks = []
        assert world.create().tasks == ()
        assert (world.state(), world.task_states()) == (State.RUNNING, [])

    def test_a_task_that_cannot_be_built_is_failed_and_the_others_run(self, world: World) -> None:
        start = world.runner.start

        def refuse_first(spec: Any, listener: Any) -> Any:
            if spec.id == TASK_0:
                raise OSError("disk full")
            return start(spec, listener)

        world.runner.start = refuse_first  # type: ignore[method-assign]
        world.create()
        failed, running = world.status().tasks
        assert (failed.status.state, running.status.state) == (State.FAILED, State.RUNNING)
        assert failed.status.version == "7.1"
        assert (failed.status.trace or "").endswith("OSError: disk full")


class TestUpdate:
    def test_put_creates_what_is_not_there(self, world: World) -> None:
        created, info = world.put()
        assert (created, info.tasks, world.state()) == (True, (TASK_0, TASK_1), State.RUNNING)

    def test_a_new_config_is_for_a_new_connector_and_new_tasks(self, world: World) -> None:
        world.create()
        before = world.runner.task(0)
        world.forget_history()
        world.script.tasks = [{"part": 9}]
        created, info = world.put(color="blue")
        assert (created, info.tasks, info.config["color"]) == (False, (TASK_0,), "blue")
        assert world.script.journal == [
            "stop orders", "start orders", "task_configs 2", "stop task orders-0", "stop task orders-1",
            "start task orders-0",
        ]  # fmt: skip
        assert before.calls == ["stop"]
        assert world.connector_history() == [State.UNASSIGNED, State.RUNNING]
        assert world.task_states() == [State.RUNNING]
        assert world.script.plugins[-1].settings["color"] == "blue"

    def test_tasks_are_replaced_even_if_only_the_connectors_config_changed(self, world: World) -> None:
        world.create()
        world.put(color="blue")
        assert world.runner.task(0).spec.connector_config["color"] == "blue"
        assert len(world.runner.all) == 4

    def test_the_same_config_again_leaves_the_tasks_alone(self, world: World) -> None:
        world.create()
        world.put()
        assert [task.calls for task in world.runner.all] == [[], []]
        assert world.script.count("start orders") == 2

    @pytest.mark.parametrize(("initial", "state"), [(PAUSED, State.PAUSED), (STOPPED, State.STOPPED)])
    def test_what_is_wanted_of_it_stays(self, world: World, initial: TargetState, state: State) -> None:
        world.create(initial=initial)
        world.put(color="blue")
        assert (world.target(), world.state(), world.script.journal) == (initial, state, [])

    def test_an_invalid_config_changes_nothing(self, world: World) -> None:
        world.create()
        with pytest.raises(InvalidConfig):
            world.put(size="x")
        assert (world.state(), world.script.count("stop orders")) == (State.RUNNING, 0)

    def test_one_that_fails_with_its_new_config_keeps_it_and_its_tasks(self, world: World) -> None:
        world.create()
        world.script.on_start = raising(ConnectError("bad color"))
        with pytest.raises(StartFailed):
            world.put(color="mauve")
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)
        assert world.herder.connector_info("orders").config["color"] == "mauve"

    def test_too_many_tasks_leave_the_old_ones_running(self, world: World) -> None:
        world.create()
        with pytest.raises(TooManyTasks):
            world.put(tasks_max="1")
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)

    def test_one_that_fails_in_stop_is_replaced_all_the_same(self, world: World) -> None:
        world.create()
        world.script.on_stop = raising(OSError("stuck"))
        world.put(color="blue")
        assert world.state() is State.RUNNING

    def test_a_patch_merges_and_a_null_removes(self, world: World) -> None:
        world.create(color="red", size="3")
        info = world.patch({"color": None, "size": "4"})
        assert info.config == World.config(size="4")
        assert world.script.plugins[-1].settings == World.config(size="4")

    def test_a_patch_is_validated(self, world: World) -> None:
        world.create()
        with pytest.raises(InvalidConfig):
            world.patch({"size": "x"})

    def test_a_patch_may_not_change_the_name(self, world: World) -> None:
        world.create()
        text = "Connector name configuration (other) doesn't match connector name in the URL (orders)"
        with pytest.raises(BadRequest, match=f"^{re.escape(text)}$"):
            world.patch({"name": "other"})

    def test_a_patch_needs_a_connector(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.patch({})


class TestDelete:
    def test_tasks_end_first_then_the_connector_and_nothing_is_left(self, world: World) -> None:
        world.create()
        world.runner.task(0).listener.on_topic("t")
        world.settle()
        assert world.herder.active_topics("orders") == ["t"]
        world.forget_history()
        world.delete()
        assert world.script.journal == ["stop task orders-0", "stop task orders-1", "stop orders"]
        assert world.herder.connector_names() == []
        assert world.herder.active_topics("orders") == []
        for gone in (lambda: world.status(), lambda: world.herder.task_status(TASK_0)):
            with pytest.raises(StatusNotFound):
                gone()

    @pytest.mark.kip(875, "Can delete a stopped connector")
    def test_a_stopped_one_can_be_deleted(self, world: World) -> None:
        world.create()
        world.stop()
        world.delete()
        assert world.herder.connector_names() == []
        assert world.script.count("stop orders") == 1

    def test_a_failed_one_can_be_deleted_and_made_again(self, world: World) -> None:
        world.script.on_start = raising(ConnectError("no"))
        with pytest.raises(StartFailed):
            world.create()
        world.delete()
        world.script.on_start = lambda plugin: None
        world.create()
        assert world.state() is State.RUNNING

    def test_one_that_fails_in_stop_is_gone_all_the_same(self, world: World) -> None:
        world.create()
        world.script.on_stop = raising(OSError("stuck"))
        world.delete()
        assert world.herder.connector_names() == []
        with pytest.raises(StatusNotFound):
            world.status()

    def test_an_unknown_one_is_not_found(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.delete()

    def test_offsets_stay(self, world: World) -> None:
        world.offsets.put("orders", [({"file": "a"}, {"position": 3})])
        world.create()
        world.delete()
        assert world.offsets.all("orders") == [({"file": "a"}, {"position": 3})]


class TestPauseAndResume:
    @pytest.mark.kip(52, "This API asynchronously causes the connector and its tasks to suspend processing.")
    def test_pause_stops_the_connector_and_tells_the_tasks_which_go_on_existing(self, world: World) -> None:
        world.create()
        world.pause()
        assert (world.state(), world.task_states()) == (State.PAUSED, [State.PAUSED] * 2)
        assert world.script.journal[-1] == "stop orders"
        assert [task.calls for task in world.runner.all] == [["pause"], ["pause"]]
        assert world.herder.connector_info("orders").tasks == (TASK_0, TASK_1)

    @pytest.mark.kip(52, "This API asynchronously causes the connector and its tasks to resume processing.")
    def test_resume_starts_the_same_connector_and_the_same_tasks_again(self, world: World) -> None:
        world.create()
        plugin = world.script.plugins[-1]
        world.pause()
        world.forget_history()
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)
        assert world.script.journal == ["start orders", "task_configs 2"]
        assert world.script.plugins[-1] is plugin
        assert [task.calls for task in world.runner.all] == [["pause", "resume"], ["pause", "resume"]]

    def test_resume_asks_for_the_tasks_anew(self, world: World) -> None:
        world.create()
        world.pause()
        world.script.tasks = [{"part": 9}]
        world.resume()
        assert world.task_states() == [State.RUNNING]
        assert world.runner.task(0).spec.config["part"] == "9"

    @pytest.mark.kip(52, "202 (Accepted) on successful pause initiation or if the command is a no-op")
    def test_a_second_pause_or_resume_does_nothing(self, world: World) -> None:
        world.create()
        world.resume()
        world.pause()
        before = list(world.script.journal), world.connector_history()[:]
        world.pause()
        assert (list(world.script.journal), world.connector_history()) == before
        assert world.script.count("start orders") == 1

    @pytest.mark.kip(52, "404 if the connector doesn't exist")
    def test_an_unknown_one_is_not_found(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.pause()
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.resume()

    def test_the_answer_does_not_wait_for_the_connector(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headgate.runtime.connector.GRACEFUL_STOP_S", PATIENCE_S)
        world.create()
        world.script.on_stop = world.script.hang
        world.do(lambda: world.herder.pause("orders"))
        assert world.state() is State.RUNNING
        world.script.released.set()
        eventually(lambda: world.state() is State.PAUSED)

    def test_one_that_fails_to_pause_is_failed_and_its_tasks_are_paused(self, world: World) -> None:
        world.create()
        world.script.on_stop = raising(ConnectError("still busy"))
        world.pause()
        assert (world.state(), world.task_states()) == (State.FAILED, [State.PAUSED] * 2)
        assert (world.status().connector.trace or "").endswith("ConnectError: still busy")

    def test_a_failed_one_stays_failed_with_its_first_trace(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        world.create()
        world.context().raise_error(ConnectError("first"))
        world.settle()
        world.pause()
        world.resume()
        status = world.status()
        assert status.connector.state is State.FAILED
        assert (status.connector.trace or "").endswith("ConnectError: first")
        assert [each.status.state for each in status.tasks] == [State.RUNNING] * 2
        assert "Cannot transition connector to PAUSED since it has failed" in caplog.text
        assert "Cannot transition connector to STARTED since it has failed" in caplog.text

    def test_a_failed_task_is_not_told_to_pause_into_life(self, world: World) -> None:
        world.create()
        world.runner.task(0).listener.on_failed("boom")
        world.runner.task(0).pause = lambda: None  # type: ignore[method-assign]  # its thread has ended
        world.pause()
        assert world.task_states() == [State.FAILED, State.PAUSED]

    def test_one_that_fails_to_resume_is_failed(self, world: World) -> None:
        world.create()
        world.pause()
        world.script.on_start = raising(ConnectError("gone"))
        world.resume()
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)


class TestStop:
    @pytest.mark.kip(875, "Can stop a running connector")
    @pytest.mark.kip(875, "Cannot see task configuration or status information in the REST API for a stopped connector")
    def test_the_tasks_are_gone_and_the_connector_is_stopped(self, world: World) -> None:
        world.create()
        world.forget_history()
        world.stop()
        assert world.script.journal == ["stop task orders-0", "stop task orders-1", "stop orders"]
        status = world.status()
        assert (status.connector, status.tasks) == (Status(State.STOPPED, WORKER_ID, None, "7.1"), ())
        assert (world.herder.task_configs("orders"), world.herder.connector_info("orders").tasks) == ([], ())
        assert world.herder.connector_info("orders").config == World.config()

    @pytest.mark.kip(875, "Can stop a running connector")
    def test_stop_publishes_no_tasks_before_the_state(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        world.create()
        put, seen = world.configs.put_target_state, []

        def noted(name: str, target: TargetState) -> None:
            seen.append((world.configs.view().require(name).tasks, list(world.herder.worker.tasks)))
            put(name, target)

        monkeypatch.setattr(world.configs, "put_target_state", noted)
        world.stop()
        assert seen == [((), [])]

    @pytest.mark.kip(875, "Can stop a paused connector")
    def test_a_paused_one_is_not_stopped_twice(self, world: World) -> None:
        world.create()
        world.pause()
        world.stop()
        assert (world.state(), world.task_states(), world.script.count("stop orders")) == (State.STOPPED, [], 1)

    @pytest.mark.kip(875, "Can stop a stopped connector (i.e., stopping an already-stopped connector is idempotent)")
    def test_stopping_again_does_nothing(self, world: World) -> None:
        world.create()
        world.stop()
        world.forget_history()
        world.stop()
        assert (world.state(), world.script.journal, world.connector_history()) == (State.STOPPED, [], [])

    @pytest.mark.kip(875, "Can resume a stopped connector")
    def test_a_stopped_one_is_resumed_as_a_new_object_with_new_tasks(self, world: World) -> None:
        world.create()
        plugin = world.script.plugins[-1]
        world.stop()
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)
        assert world.script.plugins[-1] is not plugin

    @pytest.mark.kip(875, "Can pause a stopped connector")
    def test_a_stopped_one_that_is_paused_is_started_and_its_tasks_come_up_paused(self, world: World) -> None:
        world.create()
        world.stop()
        world.forget_history()
        world.pause()
        assert (world.state(), world.task_states()) == (State.PAUSED, [State.PAUSED] * 2)
        assert world.script.journal == [
            "start orders", "task_configs 2", "start task orders-0", "start task orders-1", "stop orders"
        ]  # fmt: skip
        assert world.runner.task(0).spec.target_state is PAUSED
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    @pytest.mark.kip(875, "Stopping a failed connector updates its state to `STOPPED` in the REST API")
    def test_a_failed_one_is_stopped(self, world: World) -> None:
        world.script.on_start = raising(ConnectError("no"))
        with pytest.raises(StartFailed):
            world.create()
        world.stop()
        assert world.status().connector == Status(State.STOPPED, WORKER_ID, None, "7.1")

    @pytest.mark.kip(
        875,
        "Stopping a connector that fails during shutdown after receiving a stop request updates its state to `STOPPED`"
        " in the REST API",
    )
    def test_one_that_fails_in_stop_is_stopped(self, world: World, caplog: pytest.LogCaptureFixture) -> None:
        world.create()
        world.script.on_stop = raising(ConnectError("still busy"))
        world.stop()
        assert world.status().connector == Status(State.STOPPED, WORKER_ID, None, "7.1")
        assert "still busy" in caplog.text

    @pytest.mark.kip(
        875,
        "Can resume a connector after its `Connector` has failed both before and during shutdown after receiving a stop"
        " request",
    )
    @pytest.mark.parametrize("when", ["before", "during", "both"])
    def test_after_either_failure_it_can_be_resumed(self, world: World, when: str) -> None:
        world.create()
        if when != "during":
            world.context().raise_error(ConnectError("no"))
            eventually(lambda: world.state() is State.FAILED)
        if when != "before":
            world.script.on_stop = raising(ConnectError("still busy"))
        world.stop()
        assert world.state() is State.STOPPED
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    def test_one_that_did_not_start_can_be_stopped_and_resumed(self, world: World) -> None:
        world.script.on_start = raising(ConnectError("no"))
        with pytest.raises(StartFailed):
            world.create()
        world.stop()
        world.script.on_start = lambda plugin: None
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    def test_one_whose_class_is_gone_is_stopped_and_a_resume_looks_for_it_again(self, world: World) -> None:
        world.configs.put_connector("orders", World.config(connector_class="Gone"))  # type: ignore[arg-type]
        world.stop()
        assert (world.state(), world.target()) == (State.STOPPED, STOPPED)
        world.resume()
        assert world.state() is State.FAILED
        assert "Failed to find any class" in (world.status().connector.trace or "")

    @pytest.mark.kip(875, "it will not be able to generate new task configurations")
    def test_a_stopped_one_makes_no_tasks_and_can_no_longer_fail(self, world: World) -> None:
        world.create()
        context = world.context()
        world.stop()
        world.forget_history()
        context.request_task_reconfiguration()
        context.raise_error(ConnectError("a thread that was left behind"))
        world.idle()
        assert (world.state(), world.script.journal) == (State.STOPPED, [])
        world.resume()
        assert world.state() is State.RUNNING

    def test_an_unknown_one_is_not_found(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.stop()


class TestHangingPlugins:
    """Code of plugins that does not return is given up on: nothing else is kept from working."""

    def hang_in_start(self, world: World) -> Future[Any]:
        world.script.on_start = world.script.hang
        creating = world.submit(lambda: world.herder.create("orders", World.config(), None))
        assert world.script.hanging.wait(PATIENCE_S)
        return creating

    def test_other_connectors_do_not_wait(self, world: World) -> None:
        creating = self.hang_in_start(world)
        world.script.on_start = lambda plugin: None
        world.create("other")
        assert world.state("other") is State.RUNNING
        assert not creating.done()

    def test_delete_supersedes_a_hanging_start(self, world: World) -> None:
        creating = self.hang_in_start(world)
        world.delete()
        assert isinstance(error_of(creating), Superseded)
        assert world.herder.connector_names() == []
        with pytest.raises(StatusNotFound):
            world.status()

    def test_stop_supersedes_a_hanging_start_and_it_can_be_resumed(self, world: World) -> None:
        creating = self.hang_in_start(world)
        world.stop()
        assert isinstance(error_of(creating), Superseded)
        assert world.state() is State.STOPPED
        world.script.on_start = lambda plugin: None
        world.resume()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    def test_a_start_that_returns_after_all_is_stopped_again(self, world: World) -> None:
        self.hang_in_start(world)
        world.delete()
        assert world.script.count("stop orders") == 0
        world.script.released.set()
        eventually(lambda: world.script.count("stop orders") == 1)

    def test_one_that_hangs_while_it_is_built_cannot_come_back_as_another(self, world: World) -> None:
        built = []

        def hang_second() -> None:
            built.append(1)
            if len(built) == 2:  # the first object is the one that validates
                world.script.hang()

        world.script.on_init = hang_second
        world.submit(lambda: world.herder.create("orders", World.config(), None))
        assert world.script.hanging.wait(PATIENCE_S)
        world.stop()
        world.resume()
        assert world.state() is State.RUNNING
        running = world.script.plugins[-1]
        world.script.released.set()
        eventually(lambda: world.script.count("stop orders") == 1)
        world.pause()
        world.resume()
        assert world.script.plugins[-1] is running
        assert world.script.count("stop orders") == 2

    def test_a_new_config_supersedes_a_hanging_start(self, world: World) -> None:
        creating = self.hang_in_start(world)
        world.script.on_start = lambda plugin: None
        created, _ = world.put(color="blue")
        assert (created, world.state()) == (False, State.RUNNING)
        assert isinstance(error_of(creating), Superseded)

    def test_a_restart_supersedes_a_hanging_start(self, world: World) -> None:
        creating = self.hang_in_start(world)
        world.script.on_start = lambda plugin: None
        world.restart()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)
        assert isinstance(error_of(creating), Superseded)

    def test_delete_supersedes_hanging_task_configs(self, world: World) -> None:
        world.script.on_task_configs = world.script.hang
        creating = world.submit(lambda: world.herder.create("orders", World.config(), None))
        assert world.script.hanging.wait(PATIENCE_S)
        world.delete()
        assert isinstance(error_of(creating), Superseded)
        assert world.herder.connector_names() == []

    @pytest.mark.parametrize(("command", "state"), [(World.pause, State.PAUSED), (World.stop, State.STOPPED)])
    def test_a_hanging_stop_is_given_up_on_and_the_next_start_gets_a_new_object(
        self, world: World, command: Callable[[World], None], state: State, caplog: pytest.LogCaptureFixture
    ) -> None:
        world.create()
        plugin = world.script.plugins[-1]
        world.script.on_stop = world.script.hang
        command(world)
        assert world.state() is state
        assert "did not stop within" in caplog.text
        world.resume()
        assert world.state() is State.RUNNING
        assert world.script.plugins[-1] is not plugin

    def test_a_hanging_stop_does_not_keep_a_connector_from_being_deleted(self, world: World) -> None:
        world.create()
        world.script.on_stop = world.script.hang
        world.delete()
        assert world.herder.connector_names() == []

    def test_who_waits_too_long_is_told_what_the_worker_does(self, world: World) -> None:
        self.hang_in_start(world)
        with pytest.raises(RequestTimeout) as raised:
            asyncio.run(world.herder.call(lambda: world.herder.reset_offsets("orders"), timeout=0.01))
        pattern = (
            r"Request timed out\. The worker is currently creating connector orders, which began at"
            r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\."
        )
        assert re.fullmatch(pattern, str(raised.value))
        assert re.fullmatch(pattern, f"Request timed out. {world.herder.stage}")


class TestRestart:
    @pytest.mark.kip(52, "This API synchronously restarts the connector task.")
    @pytest.mark.kip(745, "204 NO CONTENT when ... restarting only the `Connector` object")
    def test_the_connector_alone(self, world: World) -> None:
        world.create()
        plugin = world.script.plugins[-1]
        world.forget_history()
        assert world.restart() is None
        assert world.script.journal == ["stop orders", "start orders", "task_configs 2"]
        assert world.connector_history() == [State.UNASSIGNED, State.RUNNING]
        assert [task.calls for task in world.runner.all] == [[], []]
        assert world.script.plugins[-1] is not plugin

    def test_a_restart_finds_new_tasks(self, world: World) -> None:
        world.create()
        world.script.tasks = [{"part": 7}]
        world.restart()
        assert [config["part"] for _, config in world.herder.task_configs("orders")] == ["7"]

    def test_one_that_does_not_start_again_is_failed(self, world: World) -> None:
        world.create()
        world.script.on_start = raising(ConnectError("gone"))
        with pytest.raises(StartFailed, match=r"^Failed to transition connector orders to state STARTED$"):
            world.restart()
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)

    def test_a_failed_one_runs_again(self, world: World) -> None:
        world.create()
        world.context().raise_error(ConnectError("no"))
        world.settle()
        assert world.state() is State.FAILED
        world.restart()
        assert world.status().connector == Status(State.RUNNING, WORKER_ID, None, "7.1")

    @pytest.mark.parametrize(("target", "state"), [(World.pause, State.PAUSED), (World.stop, State.STOPPED)])
    def test_a_paused_or_stopped_one_stays_so(
        self, world: World, target: Callable[[World], None], state: State
    ) -> None:
        world.create()
        target(world)
        world.forget_history()
        world.restart()
        assert (world.state(), world.script.journal) == (state, [])

    @pytest.mark.kip(745, 'the "state" field is set to RESTARTING for all instances that will eventually be restarted')
    def test_everything_by_plan(self, world: World) -> None:
        world.create()
        world.forget_history()
        answer = world.restart(include_tasks=True)
        assert answer is not None
        restarting = Status(State.RESTARTING, WORKER_ID, None, "7.1")
        assert (answer.connector, [each.status for each in answer.tasks]) == (restarting, [restarting] * 2)
        assert world.script.journal == [
            "stop orders", "stop task orders-0", "stop task orders-1", "start orders", "start task orders-0",
            "start task orders-1", "task_configs 2",
        ]  # fmt: skip
        seen = [State.UNASSIGNED, State.RESTARTING, State.RUNNING]
        assert (world.connector_history(), world.task_history(0), world.task_history(1)) == (seen, seen, seen)
        assert len(world.runner.all) == 4

    @pytest.mark.kip(745, "restart all failed Connector and Task instances using a single REST API call")
    def test_only_what_failed(self, world: World) -> None:
        world.create()
        world.runner.task(1).listener.on_failed("boom")
        world.settle()
        world.forget_history()
        answer = world.restart(include_tasks=True, only_failed=True)
        assert answer is not None
        assert answer.connector.state is State.RUNNING
        assert [(each.status.state, each.status.trace) for each in answer.tasks] == [
            (State.RUNNING, None), (State.RESTARTING, None)
        ]  # fmt: skip
        assert world.script.journal == ["stop task orders-1", "start task orders-1"]
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)

    def test_only_a_failed_connector(self, world: World) -> None:
        world.create()
        world.context().raise_error(ConnectError("no"))
        world.runner.task(0).listener.on_failed("boom")
        world.settle()
        answer = world.restart(only_failed=True)
        assert answer is not None
        assert (answer.connector.state, answer.connector.trace) == (State.RESTARTING, None)
        assert (answer.tasks[0].status.state, answer.tasks[0].status.trace) == (State.FAILED, "boom")
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.FAILED, State.RUNNING])

    def test_nothing_failed_nothing_restarted(self, world: World) -> None:
        world.create()
        before = world.status()
        world.forget_history()
        assert world.restart(include_tasks=True, only_failed=True) == before
        assert world.script.journal == []

    def test_a_connector_that_does_not_start_does_not_keep_its_tasks_from_it(self, world: World) -> None:
        world.create()
        world.script.on_start = raising(ConnectError("gone"))
        assert world.restart(include_tasks=True) is not None
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)
        assert len(world.runner.all) == 4

    def test_a_plan_that_finds_too_many_tasks_ends_in_failed(self, world: World) -> None:
        world.create()
        world.script.tasks = [{}] * 3
        assert world.restart(include_tasks=True) is not None
        assert (world.state(), world.task_states()) == (State.FAILED, [State.RUNNING] * 2)

    def test_a_paused_connector_and_its_tasks_come_back_paused(self, world: World) -> None:
        world.create()
        world.pause()
        world.forget_history()
        world.restart(include_tasks=True)
        assert (world.state(), world.task_states()) == (State.PAUSED, [State.PAUSED] * 2)
        assert world.runner.task(0).spec.target_state is PAUSED
        assert world.script.count("start orders") == 0

    def test_a_stopped_connector_is_no_target(self, world: World) -> None:
        world.create()
        world.stop()
        world.forget_history()
        answer = world.restart(include_tasks=True)
        assert answer is not None
        assert (answer.connector.state, answer.tasks) == (State.STOPPED, ())
        assert (world.script.journal, world.connector_history(), world.state()) == ([], [], State.STOPPED)

    @pytest.mark.kip(52, "404 if the connector doesn't exist, and 409 if the task is already being restarted")
    def test_only_one_restart_at_a_time(self, world: World) -> None:
        world.create()
        world.script.on_start = world.script.hang
        first = world.submit(lambda: world.herder.restart(RestartRequest("orders")))
        assert world.script.hanging.wait(PATIENCE_S)
        text = "^Connector orders is already being restarted$"
        with pytest.raises(AlreadyRestarting, match=text):
            world.restart()
        with pytest.raises(AlreadyRestarting, match=text):
            world.restart(include_tasks=True)
        world.script.released.set()
        assert first.result(PATIENCE_S) is None
        world.restart()
        assert world.state() is State.RUNNING

    def test_a_restart_that_failed_is_over(self, world: World) -> None:
        world.create()
        world.script.on_start = raising(ConnectError("gone"))
        for _ in range(2):
            with pytest.raises(StartFailed):
                world.restart()

    def test_an_unknown_one_is_not_found(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.restart()
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.restart(include_tasks=True)

    def test_a_plan_needs_a_status(self, world: World) -> None:
        world.create()
        world.statuses.remove("orders")
        with pytest.raises(StatusNotFound, match=r"^Status for connector orders not found$"):
            world.restart(include_tasks=True)


class TestRestartTask:
    @pytest.mark.kip(52, "This API synchronously restarts a specific worker task.")
    def test_a_task_is_stopped_and_started(self, world: World) -> None:
        world.create()
        world.forget_history()
        world.restart_task(1)
        assert world.script.journal == ["stop task orders-1", "start task orders-1"]
        assert world.task_history(1) == [State.UNASSIGNED, State.RUNNING]
        assert world.task_history(0) == []

    def test_a_failed_task_runs_again(self, world: World) -> None:
        world.create()
        world.runner.task(0).listener.on_failed("boom")
        world.settle()
        assert world.task_states() == [State.FAILED, State.RUNNING]
        world.restart_task(0)
        assert world.task_states() == [State.RUNNING] * 2
        assert world.herder.task_status(TASK_0).trace is None

    def test_the_task_of_a_paused_connector_comes_back_paused(self, world: World) -> None:
        world.create()
        world.pause()
        world.restart_task(0)
        assert world.task_states() == [State.PAUSED] * 2

    def test_one_that_does_not_start_is_failed(self, world: World) -> None:
        world.create()
        world.runner.refusing = OSError("disk full")
        with pytest.raises(StartFailed, match=r"^Failed to start task: orders-0$"):
            world.restart_task(0)
        assert world.task_states() == [State.FAILED, State.RUNNING]
        world.runner.refusing = None
        world.restart_task(0)
        assert world.task_states() == [State.RUNNING] * 2

    def test_a_task_beyond_the_limit_is_failed_until_the_limit_is_right_again(self, world: World) -> None:
        world.create()
        world.script.on_start = raising(ConnectError("gone"))  # so that no new tasks are made
        with pytest.raises(StartFailed):
            world.put(tasks_max="1")
        with pytest.raises(StartFailed, match=r"^Failed to start task: orders-0$"):
            world.restart_task(0)
        assert "has generated 2 tasks, which is greater than 1" in (world.herder.task_status(TASK_0).trace or "")
        with pytest.raises(StartFailed):
            world.put(tasks_max="2")
        world.restart_task(0)
        assert world.task_states() == [State.RUNNING] * 2

    @pytest.mark.kip(52, "404 if the connector doesn't exist, and 409 if the task is already being restarted")
    def test_only_one_restart_of_a_task_at_a_time(self, world: World) -> None:
        world.create()
        world.be_patient()
        world.runner.deaf = True
        first = world.submit(lambda: world.herder.restart_task(TASK_0))
        eventually(lambda: world.script.count("stop task orders-0"))
        with pytest.raises(AlreadyRestarting, match=r"^Task orders-0 is already being restarted$"):
            world.restart_task(0)
        with pytest.raises(AlreadyRestarting, match=r"^Task orders-0 is already being restarted$"):
            world.restart(include_tasks=True)
        world.runner.task(0).end()
        first.result(PATIENCE_S)
        assert world.task_states() == [State.RUNNING] * 2

    @pytest.mark.kip(52, "404 if the connector doesn't exist, and 409 if the task is already being restarted")
    def test_a_plan_counts_for_the_tasks_that_it_restarts(self, world: World) -> None:
        world.create()
        world.script.on_start = world.script.hang
        first = world.submit(lambda: world.herder.restart(RestartRequest("orders", include_tasks=True)))
        assert world.script.hanging.wait(PATIENCE_S)
        with pytest.raises(AlreadyRestarting, match=r"^Task orders-1 is already being restarted$"):
            world.restart_task(1)
        with pytest.raises(AlreadyRestarting, match=r"^Connector orders is already being restarted$"):
            world.restart()
        world.script.released.set()
        first.result(PATIENCE_S)
        world.restart_task(1)

    def test_what_is_not_there_is_not_found_and_leaves_nothing_behind(self, world: World) -> None:
        with pytest.raises(ConnectorNotFound, match=UNKNOWN):
            world.restart_task(0)
        world.create()
        with pytest.raises(TaskNotFound, match=r"^Unknown task: orders-5$"):
            world.restart_task(5)
        assert world.task_states() == [State.RUNNING] * 2


class TestWhatConnectorsTell:
    def test_a_request_for_new_tasks_replaces_them(self, world: World) -> None:
        world.create()
        world.script.tasks = [{"part": 8}]
        world.forget_history()
        world.context().request_task_reconfiguration()
        eventually(lambda: world.task_states() == [State.RUNNING])
        assert world.script.journal == [
            "task_configs 2", "stop task orders-0", "stop task orders-1", "start task orders-0"
        ]  # fmt: skip
        assert world.state() is State.RUNNING

    def test_the_same_tasks_again_are_left_alone(self, world: World) -> None:
        world.create()
        world.forget_history()
        world.context().request_task_reconfiguration()
        eventually(lambda: world.script.journal)
        world.idle()
        assert world.script.journal == ["task_configs 2"]

    def test_a_request_out_of_start_is_heard_once_it_has_started(self, world: World) -> None:
        world.script.on_start = lambda plugin: plugin.context.request_task_reconfiguration()
        world.create()
        eventually(lambda: world.script.count("task_configs 2") == 2)
        world.idle()
        assert (world.state(), len(world.runner.all)) == (State.RUNNING, 2)

    def test_one_that_cannot_say_is_asked_again_and_the_old_tasks_run_on(
        self, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("headgate.runtime.actor._RETRY_FIRST_S", 0.01)
        world.create()
        world.script.tasks = ConnectError("database away")
        world.context().request_task_reconfiguration()
        eventually(lambda: world.script.count("task_configs 2") == 3)
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.RUNNING] * 2)
        world.script.tasks = [{"part": 8}]
        eventually(lambda: world.task_states() == [State.RUNNING])
        delays = re.findall(r"trying again in ([0-9.]+) s", caplog.text)
        assert delays[:2] == ["0.01", "0.02"]

    def test_nobody_asks_again_once_it_is_stopped(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("headgate.runtime.actor._RETRY_FIRST_S", 0.01)
        world.create()
        world.script.tasks = ConnectError("database away")
        world.context().request_task_reconfiguration()
        eventually(lambda: world.script.count("task_configs 2") == 2)
        world.stop()
        world.idle()
        assert world.state() is State.STOPPED

    def test_too_many_new_tasks_fail_the_connector_at_once(self, world: World) -> None:
        world.create()
        world.script.tasks = [{}] * 3
        world.context().request_task_reconfiguration()
        eventually(lambda: world.state() is State.FAILED)
        world.idle()
        assert world.script.count("task_configs 2") == 2
        assert "has generated 3 tasks" in (world.status().connector.trace or "")
        assert world.task_states() == [State.RUNNING] * 2

    def test_a_paused_one_makes_no_tasks(self, world: World) -> None:
        world.create()
        world.pause()
        world.forget_history()
        world.context().request_task_reconfiguration()
        world.idle()
        assert world.script.journal == []

    def test_one_that_cannot_go_on_is_failed_and_its_tasks_are_not_touched(self, world: World) -> None:
        world.create()
        world.context().raise_error(ConnectError("lost my lease"))
        eventually(lambda: world.state() is State.FAILED)
        status = world.status()
        assert (status.connector.trace, status.connector.version) == (
            "headgate.api.errors.ConnectError: lost my lease",
            "7.1",
        )
        assert world.task_states() == [State.RUNNING] * 2

    def test_one_that_raises_an_error_while_it_starts_has_not_started(self, world: World) -> None:
        world.script.on_start = lambda plugin: plugin.context.raise_error(ConnectError("lost my lease"))
        with pytest.raises(StartFailed, match=r"^Failed to transition connector orders to state STARTED$"):
            world.create()
        assert (world.state(), world.task_states()) == (State.FAILED, [])
        assert (world.status().connector.trace or "").endswith("ConnectError: lost my lease")

    def test_one_that_raises_an_error_while_it_is_resumed_has_not_started(self, world: World) -> None:
        world.create()
        world.stop()
        world.script.on_start = lambda plugin: plugin.context.raise_error(ConnectError("lost my lease"))
        world.resume()
        assert (world.state(), world.task_states()) == (State.FAILED, [])

    @pytest.mark.parametrize(("command", "state"), [(World.pause, State.FAILED), (World.stop, State.STOPPED)])
    def test_an_error_raised_on_the_way_out_counts_as_one_of_stop(
        self, world: World, command: Callable[[World], None], state: State
    ) -> None:
        world.create()
        world.script.on_stop = lambda plugin: plugin.context.raise_error(ConnectError("lost my lease"))
        command(world)
        assert world.state() is state

    @pytest.mark.parametrize("badly", [False, True])
    def test_an_object_that_was_replaced_has_no_say(self, world: World, badly: bool) -> None:
        world.create()
        old = world.context()
        if badly:
            world.script.on_stop = raising(OSError("stuck"))
        world.restart()
        world.forget_history()
        old.raise_error(ConnectError("no"))
        old.request_task_reconfiguration()
        world.idle()
        assert (world.state(), world.script.journal) == (State.RUNNING, [])

    def test_a_connector_can_read_its_offsets(self, world: World) -> None:
        world.offsets.put("orders", [({"file": "a"}, {"position": 3})])
        world.create()
        context = world.context()
        assert context.name == "orders"
        assert context.offset_reader.offset({"file": "a"}) == {"position": 3}
        assert context.offset_reader.offsets([{"file": "b"}, {"file": "a"}]) == [None, {"position": 3}]


class TestWhatTasksTell:
    def test_a_failure_is_shown_and_touches_nothing_else(self, world: World) -> None:
        world.create()
        world.runner.task(0).listener.on_failed("Traceback\nboom")
        world.settle()
        assert (world.state(), world.task_states()) == (State.RUNNING, [State.FAILED, State.RUNNING])
        assert world.herder.task_status(TASK_0) == Status(State.FAILED, WORKER_ID, "Traceback\nboom", "7.1")

    def test_a_task_that_has_not_said_anything_is_unassigned(self, world: World) -> None:
        world.runner.silent = True
        world.create()
        assert world.task_states() == [State.UNASSIGNED] * 2
        world.runner.task(0).listener.on_running()
        assert world.task_states() == [State.RUNNING, State.UNASSIGNED]

    @pytest.mark.kip(745, "The state of each restarting instance will eventually transition to RUNNING")
    def test_a_task_that_is_restarted_is_so_until_it_says_something(self, world: World) -> None:
        world.create()
        world.runner.silent = True
        world.restart(include_tasks=True)
        assert world.task_states() == [State.RESTARTING] * 2
        world.runner.task(1).listener.on_running()
        assert world.task_states() == [State.RESTARTING, State.RUNNING]

    def test_one_that_ignores_a_stop_is_cancelled_and_can_write_no_more(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        world.create()
        world.runner.deaf = True
        late = world.runner.task(0)
        world.restart_task(0)
        assert late.calls == ["stop", "cancel"]
        assert "Task did not stop within 0.2 s and is given up on" in caplog.text
        assert world.task_history(0) == [State.UNASSIGNED, State.RUNNING, State.UNASSIGNED, State.RUNNING]
        late.listener.on_paused()
        late.listener.on_failed("too late")
        late.listener.on_topic("late")
        late.end()
        assert world.task_states() == [State.RUNNING] * 2
        assert world.herder.active_topics("orders") == []

    def test_one_deadline_is_for_all_tasks_of_a_stop(self, world: World) -> None:
        world.script.tasks = [{}] * 8
        world.create(tasks_max="8")
        world.runner.deaf = True
        began = time.monotonic()
        world.stop()
        assert time.monotonic() - began < 7 * TASK_GRACE_MS / 1000
        assert [task.calls for task in world.runner.all] == [["stop", "cancel"]] * 8
        assert (world.state(), world.task_states()) == (State.STOPPED, [])

    def test_a_task_that_ends_in_time_is_not_cancelled(self, world: World) -> None:
        world.create()
        world.stop()
        assert [task.calls for task in world.runner.all] == [["stop"], ["stop"]]

    def test_an_error_on_the_way_out_is_logged_and_is_no_failure(
        self, world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        world.create()
        world.be_patient()
        world.runner.deaf = True
        stopping = world.submit(lambda: world.herder.restart_task(TASK_0))
        eventually(lambda: world.script.count("stop task orders-0"))
        late = world.runner.task(0)
        late.listener.on_failed("could not commit")
        late.end()
        stopping.result(PATIENCE_S)
        assert State.FAILED not in world.task_history(0)
        assert "could not commit" in caplog.text

    def test_topics_are_remembered_in_the_order_they_came_until_they_are_reset(self, world: World) -> None:
        world.create()
        for topic in ("b", "a", "b"):
            world.runner.task(0).listener.on_topic(topic)
        world.settle()
        assert world.herder.active_topics("orders") == ["b", "a"]
        assert world.herder.active_topics("unknown") == []
        world.do(lambda: world.herder.reset_topics("orders"))
        assert world.herder.active_topics("orders") == []
        world.runner.task(0).listener.on_topic("a")
        world.settle()
        assert world.herder.active_topics("orders") == ["a"]

    def test_the_herder_hears_only_of_topics_that_are_news(self, world: World) -> None:
        """Tasks tell with every batch."""
        world.create()
        world.runner.task(0).listener.on_topic("a")
        world.settle()
        posted: list[object] = []
        world.herder.worker.post = posted.append
        world.runner.task(0).listener.on_topic("a")
        assert posted == []
        world.runner.task(0).listener.on_topic("b")
        assert len(posted) == 1

    def test_starts_are_counted_and_only_starts(self, world: World) -> None:
        world.create()
        world.pause()
        world.resume()
        world.stop()
        counts = world.herder.worker.connector_starts
        assert (counts.attempts, counts.failures) == (2, 0)
        world.script.on_start = raising(ConnectError("no"))
        world.resume()
        assert (counts.attempts, counts.failures) == (3, 1)

    def test_a_task_that_ran_and_failed_is_no_failed_start(self, world: World) -> None:
        world.create()
        world.runner.task(0).listener.on_failed("later")
        world.runner.silent = True
        world.restart_task(1)
        world.runner.task(1).listener.on_failed("at once")
        world.settle()
        counts = world.herder.worker.task_starts
        assert (counts.attempts, counts.failures) == (3, 1)


class TestReads:
    def test_what_is_not_there_is_not_found(self, world: World) -> None:
        for read in (world.herder.connector_info, world.herder.task_configs):
            with pytest.raises(ConnectorNotFound, match=UNKNOWN):
                read("orders")
        with pytest.raises(StatusNotFound, match=r"^No status found for connector orders$"):
            world.status()

    def test_the_type_of_a_class_that_is_gone_is_unknown(self, world: World) -> None:
        world.configs.put_connector("orders", {"connector.class": "Gone"})
        assert world.herder.connector_info("orders").type is ConnectorType.UNKNOWN

    def test_names_are_listed(self, world: World) -> None:
        assert world.herder.connector_names() == []
        world.create("b", initial=STOPPED)
        world.create("a", initial=STOPPED)
        assert sorted(world.herder.connector_names()) == ["a", "b"]

    def test_the_worker_is_ready_once_its_thread_runs_and_knows_its_cluster(self, world: World) -> None:
        world.settle()
        assert world.herder.ready
        eventually(lambda: world.herder.kafka_cluster_id == "cluster-1")


class TestOffsets:
    @pytest.mark.kip(875, "Cannot view the offsets of a nonexistent connector")
    @pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
    @pytest.mark.kip(875, "Cannot reset the offsets of a nonexistent, paused, or running connector")
    def test_an_unknown_connector_has_none(self, world: World) -> None:
        for command in (
            lambda: world.herder.offsets("orders"),
            lambda: world.herder.alter_offsets("orders", [({}, None)]),
            lambda: world.herder.reset_offsets("orders"),
        ):
            with pytest.raises(ConnectorNotFound, match=UNKNOWN):
                world.do(command)

    @pytest.mark.kip(875, "Cannot alter the offsets of a nonexistent, paused, or running connector")
    @pytest.mark.kip(875, "Cannot reset the offsets of a nonexistent, paused, or running connector")
    @pytest.mark.parametrize("paused", [False, True])
    def test_they_change_only_while_the_connector_is_stopped(self, world: World, paused: bool) -> None:
        world.create()
        if paused:
            world.pause()
        with pytest.raises(NotStopped):
            world.do(lambda: world.herder.alter_offsets("orders", [({"file": "a"}, {"position": 1})]))
        with pytest.raises(NotStopped):
            world.do(lambda: world.herder.reset_offsets("orders"))

    @pytest.mark.kip(
        875,
        "Can alter the offsets of a stopped sink and source connector, verify that those offsets are returned in"
        " subsequent requests to view the offsets of the connector, and verify that those offsets are used by the"
        " connector when it is resumed",
    )
    @pytest.mark.kip(875, "Can reset the offsets of a stopped sink and source connector")
    @pytest.mark.kip(
        875,
        "Second follow-up requests to reset offsets for those connectors after their offsets have already been reset"
        " once are also successful",
    )
    def test_a_source_from_stop_to_resume(self, world: World) -> None:
        world.create()
        world.stop()
        world.do(lambda: world.herder.alter_offsets("orders", [({"file": "a"}, {"position": 7})]))
        assert world.do(lambda: world.herder.offsets("orders")) == [({"file": "a"}, {"position": 7})]
        world.resume()
        assert world.context().offset_reader.offset({"file": "a"}) == {"position": 7}
        world.stop()
        for _ in range(2):
            told = world.do(lambda: world.herder.reset_offsets("orders"))
            assert told.startswith("The framework-managed offsets for this connector have been reset successfully.")
            assert world.do(lambda: world.herder.offsets("orders")) == []

    def test_a_sink_has_those_of_its_group(self, world: World) -> None:
        world.groups.groups["connect-orders"] = {TopicPartition("t", 0): 5}
        world.create(connector_class="ScriptedSink", topics="t", initial=STOPPED)
        where = {"kafka_partition": 0, "kafka_topic": "t"}
        assert world.do(lambda: world.herder.offsets("orders")) == [(where, {"kafka_offset": 5})]
        world.do(lambda: world.herder.alter_offsets("orders", [(where, {"kafka_offset": 2})]))
        assert world.do(lambda: world.herder.offsets("orders")) == [(where, {"kafka_offset": 2})]
        for _ in range(2):
            world.do(lambda: world.herder.reset_offsets("orders"))
            assert world.do(lambda: world.herder.offsets("orders")) == []


class TestClustersOnly:
    def test_task_configs_from_outside(self, world: World) -> None:
        text = "^Kafka Connect in standalone mode does not support externally setting task configurations.$"
        with pytest.raises(HerderError, match=text):
            world.do(lambda: world.herder.put_task_configs("orders", []))

    def test_fencing(self, world: World) -> None:
        text = "^Kafka Connect in standalone mode does not support exactly-once source connectors.$"
        with pytest.raises(HerderError, match=text):
            world.do(lambda: world.herder.fence("orders"))


class TestShutdown:
    def test_connectors_end_then_tasks_then_the_herder(self, world: World) -> None:
        world.create()
        world.create("other")
        world.forget_history()
        world.herder.shutdown()
        journal = world.script.journal
        assert sorted(journal[:2]) == ["stop orders", "stop other"]
        assert journal[2:] == [f"stop task {name}-{number}" for name in ("orders", "other") for number in (0, 1)]
        assert world.statuses.history["orders"] == world.statuses.history[TASK_0] == [State.UNASSIGNED]

    def test_new_commands_are_refused(self, world: World) -> None:
        world.herder.shutdown()
        with pytest.raises(ShuttingDown, match=r"^Worker is shutting down$"):
            world.create()

    def test_who_still_waits_is_told(self, world: World) -> None:
        world.script.on_start = world.script.hang
        failed: list[BaseException] = []

        def wait() -> None:
            try:
                asyncio.run(world.herder.call(lambda: world.herder.create("orders", World.config(), None)))
            except BaseException as error:
                failed.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert world.script.hanging.wait(PATIENCE_S)
        world.herder.shutdown()
        waiting.join(PATIENCE_S)
        assert [type(error) for error in failed] == [ShuttingDown]

    def test_a_connector_that_fails_or_hangs_does_not_hold_it_up(self, world: World) -> None:
        world.create()
        world.create("other")

        def stop(plugin: Any) -> None:
            if plugin.settings["name"] == "orders":
                raise OSError("stuck")
            world.script.hang()

        world.script.on_stop = stop
        world.herder.shutdown()
        assert all(task.calls == ["stop"] for task in world.runner.all)

    def test_tasks_that_ignore_it_are_cancelled(self, world: World) -> None:
        world.create()
        world.runner.deaf = True
        world.herder.shutdown()
        assert [task.calls for task in world.runner.all] == [["stop", "cancel"]] * 2

    def test_what_is_reported_afterwards_is_dropped(self, world: World) -> None:
        world.create()
        world.herder.shutdown()
        world.runner.task(0).listener.on_failed("too late")
        world.context().raise_error(ConnectError("too late"))
        world.herder.shutdown()
        assert world.statuses.history[TASK_0][-1] is State.UNASSIGNED


@pytest.mark.parametrize(
    ("settings", "reads", "resets"),
    [
        ({"topic.tracking.enable": "false"}, "Topic tracking is disabled.", "Topic tracking is disabled."),
        ({"topic.tracking.allow.reset": "false"}, None, "Topic tracking reset is disabled."),
        ({"topic.tracking.enable": "false", "topic.tracking.allow.reset": "false"},
         "Topic tracking is disabled.", "Topic tracking is disabled."),
    ],
)  # fmt: skip
def test_topic_tracking_can_be_switched_off(
    script: Script, settings: dict[str, str], reads: str | None, resets: str
) -> None:
    world = World(script, settings)
    try:
        if reads is None:
            assert world.herder.active_topics("orders") == []
        else:
            with pytest.raises(Forbidden, match=f"^{reads}$"):
                world.herder.active_topics("orders")
        with pytest.raises(Forbidden, match=f"^{resets}$"):
            world.do(lambda: world.herder.reset_topics("orders"))
    finally:
        world.herder.shutdown()
