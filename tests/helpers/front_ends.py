"""Front ends without a browser: a client that speaks in messages, and IPython on a terminal."""

from __future__ import annotations

import json
import re
from queue import Empty
from typing import Any

from helpers.scenes import EVENTS, SCENES, Seen


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
            self._models.pop(ready)  # the next press is of another button of that label
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
                seen.question = self.terminal.expect(
                    r"(?:Allow it\?|Please answer|Arguments to change,) .*: "
                )
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
