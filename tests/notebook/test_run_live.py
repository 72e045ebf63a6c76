"""The button of a replayed cell: the same prompt is asked live, in the place of the replay, when no
cell runs.
"""

import itertools
import json
import os
import sys
import time
from pathlib import Path

import pytest
from helpers.scripts import calling

from agent_nb.record.outputs import RunNumbers
from agent_nb.record.record import METADATA_KEY, RECORD_MIME

NUMBERS = itertools.count(1)
pytestmark = [pytest.mark.kernel, pytest.mark.timeout(300)]
SETUP = """
import os
os.environ["JPY_SESSION_NAME"] = "somewhere/n.ipynb"
%load_ext agent_nb
from agent_nb import Scripted
class Once(Scripted):
    "Goes on where it stopped."
    identity = "once"
    def start(self):
        return self
"""
WIDGET = "application/vnd.jupyter.widget-view+json"


class Front:
    """Sends cells and presses buttons; keeps what the kernel says of displays, buttons
    and texts.
    """

    def __init__(self, kernel):
        self.client = kernel.client
        self.name = f"c{next(NUMBERS)}"  # of the agent cell of this test, and of its conversation
        self.source = f"%%agent -m model -t python --approve auto -c {self.name}\ngo"
        self.buttons, self.closed, self.shown, self.text, self.idle, self.replies = (
            {},
            set(),
            [],
            "",
            set(),
            {},
        )

    def hear(self, until, seconds=120):
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, (self.text, self.shown[-1:], self.buttons)
            try:
                self._take(self.client.get_iopub_msg(timeout=1))
            except Exception as fault:
                if type(fault).__name__ != "Empty":
                    raise

    def _take(self, message):
        kind, content = message["msg_type"], message["content"]
        if kind in ("comm_open", "comm_msg"):
            state = content["data"].get("state", {})
            known = self.buttons.setdefault(content["comm_id"], {})
            known.update(state)
        elif kind == "comm_close":
            self.closed.add(content["comm_id"])
        elif kind in ("display_data", "update_display_data"):
            self.shown.append((message["parent_header"]["msg_id"], content))
        elif kind in ("stream", "error"):
            self.text += content.get("text", "") + "".join(content.get("traceback", []))
        elif kind == "status" and content["execution_state"] == "idle":
            self.idle.add(message["parent_header"]["msg_id"])

    def agent(self, option=""):
        """Run the agent cell of this test."""
        return self.cell(
            self.source.replace("%%agent", f"%%agent {option}".rstrip()), cell=self.name
        )

    def cell(self, code, cell="other"):
        asked = self.send(code, cell)
        self.hear(lambda: asked in self.idle)
        # ipykernel 7.0 to 7.3 may lose a request that arrives while it replies to another
        self.reply(asked)
        return asked

    def reply(self, asked):
        """Wait for the reply to a cell and return its status."""
        while asked not in self.replies:
            reply = self.client.get_shell_msg(timeout=60)
            self.replies[reply["parent_header"].get("msg_id")] = reply["content"].get("status")
        return self.replies[asked]

    def send(self, code, cell="other"):
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
        }
        message = self.client.session.msg("execute_request", content, metadata={"cellId": cell})
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def button(self, label, but=()):
        """The newest button of that label that can be pressed."""
        usable = [
            c
            for c, s in self.buttons.items()
            if s.get("description") == label and not s.get("disabled")
        ]
        found = [c for c in usable if c not in self.closed and c not in but]
        return found[-1] if found else None

    def press(self, label, but=()):
        self.hear(lambda: self.button(label, but))
        data = {"method": "custom", "content": {"event": "click"}}
        self.client.shell_channel.send(
            self.client.session.msg("comm_msg", {"comm_id": self.button(label, but), "data": data})
        )

    @property
    def last(self):
        """The last display but buttons."""
        return next(
            content
            for _, content in reversed(self.shown)
            if RunNumbers.BUTTON not in content["metadata"].get(METADATA_KEY, {})
        )

    def static(self):
        """Whether the last display is the static bundle of a live run."""
        return (
            bool(self.shown)
            and RECORD_MIME in self.last["data"]
            and WIDGET not in self.last["data"]
        )


OTHERS = [
    python for python in os.environ.get("AGENT_NB_TEST_KERNELS", "").split(os.pathsep) if python
]


@pytest.fixture(params=[sys.executable, *OTHERS], ids=lambda p: Path(p).parent.parent.name or p)
def kernel(request, kernel_type, tmp_path):
    """A kernel for one test: a view that stays holds on to the cell it belongs to."""
    kernel = kernel_type(request.param, tmp_path)
    yield kernel
    kernel.close()


@pytest.fixture
def front(kernel):
    front = Front(kernel)
    front.cell(SETUP)
    assert "Error" not in front.text
    return front


def replayed(front, turns):
    """Record the cell, then replay it."""
    front.cell(f"model = Once({turns!r})")
    front.agent("--live")
    front.hear(front.static)
    front.agent()
    front.hear(lambda: "replayed" in json.dumps(front.last["data"].get("text/plain", "")))
    front.hear(front.static)
    front.hear(lambda: front.button("↻ Run live"))


