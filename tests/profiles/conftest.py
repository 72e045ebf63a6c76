"""Front ends without a browser, each driven in the way of its profile.

- A client that speaks to a kernel in messages (with or without a keyboard, with or without widgets,
  never with a subshell).
- IPython on a pseudo-terminal, nbclient, nbconvert.

Each runs scenes (SCENES) and returns what was `Seen`. A runner executes all its scenes in one
notebook.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shutil
import sys
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from queue import Empty
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

DRIVERS = runpy.run_path(str(Path(__file__).parents[1] / "notebook" / "conftest.py"))
ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"
PREPARE = """
import json, time
from agent_nb import Scripted, tool
from agent_nb.models.parts import Text
%load_ext agent_nb

def calling(name, **args):
    return Scripted([f"<execute>{json.dumps([{'name': name, 'args': args}])}</execute>", "That is all."])

class Broken:
    name, dialect, grammar, shots, context = "test/broken", "xml", False, False, 0
    def start(self): return self
    async def stream(self, request):
        yield (Text("Half an answer"),)
        raise RuntimeError("the model is on fire")
    async def aclose(self): pass

sent, broken = [], Broken()
work = Scripted(['<think>Dig first.</think><execute>[{"name": "dig", "args": {"depth": 3}}]</execute>', "There is a **hole**."])
short = Scripted([{"text": "I am still writing. " * 15 + "The end.", "chunk": 5, "delay": 0.05}])
talk = Scripted([{"text": "I am still writing. " * 1000, "chunk": 5, "delay": 0.02}])
sending = calling("send", text="hello")

