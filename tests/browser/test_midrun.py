"""A run while it goes on: the thought is open, the bar moves, the answer grows, Stop stands there,
and nothing jumps.
"""

import os
from itertools import pairwise

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

FOLDS = 0.1  # px a card folds in a ms: a line of 19.5 px in 200 ms (`view/folds.py`)
LAST_LINE = 31  # px of the line "first token …", which ends the page
PREPARE = """
import time
from pathlib import Path
from agent_nb import Scripted, tool
%load_ext agent_nb

@tool
def scan(column: str, rows: int = 400):
    "Scan a column for values that stand out."
    for row in range(rows):
        if row % 50 == 13:
            yield f"row {row}: {column} = 9999.0\\n"
        if row % 10 == 0:
            time.sleep(0.04)
            yield (row + 1) / rows
        while row % 25 == 0 and not Path(f"scanned-{row}").exists():
            time.sleep(0.02)
    return {"found": 8, "column": column}

answer = '''### Result

Eight prices are **9999.0**, which looks like a placeholder.

| row | price |
|---|---|
| 13 | 9999 |
| 63 | 9999 |

```python
prices[prices < 9999].mean()
```

''' + "Without them the mean is plausible, and this sentence only makes the answer longer. " * 8
thought = "The prices look odd. First I scan the column for values that stand out, and only then I compute a mean of what is left. " * 2
work = Scripted([
    {"text": f'<think>{thought}</think><execute>[{{"name": "scan", "args": {{"column": "price"}}}}]</execute>', "chunk": 6, "delay": 0.1},
    {"text": f"<think>Eight values stand out.</think>{answer}", "chunk": 5, "delay": 0.05},
])
"""
# Notes every frame whose picture differs: the output's height and that of the open cards in it, the
# ms since the frame before, where the header and the part below it are, the bar, and what goes on.
WATCH = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    window.frames_seen = [];
    let before = '', last = performance.now();
    const tall = node => node.getBoundingClientRect().height;
    const gone = '.agent-nb-closing.mod-active, .agent-nb-closed:not(.mod-active)';
    const look = time => {
        const output = cell.querySelector('.jp-Cell-outputArea');
        const live = output?.querySelector('.jupyter-widgets.agent-nb');
        if (output && !window.looking_away) {
            const top = node => node ? Math.round(node.getBoundingClientRect().top - output.getBoundingClientRect().top) : null;
            const head = live?.querySelector('.agent-nb-head');
            const bodies = [...(live?.querySelectorAll('.agent-nb-body') ?? [])].filter(body => !body.parentElement.closest('.agent-nb-body'));
            const folding = bodies.filter(body => tall(body) && [...body.parentElement.children].some(part => part.matches(gone)));
            const now = {
                live: Boolean(live), height: Math.round(tall(output)), head: top(head),
                bodies: Math.round(bodies.reduce((sum, body) => sum + tall(body), 0)), folding: folding.length,
                follows: top(head?.nextElementSibling), answering: Boolean(head?.innerText.includes('answering')),
                ended: output.textContent.includes('first token'),
                bar: parseFloat(live?.querySelector('.progress-bar')?.style.width ?? '-1'),
            };
            const text = JSON.stringify(now);
            if (text !== before) { before = text; window.frames_seen.push({...now, waited: time - last}); }
        }
        last = time;
        window.requestAnimationFrame(look);
    };
    look(last);
}"""

# Whether so many positions of the bar were painted: the rows go on when they were, so that a busy
# page misses none.
BARS = "count => new Set(window.frames_seen.map(f => f.bar).filter(bar => bar >= 0)).size >= count"

# What a cell's output looks like at the moment when it shows a text: all of it at once, because a
# run does not wait.
MOMENT = """([index, text]) => {
    const output = window.jupyterapp.shell.currentWidget.content.widgets[index].node.querySelector('.jp-Cell-outputWrapper');
    const stop = [...(output?.querySelectorAll('button') ?? [])].find(button => button.innerText.trim() === '■ Stop');
    const open = output?.querySelectorAll('.agent-nb-fold>.mod-active').length;
    return output?.innerText.includes(text) ? {text: output.innerText, stop: Boolean(stop && !stop.disabled), open} : null;
}"""


@pytest.fixture(scope="module")
def seen(opened):
    """Run a cell, look on at three moments of it, and return what was seen then and in
    all frames.
    """
    front = opened("lab", name="midrun")
    front.run(PREPARE)
    front.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    before = len(front.errors())
    cell = front.add("%%agent -m work -t scan --live\nWhich prices look wrong?")
    output = front.output(cell)
    front.page.evaluate(WATCH, cell)
    front.start(cell)
    moments = {}

    def moment(name, text):
        moments[name] = front.page.wait_for_function(
            MOMENT, arg=[cell, text], polling=20
        ).json_value()
        front.shot(f"midrun-{name}")

    moment("thought", "for values that stand out")
    go = [front.server.root / f"scanned-{row}" for row in range(0, 400, 25)]
    for path in go:
        path.unlink(missing_ok=True)  # of a first try
    for number, path in enumerate(go[:8], 1):
        path.touch()
        front.page.wait_for_function(BARS, arg=number, polling=20)
    moment("tool", "row 163")
    if os.environ.get("AGENT_NB_SHOTS"):
        # a change of the theme lays everything out anew
        front.page.evaluate("() => { window.looking_away = true; }")
        front.theme("JupyterLab Dark")
        front.shot("midrun-tool-dark")
        front.theme("JupyterLab Light")
        front.page.evaluate("() => { window.looking_away = false; }")
    for path in go[8:]:
        path.touch()
    moment("answer", "Without them")
    front.wait(cell)
    front.sees(cell, "ℹ")
    moments["end"] = {"text": output.inner_text(), "buttons": output.get_by_role("button").count()}
    front.shot("midrun-end")
    frames = front.page.evaluate("() => window.frames_seen")
    yield {**moments, "frames": frames, "errors": front.errors()[before:]}
    front.close()


def test_the_thought_is_open_while_it_grows(seen):
    assert seen["thought"]["open"] == 1
    assert "Thinking…" in seen["thought"]["text"]
    assert seen["tool"]["open"] >= 1  # the call; the thought, until it has given way
    assert "Thought for" in seen["tool"]["text"]


def test_the_bar_moves_and_the_output_grows_below_it(seen):
    bars = [frame["bar"] for frame in seen["frames"] if frame["bar"] >= 0]
    print(f"{len(set(bars))} positions of the bar")
    assert bars == sorted(bars)
    assert len(set(bars)) >= 8
    assert "row 163: price = 9999.0" in seen["tool"]["text"]
    assert "%" in seen["tool"]["text"]


def test_the_answer_is_there_before_it_is_whole(seen):
    assert "Eight prices are 9999.0" in seen["answer"]["text"]
    assert len(seen["answer"]["text"]) < len(seen["end"]["text"])


def test_stop_stands_there_all_the_time_and_not_afterwards(seen):
    assert [seen[name]["stop"] for name in ("thought", "tool", "answer")] == [True, True, True]
    assert seen["end"]["buttons"] == 0


def test_header_and_what_follows_it_stay_where_they_are(seen):
    live = [frame for frame in seen["frames"] if frame["live"] and frame["follows"] is not None]
    assert len({frame["head"] for frame in live}) == 1
    assert max(f["follows"] for f in live) - min(f["follows"] for f in live) <= 2


def test_the_answer_only_grows_and_the_end_moves_nothing(seen):
    frames = [f for f in seen["frames"] if f["answering"]]
    beside = [f["height"] - f["bodies"] for f in frames]  # without cards that give way
    shrunk = [(a, b) for a, b in pairwise(beside) if b < a - 24]
    print(f"{len(frames)} pictures of the answer, shrunk: {shrunk}")
    assert len(frames) >= 3  # a busy machine draws fewer
    assert shrunk == []
    live, static = seen["frames"][-2:]
    print(f"at the end {live['height']} px live, {static['height']} px static")
    assert (live["live"], static["live"]) == (True, False)
    # a busy page may not paint the live view with its last line before the static page replaces it
    last_line = 0 if live["ended"] else LAST_LINE
    assert abs(static["height"] - live["height"] - last_line) <= 16


def test_nothing_shrinks_but_what_has_ended(seen):
    live = [f for f in seen["frames"] if f["live"]]
    shrunk = [(a, b) for a, b in pairwise(live) if b["height"] < a["height"] - 24]
    beside = [(a, b) for a, b in pairwise(f["height"] - f["bodies"] for f in live) if b < a - 24]
    print(f"shrunk: {shrunk}, beside the cards that give way: {beside}")
    assert beside == []
    assert all(a["folding"] or b["folding"] for a, b in shrunk)


def test_a_card_that_gives_way_does_so_line_by_line(seen):
    live = [f for f in seen["frames"] if f["live"]]
    lost = [
        (a["bodies"] - b["bodies"], b["waited"])
        for a, b in pairwise(live)
        if b["bodies"] < a["bodies"]
    ]
    print(f"lost px in ms: {lost}")
    assert len(lost) >= 3
    # a busy page paints fewer frames: each shows what went since the one before
    assert [(px, ms) for px, ms in lost if px > 24 + FOLDS * ms] == []


def test_a_long_answer_only_grows(opened):
    """Finished text is left to its widget, widgets become one, and out of sight they rest: nothing
    is seen twice or vanishes.
    """
    front = opened("lab", name="long")
    front.run("""
from agent_nb import Scripted
from agent_nb.view.widgets import prose
prose.RECENT, prose.FAN = 1500, 3
%load_ext agent_nb
part = "## Part {}\\n\\nSome words of a paragraph that goes on for a line or two, to be read.\\n\\n- one\\n- two\\n\\n"
long = Scripted([{"text": "".join(part.replace("{}", str(n)) for n in range(150)), "chunk": 20, "delay": 0.008}])
""")
    cell = front.add("%%agent -m long --live\nWrite.")
    front.page.evaluate(WATCH, cell)
    front.start(cell)
    front.wait(cell)
    front.sees(cell, "ℹ")
    frames = [f for f in front.page.evaluate("() => window.frames_seen") if f["answering"]]
    changed = [b["height"] - a["height"] for a, b in pairwise(frames)]
    print(
        f"{len(frames)} pictures, grown by {max(changed)} px at most, shrunk by {-min(changed)} px"
    )
    assert len(frames) >= 20
    # a paragraph that turns out to be a heading or the like; what is seen twice shrinks by more
    assert min(changed) >= -60


def test_the_console_has_no_errors(seen):
    assert seen["errors"] == []
