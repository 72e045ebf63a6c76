"""Benchmark of the live view in a real JupyterLab: a long markdown answer streamed, beside the
usual ways to show one.

    python tests/bench/view.py [--tokens 20000] [--seconds 12] [--rounds 3] [--only NAME]

Prints one line a way: bytes from server to browser, kernel CPU, CPU of the page's main thread (all
of it, and layout), lag at the end (from the kernel's last message to what the page shows), widgets.
Medians of the rounds; a round runs every way once, so that all of them share the machine's moods.
`ours` is run for twice the text as well. The page is only watched for its end during the last
second: a watch is work for it too.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from common import PART

SETUP = """
PART = THE_PART
import asyncio, time, threading
import ipywidgets as w
from IPython.display import display
from ipywidgets.widgets import widget as registry
def made(size):
    text, i = "", 0
    while len(text) < size:
        i += 1
        text += PART.replace("{i}", str(i))
    return text[:size]
async def paced(pieces, seconds, do):
    start = time.perf_counter()
    for number, piece in enumerate(pieces):
        do(piece)
        ahead = start + seconds * (number + 1) / len(pieces) - time.perf_counter()
        if ahead > 0.004: await asyncio.sleep(ahead)
def cut(text, tokens):
    size = max(1, len(text) // tokens)
    return [text[i:i + size] for i in range(0, len(text), size)]
""".replace("THE_PART", repr(PART))
OURS = """
from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.publish import publish_display as publish
from agent_nb.view.live import LiveView, ViewOptions
log = EventLog()
view = LiveView.open(log, ViewOptions(kind="widgets"), publish=publish)
log.append(e.RunStart(model="bench"))
cpu = time.process_time()
await paced(cut(made({size}), {tokens}), {seconds}, lambda t: log.append(e.Delta(block="r", of="respond", text=t)))
log.append(e.Delta(block="r", of="respond", text="\\n\\nTHE-END"))
log.append(e.Respond(block="r", content=made({size}) + "\\n\\nTHE-END"))
sent_at = time.time()
log.append(e.End())
await asyncio.sleep(1.0)
cpu = time.process_time() - cpu
def count(x): return 1 + sum(count(c) for c in getattr(x, "children", ()))
widgets = count(view._painter.board.root)
"""
HTML = """
box = w.HTML(); display(box); shown = [""]
cpu = time.process_time(); done = [False]
def add(t): shown[0] += t
async def paint():
    while not done[0]:
        box.value = "<pre>" + shown[0] + "</pre>"; await asyncio.sleep(1 / {hz})
task = asyncio.ensure_future(paint())
await paced(cut(made({size}), {tokens}), {seconds}, add)
done[0] = True; await task
box.value = "<pre>" + shown[0] + "THE-END</pre>"
sent_at = time.time()
await asyncio.sleep(1.0)
cpu = time.process_time() - cpu; widgets = 1
"""
ANY = """
import anywidget
class Deltas(anywidget.AnyWidget):
    _esm = '''export default {{ render({{model, el}}) {{ const p = document.createElement("pre"); el.append(p);
        model.on("msg:custom", m => p.append(m.t)); }} }}'''
box = Deltas(); display(box); await asyncio.sleep(1.0); held = [""]; done = [False]
cpu = time.process_time()
def add(t): held[0] += t
async def paint():
    while not done[0]:
        if held[0]: box.send({{"t": held[0]}}); held[0] = ""
        await asyncio.sleep(1 / {hz})
task = asyncio.ensure_future(paint())
await paced(cut(made({size}), {tokens}), {seconds}, add)
done[0] = True; await task
box.send({{"t": held[0] + "THE-END"}})
sent_at = time.time()
await asyncio.sleep(1.0)
cpu = time.process_time() - cpu; widgets = 1
"""
WAYS = {
    "ours": (OURS, 0, 1),
    "ours, twice the text": (OURS, 0, 2),
    "HTML.value 20 Hz": (HTML, 20, 1),
    "HTML.value 100 Hz": (HTML, 100, 1),
    "anywidget deltas 20 Hz": (ANY, 20, 1),
}
WATCH = """([i, after]) => { window.__seen = 0; const look = () => {
    const o = window.jupyterapp.shell.currentWidget.content.widgets[i].node.querySelector('.jp-Cell-outputWrapper');
    if (o && o.textContent.includes('THE-END')) window.__seen = Date.now(); else setTimeout(look, 10); }; setTimeout(look, after); }"""


def tasks(session: Any) -> tuple[float, float]:
    """Return the CPU seconds of the page's main thread so far, and those of layout."""
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return found["TaskDuration"], found["LayoutDuration"]


def size(frame: dict[str, Any]) -> int:
    """Return the bytes of a frame of a web socket; those that are no text come in base64."""
    data = frame["payloadData"]
    return len(base64.b64decode(data)) if frame["opcode"] == 2 else len(data.encode())


def measure(context: Any, server: Any, code: str, seconds: float) -> dict[str, float]:
    """Run one way in a notebook of its own."""
    import nbformat
    from helpers.notebook_page import Notebook

    name = f"bench-{time.monotonic_ns()}.ipynb"
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(SETUP)], metadata={"kernelspec": spec}
    )
    nbformat.write(made, server.root / name)
    notebook = Notebook(context, server, "lab", name)
    session = context.new_cdp_session(notebook.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    session.send("Network.enable")
    received = [0]
    session.on(
        "Network.webSocketFrameReceived",
        lambda f: received.__setitem__(0, received[0] + size(f["response"])),
    )
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.add(code)
    before, bytes_before = tasks(session), received[0]
    notebook.page.evaluate(WATCH, [cell, 1000 * (seconds - 1)])
    notebook.start(cell)
    notebook.wait(cell, seconds + 90)
    notebook.page.wait_for_function("()=>window.__seen", timeout=60_000, polling=50)
    after = tasks(session)
    lag = notebook.page.evaluate("()=>window.__seen") / 1000 - notebook.value("sent_at")
    row = {
        "MB": (received[0] - bytes_before) / 1e6,
        "kernel s": notebook.value("cpu"),
        "task s": after[0] - before[0],
        "layout s": after[1] - before[1],
        "lag ms": 1000 * lag,
        "widgets": notebook.value("widgets"),
    }
    notebook.close()
    server.end_kernels()
    return row


def main() -> None:
    """Measure every way and print a table."""
    from helpers.jupyter_server import FLAGS, Server, browser_path
    from playwright.sync_api import sync_playwright

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokens", type=int, default=20_000)
    options.add_argument("--seconds", type=float, default=12.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="")
    asked = options.parse_args()
    ways = dict(WAYS)
    if importlib.util.find_spec("anywidget") is None:
        del ways["anywidget deltas 20 Hz"]
        print("anywidget is not installed and not measured: pip install anywidget")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        server = Server(Path(folder) / "lab")
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1200, "height": 1500})
        rows: dict[str, list[dict[str, float]]] = defaultdict(list)
        try:
            for _ in range(asked.rounds):
                for name, (code, hz, times) in ways.items():
                    if asked.only not in name:
                        continue
                    seconds = asked.seconds * times
                    filled = code.format(
                        size=5 * asked.tokens * times,
                        tokens=asked.tokens * times,
                        seconds=seconds,
                        hz=hz,
                    )
                    rows[name].append(measure(context, server, filled, seconds))
        finally:
            context.close()
            browser.close()
            server.stop()
    for name, found in rows.items():
        medians = {k: statistics.median(row[k] for row in found) for k in found[0]}
        print(f"{name:24}", "  ".join(f"{k} {v:8.2f}" for k, v in medians.items()))


if __name__ == "__main__":
    main()