@tool
def dig(depth: int):
    "Dig, metre by metre."
    for metre in range(depth): yield (metre + 1) / depth
    return f"{depth} metres"

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"
"""
POLICY = "rules:\n  - allow: send\n    args: {text: hello}\n    reason: greetings are fine\n"
SCENES = {
    "work": "%%agent -m work -t dig\nDig a hole.",
    "short": "%%agent -m short\nWrite.",
    "talk": "%%agent -m talk\nWrite.",
    "ask": "%%agent -m sending -t send\nSend.",
    "policy": "%%agent -m sending -t send --approve policy.yaml\nSend.",
    "broken": "%%agent -m broken\nGo.",
}
EVENTS = "print(json.dumps([{'type': e.type, **{f: getattr(e, f) for f in e.__struct_fields__}} for e in _agent.log], default=str))"


@dataclass
class Seen:
    """What a reader of a cell saw.

    Its last display, its streams, every page shown, and the widgets opened (id → model) and closed.
    """

    shown: dict[str, Any] = field(default_factory=dict)
    streamed: str = ""
    pages: list[str] = field(default_factory=list)
    opened: dict[str, str] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    failed: bool = False
    question: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    @property
    def page(self) -> str:
        """The static page at the end."""
        return str(self.shown.get("text/html", ""))

    @property
    def text(self) -> str:
        """The readable words of the page or of the terminal."""
        return (
            unescape(re.sub("<[^>]*>", "", self.page))
            or str(self.shown.get("text/plain", ""))
            or self.streamed
        )

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == kind]


class Messages:
    """A front end that speaks to a kernel in messages."""

    def __init__(self, kernel: Any, *, keyboard: bool, widgets: bool) -> None:
        self.kernel, self.keyboard, self.widgets = kernel, keyboard, widgets
        self.client = kernel.client
        self._cells = 0
        self._models: dict[str, dict[str, Any]] = {}

    def scene(self, name: str, *steps: tuple[str, Any], line: str = "") -> Seen:
        """Run a scene with `steps`, each done as soon as possible.

        `press` a button, `fill` the editor, `type`, `interrupt` at a text.
        """
        options = f"{'' if self.widgets else '--view html '}--live {line}"
        seen = self.cell(SCENES[name].replace("%%agent ", f"%%agent {options} "), *steps)
        seen.events = json.loads(self.cell(EVENTS).streamed)
        seen.sent = json.loads(self.cell("print(json.dumps(sent)); sent.clear()").streamed)
        return seen

    def cell(self, code: str, *steps: tuple[str, Any]) -> Seen:
        """Run a cell to its end."""
        self._cells += 1
        seen, left = Seen(), list(steps)
        request = self.kernel.send(code, cell=f"{id(self)}-{self._cells}", stdin=self.keyboard)
        while not self._take(seen, request):
            self._asked(seen)
            if left and self._did(seen, *left[0]):
                left.pop(0)
        assert left == []
        while (reply := self.client.get_shell_msg(timeout=60))["parent_header"].get(
            "msg_id"
        ) != request:
            pass
        seen.failed = reply["content"]["status"] != "ok"
        return seen

    def _take(self, seen: Seen, request: str) -> bool:
        """Take the next message; return whether the cell has ended."""
        try:
            message = self.client.get_iopub_msg(timeout=0.05)
        except Empty:
            assert self.kernel.manager.is_alive()
            return False
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            seen.streamed += content["text"]
        elif kind in ("display_data", "update_display_data", "execute_result"):
            seen.shown = content["data"]
            seen.pages.append(content["data"].get("text/html", ""))
        elif kind == "error":
            seen.streamed += "\n".join(content["traceback"])
        elif kind.startswith("comm_"):
            self._widget(seen, kind, content)
        ended = kind == "status" and content["execution_state"] == "idle"
        return ended and message["parent_header"].get("msg_id") == request

    def _widget(self, seen: Seen, kind: str, content: dict[str, Any]) -> None:
        name, state = content["comm_id"], content.get("data", {}).get("state", {})
        if kind == "comm_open":
            seen.opened[name] = state.get("_model_name", "")
            self._models[name] = {}
        elif kind == "comm_close":
            seen.closed.add(name)
            self._models.pop(name, None)
        if name in self._models:
            self._models[name].update(state)
            seen.pages.append(str(state.get("value", "")))

    def _asked(self, seen: Seen) -> None:
        """Note a question on the keyboard."""
        try:
            seen.question = self.client.get_stdin_msg(timeout=0)["content"]["prompt"]
        except Empty:
            return
        assert self.keyboard

    def _did(self, seen: Seen, step: str, what: Any) -> bool:
        """Do a step if it is possible now."""
        ready = {
            "press": lambda: self._placed(
                self._find("ButtonModel", description=what, disabled=False)
            ),
            "fill": lambda: self._placed(self._find("TextareaModel")),
            "type": lambda: seen.question,
            "interrupt": lambda: any(what in page for page in [seen.streamed, *seen.pages]),
        }[step]()
        if not ready:
            return False
        if step == "press":
            self._say(ready, {"method": "custom", "content": {"event": "click"}})
        elif step == "fill":
            self._say(ready, {"method": "update", "state": {"value": what}, "buffer_paths": []})
        elif step == "type":
            self.client.input(what)
        else:
            self.kernel.interrupt()
        return True

    def _find(self, model: str, **traits: Any) -> str:
        for name, state in self._models.items():
            if state.get("_model_name") == model and all(
                state.get(k) == v for k, v in traits.items()
            ):
                return name
        return ""

    def _placed(self, name: str) -> str:
        """Return the name of a widget that is in the page, else "": it cannot be used before."""
        held = f"IPY_MODEL_{name}"
        return (
            name
            if name and any(held in state.get("children", ()) for state in self._models.values())
            else ""
        )

    def _say(self, comm: str, data: dict[str, Any]) -> None:
        self.client.shell_channel.send(
            self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        )


class Keyboard:
    """Terminal IPython."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal

    def scene(self, name: str, *steps: tuple[str, Any]) -> Seen:
        """Run a scene; `steps`: `type` an answer, `interrupt` (Ctrl-C) at a text."""
        line, body = SCENES[name].split("\n")
        for typed in (line, body, ""):
            self.terminal.type(f"{typed}\n")
            self.terminal.expect(r"\.\.\.: ")
        self.terminal.type("\n")
        seen = Seen()
        for step, what in steps:
            if step == "type":
                seen.question = self.terminal.expect(r"(?:Allow it\?|Please answer) .*: ")
                self.terminal.type(f"{what}\n")
            else:
                seen.streamed += self.terminal.expect(re.escape(what))
                self.terminal.type("\x03")
        seen.streamed += self.terminal.expect(r"\nIn \[\d+\]: ")
        seen.failed = "\nagent: " in seen.streamed
        seen.events, seen.sent = (
            self.value(EVENTS),
            self.value("print(json.dumps(sent)); sent.clear()"),
        )
        return seen

    def value(self, code: str) -> Any:
        """Return what a line of code prints, as JSON."""
        return json.loads(self.terminal.cell(code).rpartition("\n\n")[0].rpartition("\n")[2])

    def cell(self, code: str) -> Seen:
        """Run one line."""
        return Seen(streamed=self.terminal.cell(code))


