"""Somebody stops a cell: it ends when its record is finished, and what is queued behind it does not
run.
"""

import asyncio
import json

import pytest

pytestmark = pytest.mark.kernel

STOPPED = "agent: stopped ({}); what is queued behind this cell does not run"
SETUP = """
%load_ext agent_nb
import asyncio, os, signal, threading, time
from pathlib import Path
import anyio
from agent_nb import Agent, Scripted
from agent_nb.agent import REGISTRY
from agent_nb.models.parts import Text

asked = []

class Model:
    name, dialect, grammar, shots, context = "test/model", "xml", False, False, 0

    def __init__(self, *does):
        self.does = does

    async def stream(self, request):
        asked.append(self.name)
        yield (Text("I am thinking"),)
        for step in self.does:
            step() if not asyncio.iscoroutinefunction(step) else await step()

    async def aclose(self):
        pass

def mark():
    Path("mark").touch()

async def wait():
    await anyio.sleep(60)

def elsewhere():
    REGISTRY.reach(REGISTRY.list_open_runs()[-1]).cancel()

def press():
    os.kill(os.getpid(), signal.SIGINT)

came = []  # an entry for each request that this kernel has got

def taken(message, take=get_ipython().kernel.shell_stream._recv_callback):
    came.append(1)
    return take(message)

get_ipython().kernel.shell_stream._recv_callback = taken
"""
# Runs until the kernel has got this cell and the three behind it: it aborts no request that it has
# not got.
ALL_CAME = "while len(came) < 4: await asyncio.sleep(0.005)"


@pytest.fixture(scope="module")
def ready(kernel):
    status, said, _ = kernel.run(SETUP)
    assert status == "ok", said
    kernel.run("model = Model()")
    assert kernel.run("%%agent -m model\nwarm up")[0] == "ok"
    return kernel


def events(kernel, name="_agent"):
    return [
        json.loads(line)
        for line in kernel.run(f"print({name}.log.to_ndjson())")[1].splitlines()
        if line
    ]


def queued(kernel, code, press=None):
    """Run a cell with two behind it, the last asks the model; return (status, text) of each, and
    how often it was asked.
    """
    kernel.run("asked.clear()\ncame.clear()")
    kernel.send(ALL_CAME)
    codes = {"first": code, "plain": "ran = True", "last": "%%agent -m model --live\ngo"}
    requests = [kernel.send(code, cell=cell) for cell, code in codes.items()]
    if press is not None:
        press()
    ends = [kernel.finish(request)[:2] for request in requests]
    return ends, int(kernel.run("print(len(asked))")[1])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "code",
    [
        "%%agent -m model --live\ngo",
        "await Agent(model)('go')",
        "await Agent(model)('go', view=None)",
    ],
)
def test_an_interrupt_aborts_what_is_queued_and_asks_no_model_again(ready, code):
    ready.run("model = Model(mark, wait)")

    def press():
        ready.marked()
        ready.interrupt()

    ends, asked = queued(ready, code, press)
    assert ends == [("error", STOPPED.format("kernel interrupt")), ("aborted", ""), ("aborted", "")]
    assert asked == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "code",
    [
        "%%agent -m model --live\ngo",
        "await Agent(model)('go')",
        "await Agent(model)('go', view=None)",
    ],
)
def test_a_stop_from_elsewhere_aborts_what_is_queued(ready, code):
    ready.run("model = Model(elsewhere, wait)")
    ends, asked = queued(ready, code)
    assert ends == [("error", STOPPED.format("from elsewhere")), ("aborted", ""), ("aborted", "")]
    assert asked == 1


def test_what_the_cell_waited_for_is_in_the_exception_and_finished(ready):
    code = """
try:
    await Agent(Model(elsewhere, wait))("go")
except KeyboardInterrupt as stop:
    print(type(stop).__name__, stop.by, stop.run is _agent, stop.run.status, stop.run.answer)
"""
    assert ready.run(code)[:2] == (
        "ok",
        "AgentStopped from elsewhere True interrupted I am thinking\n",
    )
    assert [e["type"] for e in events(ready)[-2:]] == ["interrupt", "end"]


def test_code_that_stops_its_own_run_goes_on_with_it(ready):
    for how in ("cancel", "stop"):
        code = f"stream = Agent(Model(lambda: stream.{how}(), wait))('go')\nrun = await stream\nprint(run.status)"
        assert ready.run(code)[1] == "interrupted\n"


def test_a_timeout_around_a_run_stays_a_timeout(ready):
    code = "model = Model(wait)\ntry:\n    await asyncio.wait_for(Agent(model)('go'), 0.1)\nexcept TimeoutError:\n    print(_agent.status)"
    assert ready.run(code)[:2] == ("ok", "interrupted\n")
    code = "try:\n    async with asyncio.timeout(0.1):\n        await Agent(model)('go')\nexcept TimeoutError:\n    print(_agent.status)"
    assert ready.run(code)[:2] == ("ok", "interrupted\n")


