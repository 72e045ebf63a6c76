"""One layout: a run of 15 s in a real front end, every line of it measured ten times a second.

Lines that stay must stay where they are when the static page replaces the live view, and while the
run goes on nothing may jump up. A line is known by its first letters and its place among equal
ones; what scrolls in a box of its own is measured as that box.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# px that a line may move at the end of a run, and up between two frames, which are FRAME ms apart;
# on a busy machine it is more, and the line may have moved for so much longer
SWAP, JUMP, FRAME = 2, 24, 120
SETUP = r'''
import json, time
from agent_nb import Agent, Scripted, tool
%load_ext agent_nb

@tool
def measure(city: str, days: int) -> dict:
    "Measure the weather of some days."
    for day in range(days):
        time.sleep(.1)
        print(f"day {day + 1}: {12 + day} degrees and a light wind from the west")
        yield (day + 1) / days
    return {"city": city, "mean": 14.5, "days": [{"day": d, "degrees": 12 + d} for d in range(days)]}

@tool
def look(what: str) -> str:
    "Look at something."
    time.sleep(.2)
    return f"{what}: nothing unusual"

@tool
def compute(code: str) -> str:
    "Run code."
    for line in code.splitlines():
        time.sleep(.15)
        print("ran", line)
        yield None
    return "done"

def said(text, delay=.03, chunk=12):
    return {"text": text, "chunk": chunk, "delay": delay}

CODE = "import math\n\ndef area(radius):\n    # of a circle\n    return math.pi * radius ** 2\n\nfor radius in range(4):\n    print(radius, area(radius))\n"
THOUGHT = "First I look at what the question needs. " * 3 + "\n\n- the weather of five days\n- a comparison\n\nThen I compute `mean` and compare."
ANSWER = """## What came out

