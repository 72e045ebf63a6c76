"""What a running tool shows, whatever shape its progress has: pictures of it, light and dark, while
it goes on and after the end.
"""

import re

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TOOLS = '''
import json
import time
from pathlib import Path

from agent_nb import Scripted, tool


def wait():
    """Hold a tool where a picture is taken of it."""
    while not Path("seen").exists():
        time.sleep(0.02)


@tool
def run_shell_command(command: str):
    "Run a command."
    for n in range(1, 4):
        yield {"subtype": "stdout_chunk", "content": f"-rw-r--r-- 1 user group 1024 Feb 12 10:00 file{n}.txt\\n"}
    wait()
    return "3 files"


@tool
def transfer(file: str):
    "Send a file."
    for percent in (10, 40, 65):
        yield {"subtype": "transfer_progress", "percent": percent}
    wait()
    return "sent"


@tool
def load(rows: int):
    "Load rows."
    yield {"done": rows // 3, "total": rows, "unit": "rows"}
    wait()
    return {"rows": rows}


@tool
def crawl(site: str):
    "Visit pages."
    for n in range(3):
        yield {"page": f"/{n}.html", "links": [n, n + 1], "status": 200}
    wait()
    return "3 pages"


@tool
def train(epochs: int):
    "Train a model."
    print("loading the data")
    for n in range(epochs):
        print(f"\\r{n / epochs:4.0%}|####      | {n}/{epochs} [00:0{n}<00:0{epochs - n}, 1.00it/s, loss=0.{9 - n}]", end="")
        if n == 3:
            wait()
    print()
    print("saved to model.bin")
    return {"loss": 0.5}


def batch(*calls):
    return "<execute>" + json.dumps([{"name": name, "args": args} for name, args in calls]) + "</execute>"


shapes = Scripted([batch(
    ("run_shell_command", {"command": "ls -l src"}), ("transfer", {"file": "a.bin"}), ("load", {"rows": 18000}),
    ("crawl", {"site": "example.com"}), ("train", {"epochs": 5}),
), "All done."])
CODE = """total = 0
for n in range(10):
    total += n
import time
from pathlib import Path
print('half way')
while not Path('seen').exists():
    time.sleep(0.02)
print('all the way')
total"""
busy = Scripted([batch(("python", {"code": CODE})), "45."])
FORMULAS = """The roots of $ax^2 + bx + c = 0$ are

$$x_{1,2} = \\\\frac{-b \\\\pm \\\\sqrt{b^2 - 4ac}}{2a},$$

and with \\\\(a = 1\\\\) they cost $5 or $6. """
FORMULAS += "A few more words so that the text goes on for a while, and one formula $\\\\int_0^1 x^2\\\\,dx = \\\\tfrac13$ in it. " * 4
maths = Scripted([{"text": FORMULAS, "chunk": 3, "delay": 0.15}])
Path("a.py").write_text("x = 1\\ny = 2\\n")
change = Scripted([batch(("write", {"file": "a.py", "content": "x = 1\\ny = 3\\n"})), "Written."])
'''


# Notes in each frame what is read outside of code and of typeset formulas and looks like TeX, and
# how many formulas are typeset.
WATCH = r"""index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    window.raw_seen = [];
    window.typeset_seen = 0;
    const look = () => {
        const prose = cell.querySelectorAll('.jupyter-widgets.agent-nb .agent-nb-prose');
        for (const node of prose) {
            const copy = node.cloneNode(true);
            copy.querySelectorAll('code, mjx-container').forEach(inner => inner.remove());
            const raw = copy.textContent.match(/[\\^_].{0,20}|[$](?![56]).{0,20}/);
            if (raw) window.raw_seen.push(raw[0]);
            window.typeset_seen = Math.max(window.typeset_seen, node.querySelectorAll('mjx-container').length);
        }
        window.requestAnimationFrame(look);
    };
    look();
}"""


@pytest.fixture(scope="module")
def front(opened, server):
    (server.root / "progress_tools.py").write_text(TOOLS)
    made = opened("lab", name="progress")
    made.run("%load_ext agent_nb\nfrom progress_tools import *")
    made.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    yield made
    made.close()


@pytest.fixture
def gate(front):
    """The file for which the tools wait."""
    path = front.server.root / "seen"
    yield path
    path.unlink(missing_ok=True)


def pictures(front, name):
    """Take a picture in each theme."""
    for theme in ("Dark", "Light"):
        front.theme(f"JupyterLab {theme}")
        front.shot(f"{name}-{theme.lower()}")