def test_a_stopped_run_in_a_task_ends_the_cell_and_not_the_kernel(ready):
    code = "await asyncio.gather(Agent(Model(elsewhere, wait))('go'), asyncio.sleep(0.1))\nprint('went on')"
    assert ready.run(code)[:2] == ("error", STOPPED.format("from elsewhere"))
    assert ready.run("print('alive')")[1] == "alive\n"


def test_an_interrupt_stops_all_runs_that_a_cell_awaits_together(ready):
    ready.run("streams = [Agent(Model(wait))('go'), Agent(Model(mark, wait))('go')]")
    request = ready.send("await asyncio.gather(*streams, asyncio.sleep(60))")
    ready.marked()
    ready.interrupt()
    assert ready.finish(request)[0] == "error"
    assert (
        ready.run("print([s.run.status for s in streams])")[1] == "['interrupted', 'interrupted']\n"
    )


def test_a_cell_that_goes_on_after_a_stop_can_be_interrupted_again(ready):
    code = """
for _ in range(2):
    try:
        await Agent(Model(mark, wait))("go")
    except KeyboardInterrupt:
        print(_agent.status)
"""
    request = ready.send(code)
    for _ in range(2):
        ready.marked()
        ready.interrupt()
    assert ready.finish(request)[:2] == ("ok", "interrupted\ninterrupted\n")


def test_a_second_press_leaves_an_awaited_run_behind_that_does_not_stop(ready):
    code = """
steps = [mark, mark]
async def never():
    while True:
        try:
            steps and steps.pop()()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
stream = Agent(Model(never))("go")
await stream
"""
    request = ready.send(code)
    for _ in range(2):
        ready.marked()
        ready.interrupt()
        ready.between_presses()
    assert ready.finish(request)[0] == "error"
    assert [e["type"] for e in events(ready)[-2:]] == ["interrupt", "end"]


ENDLESS = """
class Endless(Model):
    async def stream(self, request):
        asked.append(self.name)
        while True:
            yield (Text("on and on "),)

model, endless = Model(), Endless()
"""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("code", "times"),
    [
        pytest.param(
            "%%agent -m endless --live --max-tokens 1\ngo", 0, id="before the model is asked"
        ),
        pytest.param("%%agent -m endless --live --max-tokens 9000\ngo", 1, id="within a turn"),
        pytest.param(
            "await Agent(endless, limits={'tokens': 9000})('go')", 1, id="of an awaited run"
        ),
    ],
)
def test_a_limit_stops_no_queue(ready, code, times):
    ready.run(ENDLESS)
    ends, asked = queued(ready, code)
    assert [status for status, _ in ends] == ["ok", "ok", "ok"]
    assert asked == times + 1


def test_an_interrupted_record_plays_only_by_wish_and_stops_no_queue(ready):
    ready.run("model = Model(elsewhere, wait)")
    assert queued(ready, "%%agent -m model\nonce more")[0][0][0] == "error"
    ends, asked = queued(ready, "%%agent -m model --rerun replay\nonce more")
    assert (ends[0], ends[1][0], asked) == (("ok", ""), "ok", 1)
    ends, asked = queued(ready, "%%agent -m model\nonce more")
    assert (ends[0][0], ends[1][0], asked) == ("error", "aborted", 1)


# A press at moments that only the kernel knows.


def test_a_press_while_the_cell_is_prepared_stops_it_before_the_request(ready):
    ready.run("""def early(lines):
    if "early" in "".join(lines): press()
    return lines
get_ipython().input_transformers_cleanup.append(early)
model = Model(wait)""")
    ends, asked = queued(ready, "%%agent -m model --live\nearly")
    assert ends == [("error", STOPPED.format("kernel interrupt")), ("aborted", ""), ("aborted", "")]
    assert asked == 0
    assert [e["type"] for e in events(ready)] == ["run_start", "user", "interrupt", "end"]


def journals(kernel):
    return int(
        kernel.run("from agent_nb.record import journal\nprint(len(journal.Journal.files()))")[1]
    )


def test_a_press_before_the_first_event_leaves_no_empty_log_and_no_journal(ready):
    ready.run("""from unittest.mock import patch
from agent_nb.view.live import LiveView
def opened(*args, **named):
    press()
    return plain(*args, **named)
plain, patched, model = LiveView.open, patch.object(LiveView, "open", opened), Model(wait)
patched.start()""")
    before = journals(ready)
    ends, asked = queued(ready, "%%agent -m model --live\ngo")
    ready.run("patched.stop()")
    assert ends[0] == ("error", STOPPED.format("kernel interrupt"))
    assert (asked, journals(ready) - before) == (0, 0)
    assert [e["type"] for e in events(ready)] == ["run_start", "user", "interrupt", "end"]
    assert events(ready)[-2]["detail"] == "kernel interrupt"