class Watched(NotebookClient):  # type: ignore[misc]
    """An nbclient that records the pages it receives."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.pages: dict[int, list[str]] = {}

    def process_message(self, message: Any, cell: Any, index: int) -> Any:
        """Record a page."""
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.pages.setdefault(index, []).append(content["data"].get("text/html", ""))
        return super().process_message(message, cell, index)


class Runner:
    """nbclient or nbconvert: all scenes in one notebook, executed once; the endless one is
    interrupted by its time-out.
    """

    def __init__(self, folder: Path, *, convert: bool) -> None:
        self._names = [*SCENES]
        cells = [new_code_cell(PREPARE)]
        for name in self._names:
            cells += [
                new_code_cell(SCENES[name]),
                new_code_cell(f"{EVENTS}; print(json.dumps(sent)); sent.clear()"),
            ]
        cells.append(new_code_cell("_agent"))
        nb = new_notebook(cells=cells)
        resources = {"metadata": {"path": str(folder)}}
        options = {
            "allow_errors": True,
            "interrupt_on_timeout": True,
            "iopub_timeout": 60,
            "timeout_func": lambda cell: 5 if "-m talk" in cell.source else 60,
        }
        self.pages: dict[int, list[str]] = {}
        if convert:
            from nbconvert.preprocessors import ExecutePreprocessor

            ExecutePreprocessor(**options).preprocess(nb, resources)
        else:
            made = Watched(nb, resources=resources, **options)
            made.execute()
            self.pages = made.pages
        path = folder / f"{'converted' if convert else 'executed'}.ipynb"
        nbformat.write(nb, path)
        self.notebook = nbformat.read(path, 4)

    def scene(self, name: str) -> Seen:
        """Return what was seen of a scene."""
        index = 1 + 2 * self._names.index(name)
        seen = self._seen(index)
        events, sent = (
            "".join(o["text"] for o in self.notebook.cells[index + 1].outputs).strip().split("\n")
        )
        seen.events, seen.sent = json.loads(events), json.loads(sent)
        return seen

    def cell(self, code: str) -> Seen:
        """Return what was seen of the last cell, a run."""
        assert self.notebook.cells[-1].source == code
        return self._seen(len(self.notebook.cells) - 1)

    def html(self) -> str:
        """Return the page that nbconvert makes of the notebook."""
        from nbconvert import HTMLExporter

        made, _ = HTMLExporter().from_notebook_node(self.notebook)
        return str(made)

    def _seen(self, index: int) -> Seen:
        outputs = self.notebook.cells[index].outputs
        shown = [
            o["data"] for o in outputs if o["output_type"] in ("display_data", "execute_result")
        ]
        said = "".join(
            o["text"] if o["output_type"] == "stream" else "\n".join(o.get("traceback", ()))
            for o in outputs
        )
        failed = any(o["output_type"] == "error" for o in outputs)
        return Seen(
            shown=dict(shown[-1]) if shown else {},
            streamed=said,
            pages=self.pages.get(index, []),
            failed=failed,
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder for kernels and notebooks, with separate state folders and no keys."""
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "policy.yaml").write_text(POLICY)
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "IPYTHONDIR",
        ):
            patch.setenv(name, str(folder / name.lower()))
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        )
        patch.setenv("AGENT_NB_TRUST_FOLDER", "1")
        yield folder


@pytest.fixture(scope="module")
def kernel(folder: Path) -> Any:
    """A kernel of this Python."""
    kernel = DRIVERS["Kernel"](sys.executable, folder)
    assert kernel.run(PREPARE)[0] == "ok"
    yield kernel
    kernel.close()


@pytest.fixture(scope="module")
def terminal(folder: Path) -> Any:
    """IPython on a pseudo-terminal."""
    terminal = DRIVERS["Terminal"](folder)
    terminal.expect(r"In \[1\]: ", 60)
    (folder / "prepare.py").write_text(PREPARE.replace("%load_ext agent_nb\n", ""))
    terminal.cell("%load_ext agent_nb")
    terminal.cell("exec(open('prepare.py').read())")
    yield Keyboard(terminal)
    terminal.close()


@pytest.fixture(scope="module")
def nbclient(folder: Path) -> Runner:
    """A notebook executed by nbclient."""
    return Runner(folder, convert=False)


@pytest.fixture(scope="module")
def nbconvert(folder: Path) -> Runner:
    """A notebook executed by nbconvert."""
    if importlib.util.find_spec("nbconvert") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "nbconvert is not installed"
        )
    # a kernel that does not know its notebook would find what nbclient has written
    alone = folder / "alone"
    shutil.copytree(folder, alone, ignore=shutil.ignore_patterns("*.ipynb", "alone"))
    return Runner(alone, convert=True)


@pytest.fixture
def profile(request: pytest.FixtureRequest) -> Any:
    """A function that returns the front end of a profile."""

    def profile(name: str) -> Any:
        clients = {
            "no-widgets": {"keyboard": True, "widgets": False},
            "no-stdin": {"keyboard": False, "widgets": True},
            "no-subshell": {"keyboard": True, "widgets": True},
        }
        if name in clients:
            return Messages(request.getfixturevalue("kernel"), **clients[name])
        return request.getfixturevalue(name)

    return profile
