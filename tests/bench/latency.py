"""How soon things are seen in a real JupyterLab: the card after Enter, beside what a plain cell
prints; the first words of the model, the end; and a flood of progress.

    python tests/bench/latency.py [--rounds 7] [--wait 0]

The page's clock and the kernel's are one machine's. "Painted" is after the frame in which the text
stands in the document. Other work on the machine (`load`) only adds to a figure, so the best of the
rounds is printed too. The first cell of a kernel runs as soon as the extension is loaded, or
`--wait` seconds later, when its modules are imported. The flood is a tool that reports 10,000 times
in a second: what counts is the messages that reach the browser in any second, that the record has
the whole output, and how long after the run's end its static view is painted.
"""

from __future__ import annotations

import argparse
import bisect
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import common  # noqa: F401  (makes helpers importable)

MIME = "application/vnd.agent-nb.run+json"
SETUP = """
%load_ext agent_nb
import time
from agent_nb import EventLog, Scripted, tool
stamps, append = [], EventLog.append
def stamped(log, event):
    if "FIRST" in getattr(event, "text", ""):
        stamps.append(time.time())
    return append(log, event)
EventLog.append = stamped
quick = lambda: Scripted([{"chunks": ["", "FIRST words", " and", " others."], "delay": 0.3}])
@tool
def flood():
    "Report ten thousand times in a second."
    start = time.perf_counter()
    for number in range(10_000):
        yield f"line {number}\\n"
        ahead = start + number / 10_000 - time.perf_counter()
        if ahead > 0.002:
            time.sleep(ahead)
    return "LAST"
model = quick()
flooding = Scripted(['<execute>[{"name": "flood", "args": {}}]</execute>', "The END."])
"""
# Notes when each text is first painted in the output of a cell.
WATCH = """([index, texts]) => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    const painted = window.painted = {};
    window.watching?.disconnect();
    const look = () => {
        const shown = cell.querySelector('.jp-Cell-outputWrapper')?.textContent ?? '';
        for (const text of texts) if (!(text in painted) && shown.includes(text)) {
            painted[text] = 0;
            requestAnimationFrame(() => setTimeout(() => { painted[text] = performance.timeOrigin + performance.now(); }));
        }
    };
    window.watching = new MutationObserver(look);
    window.watching.observe(cell, {childList: true, subtree: true, characterData: true});
}"""
PRESS = """async index => {
    const cells = window.jupyterapp.shell.currentWidget.content;
    cells.activeCellIndex = index;
    await cells.scrollToItem(index);
    window.ended = window.ended || {};
    window.ended[index] = false;
    window.pressed = performance.timeOrigin + performance.now();
    window.jupyterapp.commands.execute('notebook:run-cell').finally(() => { window.ended[index] = true; });
}"""


def run(notebook: Any, code: str, texts: list[str]) -> tuple[dict[str, float], float, int]:
    """Run a cell; return when each text was painted, when Enter was pressed (ms since the epoch),
    and the cell.
    """
    cell = notebook.add(code)
    notebook.page.evaluate(WATCH, [cell, texts])
    notebook.page.evaluate(PRESS, cell)
    notebook.wait(cell, 120)
    notebook.page.wait_for_function(
        "n => Object.values(window.painted).filter(Boolean).length === n",
        arg=len(texts),
        polling=50,
    )
    return (
        notebook.page.evaluate("() => window.painted"),
        notebook.page.evaluate("() => window.pressed"),
        cell,
    )


def once(notebook: Any) -> tuple[float, float]:
    """Run an agent; return the ms from Enter to its card, and from the first part of its answer to
    the paint.
    """
    painted, pressed, _ = run(notebook, "%%agent -m model --live --new\nGo.", ["scripted", "FIRST"])
    first = notebook.value(
        "(stamps[0], stamps.clear(), globals().__setitem__('model', quick()))[0]"
    )
    return painted["scripted"] - pressed, painted["FIRST"] - 1000 * first


def print_once(notebook: Any) -> float:
    """Run a plain cell; return the ms from Enter to what it prints."""
    painted, pressed, _ = run(notebook, "print('a plain', 'cell')", ["a plain cell"])
    return painted["a plain cell"] - pressed


def soon(notebook: Any, rounds: int) -> None:
    """Measure Enter → card, first part → paint, and Enter → the output of a plain cell."""
    cards, parts, plain = zip(
        *((*once(notebook), print_once(notebook)) for _ in range(rounds)), strict=True
    )
    load = os.getloadavg()[0]
    figures = {"Enter to card": cards, "first part to paint": parts, "Enter to plain output": plain}
    for name, found in figures.items():
        print(
            f"{name:24} median {statistics.median(found):6.0f} ms   best {min(found):6.0f} ms   "
            f"worst {max(found):6.0f} ms   of {rounds}   load {load:.1f}",
            flush=True,
        )


def flood(notebook: Any, session: Any) -> None:
    """Measure a tool that reports ten thousand times in a second."""
    arrived: list[float] = []
    session.on("Network.webSocketFrameReceived", lambda _: arrived.append(time.monotonic()))
    painted, _, cell = run(
        notebook, "%%agent -m flooding -t flood --live --new\nGo.", ["END.", "_agent.to_frame()"]
    )
    ended = notebook.value("_agent.log[-1].ts")
    busiest = max((bisect.bisect(arrived, t + 1.0) - i for i, t in enumerate(arrived)), default=0)
    lines = notebook.value("sum(e.text.count('\\n') for e in _agent.log.of('progress'))")
    events = notebook.value("len(_agent.log.of('progress'))")
    saved = notebook.save().cells[cell].outputs
    kept = any(MIME in getattr(o, "data", {}) for o in saved) or bool(
        notebook.save().metadata.get("agent_nb")
    )
    print(
        f"{'10,000 progress in 1 s':24} {busiest} messages in the busiest second, {lines} lines in {events} events of the record"
    )
    print(
        f"{'':24} record in the file: {kept}, static view {painted['_agent.to_frame()'] - 1000 * ended:.0f} ms after the end",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    import nbformat
    from helpers.jupyter_server import FLAGS, Server, browser_path
    from helpers.notebook_page import Notebook
    from playwright.sync_api import sync_playwright

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--wait", type=float, default=0, help="seconds before the first cell")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        server = Server(Path(folder) / "lab")
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1200, "height": 1500})
        try:
            spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            made = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(SETUP)], metadata={"kernelspec": spec}
            )
            nbformat.write(made, server.root / "latency.ipynb")
            notebook = Notebook(context, server, "lab", "latency.ipynb")
            session = context.new_cdp_session(notebook.page)
            session.send("Network.enable")
            notebook.start(0)
            notebook.wait(0)
            time.sleep(asked.wait)
            card, part = once(notebook)
            print(
                f"{'first cell of a kernel':24} {card:6.0f} ms from Enter to card, {part:.0f} ms from first part to paint",
                flush=True,
            )
            soon(notebook, asked.rounds)
            flood(notebook, session)
        finally:
            context.close()
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
