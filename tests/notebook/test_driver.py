"""The awaited cell serves its agent's jobs on the main thread, and ends when it is interrupted."""

import asyncio
import contextlib
import contextvars
import signal
import sys
import threading
import time

import pytest
from helpers.shells import press
from IPython.core.error import StdinNotImplementedError

from agent_nb.errors import Cancelled, ToolError, UsageError
from agent_nb.notebook.cell.driver import Driver
from agent_nb.notebook.cell.interrupts import DOUBLE_CLICK, Interrupts


class Script:
    """Work for the driver: an async function of the driver's host; cancelling it cancels that
    function's task.
    """

    def __init__(self, driver, function, brief=False):
        self.driver, self.function, self.task = driver, function, None
        self.brief = brief
        self.value = self.thread = None

    async def run(self):
        self.thread = threading.current_thread()
        self.task = asyncio.ensure_future(self.function(self.driver.host))
        try:
            self.value = await self.task
        except asyncio.CancelledError:
            self.value = "cancelled"

    def cancel(self):
        self.task.cancel()


@pytest.fixture
def drive(shell, run):
    """Run an async function of a host as a cell does; return the driver and what the function
    returned.
    """

    def drive(function, beside=None, *, brief=False):
        async def cell():
            with Interrupts(shell.user_ns, shell.user_global_ns) as interrupts:
                driver = Driver(shell, interrupts)
                work = Script(driver, function, brief)
                if beside:
                    asyncio.get_running_loop().call_later(0.05, beside)
                await driver.drive(lambda: work)
                return driver, work.value

        return run(cell())

    return drive


def cell(code, seen=None):
    """Return work that runs `code` as a cell and returns its outcome."""

    async def work(host):
        return await host.run_cell(code, (seen if seen is not None else []).append)

    return work


def test_the_agent_runs_in_a_thread_of_its_own_that_ends_with_the_cell(drive):
    async def work(host):
        return threading.current_thread()

    _, thread = drive(work)
    assert thread is not threading.main_thread()
    assert not thread.is_alive()


def test_brief_work_is_a_task_on_the_cells_loop_in_a_context_of_its_own(drive):
    mark = contextvars.ContextVar("mark", default="the cell's")

    async def work(host):
        mark.set("the work's")
        return threading.current_thread(), await host.call(threading.current_thread)

    _, threads = drive(work, brief=True)
    assert set(threads) == {threading.main_thread()}
    assert mark.get() == "the cell's"


def test_a_press_cancels_brief_work(drive):
    async def work(host):
        await asyncio.sleep(60)

    started = time.monotonic()
    driver, value = drive(work, lambda: signal.raise_signal(signal.SIGINT), brief=True)
    assert value == "cancelled"
    assert driver.interrupts.stopped
    assert time.monotonic() - started < 30


def test_brief_work_that_does_not_stop_is_abandoned_at_a_second_press(drive):
    async def work(host):
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    def press_twice():
        signal.raise_signal(signal.SIGINT)
        asyncio.get_running_loop().call_later(
            DOUBLE_CLICK + 0.1, signal.raise_signal, signal.SIGINT
        )

    driver, _ = drive(work, press_twice, brief=True)
    assert driver.abandoned


def test_a_function_is_called_on_the_main_thread(drive):
    async def work(host):
        return await host.call(threading.current_thread)

    assert drive(work)[1] is threading.main_thread()


def test_a_functions_exception_reaches_the_tool(drive):
    async def work(host):
        with pytest.raises(ZeroDivisionError):
            await host.call(lambda: 1 / 0)
        return "caught"

    assert drive(work)[1] == "caught"


def test_a_function_that_asks_without_a_keyboard_meets_the_end_of_input(drive, monkeypatch):
    def refuse(text=""):
        raise StdinNotImplementedError("no keyboard")

    async def work(host):
        with pytest.raises(EOFError, match="no keyboard"):
            await host.call(input)
        return "caught"

    monkeypatch.setattr("builtins.input", refuse)
    assert drive(work)[1] == "caught"