The **mean** is 14.5 degrees, which is `0.8` above the year before. The areas grow as $a = \\pi r^2$ says, and the
[source](https://example.org) explains why. This paragraph is long enough to take several lines in every column, so that
its line height counts more than once when it is measured here.

| city | mean | wind |
|:-----|-----:|------|
| Oslo | 14.5 | west |
| Bergen | 13.0 | north west |
| Tromsø | 9.5 | calm |

1. First a list with numbers,
2. with a second item that has `code` in it,
   - and a nested one,
   - and another.
3. And a third.

- A point
- Another point, **bold**

### A smaller heading

> A remark in a block, which takes
> two lines.

```python
def mean(values):
    # the mean
    return sum(values) / len(values)
```

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

---

#### The last part

That is all there is to say about the weather of these days; the rest is in the table above and in the code below it.
"""
def calls(*pairs):
    return f"<execute>{json.dumps([{'name': n, 'args': a} for n, a in pairs])}</execute>"

helper = Agent(Scripted([
    said("<think>A small question.</think>" + calls(("look", {"what": "the archive"}))),
    said("The archive has **three** entries about it.")], name="helper"), tools=[look], name="helper")
archive = helper.as_tool(description="Ask the archive.")
model = Scripted([
    said(f"<think>{THOUGHT}</think>I begin with the weather." + calls(("measure", {"city": "Oslo", "days": 12}))),
    said("<think>Now the areas.</think>" + calls(("compute", {"code": CODE}), ("look", {"what": "the sky"}))),
    said("Then I ask the archive about the years before." + calls(("helper", {"prompt": "What do you know of the years before?"}))),
    said(ANSWER, .08)], name="layout")
'''
CELL = "%%agent -m model -t measure,compute,look,archive --live\nWhat is the weather like, and how large are the circles?"
# whether both formulas of the answer are typeset in the page that stays
TYPESET = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    const formulas = [...cell.querySelectorAll('mjx-container')];
    return formulas.length === 2 && formulas.every(formula => formula.childElementCount);
}"""
FRAMES = r"""([index, every]) => {
    const wrapper = () => window.jupyterapp.shell.currentWidget.content.widgets[index].node.querySelector('.jp-Cell-outputWrapper');
    const scrolls = node => node.scrollHeight > node.clientHeight + 1 && !['visible', 'hidden', 'clip'].includes(getComputedStyle(node).overflowY);
    const look = now => {
        const root = wrapper(), lines = [], seen = {};
        if (!root) return {live: false, lines};
        const top = root.getBoundingClientRect().top;
        const put = (name, box) => {
            seen[name] = (seen[name] || 0) + 1;
            lines.push([`${name}#${seen[name]}`, Math.round(10 * (box.top - top)) / 10, Math.round(box.left), Math.round(box.width)]);
        };
        const boxed = new Set();
        const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let text = walk.nextNode(); text; text = walk.nextNode()) {
            const words = text.data.trim();
            const parent = text.parentElement;
            if (words.length < 3 || parent.closest('style,script,.jupyter-button,mjx-container') || !parent.checkVisibility()) continue;
            let box = parent, inside = false;
            while (box !== root) {
                if (scrolls(box)) { inside = true; boxed.add(box); break; }
                box = box.parentElement;
            }
            if (inside) continue;
            const range = document.createRange();
            range.selectNodeContents(text);
            [...range.getClientRects()].filter(r => r.height > 2 && r.width > 2)
                .forEach((r, n) => put(`${words.slice(0, 24)}|${n}`, r));
        }
        [...boxed].forEach(box => put(`[box] ${box.innerText.trim().slice(0, 16)}`, box.getBoundingClientRect()));
        return {live: Boolean(root.querySelector('.jupyter-widgets')), height: root.getBoundingClientRect().height, at: now, lines};
    };
    window.frames_ = []; window.watching = true; window.lookOnce = look;
    let last = 0;
    // as the page is painted: between two paints everything stands still; `now` is the time of the
    // paint, which moves what is animated, and not that of a busy page's turn to measure it
    const step = now => {
        if (now - last >= every) { last = now; window.frames_.push(look(now)); }
        if (window.watching) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
}"""


@pytest.fixture(scope="module", params=["lab", "notebook"])
def notebook(request, opened):
    """An open notebook with the scripted run."""
    made = opened(request.param, name="layout", cells=(SETUP,))
    made.start(0)
    made.wait(0)
    yield made
    made.close()


def recorded(notebook: Any) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    """Run the cell; return the frames of the live view, the static page, and the cell's index."""
    cell = notebook.add(CELL)
    notebook.page.evaluate(FRAMES, [cell, 80])
    notebook.start(cell)
    notebook.wait(cell)
    notebook.output(cell).locator(".jupyter-widgets").first.wait_for(state="detached")
    notebook.page.wait_for_function(TYPESET, arg=cell, polling=50)
    notebook.page.evaluate("() => { window.watching = false; }")
    frames = notebook.page.evaluate("() => window.frames_")
    return [f for f in frames if f["live"]], notebook.page.evaluate("() => window.lookOnce()"), cell


def moves(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[float, str]]:
    """Return how far the lines that are in both frames moved, with their names.

    Words that flow to another place of their paragraph are not the same line.
    """
    there = {name: (top, place) for name, top, *place in after["lines"]}
    return [
        (round(there[n][0] - top, 1), n)
        for n, top, *place in before["lines"]
        if n in there and all(abs(a - b) <= SWAP for a, b in zip(there[n][1], place, strict=True))
    ]


@pytest.fixture(scope="module")
def run(notebook):
    """The frames of the run."""
    return recorded(notebook)


def find_shifts(frames: list[dict[str, Any]], static: dict[str, Any]) -> list[str]:
    """Return the lines that the static page shows elsewhere than the last frame, or not, in words.

    Up to three may be gone: what the header says.
    """
    moved = moves(frames[-1], static)
    gone = {n for n, *_ in frames[-1]["lines"]} - {name for _, name in moved}
    lost = [f"gone {n}" for n in sorted(gone)] if len(gone) > 3 else []
    assert len(moved) + len(lost) > 60
    return [f"{d:+.1f} {n}" for d, n in moved if abs(d) > SWAP] + lost


def test_no_line_moves_when_the_static_page_replaces_the_live_view(run, notebook):
    frames, static, _ = run
    shifts = find_shifts(frames, static)
    if shifts:  # the machine may have stood still for a moment; a fault shows in each run
        frames, static, _ = recorded(notebook)
        shifts = find_shifts(frames, static)
    assert not shifts, "\n".join(shifts)


def find_jumps(frames: list[dict[str, Any]]) -> list[str]:
    """Return the lines that jump up from one frame to the next, in words."""
    return [
        f"frame {number}, {b['at'] - a['at']:.0f} ms: {d:+.1f} {n}"
        for number, (a, b) in enumerate(pairwise(frames))
        for d, n in moves(a, b)
        if d < -JUMP * max(1, (b["at"] - a["at"]) / FRAME)
    ]


def test_nothing_jumps_up_while_the_run_goes_on(run, notebook):
    frames, _, _ = run
    assert len(frames) > 30  # a busy machine paints fewer
    jumps = find_jumps(frames)
    if jumps:  # as above
        frames, _, _ = recorded(notebook)
        jumps = find_jumps(frames)
    assert not jumps, "\n".join(jumps)
