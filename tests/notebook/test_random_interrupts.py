"""Interrupts at random moments: every cell replies, every log ends, and the queue stops.

How it is known what a press met: the kernel notes when a cell begins and ends, on the machine's
monotonic clock, and the test looks at the same clock just before and after each press. A third of
the presses come twice, within 60 ms.

`AGENT_NB_INTERRUPTS` says how many cells are interrupted in each kernel (8 if it is not set; 300 is
the full proof), `AGENT_NB_SEED` repeats the moments of an earlier time.
"""

import json
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter

import pytest

CELLS = int(os.environ.get("AGENT_NB_INTERRUPTS", "8"))
SEED = int(os.environ.get("AGENT_NB_SEED") or random.randrange(10**6))
EDGE = 0.03  # seconds around the beginning and the end of a cell into which half of the presses go
TWICE = 0.06  # seconds within which a double press comes
BOUND = 30.0  # seconds for a reply; without one the cell hangs

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.timeout(300 + 10 * CELLS),
    pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on POSIX"),
]

SETUP = """
%load_ext agent_nb
import asyncio, json, time
from pathlib import Path
import anyio
from agent_nb import Agent, tool
from agent_nb.models.parts import Text

def mark():
    Path("mark").touch()

class Model:
    name, dialect, grammar, shots, context = "test/model", "xml", False, False, 0

    def __init__(self, *turns, asked=None):
        self.turns, self.asked = turns, asked if asked is not None else []

    def start(self):
        time.sleep(0.03)
        return type(self)(*self.turns, asked=self.asked)

    async def stream(self, request):
        self.asked.append(1)
        text, *self.turns = self.turns
        await anyio.sleep(0.1)
        size = max(len(text) // 20, 1)
        for at in range(0, len(text), size):
            yield (Text(text[at : at + size]),)
            await anyio.sleep(0.005)

    async def aclose(self):
        pass

@tool
def blocks() -> str:
    "Block a thread."
    time.sleep(0.2)
    return "blocked"

@tool
def quick() -> str:
    "Return at once."
    return "done"

def calling(name, **args):
    return "Let me see. <execute>" + json.dumps([{"name": name, "args": args}]) + "</execute>"

notes = {}
ip = get_ipython()
together, held = 0, []  # how many requests are yet to come before one begins; those that have come

async def begin(take):
    while held:
        made = take(held.pop(0))
        if made is not None:  # ipykernel 7
            await made

def taken(message, take=ip.kernel.shell_stream._recv_callback):
    "Let a cell begin when those behind it have come: no kernel aborts what it has not got."
    global together
    together -= 1
    held.append(message)
    return begin(take) if together <= 0 else None

ip.kernel.shell_stream._recv_callback = taken

def over():
    list(notes.values())[-1].append(time.monotonic())

ip.events.register("pre_run_cell", lambda info: notes.setdefault(info.raw_cell, []).append(time.monotonic()))
ip.events.register("post_run_cell", lambda result: notes.setdefault(result.info.raw_cell, []).append(time.monotonic()))

answer = Model("I am still writing. " * 20)
long = Model("# A heading\\n\\nA **bold** paragraph.\\n\\n" * 200)
blocking = Model(calling("python", code="time.sleep(0.2)"), "Done.")
awaiting = Model(calling("python", code="await asyncio.sleep(0.2)"), "Done.")
threaded = Model(calling("blocks"), "Done.")
turning = Model(*[calling("quick")] * 4, "Done.")
behind = Model("x" * 400)

def phase(log):
    "Where a run was stopped."
    types = [e.type for e in log]
    if _agent.status == "ok":
        return "closing the view"
    if "node" not in types:
        return "before the model was asked"
    if types.count("approval") % 2:
        return "a question open"
    if any(e.type == "result" and e.status == "cancelled" for e in log):
        return "in a tool"
    if any(getattr(e, "incomplete", False) for e in log):
        return "streaming"
    return "waiting for the model" if types[-3] == "node" else "between turns"

def told(code):
    log = _agent.log
    types, seqs = [e.type for e in log], [e.seq for e in log]
    said = [e.content for e in log if e.type == "user"]
    return json.dumps([notes[code], types, seqs == list(range(1, len(log) + 1)), said, _agent.status, len(behind.asked), phase(log)])
"""

SCENES = {
    "model": "%%agent -m answer --live\n{}",
    "closing": "%%agent -m long --live\n{}",
    "synchronous Python": "%%agent -m blocking -t python --approve auto --live\n{}",
    "awaiting Python": "%%agent -m awaiting -t python --approve auto --live\n{}",
    "thread": "%%agent -m threaded -t blocks --live\n{}",
    "turns": "%%agent -m turning -t quick --live\n{}",
    "question": "%%agent -m blocking -t python --view html --live\n{}",
    "awaited": "mark()\nawait Agent(turning, [quick])('{}')\nover()",
}
OPEN = ("question",)  # it ends only when it is interrupted


