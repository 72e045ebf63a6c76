"""The cells that every front end runs, and what was seen of one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any

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