def test_a_run_left_before_its_first_event_leaves_no_log_and_no_request(
    ready,
):
    ready.run("""from unittest.mock import patch
from agent_nb.notebook.cell.driver import Work
async def run(work):
    mark()
    released.wait(60)
    await plain(work)
released, plain, patched, model = threading.Event(), Work.run, patch.object(Work, "run", run), Model(wait)
patched.start()""")
    before = journals(ready)

    def twice():
        ready.marked()
        for _ in range(2):
            ready.interrupt()
            ready.between_presses()

    ends, asked = queued(ready, "%%agent -m model --live\ngo", twice)
    found = events(ready)
    ready.run("patched.stop()\nreleased.set()\ntime.sleep(0.2)")
    assert ends[0] == ("error", STOPPED.format("kernel interrupt"))
    assert [e["type"] for e in found] == ["run_start", "user", "interrupt", "end"]
    assert "abandoned" in found[-2]["detail"]
    assert (asked, int(ready.run("print(len(asked))")[1]), journals(ready) - before) == (0, 0, 0)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "place",
    [
        "view.live.LiveView.close",
        "record.journal.Journal.close",
        "notebook.session.Session.keep_run",
    ],
)
def test_a_press_while_the_record_is_finished_stops_only_the_queue(ready, place):
    module, _, rest = place.rpartition(".")[0].rpartition(".")
    where = f"__import__('agent_nb.{module}', fromlist=['x']).{rest}, {place.rpartition('.')[2]!r}"
    ready.run(f"""from unittest.mock import patch
plain = getattr({where})
def late(*args, **named):
    press()
    return plain(*args, **named)
model = Model()
patched = patch.object({where}, late)
patched.start()""")
    ends, asked = queued(ready, "%%agent -m model --live\ngo")
    ready.run("patched.stop()")
    assert ends == [("error", STOPPED.format("kernel interrupt")), ("aborted", ""), ("aborted", "")]
    assert (asked, ready.run("print(_agent.status)")[1]) == (1, "ok\n")


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["payload_manager.clear_payload", "history_manager.store_output"])
def test_a_press_after_the_cell_loses_no_reply_and_stops_the_queue(ready, place):
    manager, name = place.split(".")
    where = f"get_ipython().{manager}"
    ready.run(
        f"plain = {where}.{name}\ndef late(*args):\n    {where}.{name} = plain\n    press()\n    return plain(*args)"
    )
    ready.run(f"def arm():\n    {where}.{name} = late\nmodel = Model(arm)")
    ends, asked = queued(ready, "%%agent -m model --live\ngo")
    assert [status for status, _ in ends] == ["ok", "aborted", "aborted"]
    assert asked == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("code", ["%%agent -m model --live\ngo", "await Agent(model)('go')"])
def test_a_double_click_loses_no_reply_and_no_answer(ready, code):
    ready.run("model = Model(mark, wait)")
    # however long a busy machine takes between the presses, they are one double click
    ready.run("from agent_nb.notebook.cell import interrupts\nlimit = interrupts.DOUBLE_CLICK")
    ready.run("interrupts.DOUBLE_CLICK = 60")
    for pause in (0.001, 0.02, 0.04, 0.06):
        request = ready.send(code)
        ready.marked()
        ready.interrupt()
        asyncio.run(asyncio.sleep(pause))
        ready.interrupt()
        assert ready.finish(request)[:2] == ("error", STOPPED.format("kernel interrupt"))
        found = events(ready)
        assert [e["content"] for e in found if e["type"] == "respond"] == ["I am thinking"]
        assert found[-2]["detail"] == "kernel interrupt"
    ready.run("interrupts.DOUBLE_CLICK = limit")


def test_plain_cells_are_interrupted_as_before(ready):
    assert (
        ready.run("print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)")[1]
        == "True\n"
    )
    # in one long await the kernel itself hears nothing
    ticking = "mark()\nfor _ in range(1000): await asyncio.sleep(0.05)"
    for code, name in (
        ("mark()\ntime.sleep(60)", "KeyboardInterrupt"),
        (ticking, "CancelledError"),
    ):
        request = ready.send(code)
        ready.marked()
        ready.interrupt()
        status, said, _ = ready.finish(request)
        assert (status, name in said) == ("error", True), said
        assert "agent_nb" not in said


def test_nothing_is_set_while_the_kernel_is_idle(ready):
    ready.run("model = Model(mark, wait)")
    assert (
        queued(ready, "%%agent -m model --live\ngo", lambda: (ready.marked(), ready.interrupt()))[
            0
        ][0][0]
        == "error"
    )
    assert (
        ready.run("print(get_ipython().kernel.saved_sigint_handler is signal.SIG_IGN)")[1]
        == "True\n"
    )
    for _ in range(5):
        ready.interrupt()
    assert ready.run("print('alive')")[1] == "alive\n"


def test_unloading_gives_the_kernel_its_hooks_back(ready):
    hooks = "{'pre_handler_hook', 'post_handler_hook'} & vars(get_ipython().kernel).keys()"
    assert ready.run(f"print(len({hooks}))")[1] == "2\n"
    assert ready.run("%unload_ext agent_nb")[0] == "ok"
    assert (
        ready.run(
            f"print(len({hooks}), signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
        )[1]
        == "0 True\n"
    )
    assert ready.run("%load_ext agent_nb")[0] == "ok"
    assert ready.run("model = Model()")[0] == "ok"
    assert ready.run("%%agent -m model --live\ngo")[0] == "ok"
