"""What people do with cells and files in JupyterLab and Notebook 7: after each step the record is
right in the saved file, and the front end never asks which version of the file to keep.

Each test has cells and a conversation of its own in one notebook a front end, and reads the file
after saving as plain JSON.
"""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from agent_nb.record.signing import UserKey
from agent_nb.record.verify import check_record
from agent_nb.rows.recorded_runs import runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

MIME = "application/vnd.agent-nb.run+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
MODEL = """
turns:
  - text: >-
      <think>Dig first.</think><execute>[{"name": "python", "args": {"code": "hole = 'deep'; print('dug')"}}]</execute>
    chunk: 8
  - text: "<think>It is dug.</think>There is a **hole** now."
    chunk: 8
"""
SLOW = """
turns:
  - text: >-
      <think>I am still writing, word after word. I am still writing, word after word. I am still writing, word after word.</think>
      <execute>[{"name": "python", "args": {"code": "while not gate.exists(): await asyncio.sleep(0.05)"}}]</execute>
    chunk: 3
    delay: 0.05
  - text: The end.
"""  # goes on until the test makes the file `gate`
SETUP = """
import asyncio
from pathlib import Path
from IPython.utils.capture import capture_output
%load_ext agent_nb

def said(command):
    "What `%agent COMMAND` says, as text."
    with capture_output() as out:
        get_ipython().run_line_magic("agent", command)
    return out.stdout + "\\n".join(shown.data["text/plain"] for shown in out.outputs)
"""


@pytest.fixture(scope="module", params=["lab", "notebook"])
def front(request, opened, server):
    """One notebook in each front end; at its end, no dialog has been seen that a test did not ask
    for.
    """
    (server.root / "hole.yaml").write_text(MODEL)
    (server.root / "slow.yaml").write_text(SLOW)
    made = opened(request.param, name="operations", cells=(SETUP,))
    made.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    set_up(made)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def no_question(request):
    """After every test: the front end did not ask about the file."""
    yield
    if "front" in request.fixturenames:
        front = request.getfixturevalue("front")
        assert [text for text in front.dialogs() if "on disk" in text] == []


def set_up(front):
    front.start(0)
    front.wait(0)


def reload(front):
    """Open the page again: what it knows of records then is what stands in the file."""
    front.close()
    front.open()


def prompt(name, text="Dig a hole.", model="hole"):
    """Return an agent cell with a conversation of its own."""
    return f"%%agent -m scripted/{model}.yaml -t python --approve auto -c {name}\n{text}"


def ask(front, name, text="Dig a hole.\nThen look."):
    """Run an agent cell, save, and return its index and its id."""
    index = front.run(prompt(name, text))
    front.save()
    return index, front.ids()[index]


def saved(front):
    """Save and return the notebook's JSON."""
    front.save()
    return on_disk(front)


def on_disk(front, name=""):
    return json.loads((front.server.root / (name or front.name)).read_text(encoding="utf-8"))


def records(nb, cell):
    """Return the records of a cell as they stand in the file's metadata."""
    return nb["metadata"].get("agent_nb", {}).get("runs", {}).get(cell, [])


def text(record):
    """Return a record as text, for comparing to the byte."""
    return json.dumps(record, ensure_ascii=False)


def names(nb, cell):
    return [record["id"] for record in records(nb, cell)]


def cell_of(nb, cell):
    return next(c for c in nb["cells"] if c["id"] == cell)


def source(nb, cell):
    found = cell_of(nb, cell)["source"]
    return "".join(found) if isinstance(found, list) else found


def references(nb, cell):
    return [o["data"].get(MIME) for o in cell_of(nb, cell)["outputs"] if "data" in o]


def sound(front, nb, live=0):
    """Every record in the file is whole and signed by this user; no output holds one, or a widget
    but `live` views of runs that go on.
    """
    key = UserKey.read(front.server.folder / "data")
    ours = nb["metadata"]["agent_nb"]
    records = [record for listed in ours["runs"].values() for record in listed]
    assert [p for r in records for p in check_record(r, ours.get("payloads"))] == []
    assert all(key.signed_hash(record) for record in records)
    shown = [o["data"] for c in nb["cells"] for o in c.get("outputs", []) if "data" in o]
    assert not [data for data in shown if "events" in (data.get(MIME) or {})]
    assert [set(data) for data in shown if WIDGET in data] == [{WIDGET}] * live
    assert "widgets" not in nb["metadata"]


