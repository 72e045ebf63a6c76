"""Interrupting a run in real kernels: the cell ends soon, the log says so, and the next
cell works.
"""

import json
import time

import pytest

pytestmark = pytest.mark.kernel

BOUND = 2.0  # s, generous for a busy machine; each test prints what it took (wanted: 0.3 s)

SETUP = """
import asyncio, time, anyio
from pathlib import Path
from agent_nb import tool
from agent_nb.models.parts import Text
%load_ext agent_nb

def mark():
    Path("mark").touch()

class Model:
    name, dialect, grammar, shots, context = "test/model", "xml", False, False, 0

    def __init__(self, *texts):
        self.texts = texts

    def start(self):
        return type(self)(*self.texts)

    async def stream(self, request):
        text, *self.texts = self.texts
        yield (Text(text),)

    async def aclose(self):
        pass

class Waiting(Model):
    async def stream(self, request):
        yield (Text("I am thinking"),)
        mark()
        await anyio.sleep(60)

class Blocking(Model):
    async def stream(self, request):
        mark()
        time.sleep(60)
        yield ()

class SlowStart(Model):
    def start(self):
        mark()
        time.sleep(60)

@tool
async def waits() -> str:
    "Wait in the event loop."
    mark()
    await asyncio.sleep(60)

@tool
def blocks() -> str:
    "Block a thread."
    mark()
    time.sleep(60)

@tool
async def stubborn() -> str:
    "Wait, and not be cancelled."
    mark()
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

def calling(name, **args):
    import json
    return Model("<execute>" + json.dumps([{"name": name, "args": args}]) + "</execute>", "done")
"""

PYTHON = {
    "blocking": "mark()\ntime.sleep(60)",
    "awaiting": "mark()\nawait asyncio.sleep(60)",
    "swallowing": "mark()\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    pass",
    "printing": "mark()\nwhile True:\n    print('x', flush=True)",
    "library": "mark()\nimport threading\nthreading.Event().wait(60)",
}


@pytest.fixture(scope="module")
def ready(kernel):
    assert kernel.run(SETUP)[0] == "ok"
    kernel.run("model = Model('Hello.')")
    # what the first run imports is no part of an interrupt
    assert kernel.run("%%agent -m model\nwarm up")[0] == "ok"
    return kernel


def interrupted(kernel, model, options=""):
    """Run a cell with a model expression, interrupt it at its mark, and return the log's types and
    status.
    """
    assert kernel.run(f"model = {model}")[0] == "ok"
    request = kernel.send(f"%%agent -m model --approve auto {options}\ngo", cell="c1")
    kernel.marked()
    start = time.monotonic()
    kernel.interrupt()
    status, text, _ = kernel.finish(request)
    took = time.monotonic() - start
    print(f"{model}: the cell ended {1000 * took:.0f} ms after the interrupt")
    assert took < BOUND
    assert_stopped(status, text)
    return log(kernel)


def assert_stopped(status, text):
    assert (status, text.splitlines()[-1]) == (
        "error",
        "agent: stopped (kernel interrupt); what is queued behind this cell does not run",
    )
    assert "Traceback" not in text


def log(kernel):
    status, text, _ = kernel.run("print(_agent.events.to_ndjson())")
    assert status == "ok", text
    events = [json.loads(line) for line in text.splitlines() if line]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    return events


def assert_ended(events):
    assert [e["type"] for e in events[-2:]] == ["interrupt", "end"]
    assert events[-1]["status"] == "interrupted"
    calls = [e["call_id"] for e in events if e["type"] == "call"]
    assert [e["call_id"] for e in events if e["type"] == "result"] == calls


def test_during_a_model_wait_what_was_said_is_kept(ready):
    events = interrupted(ready, "Waiting()")
    assert_ended(events)
    assert any(
        e["type"] == "respond" and e["content"] == "I am thinking" and e["incomplete"]
        for e in events
    )


@pytest.mark.parametrize("code", PYTHON)
def test_during_python_code_of_the_model(ready, code):
    assert_ended(interrupted(ready, f"calling('python', code={PYTHON[code]!r})", "-t python"))
    assert ready.run("print('alive')")[1] == "alive\n"


@pytest.mark.parametrize("name", ["waits", "blocks", "stubborn"])
def test_during_a_tool(ready, name):
    events = interrupted(ready, f"calling({name!r})", f"-t {name}")
    assert_ended(events)
    assert next(e for e in events if e["type"] == "result")["status"] == "cancelled"


def test_before_the_first_event(ready):
    assert_ended(interrupted(ready, "SlowStart()"))


def test_while_an_expression_of_the_prompt_is_computed(ready):
    request = ready.send("%%agent -m model\n{{ mark() or time.sleep(60) }}", cell="c1")
    ready.marked()
    ready.interrupt()
    assert_stopped(*ready.finish(request)[:2])
    assert_ended(log(ready))


def test_a_second_press_leaves_a_run_behind_that_does_not_stop(ready):
    ready.run("model = Blocking()")
    request = ready.send("%%agent -m model\ngo", cell="c1")
    ready.marked()
    ready.interrupt()
    ready.between_presses()
    start = time.monotonic()
    ready.interrupt()
    status, text, _ = ready.finish(request)
    print(f"abandoned {1000 * (time.monotonic() - start):.0f} ms after the second press")
    assert_stopped(status, text)
    assert time.monotonic() - start < BOUND
    events = log(ready)
    assert_ended(events)
    assert "abandoned" in events[-2]["detail"]


def test_the_next_run_works_and_its_prints_are_its_own(ready):
    ready.run("model = calling('python', code='print(6 * 7)')")
    assert ready.run("%%agent -m model -t python --approve auto\ngo", cell="c2")[0] == "ok"
    assert [e["content"] for e in log(ready) if e["type"] == "result"] == ["42\n"]


def test_a_question_on_the_keyboard_can_be_answered_and_interrupted(ready):
    ready.run("model = calling('python', code='answered = True')")
    request = ready.send("%%agent -m model -t python --view html\ngo", cell="c3", stdin=True)
    question = ready.client.get_stdin_msg(timeout=60)
    assert "answered = True" in question["content"]["prompt"]
    ready.client.input("y")
    assert ready.finish(request)[0] == "ok"
    assert ready.run("print(answered)")[1] == "True\n"
    request = ready.send("%%agent -m model -t python --view html --live\ngo", cell="c3", stdin=True)
    ready.client.get_stdin_msg(timeout=60)
    ready.interrupt()
    assert_stopped(*ready.finish(request)[:2])
    assert_ended(log(ready))


def test_a_question_about_the_folder_can_be_interrupted(ready):
    ready.run("Path('.env').write_text('OPENAI_API_KEY=sk-none-such-key-0000')")
    request = ready.send("%%agent -m openai/none --live\ngo", cell="c4", stdin=True)
    assert ".env" in ready.client.get_stdin_msg(timeout=60)["content"]["prompt"]
    ready.interrupt()
    assert_stopped(*ready.finish(request)[:2])
    ready.run("Path('.env').unlink()")
    assert [e["type"] for e in log(ready)] == ["run_start", "user", "interrupt", "end"]


def test_reset_does_not_break_the_magic(ready):
    ready.run("%reset -f")
    ready.run("from agent_nb import Scripted\nmodel = Scripted(['Hello.'])")
    assert ready.run("%%agent -m model\ngo")[0] == "ok"
    assert ready.run(SETUP)[0] == "ok"  # other tests of this kernel may come after this one
