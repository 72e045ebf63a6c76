"""KeyboardInterrupt reaches the user's synchronous code and nothing else."""

import asyncio
import importlib
import os
import re
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.shells import press

from agent_nb import notebook
from agent_nb.agent.interpolate import PromptTemplate
from agent_nb.notebook.cell import approvals, map_inputs
from agent_nb.notebook.cell.interrupts import DOUBLE_CLICK, Interrupts
from agent_nb.notebook.cell.nudge import NUDGE, NUDGE_AFTER
from agent_nb.rows.map.table.rows import rows_of
from agent_nb.rows.map.table.template import Template
from agent_nb.tools.base import Question

USER = {"time": time, "asyncio": asyncio, "signal": signal}


def user(code, **names):
    """Return the functions that `code` defines, as if a notebook cell had defined them."""
    namespace = dict(USER, **names)
    exec(compile(code, "<cell>", "exec"), namespace)
    return namespace


def test_a_press_outside_the_users_code_only_sets_the_flag():
    with Interrupts(USER) as interrupts:
        press()
    assert interrupts.stopped
    assert not interrupts.abandoned


def test_a_second_press_says_abandon_and_each_is_announced():
    presses, clock = [], iter((10.0, 10.0 + DOUBLE_CLICK))
    with Interrupts(clock=lambda: next(clock)) as interrupts:
        interrupts.listen(lambda: presses.append(1))
        press()
        assert not interrupts.abandoned
        press()
    assert interrupts.abandoned
    assert len(presses) == 2


def test_the_second_press_of_a_double_click_abandons_nothing():
    clock = iter((10.0, 10.0 + DOUBLE_CLICK / 2, 10.0 + 2 * DOUBLE_CLICK))
    with Interrupts(clock=lambda: next(clock)) as interrupts:
        press()
        press()
        assert not interrupts.abandoned
        press()
    assert interrupts.abandoned


def test_what_stopped_it_first_is_what_stopped_it():
    interrupts = Interrupts()
    interrupts.press("stop button")
    interrupts.press()
    assert interrupts.by == "stop button"


def test_the_former_handler_is_back_after_the_cell():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_synchronous_user_code_under_a_guard_gets_keyboardinterrupt():
    names = user("def work():\n    signal.raise_signal(signal.SIGINT)\n    return 'not reached'")
    with Interrupts(names) as interrupts:
        value, fault = interrupts.guard("job", names["work"])
    assert value is None
    assert isinstance(fault, KeyboardInterrupt)
    assert interrupts.presses == 1


def test_a_library_function_called_as_the_users_job_gets_keyboardinterrupt():
    with Interrupts() as interrupts:
        _, fault = interrupts.guard("job", press)
    assert isinstance(fault, KeyboardInterrupt)


def test_the_synchronous_part_of_an_async_job_gets_keyboardinterrupt():
    names = user("async def work():\n    signal.raise_signal(signal.SIGINT)")

    async def main():
        with Interrupts(names) as interrupts:
            return await interrupts.guard_async("job", names["work"]())

    assert isinstance(asyncio.run(main())[1], KeyboardInterrupt)


def test_user_code_outside_a_guard_is_left_alone_for_the_event_loops_sake():
    names = user(
        "def callback():\n    signal.raise_signal(signal.SIGINT)\n    done.append(1)",
        done=(done := []),
    )

    async def main():
        with Interrupts(names) as interrupts:
            asyncio.get_running_loop().call_soon(names["callback"])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return interrupts

    assert asyncio.run(main()).stopped
    assert done == [1]


def test_a_task_of_the_user_beside_an_async_job_is_left_alone():
    names = user(
        "async def beside():\n    signal.raise_signal(signal.SIGINT)\n    return 'whole'\n"
        "async def work():\n    return await asyncio.ensure_future(beside())"
    )

    async def main():
        with Interrupts(names) as interrupts:
            return await interrupts.guard_async("job", names["work"]()), interrupts.stopped

    assert asyncio.run(main()) == (("whole", None), True)


def test_a_press_inside_our_own_code_is_raised_when_it_returns_to_the_user():
    ours = {"__name__": "agent_nb.notebook.cell.capture", "press": press}
    exec("def write(checkpoint):\n    press()\n    written.append(1)\n    checkpoint()", ours, ours)
    ours["written"] = written = []
    names = user(
        "def work():\n    write(checkpoint)\n    after.append(1)",
        after=(after := []),
        write=ours["write"],
    )
    with Interrupts(names) as interrupts:
        names["checkpoint"] = interrupts.checkpoint
        _, fault = interrupts.guard("job", names["work"])
    assert isinstance(fault, KeyboardInterrupt)
    assert written == [1]
    assert after == []


def test_a_job_can_be_broken_from_another_thread_without_a_press():
    names = user(
        "def work():\n    started.set()\n    time.sleep(60)", started=(started := threading.Event())
    )
    with Interrupts(names) as interrupts:
        breaker = threading.Thread(
            target=lambda: (started.wait(), time.sleep(0.05), interrupts.break_job("job"))
        )
        breaker.start()
        _, fault = interrupts.guard("job", names["work"])
        breaker.join()
    assert isinstance(fault, KeyboardInterrupt)
    assert interrupts.presses == 0


