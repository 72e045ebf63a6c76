"""Runs for the tests of the view.

A tape that keeps every event with its deltas, a long run with every kind of card, and checkers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog

DATA = Path(__file__).parents[1] / "data"
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 2, in load\n    return frame["price"]\nKeyError: \'price\'\n'
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ANSWER = """## What the prices say

The median is **28.9**, the mean `41.2`, and $\\mu > 3$. It costs $5 or $6.

| region | price |
|---|--:|
| north | 9,999.0 |
| south | 0.01 |

1. Replace it.
2. Ask [the supplier](https://example.com).

```python
def clean(frame):
    return frame[frame.price < 5_000]  # bounds
```

> A quotation.
"""


class Tape:
    """A log with a fixed clock that keeps every appended event, deltas included."""

    def __init__(self, run: str = "run000000001") -> None:
        self.now = 1_763_700_000.0
        self.log = EventLog(run, clock=lambda: self.now)
        self.seen: list[e.Event] = []

    def __call__(self, *events: e.Event, after: float = 0.01) -> None:
        for event in events:
            self.now += after
            self.seen.append(self.log.append(event))

    def stream(
        self, block: str, of: str, text: str, *, size: int = 5, name: str = "", **where: Any
    ) -> None:
        for at in range(0, len(text), size):
            self(e.Delta(block=block, of=of, name=name, text=text[at : at + size], **where))

    def think(self, text: str, block: str, **fields: Any) -> None:
        where = {k: v for k, v in fields.items() if k in ("span", "parent")}
        self.stream(block, "think", text, **where)
        self(e.Think(content=text, block=block, **fields))

    def answer(self, text: str, block: str = "r1", **fields: Any) -> None:
        where = {k: v for k, v in fields.items() if k in ("span", "parent")}
        self.stream(block, "respond", text, **where)
        self(e.Respond(content=text, block=block, **fields))

    def call(self, call_id: str, name: str, args: dict[str, Any], **where: Any) -> None:
        raw = json.dumps(args)
        self.stream(f"b{call_id}", "call", raw, name=name, **where)
        self(
            e.Call(
                call_id=call_id, name=name, args=args, raw_args=raw, block=f"b{call_id}", **where
            )
        )

    def tool(
        self, call_id: str, name: str, args: dict[str, Any], *, took: float = 0.5, **result: Any
    ) -> None:
        where = {k: result.pop(k) for k in ("span", "parent") if k in result}
        self.call(call_id, name, args, **where)
        self(
            e.Execute(batch=call_id, calls=(call_id,), **where),
            e.Started(call_id=call_id, name=name, **where),
        )
        self(
            e.Result(
                call_id=call_id, name=name, duration=took, **{"content": "done", **result, **where}
            ),
            after=took,
        )


def start(tape: Tape, **settings: Any) -> None:
    about = {"source": "from AGENT_NB_MODEL", "limits": {"turns": 12}, **settings}
    tape(e.RunStart(agent="main", model="openai/gpt-5.1", dialect="native", settings=about))
    tape(e.User(content="Which prices in `df` look wrong?", origin="user"))


def rich_run() -> Tape:
    """Return a run with every kind of card."""
    t = Tape()
    start(t)
    t(e.Node(name="llm", phase="enter", span="m1"))
    t.think(
        "Look at the columns first. The price is skewed.\n\n- then **outliers**",
        "t1",
        span="m1",
        attributes={"type": "plan"},
    )
    t(e.Extension(namespace="openai", name="resend", payload={"secret": 1}, span="m1"))
    t(e.Node(name="llm", phase="exit", span="m1", result="ok"))
    frame = {
        "text/plain": "DataFrame of shape 2 × 2",
        "text/html": "<table><tr><th>a</th><td>1</td></tr></table>",
    }
    t.tool(
        "k1", "variables", {"name": "df"}, content="DataFrame of shape 2 × 2\n   a", display=frame
    )
    t(
        e.Metric(
            step=e.Counts(input=900, output=60),
            total=e.Counts(input=900, output=60, duration=2.0, ttft=0.4, cost=0.002),
        )
    )
    for call_id, name in (("p1", "scan"), ("p2", "read"), ("p3", "python")):
        t.call(
            call_id, name, {"code": "x = 1\nprint(x)"} if name == "python" else {"column": "price"}
        )
    t(e.Execute(batch="b", calls=("p1", "p2", "p3")))
    for call_id, name in (("p1", "scan"), ("p2", "read"), ("p3", "python")):
        t(e.Started(call_id=call_id, name=name))
    t(e.Delta(of="result", block="p2", text="error"))
    for i in range(1, 11):
        t(
            e.Progress(
                call_id="p1",
                data={"done": i * 10, "total": 100, "unit": "rows"},
                message="scanning",
            ),
            after=0.1,
        )
        t(e.Progress(call_id="p1", text=f"chunk {i}\n"))
    t(e.Delta(of="result", block="p3", text="ok"))
    t(
        e.Result(
            call_id="p1", name="scan", content=[{"region": "north", "price": 9999.0}], duration=1.2
        )
    )
    t(
        e.Result(
            call_id="p2",
            name="read",
            status="error",
            content="No such file: a.csv.",
            duration=0.002,
        )
    )
    t(
        e.Result(
            call_id="p3",
            name="python",
            content="<Figure>",
            display={"image/png": PIXEL, "text/plain": "<Figure>"},
            duration=0.8,
        )
    )
    t.call("w1", "write", {"file": "o.csv", "content": "a\nb\n"})
    diff = "--- o.csv\n+++ o.csv\n@@ -0,0 +1 @@\n+a"
    t(
        e.Approval(
            call_id="w1",
            stage="requested",
            args={"file": "o.csv", "content": "a\nb\n"},
            extra={"preview": diff},
        )
    )
    t(
        e.Approval(call_id="w1", stage="decided", decision="allow", scope="tool", by="click"),
        after=2.0,
    )
    t(e.Execute(batch="c", calls=("w1",)), e.Started(call_id="w1", name="write"))
    t(e.Result(call_id="w1", name="write", content="wrote 2 lines", duration=0.004))
    t(e.Error(code="retry", message="429 from the provider.", retryable=True))
    t.call("s1", "subagent", {"task": "find the supplier"})
    t(e.Execute(batch="d", calls=("s1",)), e.Started(call_id="s1", name="subagent"))
    t(e.Node(name="researcher", phase="enter", span="n1", data={"call_id": "s1"}))
    t(e.Node(name="llm", phase="enter", span="n1m", parent="n1"))
    t.think("Look in suppliers.json.", "n1t", span="n1m", parent="n1")
    t.tool(
        "n1k",
        "read",
        {"file": "suppliers.json"},
        span="n1",
        content={"north": {"name": "Aurora", "tags": ["a", "b"]}},
    )
    t.answer("It is **Aurora**.", "n1r", span="n1")
    t(e.Node(name="researcher", phase="exit", span="n1", result="ok"))
    t(e.Result(call_id="s1", name="subagent", content="It is Aurora.", duration=0.9))
    t(
        e.Node(name="graph", phase="enter", span="g1"),
        e.Node(name="graph", phase="exit", span="g1", result="error: lost"),
    )
    t.tool(
        "k2",
        "load",
        {"column": "price"},
        status="error",
        content="KeyError: 'price'",
        display={"text/plain": TRACE},
    )
    t(
        e.State(kind="checkpoint", payload={"step": 3}),
        e.Extension(namespace="x", name="note", payload=[1]),
    )
    t(e.Error(code="forged_results", message="The model wrote results.", raw="<results>"))
    t.answer(ANSWER)
    t(
        e.Metric(
            step=e.Counts(input=1900, output=212),
            total=e.Counts(input=2800, output=412, duration=5.8, ttft=0.4, cost=0.0041),
        )
    )
    t(e.End(status="ok", finish_reason="stop"))
    return t


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


TAGS = (
    "a b br blockquote code col colgroup del details div em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span "
    "strong sub summary sup table tbody td tfoot th thead tr u ul var wbr abbr bdi caption dd dl dt"
)
ATTRIBUTES = (
    "style title href rel target src alt role open scope start class colspan rowspan align width height "
    "tabindex aria-label aria-live aria-valuemin aria-valuemax aria-valuenow"
)
CLASSES = {
    "agent-nb mathjax_ignore tex2jax_ignore",
    "mathjax_ignore tex2jax_ignore",
    "mathjax_process tex2jax_process",
}
FORBIDDEN = re.compile(
    r"(?<!list-style-)position|z-index|url\(|expression|behavior|@import|float|transform|opacity|(?<![a-z-])content\s*:|-moz-binding"
    r"|margin[a-z-]*:[^;]*-\d",
    re.IGNORECASE,
)


class Hazards(HTMLParser):
    """Collects forbidden parts of a page: tags, attributes, addresses and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS.split():
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            self._attribute(tag, name, value or "")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name not in ATTRIBUTES.split():
            self.found.append(f"{tag}[{name}]")
        if name == "href" and not re.match(r"(https?://|mailto:)", value, re.I):
            self.found.append(f"href={value}")
        if name == "src" and not re.match(r"data:image/(png|jpeg|gif|webp);base64,", value):
            self.found.append(f"src={value[:60]}")
        if name == "class" and value not in CLASSES and not re.fullmatch("an-[a-z]{3}", value):
            self.found.append(f"class={value}")
        if name == "style" and FORBIDDEN.search(value):
            self.found.append(f"style={value}")

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.found.append("declaration")


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
            e.Extension(namespace=text, name=text, payload=text),
        )
        t(e.Error(code=text, message=text, raw=text), e.Interrupt(reason="limit", detail=text))
        t.answer(text)
        t(e.End(status="interrupted"))
        return t.log

    return make


@pytest.fixture
def every_split() -> Callable[[str], Iterator[tuple[str, str]]]:
    """A function that yields a text cut in two at each place."""
    return lambda text: ((text[:i], text[i:]) for i in range(len(text) + 1))