class Cell:
    """A cell of a scene with two behind it: another that asks the model, and a plain one. `ends`
    are the replies to the three.

    `moment` in seconds from its beginning, or where a question is asked from that: when it is
    interrupted, `twice` after how many more seconds again (None: once).
    """

    def __init__(self, kernel, number, scene, moment=None, twice=None):
        self.prompt = f"go {number}"
        self.code = SCENES[scene].format(self.prompt)
        kernel.run("together = 3")
        sent = [kernel.send(self.code, cell="first", stdin=scene in OPEN)]
        sent += [
            kernel.send("%%agent -m behind --live\nnext", cell="second"),
            kernel.send("1", cell="third"),
        ]
        start = time.monotonic()
        if scene in OPEN:
            kernel.client.get_stdin_msg(timeout=BOUND)
            start, moment = time.monotonic(), moment or 0.0
        elif scene == "awaited":
            kernel.marked()
        self.presses = []
        for pause in (moment, twice):
            if pause is not None:
                self.press(kernel, (self.presses or [(start,)])[-1][0] + pause)
        replies = {}
        while len(replies) < len(sent):
            reply = kernel.client.get_shell_msg(timeout=BOUND)
            replies.setdefault(reply["parent_header"]["msg_id"], reply["content"])
            if len(replies) == 1:
                self.took = time.monotonic() - (self.presses[0][0] if self.presses else start)
        self.ends = [replies[request] for request in sent]
        for request in sent:
            kernel.output(request)
        status, text, _ = kernel.run(f"print(told({self.code!r}))")
        assert status == "ok", text
        self.times, self.types, self.gapless, self.said, self.status, self.asked, self.phase = (
            json.loads(text)
        )

    def press(self, kernel, when):
        time.sleep(max(when - time.monotonic(), 0))
        before = time.monotonic()
        os.kill(kernel.manager.provisioner.pid, signal.SIGINT)
        self.presses.append((before, time.monotonic()))

    def heard(self):
        """Whether a press came while the cell ran, from beginning to end (or to that of the run
        that it awaits).
        """
        began, ended, *_ = self.times
        return any(began <= before and after <= ended for before, after in self.presses)

    def check(self, asked):
        """Check that the log ended, and that the queue stopped if a press was heard; `asked`: how
        often the model behind was before.
        """
        first, second, third = (end["status"] for end in self.ends)
        if first == "error":
            assert self.ends[0]["ename"] == "AgentStopped", self.ends[0]
            assert "Traceback" not in "".join(self.ends[0]["traceback"])
        if first == "error" or self.heard():
            assert (second, third) == ("aborted", "aborted")
            assert self.asked == asked
        assert (first, second, third) in ENDS
        if second == "aborted":  # else the run that is told of is that of the second cell
            assert first == "error" or self.status == "ok"
            assert self.said == [self.prompt]
        assert self.types[0] == "run_start"
        assert self.types.index("end") == len(self.types) - 1
        assert self.gapless


ENDS = [  # the press met
    ("error", "aborted", "aborted"),  # the first cell
    ("ok", "aborted", "aborted"),  # what comes after its run
    ("ok", "error", "aborted"),  # the second one, which is an agent cell
    ("ok", "ok", "aborted"),  # what comes after that
    ("ok", "ok", "ok"),  # nothing of ours
]


@pytest.mark.long
def test_interrupts_at_random_moments_lose_no_reply_and_stop_the_queue(kernel):
    print(f"{CELLS} cells, seed {SEED}")
    dice = random.Random(SEED)
    status, text, _ = kernel.run(SETUP)
    assert status == "ok", text
    for _ in range(2):  # the first of all imports what it needs
        lengths = {scene: Cell(kernel, 0, scene).took for scene in SCENES if scene not in OPEN}
    took, met, asked = [], Counter(), Cell(kernel, 0, "model").asked
    for number in range(1, CELLS + 1):
        scene = list(SCENES)[number % len(SCENES)]
        length = lengths.get(scene, 0.3)
        edges = [dice.uniform(0, EDGE), dice.uniform(length - EDGE, length + EDGE)]
        moment = dice.choice([dice.uniform(0, length), dice.uniform(0, length), *edges])
        cell = Cell(
            kernel, number, scene, moment, dice.uniform(0.001, TWICE) if number % 3 == 0 else None
        )
        try:
            cell.check(asked)
        except AssertionError as fault:
            raise AssertionError(
                f"{scene}, {moment:.4f} of {length:.2f} s, seed {SEED}: {vars(cell)}"
            ) from fault
        asked = cell.asked
        stopped = cell.ends[0]["status"] == "error"
        met[cell.phase if stopped else "after its end" if cell.heard() else "outside the cell"] += 1
        took += [cell.took] if stopped else []
    took.sort()
    print(
        f"{dict(met)}; from press to reply: median {1000 * statistics.median(took):.0f} ms, "
        f"p99 {1000 * took[int(0.99 * (len(took) - 1))]:.0f} ms, longest {1000 * took[-1]:.0f} ms"
    )
    assert kernel.run("print(6 * 7)")[:2] == ("ok", "42\n")
