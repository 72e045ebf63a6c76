"""A long notebook in a real JupyterLab: sixty agent cells, beside sixty cells that show the same
answers as plain HTML.

    python tests/bench/notebook.py [--cells 60] [--rounds 3] [--untrusted]

Prints one line for each notebook: the size of its file; seconds from the request of the page to
its first painted output; the time of a frame while the whole notebook scrolls by (95 of 100 frames
are shorter); the time of 45 letters that are typed into a cell in the middle. Beside each stands
the CPU time of the page's process, of a frame for frames; that of the letters includes half a
second of rest. Each figure is the best of the rounds, since other work on the machine (`load`) only
adds to it, with the median in brackets. A round measures both notebooks.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from common import PART

SETUP = f"""
import json
from agent_nb import Scripted, tool
%load_ext agent_nb
@tool
def scan(column: str, chunks: int):
    "Scan a column."
    for chunk in range(chunks):
        print(f"chunk {{chunk + 1}}: {{chunk % 4}} candidates")
        yield (chunk + 1) / chunks
    return [{{"row": n, "price": 28.9 + n, "region": "north"}} for n in range(8)]
CODE = "rows = [{{'price': n ** 2, 'region': 'north'}} for n in range(9)]\\nfor row in rows:\\n    print(row)\\n"
def calls(*pairs):
    return f"<execute>{{json.dumps([{{'name': n, 'args': a}} for n, a in pairs])}}</execute>"
ANSWER = {PART * 2!r}.replace("{{i}}", "7") + "$$\\\\hat{{\\\\sigma}}^2 = \\\\frac{{1}}{{n}} \\\\sum_i x_i^2$$"
model = Scripted([
    "<think>I look at the prices first. Then I compare the regions.</think>" + calls(("python", {{"code": CODE}})),
    calls(("scan", {{"column": "price", "chunks": 9}}), ("scan", {{"column": "region", "chunks": 3}})),
    ANSWER])
"""
CELL = "%%agent -m model -t python,scan --approve auto --new --live\nWhich prices stand out in part {}?"
# Notes when the output of a cell is painted, in ms since the page was requested.
OPENED = """
    window.opened = 0;
    const look = () => {
        const shown = document.querySelector('.jp-Notebook .jp-OutputArea-output h2');
        if (shown) requestAnimationFrame(() => setTimeout(() => { window.opened = performance.now(); }));
        else setTimeout(look, 10);
    };
    look();
"""
# Scrolls to the end, `step` px a frame; returns how long the frames took, in ms.
SCROLL = """step => new Promise(done => {
    const outer = document.querySelector('.jp-Notebook .jp-WindowedPanel-outer'), frames = [];
    let last = performance.now(), before = -1;
    const move = () => {
        const now = performance.now();
        frames.push(now - last);
        last = now;
        if (outer.scrollTop === before) { done(frames); return; }
        before = outer.scrollTop;
        outer.scrollTop = before + step;
        requestAnimationFrame(move);
    };
    outer.scrollTop = 0;
    requestAnimationFrame(move);
})"""
# Notes the time of the first key and of the paint after the latest one.
TYPED = """() => {
    window.typed = [];
    document.addEventListener('keydown', event => {
        window.typed[0] ??= event.timeStamp;
        requestAnimationFrame(() => setTimeout(() => { window.typed[1] = performance.now(); }));
    }, true);
}"""
WORDS = "prices = reviews.groupby('region').price.mean"  # 45 letters


def write_notebooks(server: Any, cells: int, *, trusted: bool) -> dict[str, Path]:
    """Run the agent cells; return both notebooks by name. `trusted`: by the user of the server."""
    import nbformat
    from nbformat.sign import NotebookNotary
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    from agent_nb.view.markdown.stream import render

    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    ours, plain = server.root / "agent.ipynb", server.root / "plain.ipynb"
    prompts = [CELL.format(n) for n in range(cells)]
    made = new_notebook(
        cells=[new_code_cell(c) for c in (SETUP, *prompts)], metadata={"kernelspec": spec}
    )
    nbformat.write(made, ours)
    command = [sys.executable, "-m", "agent_nb", "run", "--inplace", str(ours)]
    subprocess.run(command, check=True, capture_output=True)
    html = render(PART.replace("{i}", "7") * 2)
    peer = new_notebook(
        cells=[
            new_code_cell(
                f"display(HTML(answers[{n}]))",
                outputs=[new_output("display_data", {"text/html": html, "text/plain": "answer"})],
            )
            for n in range(cells + 1)
        ],
        metadata={"kernelspec": spec},
    )
    nbformat.write(peer, plain)
    notary = NotebookNotary(data_dir=str(server.folder / "data"))
    for path in (ours, plain) if trusted else ():
        notary.sign(nbformat.read(path, as_version=4))
    return {"agent cells": ours, "plain cells": plain}


def used(session: Any) -> float:
    """Return the CPU seconds of the page's process so far."""
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    return float(found["ProcessTime"])


def measure(context: Any, server: Any, path: Path) -> dict[str, float]:
    """Open a notebook, scroll through it and type into it."""
    from helpers.notebook_page import Notebook

    notebook = Notebook(context, server, "lab", path.name)
    page = notebook.page
    page.wait_for_function("() => window.opened", polling=50)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    opened = used(session)
    page.wait_for_timeout(1000)
    before = used(session)
    frames = sorted(page.evaluate(SCROLL, 120))
    scrolled = used(session) - before
    middle = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.length >> 1"
    )
    notebook.select(middle, column=0)
    page.evaluate(TYPED)
    before = used(session)
    page.keyboard.type(WORDS)
    page.wait_for_timeout(500)
    begun, ended = page.evaluate("() => window.typed")
    row = {
        "MB": path.stat().st_size / 1e6,
        "open s": page.evaluate("() => window.opened") / 1000,
        "open CPU s": opened,
        "nodes": page.evaluate("() => document.querySelectorAll('*').length"),
        "frame ms": frames[int(0.95 * len(frames))],
        "frame CPU ms": 1000 * scrolled / len(frames),
        "letters ms": ended - begun,
        "letters CPU ms": 1000 * (used(session) - before),
        "load": os.getloadavg()[0],
    }
    notebook.close()
    server.end_kernels()
    return row


def main() -> None:
    """Measure both notebooks and print a table."""
    from helpers.jupyter_server import FLAGS, Server, browser_path
    from playwright.sync_api import sync_playwright

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, default=60)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--untrusted", action="store_true", help="as after a git clone")
    chosen = options.parse_args()
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        server = Server(Path(folder) / "lab")
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1200, "height": 1000})
        context.add_init_script(OPENED)
        try:
            notebooks = write_notebooks(server, chosen.cells, trusted=not chosen.untrusted)
            for _ in range(chosen.rounds):
                for name, path in notebooks.items():
                    rows[name].append(measure(context, server, path))
        finally:
            context.close()
            browser.close()
            server.stop()
    for name, measured in rows.items():
        figures = (
            f"{key} {min(found := [row[key] for row in measured]):.2f} ({statistics.median(found):.2f})"
            for key in measured[0]
        )
        print(f"{name:12}", "  ".join(figures))


if __name__ == "__main__":
    main()