def buttons(front):
    """What was shown of buttons: the displays with their data."""
    return [
        (c["transient"]["display_id"], c["data"])
        for _, c in front.shown
        if RunNumbers.BUTTON in c["metadata"].get(METADATA_KEY, {})
    ]


@pytest.mark.long
def test_a_replay_leaves_a_static_page_with_its_record_and_a_button(front):
    replayed(front, ["one", "two"])
    assert "one" in front.last["data"]["text/plain"]
    assert "replayed, recorded" in front.last["data"]["text/html"]
    assert RunNumbers.LIVE not in front.last["metadata"][METADATA_KEY]
    [(display, data)] = buttons(front)
    assert display != front.last["transient"]["display_id"]
    assert list(data) == [WIDGET]


def test_a_press_runs_the_prompt_live_in_the_same_display_and_records_it(front):
    replayed(front, ["one", "two", "three"])
    before, display = front.last["data"][RECORD_MIME]["id"], front.last["transient"]["display_id"]
    front.press("↻ Run live")
    front.hear(lambda: front.static() and "two" in front.last["data"]["text/plain"])
    assert front.last["transient"]["display_id"] == display
    assert [data for _, data in buttons(front)][1:] == [{}]
    assert front.last["data"][RECORD_MIME]["id"] != before
    assert "replayed" not in front.last["metadata"][METADATA_KEY]
    front.cell(
        f"s = get_ipython().magics_manager.registry['AgentMagics'].session.conversations[{front.name!r}]"
    )
    front.cell("print(_agent.answer, len(s.turns))")
    front.hear(lambda: "two 1" in front.text)
    front.agent()
    front.hear(lambda: "two" in front.last["data"].get("text/plain", ""))


@pytest.mark.long
def test_what_its_tools_do_happens_in_the_kernel(front):
    call = calling("python", code="made = len(globals().get('marks', [])); marks = [1]; 5")
    replayed(front, [call, "one", call, "two"])
    front.press("↻ Run live")
    front.hear(lambda: front.static() and "two" in front.last["data"]["text/plain"])
    front.cell("print('made', made)")
    front.hear(lambda: "made 1" in front.text)


@pytest.mark.long
def test_a_live_run_by_button_asks_by_buttons(front):
    front.source = front.source.replace("--approve auto", "--approve ask")
    call = calling("python", code="allowed = 7")
    replayed(front, ["one", call, "two"])
    front.press("↻ Run live")
    front.press("Approve")
    front.hear(lambda: front.static() and "two" in front.last["data"]["text/plain"])
    front.cell("print('allowed', allowed)")
    front.hear(lambda: "allowed 7" in front.text)


@pytest.mark.long
def test_a_press_while_the_conversation_is_in_use_starts_nothing(front):
    replayed(front, ["one", "two"])
    front.cell(
        f"c = get_ipython().magics_manager.registry['AgentMagics'].session.conversations[{front.name!r}]; c.running = 'x'"
    )
    front.press("↻ Run live")
    front.hear(lambda: "busy" in front.text)
    front.cell("c.running = ''")
    front.press("↻ Run live")
    front.hear(lambda: front.static() and "two" in front.last["data"]["text/plain"])


def test_a_live_run_by_button_can_be_stopped(front):
    replayed(front, ["one", {"chunks": ["a "] * 400, "delay": 0.1}])
    old = set(front.buttons)
    front.press("↻ Run live")
    front.press("■ Stop", but=old)
    front.hear(
        lambda: front.static() and front.last["metadata"][METADATA_KEY]["status"] == "interrupted"
    )


@pytest.mark.long
def test_stopping_a_live_run_by_button_stops_the_cells_that_it_held_up(front):
    replayed(front, ["one", {"chunks": ["a "] * 400, "delay": 0.1}])
    front.cell(
        "from agent_nb.notebook.cell.frontend import handles_messages_beside_cells; print('held up:', handles_messages_beside_cells())"
    )
    held_up = "held up: True" in front.text
    old = set(front.buttons)
    front.press("↻ Run live")
    front.hear(lambda: front.button("■ Stop", old))
    behind = front.send("behind = True")
    front.press("■ Stop", but=old)
    front.hear(
        lambda: front.static() and front.last["metadata"][METADATA_KEY]["status"] == "interrupted"
    )
    assert front.reply(behind) == ("aborted" if held_up else "ok")
    assert front.reply(front.cell("print('alive')")) == "ok"
    assert "stopped (" not in front.text


@pytest.mark.long
def test_the_widgets_are_closed_when_the_cell_runs_again(front):
    replayed(front, ["one", "two"])
    old = front.button("↻ Run live")
    front.agent()
    front.hear(lambda: old in front.closed)
    front.hear(lambda: front.button("↻ Run live"))


@pytest.mark.long
def test_without_a_jupyter_server_the_button_goes_with_the_next_cell(front):
    front.cell("del os.environ['JPY_SESSION_NAME']")
    replayed(front, ["one", "two"])
    button = front.button("↻ Run live")
    front.cell("1")
    front.hear(lambda: button in front.closed)
    assert buttons(front)[-1][1] == {}
    assert front.static()


def test_a_live_run_leaves_no_button(front):
    front.cell("model = Once(['one'])")
    front.cell("%%agent -m model --live\nanother")
    front.hear(front.static)
    assert front.button("↻ Run live") is None