def standing(front, cell):
    """Return what `%agent status` says of a cell: its state, and why in brackets."""
    lines = [line for line in front.value("said('status')").splitlines() if line.startswith(cell)]
    _, state, _, _, *why = re.split(" {2,}", lines[0]) if lines else ("", "", "", "")
    return f"{state} ({why[0]})" if why else state


def test_a_run_is_in_the_file_once_it_is_saved(front):
    index, cell = ask(front, "run")
    nb = on_disk(front)
    [record] = records(nb, cell)
    assert [e["type"] for e in record["events"]][-1] == "end"
    assert record["status"] == "ok"
    assert references(nb, cell) == [{"version": 1, "ref": record["id"]}]
    assert set(cell_of(nb, cell)["outputs"][0]["data"]) == {
        "text/html",
        "text/markdown",
        "text/plain",
        MIME,
    }
    sound(front, nb)
    assert standing(front, cell).startswith("recorded")
    front.sees(index, "hole")
    front.shot(f"{front.app}-run")
    front.theme("JupyterLab Dark")
    front.shot(f"{front.app}-run-dark")
    front.theme("JupyterLab Light")


def test_cleared_outputs_leave_the_record_and_a_rerun_plays_it(front):
    index, cell = ask(front, "clear")
    [before] = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:clear-cell-output")
    nb = saved(front)
    assert cell_of(nb, cell)["outputs"] == []
    assert text(records(nb, cell)) == text([before])
    assert standing(front, cell).startswith("recorded")
    front.shot(f"{front.app}-cleared")
    front.start(index)
    front.wait(index)
    front.sees(index, "replayed")
    nb = saved(front)
    assert text(records(nb, cell)) == text([before])
    assert references(nb, cell) == [{"version": 1, "ref": before["id"]}]
    sound(front, nb)


def test_a_reloaded_page_shows_and_keeps_the_record_and_a_rerun_plays_it(front):
    index, cell = ask(front, "reload")
    before = on_disk(front)
    reload(front)
    front.select(index)  # below many cells of other tests, it is drawn only when it is scrolled to
    front.sees(index, "hole")
    after = saved(front)
    assert after["metadata"]["agent_nb"] == before["metadata"]["agent_nb"]
    assert references(after, cell) == references(before, cell)
    front.start(index)
    front.wait(index)
    front.sees(index, "replayed")
    nb = saved(front)
    assert text(records(nb, cell)) == text(records(before, cell))
    sound(front, nb)
    front.shot(f"{front.app}-reloaded")


def test_a_live_rerun_is_recorded_beside_the_former_run(front):
    index, cell = ask(front, "live")
    [first] = names(on_disk(front), cell)
    source = front.page.evaluate(
        "i=>window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource()",
        index,
    )
    rewrite(front, index, source.replace("-c live", "-c live --live"))
    front.start(index)
    front.wait(index)
    nb = saved(front)
    assert names(nb, cell)[1:] == [first]
    assert references(nb, cell) == [{"version": 1, "ref": names(nb, cell)[0]}]
    sound(front, nb)


def rewrite(front, index, source):
    """Replace the text of a cell, as typing does."""
    front.page.evaluate(
        "([i,s])=>window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.setSource(s)",
        [index, source],
    )


@pytest.mark.parametrize("loaded", [False, True], ids=["", "loaded"])
def test_the_record_of_a_deleted_cell_stays_for_one_save_and_an_undo(front, loaded):
    """`loaded`: the page knows the record from the file, and sends it with every save."""
    index, cell = ask(front, f"delete{loaded}")
    if loaded:
        reload(front)
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:delete-cell")
    assert cell not in front.ids()
    kept = [records(saved(front), cell) for _ in range(4)]
    assert kept == [before, [], [], []]
    front.command("notebook:undo-cell-action")
    nb = saved(front)
    assert text(records(nb, cell)) == text(before)
    assert "gone" not in nb["metadata"]["agent_nb"]
    sound(front, nb)
    assert standing(front, cell).startswith("recorded")


def test_a_deletion_undone_after_one_save_leaves_no_trace(front):
    index, cell = ask(front, "undo")
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:delete-cell")
    assert saved(front)["metadata"]["agent_nb"]["gone"] == {cell: 1}
    front.command("notebook:undo-cell-action")
    nb = saved(front)
    assert records(nb, cell) == before
    assert "gone" not in nb["metadata"]["agent_nb"]
    front.shot(f"{front.app}-undone")


