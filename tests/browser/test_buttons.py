"""The buttons of the live view, clicked while their cell runs: each has its effect at once, and the
kernel lives on.
"""

import time

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("settled"),
]

# s, for the busiest machine: left alone the runs here go on for ten minutes; each test prints what
# it took (wanted: 1 s)
BOUND = 90.0
FRONTS = {
    "lab": ("lab", "this"),
    "notebook7": ("notebook", "this"),
    "lab-ipykernel7.3": ("lab", "7.3"),
    "lab-no-subshells": ("lab", "this"),
}
NO_SUBSHELLS = "() => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.commsOverSubshells = 'disabled'; }"
PREPARE = """
import asyncio, json, threading, time
from agent_nb import Scripted, tool
%load_ext agent_nb

def calling(name, *calls, then="That is all."):
    return Scripted([*(f"<execute>{json.dumps([{'name': name, 'args': args}])}</execute>" for args in calls), then])

kept = "still here"
sent = []
talk = Scripted([{"text": "<think>Where do I begin?</think>" + "I am still writing. " * 7500, "chunk": 5, "delay": 0.02}])
digging = calling("dig", {"depth": 12_000})
awaiting = calling("idle", {})
computing = calling("python", {"code": "print('begun')\\nawait asyncio.sleep(600)"})
blocking = calling("python", {"code": "print('begun')\\ntime.sleep(600)"})

spawning_spawn = calling("spawn", {})
spawning_python = calling("python", {"code": "spawn()"})

@tool(side_effects=True)
def spawn() -> str:
    "Print in a thread."
    thread = threading.Thread(target=lambda: print("from a thread", flush=True))
    thread.start()
    thread.join()
    return "done"

@tool
def dig(depth: int):
    "Dig, metre by metre."
    for metre in range(depth):
        time.sleep(0.05)
        yield (metre + 1) / depth
        yield f"metre {metre}\\n"

@tool
async def idle() -> str:
    "Wait for a long time."
    await asyncio.sleep(600)

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"
"""


@pytest.fixture(scope="module", params=FRONTS)
def front(request, opened):
    """A notebook in a front end where clicks arrive; one that knows no subshells stands for all but
    Jupyter's own.
    """
    notebook = opened(*FRONTS[request.param])
    notebook.subshells = request.param != "lab-no-subshells"
    if not notebook.subshells:
        notebook.page.evaluate(NO_SUBSHELLS)
    notebook.run(PREPARE)
    yield notebook
    notebook.close()


def timed(front, click, effect, what):
    """Click, wait for the effect, and check how long that took."""
    start = time.monotonic()
    click()
    effect()
    took = time.monotonic() - start
    print(f"{front.app}: {what} after {1000 * took:.0f} ms")
    assert took < BOUND


def stop(front, cell, what):
    button = front.button(cell, "■ Stop")
    button.wait_for()
    timed(front, button.click, lambda: front.wait(cell, BOUND), f"{what} stopped")
    events = front.events()
    assert [e["type"] for e in events[-2:]] == ["interrupt", "end"]
    assert events[-1]["status"] == "interrupted"
    front.sees(cell, "stopped")
    assert front.value("kept") == "still here"
    return events


def test_stop_while_the_model_writes_keeps_what_it_wrote(front):
    cell = front.begin("%%agent -m talk --live\nWrite.")
    front.sees(cell, "I am still writing")
    events = stop(front, cell, "the model")
    [answer] = [e for e in events if e["type"] == "respond"]
    assert answer["incomplete"]
    assert answer["content"].startswith("I am still writing")
    assert events[-2]["detail"] == "stop button"