def test_progress_of_every_shape_is_seen_meanwhile_and_nothing_lands_below(front, gate):
    cell = front.begin(
        "%%agent -m shapes -t run_shell_command,transfer,load,crawl,train --live\nGo."
    )
    front.sees(cell, "60 %")
    output = front.output(cell)
    for line in (
        "1024 Feb 12 10:00 file3.txt",
        "65 %",
        "33 % · 6,000 of 18,000 rows",
        '{"page": "/2.html", "links": [2, 3], "status": 200}',
        "60 % · 3/5 · 1.00it/s, loss=0.6",
        "loading the data",
    ):
        front.sees(cell, line)
    widths = output.locator(".progress-bar").evaluate_all(
        "found => found.map(n => Math.round(parseFloat(n.style.width)))"
    )
    assert widths == [65, 33, 60]
    pictures(front, "progress-shapes")
    gate.touch()
    front.wait(cell)
    front.sees(cell, "ℹ")
    assert output.locator(".jp-OutputArea-child").count() == 1
    output.locator("details:not([open])").evaluate_all(
        "found => found.forEach(fold => fold.querySelector('summary').click())"
    )
    front.sees(cell, "saved to model.bin")
    assert "it/s" not in output.inner_text()
    pictures(front, "progress-shapes-end")


def test_the_code_of_a_running_call_opens_and_stays_open(front, gate):
    cell = front.begin("%%agent -m busy -t python --approve auto --live\nGo.")
    front.sees(cell, "half way")
    fold = front.output(cell).locator(".agent-nb-fold > .jupyter-button").last
    code = front.output(cell).get_by_text("for n in range(10):").last
    code.wait_for()
    fold.click()
    code.wait_for(state="hidden")
    fold.click()
    code.wait_for()
    # the first line was drawn again
    drawn = front.output(cell).inner_text()
    time = re.search(r"running\W+(\d+ s)", drawn)
    front.page.wait_for_function(
        "([output, text]) => output.innerText.includes('running') && !output.innerText.includes(text)",
        arg=[front.output(cell).element_handle(), time[1] if time else drawn],
    )
    assert code.is_visible()
    front.shot("progress-code")
    gate.touch()
    front.wait(cell)
    front.sees(cell, "ℹ")
    front.unfold(cell, "python")
    front.sees(cell, "for n in range(10):")
    assert front.output(cell).inner_text().count("half way") == 2  # in the code and in the result


def test_the_diff_that_was_approved_stays_in_the_card(front):
    cell = front.begin("%%agent -m change -t write --live\nGo.")
    front.button(cell, "Approve").click()
    front.wait(cell)
    front.sees(cell, "ℹ")
    front.unfold(cell, "write")
    front.sees(cell, "-y = 2")
    front.sees(cell, "You approved this call")
    front.shot("progress-diff")


def test_no_formula_is_raw_while_the_answer_streams(front):
    # JupyterLab loads MathJax with the first formula of a page, and shows that one raw meanwhile
    front.run("from IPython.display import Math, display; display(Math('x^2'))")
    front.page.locator("mjx-container").first.wait_for()
    cell = front.add("%%agent -m maths --live\nGo.")
    front.page.evaluate(WATCH, cell)
    front.start(cell)
    front.sees(cell, "they cost $5")
    front.shot("progress-formulas")
    front.wait(cell)
    front.sees(cell, "ℹ")
    assert front.page.evaluate("() => window.raw_seen") == []
    assert front.page.evaluate("() => window.typeset_seen") >= 2  # before the end
    front.output(cell).locator("mjx-container").nth(6).wait_for()
    front.shot("progress-formulas-end")


def test_the_header_is_not_cut(front):
    cell = front.add("%%agent -m change -t write\nGo.")
    front.page.locator(".jp-Notebook .jp-Cell").nth(cell).scroll_into_view_if_needed()
    head = "window.jupyterapp.shell.currentWidget.content.widgets[i].node.querySelector('.agent-nb-head')"
    front.start(cell)
    front.button(cell, "Approve").click()
    front.wait(cell)
    front.start(cell)
    front.wait(cell)
    front.sees(cell, "replayed")
    cut = "[...h.querySelectorAll('span')].some(s => s.scrollWidth > s.clientWidth + 1 && getComputedStyle(s).overflow === 'hidden')"
    shown = front.page.evaluate(
        f"i => {{ const h = {head} ?? document.body; return [h.innerText, {cut}]; }}", cell
    )
    assert "replayed, recorded" in shown[0]
    assert shown[1] is False
    badge = front.output(cell).get_by_text("replayed, recorded").first
    height = "e => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().height; }"
    assert badge.evaluate(height) < 30  # px: one line
    front.shot("progress-header")