@pytest.mark.parametrize("loaded", [False, True], ids=["", "loaded"])
def test_a_copied_cell_shows_the_same_run_and_gets_its_own_when_it_runs(front, loaded):
    index, cell = ask(front, f"copy{loaded}")
    if loaded:
        reload(front)
    [before] = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:copy-cell")
    front.command("notebook:paste-cell-below")
    copy = front.ids()[index + 1]
    assert copy != cell
    nb = saved(front)
    assert text(records(nb, cell)) == text(records(nb, copy)) == text([before])
    assert references(nb, cell) == references(nb, copy) == [{"version": 1, "ref": before["id"]}]
    assert [run.id for run in runs(front.server.root / front.name)].count(before["id"]) == 1
    assert standing(front, cell).startswith("recorded")
    assert standing(front, copy).startswith("stale (conversation changed)")
    front.shot(f"{front.app}-copied")
    front.start(index + 1)
    front.wait(index + 1)
    nb = saved(front)
    assert names(nb, cell) == [before["id"]]
    assert len(names(nb, copy)) == 2
    assert names(nb, copy)[1] == before["id"]
    assert standing(front, copy).startswith("recorded")
    sound(front, nb)


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_a_cell_that_is_cut_and_pasted_takes_its_record_along(front, saves):
    """Code cells keep their id then. However often it is saved in between, the record comes back
    with the cell's output.
    """
    index, cell = ask(front, f"cut{saves}")
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:cut-cell")
    for _ in range(saves):
        front.save()
    front.select(0)
    front.command("notebook:paste-cell-below")
    assert front.ids()[1] == cell
    nb = saved(front)
    assert nb["cells"][1]["id"] == cell
    assert text(records(nb, cell)) == text(before)
    assert cell not in nb["metadata"]["agent_nb"].get("gone", {})
    assert standing(front, cell).startswith("recorded")
    sound(front, nb)


@pytest.mark.parametrize("loaded", [False, True], ids=["", "loaded"])
def test_the_part_of_a_split_cell_with_the_magic_has_the_stale_record(front, loaded):
    index, cell = ask(front, f"split{loaded}")
    if loaded:
        reload(front)
    before = records(on_disk(front), cell)
    front.select(index, column=len(prompt(f"split{loaded}")))
    front.command("notebook:split-cell-at-cursor")
    front.page.wait_for_function(
        "n=>window.jupyterapp.shell.currentWidget.content.widgets.length===n", arg=index + 2
    )
    upper, lower = front.ids()[index : index + 2]
    for _ in range(3):
        nb = saved(front)
        assert source(nb, upper).endswith("Dig a hole.")
        assert source(nb, lower) == "Then look."
        assert (text(records(nb, upper)), records(nb, lower)) == (text(before), [])
        sound(front, nb)
    assert standing(front, upper).startswith("stale (prompt changed)")
    assert standing(front, lower) == ""
    front.shot(f"{front.app}-split")
    front.command("notebook:undo-cell-action")
    front.page.wait_for_function(
        "n=>window.jupyterapp.shell.currentWidget.content.widgets.length===n", arg=index + 1
    )
    nb = saved(front)
    assert text(records(nb, cell)) == text(before)
    assert standing(front, cell).startswith("recorded")


def test_a_merged_cell_has_the_record_and_is_stale(front):
    index, cell = ask(front, "merge")
    front.add("And tell me about it.")
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:merge-cell-below")
    merged = front.ids()[index]
    assert merged != cell
    nb = saved(front)
    assert source(nb, merged).endswith("Then look.\n\nAnd tell me about it.")
    assert text(records(nb, merged)) == text(records(nb, cell)) == text(before)
    nb = saved(front)
    assert (text(records(nb, merged)), records(nb, cell)) == (text(before), [])
    assert standing(front, merged).startswith("stale (prompt changed)")
    sound(front, nb)
    front.shot(f"{front.app}-merged")
    front.command("notebook:undo-cell-action")
    nb = saved(front)
    assert text(records(nb, cell)) == text(before)
    assert standing(front, cell).startswith("recorded")


def test_moved_cells_keep_their_records(front):
    index, cell = ask(front, "move")
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:move-cell-up")
    nb = saved(front)
    assert nb["cells"][index - 1]["id"] == cell
    assert records(nb, cell) == before


