"""Runs for the tests of the view.

A tape that keeps every event with its deltas, a long run with every kind of card, and checkers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from helpers.hazards import Hazards
from helpers.paths import DATA
from helpers.tape import TRACE, Tape, rich_run, start

from agent_nb import events as e
from agent_nb.events.log import EventLog


@pytest.fixture
def tape() -> Tape:
    """An empty tape."""
    return Tape()


@pytest.fixture
def begun() -> Tape:
    """A tape whose run has begun."""
    t = Tape()
    start(t)
    return t


@pytest.fixture(scope="session")
def rich() -> Tape:
    """A finished run with every kind of card; read only."""
    return rich_run()


@pytest.fixture(scope="session")
def hazards() -> Callable[[str], list[str]]:
    """A function that lists what must not be in an HTML text."""

    def find(text: str) -> list[str]:
        parser = Hazards()
        parser.feed(text)
        parser.close()
        return parser.found

    return find


@pytest.fixture(scope="session")
def hostile() -> list[str]:
    """The corpus of hostile texts."""
    return [case["text"] for case in json.loads((DATA / "xss.json").read_text(encoding="utf-8"))]


@pytest.fixture
def hostile_run() -> Callable[[str], EventLog]:
    """A function that puts one text into every place of a run that a model or tool can write to."""

    def make(text: str) -> EventLog:
        t = Tape()
        t(e.RunStart(model=text, settings={"source": text}))
        t(
            e.User(
                content=text,
                attachments=(
                    {"media_type": text, "data": text},
                    {"media_type": "image/png", "data": text},
                ),
            )
        )
        t.think(text, "t", attributes={text: text})
        t.tool("k1", text, {text: text, "code": text}, content=text)
        t.tool(
            "k2",
            "x",
            {"a": [text, {text: text}]},
            content={text: [text]},
            display={"text/html": text, "text/plain": text},
        )
        t.tool("k3", "x", {}, status="error", content=text, display={"text/plain": TRACE + text})
        t.tool(
            "k4",
            "x",
            {},
            content=[{text: text, "b": 1}],
            display={"image/png": text, "text/markdown": text},
            attachments=(
                {"media_type": text, "data": text, "name": text},
                {"media_type": "image/png", "data": text, "name": text, text: text},
                {"media_type": "image/svg+xml", "data": "PHN2Zz4="},
                {"media_type": "image/png", "data": [text]},
            ),
        )
        t.tool("k5", "x", {}, content="--- a\n+++ b\n@@ -1 +1 @@\n" + text)
        t.call("k6", "write", {"content": text})
        t(
            e.Approval(
                call_id="k6", stage="requested", args={"content": text}, extra={"preview": text}
            )
        )
        t(e.Approval(call_id="k6", stage="decided", decision="deny", by=text, reason=text))
        t(
            e.Progress(
                call_id="k6", text=text, message=text, data={"done": 1, "total": 2, "unit": text}
            )
        )
        t(e.Result(call_id="k6", name="write", status="denied", content=text))
        t(
            e.Node(name=text, phase="enter", span="n"),
            e.Node(name=text, phase="exit", span="n", result=text),
        )
        t(
            e.State(kind=text, payload={text: text}),
            e.State(
                kind="context",
                payload={"text": text, "variables": {text: text}, "changed": [text]},
            ),
            e.State(
                kind="model",
                payload={"model": text, "instead_of": text, "why": text, "raw": text},
            ),
            e.State(kind="mcp", payload={"server": text, "tools": [{"name": text}]}),
            e.Extension(namespace=text, name=text, payload=text),
        )
        t(e.Error(code=text, message=text, raw=text), e.Interrupt(reason="limit", detail=text))
        t.answer(text)
        t(e.Respond(content=json.dumps([{text: text}, {"b": [text]}]), extra={"typed": text}))
        t(e.Respond(content=json.dumps({text: [{text: text}], "b": text}), extra={"typed": text}))
        t.tool("k7", "add_cell", {"code": text, "why": text}, content=text)
        t.tool("k8", text, {text: text}, content=text)
        t(e.End(status="interrupted"))
        return t.log

    return make


@pytest.fixture
def every_split() -> Callable[[str], Iterator[tuple[str, str]]]:
    """A function that yields a text cut in two at each place."""
    return lambda text: ((text[:i], text[i:]) for i in range(len(text) + 1))
