"""Cards whose kernel was restarted or has died: nothing broken is seen, nothing goes on for ever,
and the file says what to do.
"""

from __future__ import annotations

import os
import signal
import sys

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9"),
]

WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
%load_ext agent_nb
import os, time
from agent_nb import Scripted, tool
class Once(Scripted):
    "Goes on where it stopped."
    identity = "once"
    def start(self):
        return self
call = '<think>I look before I dig.</think><execute>[{"name": "dig", "args": {"depth": 600}}]</execute>'
model = Once(["<think>At first.</think>The **first** answer, with `code`.", "<think>And then.</think>The second answer."])
digger = Scripted([call, "Done."])

@tool
def dig(depth: int):
    "Dig, metre by metre."
    for metre in range(depth):
        time.sleep(0.5)
        yield (metre + 1) / depth
        yield f"metre {metre}\\n"
    return depth
"""
REPLAY = "%%agent -m model\nWhat do you say?"
DIG = "%%agent -m digger -t dig --approve auto\nDig a hole."
BROKEN = """i => {
    const output = window.jupyterapp.shell.currentWidget.content.widgets[i].node.querySelector('.jp-Cell-outputWrapper');
    return [...output.querySelectorAll('*')].filter(e => e.classList.contains('jupyter-widgets-disconnected') && e.checkVisibility()
        && getComputedStyle(e, '::before').content !== 'none').length;
}"""
FOLDS = ".agent-nb-fold > .jupyter-button"
BUTTONS = f".jupyter-button:not({FOLDS}):visible"


def pictures(front, name):
    """Take pictures in both colours."""
    for theme in ("Light", "Dark"):
        if front.app == "lab":
            front.theme(f"JupyterLab {theme}")
        front.shot(f"{name}-{front.app}-{theme.lower()}")
    if front.app == "lab":
        front.theme("JupyterLab Light")


def is_whole(front, cell):
    text = front.output(cell).inner_text()
    assert front.page.evaluate(BROKEN, cell) == 0
    assert front.output(cell).locator(BUTTONS).count() == 0
    assert "Error displaying widget" not in text
    assert "running" not in text
    return text


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_replay_is_a_page_that_a_restart_leaves_as_it_is(opened, app):
    front = opened(app, name=f"replayed-{app}", cells=(SETUP, REPLAY))
    for index in (0, 1, 1):
        front.start(index)
        front.wait(index)
    front.button(1, "↻ Run live").wait_for()
    pictures(front, "replay-before")
    page = front.output(1).locator(".agent-nb[role=group]")
    before = page.inner_text()
    assert "first" in before
    assert "replayed" in before
    front.restart()
    front.button(1, "↻ Run live").wait_for(state="hidden")
    is_whole(front, 1)
    assert page.inner_text() == before
    pictures(front, "replay-restarted")
    [output] = front.save().cells[1].outputs
    assert WIDGET not in output.data


def begun(front):
    """Run the setup and begin to dig; return the kernel's process and the run."""
    front.start(0)
    front.wait(0)
    pid = front.value("os.getpid()")
    front.start(1)
    front.sees(1, "metre 1")
    return pid


def folds(front, cell):
    """A reader still opens and closes what the live view shows, since that needs no kernel."""
    fold = front.output(cell).locator(FOLDS).last
    body = front.output(cell).locator(".agent-nb-fold").last.locator(".agent-nb-body")
    for state in ("hidden", "visible"):
        fold.click()
        body.wait_for(state=state)


def forgets(front, *states):
    """What stands there says that the kernel is gone, and how to go on; so does what is saved and
    opened again, in one of `states`.
    """
    front.sees(1, "No sign of the kernel")
    text = is_whole(front, 1)
    assert "metre 1" in text
    folds(front, 1)
    run = text.partition("%agent recover ")[2].split()[0]
    output = next(o for o in front.save().cells[1].outputs if "text/html" in o.data)
    assert WIDGET not in output.data
    front.close()
    front.open()
    front.sees(1, f"%agent recover {run}")
    text = is_whole(front, 1)
    assert any(state in text for state in states)
    front.run("%load_ext agent_nb")
    back = front.run(f"%agent recover {run}")
    front.sees(back, "dig")
    return run


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_run_whose_kernel_was_killed_does_not_go_on_for_ever(opened, app):
    front = opened(app, name=f"killed-{app}", cells=(SETUP, DIG))
    pid = begun(front)
    pictures(front, "kill-before")
    os.kill(pid, signal.SIGKILL)
    front.sees(1, "No sign of the kernel")
    for dialog in front.page.locator(".jp-Dialog").all():
        dialog.locator(".jp-Dialog-button").first.click()
    pictures(front, "killed")
    forgets(front, "unfinished")
    pictures(front, "killed-reopened")


def test_a_run_whose_kernel_was_restarted_does_not_go_on_for_ever(opened):
    front = opened("lab", name="restarted", cells=(SETUP, DIG))
    begun(front)
    front.restart()
    front.sees(1, "No sign of the kernel")
    pictures(front, "restarted")
    # a kernel that is interrupted ends the run; the page may not hear of it before the kernel goes
    forgets(front, "stopped", "unfinished")


def test_a_run_that_is_quiet_for_long_still_goes_on(opened):
    from agent_nb.view.theme import SILENCE

    front = opened("lab", name="quiet", cells=(SETUP, "%%agent -m quiet\nWait."))
    front.start(0)
    front.wait(0)
    front.run(f'quiet = Scripted([{{"chunks": ["One ", "two."], "delay": {SILENCE + 5}}}])')
    front.start(1)
    front.button(1, "■ Stop").wait_for()
    front.page.evaluate(
        """() => { window.gone = 0; window.looking = setInterval(() => { window.gone +=
            [...document.querySelectorAll('.agent-nb-gone')].some(e => e.checkVisibility()); }, 200); }"""
    )
    front.sees(1, "One", seconds=90)
    assert front.page.evaluate("() => window.gone") == 0
    front.button(1, "■ Stop").click()
    front.wait(1)


def test_status_is_a_table_that_knows_what_is_not_saved(opened):
    front = opened("lab", name="status", cells=(SETUP, REPLAY))
    front.start(0)
    front.wait(0)
    front.save()
    front.start(1)
    front.wait(1)
    front.run(
        "%%agent -m model -c other\nAnd a prompt that is long enough to be cut somewhere before it ends?"
    )
    told = front.run("%agent status")
    states = (
        front.output(told)
        .locator("table")
        .first.locator("tbody tr td:nth-child(2)")
        .all_inner_texts()
    )
    assert states == ["recorded", "recorded"]
    pictures(front, "status")