def test_what_is_forgotten_does_not_come_back_from_a_page_that_has_it(front):
    index, cell = ask(front, "forget")
    reload(front)
    [run] = names(on_disk(front), cell)
    forget = front.run(f"%agent forget {cell}")
    front.sees(forget, "1 run forgotten")
    assert records(saved(front), cell) == []
    for cleared in (forget, index):
        front.select(cleared)
        front.command("notebook:clear-cell-output")
        nb = saved(front)
        assert records(nb, cell) == []
    assert run not in json.dumps(nb)
    assert standing(front, cell).startswith("unrecorded")


def test_a_duplicated_file_has_the_records_and_its_own_kernel_plays_them(front, opened, server):
    index, cell = ask(front, "duplicate")
    original = on_disk(front)
    name = front.duplicate()
    assert (
        on_disk(front, name)["metadata"]["agent_nb"]["runs"]
        == original["metadata"]["agent_nb"]["runs"]
    )
    second = type(front)(front.page.context, server, front.app, name)
    set_up(second)
    second.start(index)
    second.wait(index)
    second.sees(index, "replayed")
    nb = saved(second)
    assert text(records(nb, cell)) == text(records(original, cell))
    sound(second, nb)
    assert second.dialogs() == []
    second.close()
    assert on_disk(front) == original
    saved(front)


def test_a_renamed_file_keeps_its_records_and_is_found_by_its_kernel(front):
    _, cell = ask(front, "rename")
    before = records(on_disk(front), cell)
    former = front.server.root / front.name
    front.rename(front.name.replace("operations", "renamed"))
    nb = saved(front)
    assert text(records(nb, cell)) == text(before)
    assert standing(front, cell).startswith("recorded")
    fresh = front.run(prompt("rename-later"))
    listed = front.value("said('recover')")
    [line] = [line for line in listed.splitlines() if front.value("_agent.id") in line]
    assert front.name in line
    nb = saved(front)
    assert names(nb, front.ids()[fresh]) == [front.value("_agent.id")]
    assert front.value("_agent.id") not in front.value("said('recover')")
    front.shot(f"{front.app}-renamed")
    sound(front, nb)
    # the old name is another notebook's now
    former.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    front.restart()
    set_up(front)
    assert standing(front, cell).startswith("recorded")


def test_a_restarted_kernel_plays_the_record_and_leaves_it_as_it_is(front):
    index, cell = ask(front, "restart")
    later = front.run(prompt("restart", "And now?"))
    before = saved(front)["metadata"]["agent_nb"]
    front.restart()
    set_up(front)
    assert standing(front, cell).startswith("recorded")
    for each in (later, index):
        front.start(each)
        front.wait(each)
        front.sees(each, "replayed")
    assert front.value("hole") == "deep"
    nb = saved(front)
    assert json.dumps(nb["metadata"]["agent_nb"]) == json.dumps(before)
    sound(front, nb)
    front.shot(f"{front.app}-restarted")


def start_slow(front, index, name):
    """Start a run that goes on until the file that is returned is made, and wait until
    it writes.
    """
    front.value(f"globals().update(gate=Path({name!r}))")
    rewrite(front, index, prompt(name, "Write.", "slow"))
    front.start(index)
    front.sees(index, "word after word")
    return front.server.root / name


def test_edits_and_saves_while_a_run_goes_on_ask_nothing_and_lose_nothing(front):
    name = f"busy-{front.app}"
    index, cell = ask(front, name)
    before = names(on_disk(front), cell)
    gate = start_slow(front, index, name)
    nb = saved(front)
    assert names(nb, cell) == before
    assert references(nb, cell) == [None, None]  # the static form and the live view
    other = front.add("x = 1")
    rewrite(front, index, prompt(name, "Write more.", "slow"))
    nb = saved(front)
    assert source(nb, front.ids()[other]) == "x = 1"
    sound(front, nb, live=1)
    front.shot(f"{front.app}-busy")
    assert not front.page.evaluate("i => window.ended[i]", index)
    gate.touch()
    front.wait(index)
    front.sees(index, "The end.")
    nb = saved(front)
    [newest, *others] = records(nb, cell)
    assert [r["id"] for r in others] == before
    assert newest["status"] == "ok"
    assert "The end." in text(newest)
    assert references(nb, cell) == [{"version": 1, "ref": newest["id"]}]
    assert standing(front, cell).startswith("stale (prompt changed)")
    sound(front, nb)