def test_a_function_that_exits_does_not_end_the_kernel(drive):
    async def work(host):
        with pytest.raises(ToolError, match="end the kernel"):
            await host.call(sys.exit)
        return "caught"

    assert drive(work)[1] == "caught"


def test_code_runs_in_the_users_namespace(drive, shell):
    shell.user_ns["x"] = 20
    _, outcome = drive(cell("y = x + 1\ny * 2"))
    assert (outcome.status, outcome.content) == ("ok", 42)
    assert shell.user_ns["y"] == 21


def test_top_level_await_works_in_code(drive):
    assert drive(cell("import asyncio\nawait asyncio.sleep(0, 'slept')"))[1].content == "slept"


def test_output_goes_to_the_tool_and_not_to_the_cell(drive, capsys):
    seen = []
    drive(cell("import sys\nprint('out')\nprint('err', file=sys.stderr)", seen))
    assert "".join(seen) == "out\nerr\n"
    assert capsys.readouterr() == ("", "")


def test_what_was_printed_comes_before_the_value_in_what_the_model_reads(drive):
    assert drive(cell("print('out')\n42"))[1].content == "out\n42"
    assert drive(cell("print('out')"))[1].content == "out\n"
    assert drive(cell("print('out')\n1/0"))[1].content.startswith("out\nTraceback")


def test_output_of_other_code_still_goes_to_the_cell(drive, capsys):
    seen = []
    drive(
        cell("import asyncio\nawait asyncio.sleep(.2)", seen),
        beside=lambda: print("from a callback"),
    )
    assert seen == []
    assert capsys.readouterr().out == "from a callback\n"


def test_streams_and_hooks_are_put_back(drive, shell):
    before = sys.stdout, sys.stderr, sys.displayhook, shell._showtraceback
    drive(cell("print(1)\n2"))
    assert before == (sys.stdout, sys.stderr, sys.displayhook, shell._showtraceback)


def test_an_error_is_a_short_traceback_in_the_outcome_and_not_printed(drive, capsys):
    _, outcome = drive(cell("def f():\n    return nothing\nf()"))
    assert outcome.status == "error"
    assert outcome.content.startswith("Traceback")
    assert "IPython" not in outcome.content
    assert '"<cell>", line 2' in outcome.content
    assert outcome.content.endswith("NameError: name 'nothing' is not defined")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("code", ["1 +", "if True:\npass", "%no_such_magic"])
def test_code_that_does_not_compile_is_an_error_outcome(drive, code):
    _, outcome = drive(cell(code))
    assert outcome.status == "error"
    assert outcome.content


def test_a_rich_value_has_a_display(drive, shell):
    class Rich:
        def _repr_html_(self):
            return "<b>rich</b>"

    shell.user_ns["rich"] = Rich()
    display = drive(cell("rich"))[1].display
    assert display["text/html"] == "<b>rich</b>"
    assert "text/plain" in display


def test_jobs_run_one_after_the_other(drive, shell):
    shell.user_ns["seen"] = seen = []
    code = "import asyncio\nseen.append('in')\nawait asyncio.sleep(.02)\nseen.append('out')"

    async def work(host):
        await asyncio.gather(*(host.run_cell(code, print) for _ in range(3)))

    drive(work)
    assert seen == ["in", "out"] * 3


def test_an_interrupt_cancels_the_work(drive):
    async def work(host):
        await asyncio.sleep(60)

    driver, value = drive(work, beside=press)
    assert value == "cancelled"
    assert driver.interrupts.presses == 1
    assert not driver.abandoned


def test_an_interrupt_ends_blocking_code_with_keyboardinterrupt_inside_it(drive, shell):
    shell.user_ns["press"] = threading.Timer(
        0.1, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    )
    code = "import time\ntry:\n    press.start()\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    seen = True\n    raise"
    drive(cell(code))
    assert shell.user_ns["seen"] is True


