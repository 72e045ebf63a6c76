"""What the codec tests share: the hand-written corpora, and reading and writing them in
every way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from helpers.codec_io import Tool, objects, written
from helpers.paths import DATA

from agent_nb import events as ev
from agent_nb.events import Event
from agent_nb.host import plugins

CORPORA = DATA / "corpora"


@pytest.fixture
def tool() -> Callable[[str], Tool]:
    """A function that gives the Tool of a codec."""
    return Tool


@pytest.fixture
def corpus() -> Callable[[str], str]:
    """A function that gives the text of a corpus by its file's stem."""
    return lambda stem: next(CORPORA.glob(f"{stem}.*")).read_text(encoding="utf-8")


@pytest.fixture
def our_run() -> list[Event]:
    """A run of ours as its log stores it: a thought, two calls (one fails), an answer in three
    pieces.
    """
    say = [
        ev.RunStart(
            agent="helper", model="lab/m", dialect="xml", tools=("sh",), settings={"hash": "h"}
        ),
        ev.User(content="List a", origin="user"),
        ev.Node(
            name="llm", span="llm-1", turn=1, data={"attempt": 1, "messages": 2, "internal": True}
        ),
        ev.Think(content="Look first.", block="1.1", turn=1, origin="model"),
        ev.Call(
            call_id="call_1_1",
            synthetic=True,
            name="sh",
            args={"c": "ls"},
            raw_args='{"c": "ls"}',
            batch="1.batch1",
            turn=1,
        ),
        ev.Call(
            call_id="call_1_2",
            synthetic=True,
            name="sh",
            args={"c": "cat b"},
            batch="1.batch1",
            index=1,
            turn=1,
        ),
        ev.Node(name="llm", span="llm-1", phase="exit", result="ok", turn=1, data={"status": 200}),
        ev.Metric(
            step=ev.Counts(input=20, output=9, duration=0.5),
            total=ev.Counts(input=20, output=9, duration=0.5),
            turn=1,
        ),
        ev.Execute(batch="1.batch1", calls=("call_1_1", "call_1_2"), turn=1),
        ev.Started(call_id="call_1_1", name="sh", turn=1, origin="tool"),
        ev.Progress(call_id="call_1_1", text="a\n", turn=1, origin="tool"),
        ev.Result(call_id="call_1_1", name="sh", content="a", duration=0.2, turn=1, origin="tool"),
        ev.Result(
            call_id="call_1_2",
            name="sh",
            content="no such file",
            status="error",
            turn=1,
            origin="tool",
        ),
        ev.Node(
            name="llm", span="llm-2", turn=2, data={"attempt": 1, "messages": 4, "internal": True}
        ),
        ev.Respond(content="There is a.", block="2.1", chunks="FAEKCA", turn=2, origin="model"),
        ev.Node(name="llm", span="llm-2", phase="exit", result="ok", turn=2),
        ev.Metric(
            step=ev.Counts(input=40, output=5),
            total=ev.Counts(input=60, output=14, duration=0.5),
            turn=2,
        ),
        ev.End(status="ok", finish_reason="stop", turn=2),
    ]
    return [
        msgspec.structs.replace(e, seq=i, ts=1767225600.0 + i / 10, run="run1")
        for i, e in enumerate(say, 1)
    ]


@pytest.fixture
def parsed() -> Callable[[str], list[tuple[str, Any, str | None]]]:
    """The function `objects`."""
    return objects


@pytest.fixture
def joined() -> Callable[[Sequence[str]], str]:
    """The function `written`."""
    return written


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`name`: every codec; `foreign`: every codec but the canonical one; `stem`: every corpus with
    the codec that reads it.
    """
    names = plugins.list_plugins("codecs")
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", names)
    if "foreign" in metafunc.fixturenames:
        metafunc.parametrize("foreign", [n for n in names if n != "canonical"])
    if "stem" in metafunc.fixturenames:
        metafunc.parametrize("stem", sorted(p.stem for p in CORPORA.iterdir()))
