from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from collections.abc import Iterator

import pytest

from headgate import log
from headgate.api import ConnectError
from headgate.log import about, configure, name_of
from headgate.model import TaskId


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """Pytest's own handlers are out of the way for the time of a test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in ("py4j", "pyspark", "uvicorn.error", "asyncio")}
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def messages(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on standard error, each without its time."""
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}] ", line) for line in lines)
    return [line.split("] ", 1)[1] for line in lines]


def test_names_of_connectors_and_tasks() -> None:
    assert name_of("orders") == "[orders|worker] "
    assert name_of(TaskId("orders", 3)) == "[orders|task-3] "


def test_a_line_says_when_how_bad_what_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    logging.getLogger("some.module").info("hello")
    assert messages(capsys) == ["INFO hello (some.module)"]


def test_a_line_says_what_it_is_about_and_the_innermost_counts(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log = logging.getLogger("m")
    with about("orders"):
        log.info("outer")
        with about(TaskId("orders", 0)):
            log.info("inner")
        log.info("outer again")
    log.info("nobody")
    assert messages(capsys) == [
        "INFO [orders|worker] outer (m)",
        "INFO [orders|task-0] inner (m)",
        "INFO [orders|worker] outer again (m)",
        "INFO nobody (m)",
    ]


def test_a_failure_inside_does_not_leave_its_name_behind(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    with pytest.raises(OSError, match="no"), about("orders"):
        raise OSError("no")
    logging.getLogger("m").info("later")
    assert messages(capsys) == ["INFO later (m)"]


def test_threads_and_coroutines_have_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log = logging.getLogger("m")

    async def work(name: str) -> None:
        with about(name):
            await asyncio.sleep(0)
            log.info("work of %s", name)

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    with about("main"):
        thread = threading.Thread(target=lambda: log.info("thread"))
        thread.start()
        thread.join()
        asyncio.run(both())
    assert messages(capsys) == [
        "INFO thread (m)", "INFO [a|worker] work of a (m)", "INFO [b|worker] work of b (m)"
    ]  # fmt: skip


def test_the_level_counts_and_libraries_speak_up_only_in_trouble(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("DEBUG")
    logging.getLogger("m").debug("detail")
    logging.getLogger("py4j").info("chatter")
    logging.getLogger("py4j").warning("trouble")
    assert messages(capsys) == ["DEBUG detail (m)", "WARNING trouble (py4j)"]


def test_configuring_twice_does_not_double_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    configure("WARNING")
    logging.getLogger("m").info("too little")
    logging.getLogger("m").warning("once")
    assert messages(capsys) == ["WARNING once (m)"]


class TestSecrets:
    @pytest.mark.parametrize(
        ("secret", "text", "shown"),
        [
            ("log-secret-a", "password log-secret-a, again log-secret-a", "password [hidden], again [hidden]"),
            ("log-b\n", "with its blanks cut off: log-b.", "with its blanks cut off: [hidden]."),
            ("log-\tc'd", "escaped: {'x': \"log-\\tc'd\"}", "escaped: {'x': \"[hidden]\"}"),
            ("-----BEGIN X-----\nlogsecretline\n-----END X-----\n", "a line: logsecretline", "a line: [hidden]"),
            ('X required user="u" password="log-inner";', "in a login: log-inner, u", "in a login: [hidden], u"),
            ("log", "too short: log", "too short: log"),
            ("TRUE", "too common: TRUE", "too common: TRUE"),
        ],
    )
    def test_they_are_hidden_however_they_are_shown(self, secret: str, text: str, shown: str) -> None:
        log.hide([secret])
        assert log.masked(text) == shown

    def test_the_longer_one_goes_first(self) -> None:
        log.hide(["log-abc", "log-abc-and-more"])
        assert log.masked("log-abc-and-more") == "[hidden]"

    def test_not_all_are_remembered_for_ever(self) -> None:
        log.hide(["log-the-oldest"])
        log.hide(f"log-number-{number}" for number in range(5000))
        assert log.masked("log-number-4999 log-the-oldest") == "[hidden] log-the-oldest"

    def test_a_line_of_the_log_has_none_even_in_a_traceback(self) -> None:
        log.hide(["log-in-a-trace"])
        formatter = log.LineFormatter("%(message)s")
        try:
            raise ValueError("cannot log in with log-in-a-trace")
        except ValueError:
            record = logging.LogRecord("x", logging.ERROR, "", 0, "user %s", ("log-in-a-trace",), sys.exc_info())
        line = formatter.format(record)
        assert "log-in-a-trace" not in line
        assert line.endswith("ValueError: cannot log in with [hidden]")


FORGED = "[2026-01-01 00:00:00,000] INFO 10.0.0.1: DELETE /connectors/b: 204 in 1 ms (headgate.rest.commands)"
ENDS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029")


class TestForgery:
    """Whatever users choose, a line of the log is one that the worker wrote."""

    @pytest.mark.parametrize("end", ENDS, ids=ascii)
    def test_what_is_in_a_message_begins_no_line(self, capsys: pytest.CaptureFixture[str], end: str) -> None:
        configure()
        with about(f"orders{end}{FORGED}"):
            logging.getLogger("m").info("Unknown key %s=%s", f"a{end}{FORGED}", f"b{end}")
        (line,) = messages(capsys)
        assert line.isprintable()
        assert line.count(FORGED) == 2
        assert line.endswith(f"=b{end.encode('unicode_escape').decode()} (m)")

    @pytest.mark.parametrize("end", ENDS, ids=ascii)
    @pytest.mark.parametrize("shown", [True, False], ids=["trace behind", "trace within"])
    def test_what_is_in_an_error_looks_like_no_line(
        self, capsys: pytest.CaptureFixture[str], end: str, shown: bool
    ) -> None:
        configure()
        try:
            raise ValueError(f"a{end}{FORGED}{end}{FORGED}")
        except ValueError as error:
            if shown:
                logging.getLogger("m").exception("Failed")
            else:
                logging.getLogger("m").error("Failed: %s", log.trace_of(error))
        first, *trace = capsys.readouterr().err.splitlines()
        assert "ERROR Failed: ValueError: a" in first
        assert trace[0] == "  Traceback (most recent call last):"
        assert trace[1].startswith("    File ")
        assert all(line.startswith("  ") and line.isprintable() for line in trace)

    def test_neither_colours_nor_directions_come_through_and_letters_do(self) -> None:
        record = logging.LogRecord("x", logging.INFO, "", 0, "\x1b[2J \u202e \ud800 \x00 \t grün 值 🙂", (), None)
        assert log.LineFormatter("%(message)s").format(record) == r"\x1b[2J \u202e \ud800 \x00 \t grün 值 🙂"

    def test_a_secret_of_several_lines_is_hidden_before_they_are_escaped(self) -> None:
        log.hide(["log\\forged\nline"])
        record = logging.LogRecord("x", logging.INFO, "", 0, "key %s", ("log\\forged\nline",), None)
        assert log.LineFormatter("%(message)s").format(record) == "key [hidden]"


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "cause", "line"),
        [
            (OSError("disk\n  full"), None, "OSError: disk full"),
            (ConnectError("outer"), OSError("inner"), "ConnectError: outer (from OSError: inner)"),
            (ConnectError("cannot write: inner"), OSError("inner"), "ConnectError: cannot write: inner"),
            (ConnectError("outer"), OSError(), "ConnectError: outer (from OSError)"),
            (KeyError(), None, "KeyError"),
            (OSError("x" * 600), None, f"OSError: {'x' * 491}..."),
        ],
    )
    def test_the_cause_is_one_line(self, error: Exception, cause: Exception | None, line: str) -> None:
        error.__cause__ = cause
        assert log.cause_of(error) == line

    def test_it_comes_before_the_traceback_which_ends_with_the_message(self) -> None:
        try:
            raise ConnectError("outer") from OSError("inner")
        except ConnectError as error:
            lines = log.trace_of(error).splitlines()
        assert lines[:2] == ["ConnectError: outer (from OSError: inner)", "OSError: inner"]
        assert lines[-1] == "headgate.api.errors.ConnectError: outer"

    def test_without_a_traceback_the_message_is_all(self) -> None:
        assert log.trace_of(ConnectError("lost my lease")) == "headgate.api.errors.ConnectError: lost my lease"

    @pytest.mark.parametrize(
        ("message", "line"),
        [
            ("Could not stop", "Could not stop: OSError: disk full (x)"),
            ("Could not stop: disk full", "Could not stop: disk full (x)"),
        ],
    )
    def test_a_line_of_the_log_says_it_before_the_traceback(self, message: str, line: str) -> None:
        try:
            raise OSError("disk full")
        except OSError:
            record = logging.LogRecord("x", logging.ERROR, "", 0, message, (), sys.exc_info())
        shown = log.LineFormatter("%(message)s (%(name)s)").format(record).splitlines()
        assert shown[:2] == [line, "  Traceback (most recent call last):"]
