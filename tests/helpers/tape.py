"""A log whose time is set by hand and that keeps its deltas; runs that hold every kind of card."""

from __future__ import annotations

import json
from typing import Any

from agent_nb import events as e
from agent_nb.events.log import EventLog

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