@pytest.mark.parametrize(
    ("model", "tools", "seen"),
    [
        ("digging", "dig", "metre"),
        ("awaiting", "idle", "running idle"),
        ("computing", "python --approve auto", "begun"),
        ("blocking", "python --approve auto", "begun"),
    ],
)
def test_stop_while_a_tool_runs_cancels_it(front, model, tools, seen):
    cell = front.begin(f"%%agent -m {model} -t {tools} --live\nWork.")
    front.sees(cell, seen)
    if model == "blocking" and not front.subshells:  # no message gets past the busy thread there
        front.command("notebook:interrupt-kernel")
        front.wait(cell, BOUND)
        events = front.events()
    else:
        events = stop(front, cell, model)
    assert [e["status"] for e in events if e["type"] == "result"] == ["cancelled"]
    assert front.value("1 + 1") == 2


def ask(front, *texts):
    """Begin a run that asks whether it may send the texts, and wait for its question."""
    front.value(
        f"globals().update(sent=[], sending=calling('send', *({{'text': t}} for t in {texts!r})))"
    )
    cell = front.begin("%%agent -m sending -t send --live\nSend.")
    front.button(cell, "Approve").wait_for()
    return cell


def decisions(front):
    return [
        (e["decision"], e["by"], e["scope"])
        for e in front.events()
        if e["type"] == "approval" and e["stage"] == "decided"
    ]


def test_approve_runs_the_call(front):
    cell = ask(front, "hello")
    timed(front, front.button(cell, "Approve").click, lambda: front.wait(cell, BOUND), "approved")
    assert front.value("sent") == ["hello"]
    assert decisions(front) == [("allow", "click", "once")]


def test_deny_does_not_run_it_and_tells_the_model(front):
    cell = ask(front, "hello")
    front.press(cell, "Deny")
    front.output(cell).get_by_placeholder("Why not?").fill("Send it to Ada.")
    deny = front.button(cell, "Deny")
    timed(front, deny.click, lambda: front.wait(cell, BOUND), "denied")
    assert front.value("sent") == []
    assert [e["content"] for e in front.events() if e["type"] == "result"] == [
        "Not run: the user said no: Send it to Ada."
    ]
    assert decisions(front) == [("deny", "click", "once")]
    assert [e["status"] for e in front.events() if e["type"] == "result"] == ["denied"]


def test_approve_all_asks_no_more_about_this_tool(front):
    cell = ask(front, "one", "two", "three")
    front.press(cell, "Always…")
    timed(
        front,
        front.button(cell, "send in this run").click,
        lambda: front.wait(cell, BOUND),
        "all approved",
    )
    assert front.value("sent") == ["one", "two", "three"]
    assert decisions(front)[0] == ("allow", "click", "tool")


def test_edited_arguments_are_what_runs(front):
    cell = ask(front, "hello")
    editor = front.output(cell).get_by_label("text")
    timed(front, front.button(cell, "Edit").click, editor.wait_for, "an editor")
    assert editor.input_value() == "hello"
    editor.fill("good morning")
    timed(
        front,
        front.button(cell, "Approve as edited").click,
        lambda: front.wait(cell, BOUND),
        "approved as edited",
    )
    assert front.value("sent") == ["good morning"]
    [asked, decided] = [e for e in front.events() if e["type"] == "approval"]
    assert (asked["args"], decided["args"]) == ({"text": "hello"}, {"text": "good morning"})


@pytest.mark.parametrize("call", ["spawn", "python"])
def test_after_a_click_what_threads_print_stands_in_the_card_of_the_call(front, call):
    cell = front.begin(f"%%agent -m spawning_{call} -t {call} --live\nPrint.")
    front.button(cell, "Approve").click()
    front.wait(cell, BOUND)
    front.sees(cell, "That is all.")
    front.unfold(cell, call)
    front.sees(cell, "from a thread")
    assert front.output(cell).locator(".jp-OutputArea-child").count() == 1


def test_stop_while_a_question_is_open_runs_nothing(front):
    cell = ask(front, "hello")
    events = stop(front, cell, "the question")
    assert front.value("sent") == []
    assert [e["status"] for e in events if e["type"] == "result"] == ["cancelled"]