def test_a_job_that_is_broken_before_it_begins_does_not_begin():
    begun = []

    async def work():
        begun.append("async")

    with Interrupts() as interrupts:
        interrupts.break_job("job")
        _, fault = interrupts.guard("job", lambda: begun.append("sync"))
        _, fault_async = asyncio.run(interrupts.guard_async("job", work()))
        assert interrupts.guard("next", lambda: "whole") == ("whole", None)
    assert begun == []
    assert isinstance(fault, KeyboardInterrupt)
    assert isinstance(fault_async, KeyboardInterrupt)


def test_a_question_is_broken_while_its_words_are_made():
    class Name(str):
        def __iter__(self):
            interrupts.break_job("job")
            return super().__iter__()

    question = Question(call_id="1", name=Name("touch"), args={})
    with Interrupts(USER) as interrupts:
        _, fault = interrupts.guard("job", lambda: approvals.ask_at_keyboard(question))
    assert isinstance(fault, KeyboardInterrupt)


@pytest.mark.skipif(NUDGE is None, reason="no signal to nudge with")
class TestAnInterruptThatTheSystemCallDidNotNotice:
    """A signal that another thread raises is pending and wakes nobody, like one that comes just
    before the system call.
    """

    LATE = """def go():
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    time.sleep(60)"""

    def test_it_breaks_the_call_soon(self):
        with Interrupts(names := user(self.LATE, threading=threading)) as interrupts:
            start = time.monotonic()
            _, fault = interrupts.guard("job", names["go"])
        assert isinstance(fault, KeyboardInterrupt)
        assert interrupts.presses == 1
        assert time.monotonic() - start < 30

    def test_a_wakeup_descriptor_set_before_gets_each_signal_and_is_restored(self):
        def job():
            used = signal.set_wakeup_fd(theirs.fileno())
            signal.set_wakeup_fd(used)
            with suppress(KeyboardInterrupt):
                press()
            return used, ours.recv(1)

        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(10)
            theirs.setblocking(False)
            before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
            try:
                with Interrupts() as interrupts:
                    ((used, received), _), fault = interrupts.guard(
                        "outer", lambda: interrupts.guard("inner", job)
                    )
                assert signal.set_wakeup_fd(before) == theirs.fileno()
            finally:
                signal.set_wakeup_fd(before)
            assert (fault, received) == (None, bytes([signal.SIGINT]))
            assert used not in {theirs.fileno(), -1}
        assert signal.getsignal(NUDGE) == signal.SIG_DFL

    def test_a_wakeup_descriptor_set_before_gets_no_nudge(self):
        def job():
            with suppress(KeyboardInterrupt):
                names["go"]()
            time.sleep(2 * sum(NUDGE_AFTER))

        names = user(self.LATE, threading=threading)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.setblocking(False)
            before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
            try:
                with Interrupts(names) as interrupts:
                    interrupts.guard("job", job)
            finally:
                signal.set_wakeup_fd(before)
            theirs.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: ours.recv(64), b""))
        assert received == bytes([signal.SIGINT])

    @pytest.mark.parametrize("reused", [False, True])
    def test_a_wakeup_descriptor_closed_meanwhile_is_left_alone(self, tmp_path, reused):
        def job():
            os.close(writing)
            if reused:
                os.dup2(file.fileno(), writing)
            with suppress(KeyboardInterrupt):
                press()

        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing)
        try:
            with (tmp_path / "theirs").open("wb") as file, Interrupts() as interrupts:
                _, fault = interrupts.guard("job", job)
        finally:
            after = signal.set_wakeup_fd(before)
            os.close(reading)
            if reused:
                os.close(writing)
        assert (fault, after) == (None, -1)
        assert (tmp_path / "theirs").read_bytes() == b""
        assert signal.getsignal(NUDGE) == signal.SIG_DFL

    def test_one_thread_serves_all_jobs(self):
        def watching():
            return [t for t in threading.enumerate() if t.name == "agent_nb nudge"]

        interrupts = Interrupts()
        inside, outside = interrupts.guard(
            "outer", lambda: (interrupts.guard("inner", watching)[0], watching())
        )[0]
        later, _ = interrupts.guard("next", watching)
        assert len(inside) == 1
        assert inside == outside == later

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    def test_a_forked_child_watches_its_own_signals(self):
        Interrupts().guard("before", lambda: None)
        child = os.fork()
        if not child:
            names = user(self.LATE, threading=threading)
            with Interrupts(names) as interrupts:
                _, fault = interrupts.guard("job", names["go"])
            os._exit(0 if isinstance(fault, KeyboardInterrupt) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_no_nudge_comes_after_the_last_job(self):
        def job():
            with suppress(KeyboardInterrupt):
                press()

        nudges, late = [], threading.Event()
        with Interrupts() as interrupts:
            interrupts.guard("job", job)
        before = signal.signal(NUDGE, lambda *_: nudges.append(NUDGE))
        try:
            late.wait(sum(NUDGE_AFTER) + 0.2)
        finally:
            signal.signal(NUDGE, before)
        assert nudges == []


def test_breaking_a_job_that_is_over_does_not_hurt_the_next():
    names = user("def work(strike):\n    strike('old')\n    return 'whole'")
    with Interrupts(names) as interrupts:
        interrupts.guard("old", lambda: None)
        value, fault = interrupts.guard("new", lambda: names["work"](interrupts.break_job))
    assert (value, fault) == ("whole", None)


def test_breaking_a_job_after_the_cell_sends_nothing():
    interrupts = Interrupts()
    with interrupts:
        interrupts.guard("job", lambda: None)
    interrupts.break_job("job")
    assert interrupts.presses == 0


def test_on_another_thread_no_handler_is_set_and_presses_still_count():
    before, seen = signal.getsignal(signal.SIGINT), []

    def cell():
        with Interrupts() as interrupts:
            interrupts.press()
            seen.append((interrupts.stopped, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=cell)
    thread.start()
    thread.join()
    assert seen == [(True, before)]


@pytest.mark.parametrize("fault", [SystemExit(1), ValueError("x"), KeyboardInterrupt()])
def test_whatever_a_job_raises_comes_back_as_a_value(fault):
    def work():
        raise fault

    assert Interrupts().guard("job", work) == (None, fault)


ROOM = Path(notebook.__file__).parent
ASKING = [
    ".".join(path.relative_to(ROOM).with_suffix("").parts)
    for path in ROOM.rglob("*.py")
    if re.search(r"\binput\((?!\))", path.read_text())
]


@pytest.mark.parametrize("module", ASKING)
def test_a_question_to_the_user_can_be_interrupted(module):
    ours = vars(importlib.import_module(f"agent_nb.notebook.{module}")) | {"press": press}
    exec("def put():\n    press()\n    return 'answered'", ours, ours)
    with Interrupts() as interrupts:
        _, fault = interrupts.guard("job", ours["put"])
    assert isinstance(fault, KeyboardInterrupt)


def pressed_in_a_library():
    """Return a function of a library that is interrupted."""
    library = {"__name__": "slow_library", "press": press}
    exec("def read(*_):\n    press()\n    yield 'a row'", library, library)
    return lambda *_: list(library["read"]())


@pytest.mark.parametrize(
    "read",
    [
        lambda slow: map_inputs.evaluate_data("slow()", {"slow": slow}),
        lambda slow: rows_of(map(slow, "ab")),
        lambda slow: Template("Classify", attachments=slow).fill({}),
        lambda slow: Template("{{ slow() }}", {"slow": slow}).fill({}),
        lambda slow: PromptTemplate("{{ slow() }}").fill({"slow": slow}),
    ],
)
def test_what_reads_the_data_of_a_map_can_be_interrupted(read):
    slow = pressed_in_a_library()
    ours = {"__name__": "agent_nb.notebook.cell.run", "read": read, "slow": slow}
    exec("def make():\n    return read(slow)", ours, ours)
    with Interrupts() as interrupts:
        _, fault = interrupts.guard("job", ours["make"])
    assert isinstance(fault, KeyboardInterrupt)


class TestOverlapping:
    @pytest.fixture(autouse=True)
    def before(self):
        """A handler below ours, put back at the end."""
        pressed = []
        old = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
        yield pressed
        signal.signal(signal.SIGINT, old)

    def test_the_newest_hears_the_press_and_the_older_one_when_it_has_left(self):
        with Interrupts() as first:
            with Interrupts() as second:
                signal.raise_signal(signal.SIGINT)
            assert (first.presses, second.presses) == (0, 1)
            signal.raise_signal(signal.SIGINT)
            assert (first.presses, second.presses) == (1, 1)

    def test_one_that_leaves_first_takes_nobody_elses_handler_away(self, before):
        first, second = Interrupts(), Interrupts()
        first.__enter__()
        second.__enter__()
        first.__exit__()
        signal.raise_signal(signal.SIGINT)
        assert (first.presses, second.presses) == (0, 1)
        second.__exit__()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert (first.presses, before) == (0, [1, 1])

    def test_one_that_hands_on_is_heard_by_those_below_too(self, before):
        with Interrupts(hand_on=True) as first, Interrupts(hand_on=True) as second:
            signal.raise_signal(signal.SIGINT)
        assert (first.presses, second.presses, before) == (1, 1, [1])

    def test_one_that_has_left_still_hands_on_from_those_above_it(self, before):
        first, second = Interrupts(hand_on=True), Interrupts(hand_on=True)
        first.__enter__()
        second.__enter__()
        first.__exit__()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert (first.presses, second.presses, before) == (0, 2, [1, 1])
        second.__exit__()

    def test_pythons_own_handler_is_not_handed_on_to(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Interrupts(hand_on=True) as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert interrupts.stopped