def test_a_cell_that_was_markdown_for_a_while_has_its_record_again(front):
    index, cell = ask(front, "markdown")
    before = records(on_disk(front), cell)
    front.select(index)
    front.command("notebook:change-cell-to-markdown")
    front.save()
    front.command("notebook:change-cell-to-code")
    nb = saved(front)
    again = front.ids()[index]
    assert nb["cells"][index]["cell_type"] == "code"
    assert text(records(nb, again)) == text(before)
    assert standing(front, again).startswith("recorded")
    sound(front, nb)


@pytest.fixture
def autosave(server):
    """Pages opened during the test save every second; a front end reads its settings some time
    after it has opened a notebook.
    """
    plugin = "@jupyterlab/docmanager-extension/plugin"
    server.setting(plugin, {"autosave": True, "autosaveInterval": 1})
    yield
    server.setting(plugin, {"autosave": False})


@pytest.mark.timeout(900)  # a front end waits ten times as long as its last save took
@pytest.mark.usefixtures("autosave")
def test_autosave_while_a_run_goes_on_ends_with_the_whole_record(front, opened):
    """Nothing is saved by hand: it is saved by itself while the run goes on, somebody types, and
    the run ends.
    """
    busy = opened(front.app, name="autosave", cells=(SETUP, ""))
    set_up(busy)
    cell = busy.ids()[1]
    gate = start_slow(busy, 1, f"auto-{front.app}")
    busy.add("typed = 0")
    type_until(busy, 2, lambda: busy.ids()[2] in [c["id"] for c in on_disk(busy)["cells"]])
    assert records(on_disk(busy), cell) == []
    assert not busy.page.evaluate("() => window.ended[1]")
    gate.touch()
    busy.wait(1)
    type_until(busy, 2, lambda: [r["status"] for r in records(on_disk(busy), cell)] == ["ok"])
    sound(busy, on_disk(busy))
    assert "The end." in text(records(on_disk(busy), cell))
    assert busy.dialogs() == []
    busy.close()


def type_until(front, index, condition, seconds=400):
    """Type in a cell until something has come to pass outside the page. (What is typed during a
    save counts as saved to a front end.)
    """
    for second in range(seconds):
        with contextlib.suppress(ValueError):  # the file is just being written
            if condition():
                return
        rewrite(front, index, f"typed = {second}")
        front.page.wait_for_timeout(1000)
    raise AssertionError(f"it did not come to that; dialogs: {front.dialogs()}")


def save_anyway(front, label):
    """Save where the front end asks, for once with reason, and answer."""
    command = "window.jupyterapp.commands.execute('docmanager:save').finally(() => { window.saved = true; })"
    front.page.evaluate(f"() => {{ window.saved = false; {command}; }}")
    front.answer(label)
    front.page.wait_for_function("() => window.saved")


def test_of_two_tabs_neither_erases_what_the_other_recorded(front, opened, server):
    """The front end asks here whether ours is installed or not: the other tab did write
    the file.
    """
    one = opened(front.app, name="tabs", cells=(SETUP,))
    set_up(one)
    index, cell = ask(one, "tabs")
    two = type(front)(one.page.context, server, front.app, one.name)
    [first] = names(on_disk(one), cell)
    rewrite(one, index, prompt("tabs --live"))
    one.start(index)
    one.wait(index)
    extra, own = ask(one, "extra")
    latest = on_disk(one)
    assert names(latest, cell)[1:] == [first]
    two.page.bring_to_front()
    rewrite(two, 0, f"{SETUP}\n# edited in the other tab")
    save_anyway(two, "Overwrite")
    nb = on_disk(two)
    assert own not in [c["id"] for c in nb["cells"]]
    assert records(nb, cell) == records(latest, cell)
    assert records(nb, own) == records(latest, own)
    sound(two, nb)
    one.page.bring_to_front()
    save_anyway(one, "Overwrite")
    nb = on_disk(one)
    assert nb["metadata"]["agent_nb"] == latest["metadata"]["agent_nb"]
    two.close()
    reload(one)
    one.sees(extra, "hole")
    nb = saved(one)
    assert nb["metadata"]["agent_nb"] == latest["metadata"]["agent_nb"]
    sound(one, nb)
    one.close()