def test_an_interrupt_ends_awaiting_code(drive, shell):
    shell.user_ns["press"] = press
    code = "import asyncio\ntry:\n    asyncio.get_running_loop().call_soon(press)\n    await asyncio.sleep(60)\nexcept asyncio.CancelledError:\n    seen = True\n    raise"
    drive(cell(code))
    assert shell.user_ns["seen"] is True


def test_a_tool_that_gives_up_waiting_breaks_its_blocking_code(drive, shell):
    async def work(host):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.run_cell("import time\ntime.sleep(60)", print), 0.1)
        return await host.run_cell("'next'", print)

    driver, outcome = drive(work)
    assert outcome.content == "next"
    assert driver.interrupts.presses == 0


def test_code_that_waits_when_its_cell_ends_is_cancelled(drive):
    async def work(host):
        waiting = host.call(lambda: time.sleep(0.3) or host.close()), host.run_cell("1", print)
        return (await asyncio.gather(*waiting, return_exceptions=True))[1]

    _, outcome = drive(work)
    assert (outcome.status, outcome.content) == ("cancelled", "Stopped: the cell has ended.")


def test_an_interrupted_function_is_cancelled_for_its_tool(drive):
    async def work(host):
        with pytest.raises(Cancelled):
            await host.call(press)
        return "caught"

    assert drive(work)[1] in ("caught", "cancelled")


def test_a_second_interrupt_abandons_work_that_does_not_stop(drive):
    released = threading.Event()

    async def work(host):
        while not released.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                time.sleep(1.1 * DOUBLE_CLICK)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    driver, value = drive(work, beside=press)
    released.set()
    assert driver.abandoned
    assert value is None


def test_a_cancellation_of_the_cells_task_counts_as_an_interrupt(shell, run):
    async def work(host):
        await asyncio.sleep(60)

    async def main():
        driver = Driver(shell, Interrupts())
        task = asyncio.ensure_future(driver.drive(lambda: Script(driver, work)))
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        await task
        return driver

    assert run(main()).interrupts.presses == 1


def test_a_fault_of_the_work_is_kept_for_the_cell(drive):
    async def work(host):
        raise LookupError("lost")

    assert isinstance(drive(work)[0].fault, LookupError)


def test_no_job_starts_after_the_cell(shell, run):
    async def main():
        driver = Driver(shell, Interrupts())
        await driver.drive(lambda: Script(driver, cell("1")))
        with pytest.raises(Cancelled):
            await driver.host.call(lambda: 1)

    run(main())


def test_a_cell_without_an_event_loop_is_a_usage_error(shell):
    with pytest.raises(UsageError, match="autoawait asyncio"):
        Driver(shell, Interrupts())


def test_what_is_interrupted_while_it_is_made_is_not_started(shell, run):
    async def main():
        with Interrupts(shell.user_ns) as interrupts:
            driver = Driver(shell, interrupts)
            work = Script(driver, cell("1"))

            def make():
                driver.stop()
                return work

            with pytest.raises(Cancelled, match="stop button"):
                await driver.drive(make)
            return work

    assert run(main()).thread is None


def test_a_cancellation_while_connections_close_is_a_press_too(shell, run, monkeypatch):
    monkeypatch.setattr("agent_nb.notebook.cell.driver.LINGER", 60)
    released = threading.Event()

    async def closing():
        try:
            await asyncio.sleep(60)
        finally:
            released.wait(60)

    async def work(host):
        closings.append(asyncio.ensure_future(closing()))
        await asyncio.sleep(0)

    closings = []

    async def main():
        driver = Driver(shell, Interrupts())
        task = asyncio.ensure_future(driver.drive(lambda: Script(driver, work)))
        while not driver._work_done:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.01)
        released.set()
        await task
        return driver

    assert run(main()).interrupts.presses == 1
