"""Records move from outputs into the notebook's metadata, and stay there."""

import copy
import errno
import json
import os
import resource
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_nb.errors import UsageError
from agent_nb.notebook import presave
from agent_nb.record.agent_cells import content_hash
from agent_nb.record.ipynb import load_notebook, save_notebook, with_ids
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.outputs import RunNumbers
from agent_nb.record.packing import payload_key
from agent_nb.record.signing import UserKey
from agent_nb.record.split_merge import reassign_runs

MIME = "application/vnd.agent-nb.run+json"


def run(name, started=1.0, payload=None):
    record = {
        "format": 1,
        "id": name,
        "started": started,
        "events": [{"type": "run_start"}, {"type": "end", "status": "ok"}],
    }
    if payload:
        record["events"].insert(1, {"type": "result", "content": {"$payload": payload}})
        record["payloads"] = {payload: "large"}
    return record


def output(value, **meta):
    """Return an output of ours: its metadata names the run."""
    ours = {"agent_nb": {"run": value["id"]}} if isinstance(value, dict) and "id" in value else {}
    return {
        "output_type": "display_data",
        "data": {"text/plain": "hello", MIME: value},
        "metadata": {**ours, **meta},
    }


def cell(name, *outputs, **more):
    return {
        "cell_type": "code",
        "id": name,
        "source": "%%agent\nhi",
        "metadata": {},
        "outputs": list(outputs),
        **more,
    }


def notebook(*cells, **meta):
    return {"cells": list(cells), "metadata": dict(meta), "nbformat": 4, "nbformat_minor": 5}


def saved(*cells, over=None, **meta):
    """Return our metadata after saving `cells` over a file with the metadata `over`."""
    nb = notebook(*cells, **meta)
    NotebookRuns(nb).lift(over)
    return nb["metadata"].get("agent_nb")


def ids(ours):
    return {name: [r["id"] for r in listed] for name, listed in ours["runs"].items()}


def test_a_record_moves_to_the_metadata_and_leaves_a_small_reference():
    nb = notebook(cell("a", output(run("r1"))))
    assert NotebookRuns(nb).lift()
    assert ids(nb["metadata"]["agent_nb"]) == {"a": ["r1"]}
    assert nb["cells"][0]["outputs"][0]["data"] == {
        "text/plain": "hello",
        MIME: {"version": 1, "ref": "r1"},
    }


def test_lifting_again_changes_nothing():
    nb = notebook(cell("a", output(run("r1"))), cell("b", output(run("r2", payload="f" * 64))))
    NotebookRuns(nb).lift()
    once = copy.deepcopy(nb)
    NotebookRuns(nb).lift()
    assert nb == once
    NotebookRuns(nb).lift(copy.deepcopy(once["metadata"]["agent_nb"]))
    assert nb == once


def test_a_notebook_without_anything_of_ours_is_not_touched():
    nb = notebook(
        cell("a", {"output_type": "stream", "name": "stdout", "text": "x"}),
        {"cell_type": "markdown", "source": "y"},
    )
    before = copy.deepcopy(nb)
    assert not NotebookRuns(nb).lift()
    assert nb == before


def test_clearing_outputs_keeps_the_record_of_the_file():
    first = saved(cell("a", output(run("r1"))))
    assert ids(saved(cell("a"), over=first)) == {"a": ["r1"]}


def test_cleared_outputs_are_reported_once_with_a_remedy():
    nb, told = notebook(cell("a", output(run("r1"))), cell("b")), {}
    NotebookRuns(nb).lift()
    assert presave.remaining(nb, "n.ipynb", told) == ""
    nb["cells"][0]["outputs"] = []
    words = presave.remaining(nb, "n.ipynb", told)
    assert words.startswith(
        "agent_nb: outputs of n.ipynb are cleared; the record of 1 cell remains"
    )
    assert "%agent forget" in words
    assert presave.remaining(nb, "n.ipynb", told) == ""


def test_a_stale_copy_of_a_front_end_does_not_erase_newer_runs():
    stale = saved(cell("a", output(run("r1"))))
    disk = saved(cell("a", output(run("r2", 2.0))), over=stale)
    assert ids(saved(cell("a"), over=disk, agent_nb=stale)) == {"a": ["r2", "r1"]}


def test_the_newest_three_runs_of_a_cell_stay():
    ours = None
    for n in range(5):
        ours = saved(cell("a", output(run(f"r{n}", float(n)))), over=ours)
    assert ids(ours) == {"a": ["r4", "r3", "r2"]}


def test_the_runs_of_a_deleted_cell_go_with_the_second_save():
    ours = saved(cell("a", output(run("r1"))), cell("b", output(run("r2"))))
    ours = saved(cell("b"), over=ours)
    assert ids(ours) == {"a": ["r1"], "b": ["r2"]}
    ours = saved(cell("b"), over=ours)
    assert ids(ours) == {"b": ["r2"]}
    assert "gone" not in ours


def test_an_undone_deletion_keeps_its_runs():
    ours = saved(cell("a", output(run("r1"))), cell("b"))
    for cells in ([cell("b")], [cell("a"), cell("b")], [cell("b")]):
        ours = saved(*cells, over=ours)
    assert ids(ours) == {"a": ["r1"]}


def test_a_pasted_cell_gets_a_copy_of_its_run():
    first = saved(cell("a", output(run("r1"))))
    pasted = output({"version": 1, "ref": "r1"})
    assert ids(saved(cell("a"), cell("z", pasted), over=first)) == {"a": ["r1"], "z": ["r1"]}


def test_payloads_are_stored_once_and_go_with_their_last_run():
    key = "0" * 64
    ours = saved(
        cell("a", output(run("r1", payload=key))), cell("b", output(run("r2", payload=key)))
    )
    assert ours["payloads"] == {key: "large"}
    assert all("payloads" not in r for listed in ours["runs"].values() for r in listed)
    for _ in range(2):
        ours = saved(cell("c", output(run("r3"))), over=ours)
    assert "payloads" not in ours


def test_readers_find_records_lifted_or_not_with_their_payloads():
    key = "0" * 64
    nb = notebook(cell("a", output(run("r1", payload=key))))
    before = NotebookRuns(nb).by_cell()
    NotebookRuns(nb).lift()
    assert NotebookRuns(nb).by_cell() == before == {"a": [run("r1", payload=key)]}


def nameless(*cells, **meta):
    nb = notebook(*cells, **meta)
    return {**nb, "cells": [{k: v for k, v in c.items() if k != "id"} for c in nb["cells"]]}


def test_records_of_cells_without_ids_are_lifted():
    """Neither a cleared output nor a cell above it loses one; no id is written."""
    one, two = made("r1", "%%agent\none"), made("r2", "%%agent\ntwo")
    nb = nameless(
        {**cell("a", output(one)), "source": "%%agent\none"},
        {**cell("b", output(two)), "source": "%%agent\ntwo"},
    )
    assert NotebookRuns(nb).lift()
    assert not any("id" in c for c in nb["cells"])
    for c in nb["cells"]:
        c["outputs"] = []
    nb["cells"].insert(0, {k: v for k, v in cell("c").items() if k != "id"})
    assert {
        name: [r["id"] for r in listed] for name, listed in NotebookRuns(nb).by_cell().items()
    } == {
        "cell-2": ["r1"],
        "cell-3": ["r2"],
    }


def test_records_stay_where_a_save_drops_the_ids_of_cells():
    """Nothing counts as gone: a file of nbformat 4.4 has no ids, whatever made its records."""
    nb = notebook({**cell("a", output(made("r1", "%%agent\none"))), "source": "%%agent\none"})
    NotebookRuns(nb).lift()
    for _ in range(4):
        previous = copy.deepcopy(nb["metadata"]["agent_nb"])
        for c in nb["cells"]:
            c.pop("id", None)
        NotebookRuns(nb).lift(previous)
    assert [r["id"] for listed in NotebookRuns(nb).by_cell().values() for r in listed] == ["r1"]


def test_a_made_up_id_is_never_that_of_another_cell():
    nb = notebook(cell("x"), cell("cell-1"), cell(""))
    del nb["cells"][0]["id"]
    names = [c["id"] for c in with_ids(nb)["cells"]]
    assert names == ["cell-1-", "cell-1", "cell-3"]
    assert "id" not in nb["cells"][0]


def test_metadata_of_a_newer_version_is_left_alone():
    nb = notebook(cell("a", output(run("r1"))), agent_nb={"version": 99, "runs": "new form"})
    before = copy.deepcopy(nb)
    assert not NotebookRuns(nb).lift()
    assert nb == before


JUNK = [
    None,
    7,
    "x",
    [],
    {},
    {"runs": 3},
    {"runs": {"a": 3}},
    {"runs": {"a": [3, {}, {"id": 1}]}},
    {"version": "x"},
]


@pytest.mark.parametrize("junk", JUNK)
def test_junk_in_the_file_or_the_outputs_hurts_nothing(junk):
    nb = notebook(
        cell("a", output(run("r1")), output(junk), {"data": None, "metadata": None}, 3),
        "no cell",
        agent_nb=junk,
    )
    NotebookRuns(nb).lift(junk)
    assert ids(nb["metadata"]["agent_nb"])["a"] == ["r1"]
    assert nb["cells"][0]["outputs"][1]["data"][MIME] == junk


def test_unknown_fields_of_our_metadata_are_kept():
    assert saved(
        cell("a", output(run("r1"))), agent_nb={"version": 1, "runs": {}, "settings": {"x": 1}}
    )["settings"] == {"x": 1}


def test_strip_leaves_no_trace_of_a_record():
    nb = notebook(cell("a", output(run("r1"), agent_nb={"run": "r1"})))
    NotebookRuns(nb).lift()
    assert NotebookRuns(nb).strip() == 3
    assert "agent" not in json.dumps(nb).replace("%%agent", "")
    assert nb["cells"][0]["outputs"][0]["data"] == {"text/plain": "hello"}
    assert NotebookRuns(nb).strip() == 0


def test_summaries_are_read_in_the_order_of_the_notebook():
    nb = notebook(
        cell("b", output(run("r1"), agent_nb={"run": "r1"})),
        cell("a", output(run("r2"), agent_nb={"run": "r2"})),
    )
    assert RunNumbers.list_all(nb) == [("b", {"run": "r1"}), ("a", {"run": "r2"})]


def test_a_file_is_written_in_its_own_indentation_and_order(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(
        '{\n  "nbformat": 4,\n  "cells": [],\n  "metadata": {"ü": "\u2028"}\n}\n', encoding="utf-8"
    )
    path.chmod(0o640)
    nb = load_notebook(path)
    save_notebook(nb, path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{\n  "nbformat": 4,\n  "cells": []')
    assert "ü" in text
    assert text.endswith("}\n")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["n.ipynb"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', "not json"])
def test_a_file_that_is_not_a_notebook_is_refused(tmp_path, text):
    path = tmp_path / "n.ipynb"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"n\.ipynb"):
        load_notebook(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="File not found"):
        load_notebook(tmp_path / "n.ipynb")


class Manager:
    """The part of a contents manager that the hook uses, over one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.hook = None

    def _get_os_path(self, path):
        return str(self.folder / path)

    def register_pre_save_hook(self, hook):
        self.hook = hook


@pytest.fixture
def manager(tmp_path):
    manager = Manager(tmp_path)
    log = SimpleNamespace(
        exception=lambda *a: pytest.fail(f"the hook failed: {a}"), info=lambda *_: None
    )
    presave._load_jupyter_server_extension(SimpleNamespace(contents_manager=manager, log=log))
    return manager


def model(nb):
    return {"type": "notebook", "format": "json", "content": nb}


def test_the_server_hook_lifts_and_merges_with_the_file(manager, tmp_path):
    nb = notebook(cell("a", output(run("r1"))))
    manager.hook(model=model(nb), path="n.ipynb", contents_manager=manager)
    (tmp_path / "n.ipynb").write_text(json.dumps(nb))
    cleared = notebook(cell("a"))
    manager.hook(model=model(cleared), path="n.ipynb", contents_manager=manager)
    assert ids(cleared["metadata"]["agent_nb"]) == {"a": ["r1"]}


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"type": "file", "content": "x"},
        {"type": "notebook"},
        {"type": "notebook", "content": {}},
    ],
)
def test_the_server_hook_ignores_other_files(manager, value):
    manager.hook(model=value, path="n.ipynb", contents_manager=manager)


def test_the_server_hook_never_raises(tmp_path, monkeypatch):
    manager, logged = Manager(tmp_path), []
    log = SimpleNamespace(exception=lambda *a: logged.append(a))
    presave._load_jupyter_server_extension(SimpleNamespace(contents_manager=manager, log=log))
    monkeypatch.setattr(presave.NotebookRuns, "lift", lambda *_: 1 / 0)
    manager.hook(
        model=model(notebook(cell("a", output(run("r1"))))),
        path="n.ipynb",
        contents_manager=manager,
    )
    assert logged


def test_a_manager_without_files_or_with_a_broken_one_has_no_records(manager, tmp_path):
    (tmp_path / "n.ipynb").write_text('{"agent_nb"')
    assert presave.on_disk(manager, "n.ipynb") is None
    assert presave.on_disk(object(), "n.ipynb") is None


WIDGET = "application/vnd.jupyter.widget-view+json"


def live(run, **data):
    """Return the output of a live view."""
    return {
        "output_type": "display_data",
        "data": {WIDGET: {"model_id": "m"}, **data},
        "metadata": {"agent_nb": {"live": run}},
    }


def test_the_live_view_of_a_run_that_is_over_is_not_saved():
    page, other = live("r1", **{"text/html": "static"}), live("r1", **{"text/html": "static"})
    other["metadata"] = {}
    nb = notebook(cell("c", page, other))
    assert presave.before_save({"type": "notebook", "content": nb}, "n.ipynb", None)
    assert nb["cells"][0]["outputs"] == [page, other]
    assert page["data"] == {"text/html": "static"}
    assert WIDGET in other["data"]


def test_the_live_view_of_a_run_that_goes_on_is_saved_beside_its_form():
    said = {"output_type": "stream", "name": "stdout", "text": "x"}
    nb = notebook(cell("c", said, live("r1", **{"text/html": "static"}), said))
    for _ in range(2):  # a page that opens saves what it loaded
        NotebookRuns(nb).remove_widgets(lambda run: run == "r1")
        [_, form, view, _] = nb["cells"][0]["outputs"]
        assert (form["data"], view) == ({"text/html": "static"}, live("r1"))
        assert form["metadata"] == view["metadata"]
    assert NotebookRuns(nb).remove_widgets(lambda run: run == "another") == 1
    assert nb["cells"][0]["outputs"] == [said, form, said]


def test_a_view_that_only_claims_to_be_live_stays_where_it_is():
    forged = live("r1", **{"image/png": "…"})
    unmarked = live("r1")
    unmarked["metadata"] = {}
    nb = notebook(cell("c", forged, unmarked))
    assert NotebookRuns(nb).remove_widgets() == 0
    assert nb["cells"][0]["outputs"] == [forged, unmarked]


def test_a_button_is_not_saved_and_nothing_else_goes_with_it():
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "m"}}
    button = {
        "output_type": "display_data",
        "data": widget,
        "metadata": {"agent_nb": {"button": "r1"}},
    }
    said = {"output_type": "stream", "name": "stdout", "text": "x"}
    marked = {**button, "data": {**widget, "text/plain": "a picture"}}
    theirs = {**button, "metadata": {}}
    nb = notebook(cell("a", said, button, theirs, marked, {**button, "data": {}}))
    assert NotebookRuns(nb).remove_widgets() == 2
    assert nb["cells"][0]["outputs"] == [said, theirs, marked]


def asked(name, prompt, started=1.0):
    """Return the record of a run with this prompt."""
    made = run(name, started)
    made["events"].insert(1, {"type": "user", "content": prompt})
    return made


def again(nb, over, *cells):
    """Save `cells` in a page that loaded `nb`, over a file with the metadata `over`."""
    return saved(*cells, over=over, agent_nb=copy.deepcopy(nb))


def test_a_loaded_copy_does_not_bring_back_the_runs_of_a_deleted_cell():
    loaded = ours = saved(cell("a", output(run("r1"))), cell("b", output(run("r2"))))
    kept = []
    for _ in range(4):
        ours = again(loaded, ours, cell("b"))
        kept.append(sorted(ours["runs"]))
    assert kept == [["a", "b"], ["b"], ["b"], ["b"]]


def test_an_undo_after_many_saves_finds_the_runs_in_the_loaded_copy():
    loaded = ours = saved(cell("a", output(run("r1"))), cell("b"))
    for _ in range(3):
        ours = again(loaded, ours, cell("b"))
    assert ids(again(loaded, ours, cell("a"), cell("b"))) == {"a": ["r1"]}


def test_a_notebook_saved_under_a_new_name_takes_its_runs_along():
    loaded = saved(cell("a", output(run("r1"))), cell("b"))
    assert ids(again(loaded, None, cell("a"), cell("b"))) == {"a": ["r1"]}


def forgetting(*names):
    return {
        "output_type": "display_data",
        "data": {"text/plain": "1 run forgotten"},
        "metadata": {"agent_nb": {"forget": list(names)}},
    }


def test_what_was_forgotten_stays_so_when_a_front_end_sends_what_it_had():
    """The output of `%agent forget` is cleared; the page still has the record twice."""
    loaded = saved(cell("a", output(run("r1"))), cell("b"))
    shown = output(run("r1"))
    ours = again(loaded, loaded, cell("a", copy.deepcopy(shown)), cell("b", forgetting("r1")))
    assert ours["runs"] == {}
    for cells in ([cell("a", shown), cell("b")], [cell("a"), cell("b")]):
        nb = notebook(*cells, agent_nb=copy.deepcopy(loaded))
        NotebookRuns(nb).lift(ours)
        ours = nb["metadata"]["agent_nb"]
        assert len(ours["forgotten"]) == 1
        assert '"events"' not in json.dumps(nb)
        assert MIME not in json.dumps(nb)


def test_a_run_that_was_never_saved_is_forgotten_for_good_too():
    ours = saved(cell("a", output(run("r1"))), cell("b", forgetting("r1")))
    assert ids(saved(cell("a", output(run("r1"))), cell("b"), over=ours)) == {}


def test_a_reference_does_not_replace_a_cells_own_run_of_the_same_id():
    """Imported runs keep their ids: two cells may hold different records of one id."""
    part, whole = run("s"), {**run("s"), "hash": "other"}
    ours = saved(cell("a", output(part)), cell("b", output(whole)))
    ref = {"version": 1, "ref": "s"}
    ours = saved(cell("a", output(ref)), cell("b", output(ref)), over=ours)
    assert [ours["runs"][name][0].get("hash") for name in "ab"] == [None, "other"]


def agent(name, prompt, *outputs):
    return cell(name, *outputs, source=f"%%agent -m x\n{prompt}")


def code(name, source, *outputs):
    return cell(name, *outputs, source=source)


def test_the_runs_of_a_split_cell_go_with_the_part_that_has_the_magic():
    """The upper part has a new id and no output; the lower one keeps id and output."""
    full = output(asked("r1", "Dig a hole.\nThen fill it."))
    first = saved(agent("a", "Dig a hole.\nThen fill it.", copy.deepcopy(full)))
    parts = [agent("new", "Dig a hole."), code("a", "Then fill it.", full)]
    nb = notebook(*copy.deepcopy(parts))
    NotebookRuns(nb).lift(first)
    ours = nb["metadata"]["agent_nb"]
    assert ids(ours) == {"new": ["r1"]}
    assert nb["cells"][1]["outputs"][0]["data"][MIME] == {"version": 1, "ref": "r1"}
    assert ids(saved(*copy.deepcopy(parts), over=ours)) == {"new": ["r1"]}
    assert ids(saved(*nb["cells"], over=ours, agent_nb=ours)) == {"new": ["r1"]}


def test_a_split_in_three_or_with_text_between_is_followed():
    full = output(asked("r1", "Dig.\nFill.\nDig again."))
    parts = [
        agent("n1", "Dig."),
        {"cell_type": "markdown", "id": "m", "source": ""},
        code("n2", "Fill."),
        code("a", "Dig again.", full),
    ]
    assert ids(saved(*parts)) == {"n1": ["r1"]}


def test_an_undone_split_has_its_runs_where_they_were():
    full = output(asked("r1", "Dig.\nFill."))
    ours = saved(agent("new", "Dig."), code("a", "Fill.", copy.deepcopy(full)))
    ours = saved(agent("a", "Dig.\nFill.", full), over=ours)
    assert ours["runs"]["a"][0]["id"] == "r1"
    ours = saved(agent("a", "Dig.\nFill."), over=ours)
    assert ids(ours) == {"a": ["r1"]}


def test_the_upper_part_of_a_split_keeps_its_runs_beside_newer_ones():
    full = output(asked("r1", "Dig.\nFill."))
    ours = saved(agent("new", "Dig."), code("a", "Fill.", copy.deepcopy(full)))
    ours = saved(
        agent("new", "Dig.", output(asked("r2", "Dig.", 2.0))), code("a", "Fill.", full), over=ours
    )
    assert ids(ours) == {"new": ["r2", "r1"]}


def test_a_merged_cell_has_the_runs_of_the_cell_it_begins_with():
    ours = saved(
        agent("a", "Dig a hole.", output(asked("r1", "Dig a hole."))),
        agent("b", "Dig.", output(asked("r2", "Dig."))),
    )
    ours = saved(agent("new", "Dig a hole.\n\nThen fill it."), over=ours)
    assert ids(ours) == {"a": ["r1"], "b": ["r2"], "new": ["r1"]}
    assert ids(saved(agent("new", "Dig a hole.\n\nThen fill it."), over=ours)) == {"new": ["r1"]}


@pytest.mark.parametrize("prompt", ["Dig a hole. And more", "Something else.", ""])
def test_another_cell_inherits_nothing(prompt):
    ours = saved(agent("a", "Dig a hole.", output(asked("r1", "Dig a hole."))))
    assert "new" not in saved(agent("new", prompt), over=ours)["runs"]
    shown = code("c", "x = 1", output(asked("r1", "Dig a hole.")))
    assert ids(saved(agent("new", prompt), shown)) == {"c": ["r1"]}


def test_a_cell_with_a_run_inherits_nothing():
    full = output(asked("r1", "Dig.\nFill."))
    ours = saved(agent("h", "Dig.", output(asked("r0", "Dig."))), code("a", "Fill.", full))
    assert ids(ours) == {"h": ["r0"], "a": ["r1"]}


def test_a_run_recovered_in_the_cell_below_belongs_to_the_agent_cell():
    assert ids(
        saved(agent("a", "Dig."), code("r", "%agent recover r1", output(asked("r1", "Dig."))))
    ) == {"a": ["r1"]}


@pytest.mark.parametrize(
    "events", [None, [], [3], [{"type": "user"}], [{"type": "user", "content": {"$payload": "x"}}]]
)
def test_a_record_with_an_unknown_prompt_is_not_inherited(events):
    odd = {**run("r1"), "events": events}
    lift_nb = notebook(
        agent("h", "Dig."),
        code("a", "Fill."),
        agent_nb={"version": 1, "runs": {"a": [odd], "gone": [odd]}},
    )
    NotebookRuns(lift_nb).lift()
    assert "h" not in lift_nb["metadata"]["agent_nb"]["runs"]


SECRET = UserKey(b"the secret of the user who saves")


@pytest.fixture
def owner(monkeypatch, tmp_path):
    """Give the user a secret; return a function that signs a run with it."""
    (tmp_path / "jupyter").mkdir()
    (tmp_path / "jupyter" / "notebook_secret").write_bytes(SECRET)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return lambda name, started=1.0, **more: SECRET.sign({**run(name, started), **more})


FUTURE = 9e9


class TestForgedRecords:
    """Anyone who can write a notebook can write any record, with any time and id."""

    @pytest.mark.parametrize(
        "started", [FUTURE, 1e12, "9e9", True, None, float("nan"), float("inf"), 10**400, -1, [1]]
    )
    def test_whatever_times_they_name_they_evict_nothing_that_the_user_signed(self, owner, started):
        first = saved(cell("a", *(output(owner(f"mine{n}", float(n))) for n in range(3))))
        forged = [output(run(f"forged{n}", started)) for n in range(5)]
        ours = saved(cell("a", *forged), over=first)
        assert {"mine0", "mine1", "mine2"} < set(ids(ours)["a"])
        assert len(ours["runs"]["a"]) == 4

    def test_the_newest_foreign_record_is_kept_beside_three_of_the_user(self, owner):
        """For example a colleague's run that comes with a merge."""
        first = saved(cell("a", *(output(owner(f"mine{n}", float(n))) for n in range(3))))
        ours = saved(cell("a", output(run("theirs", 9.0))), over=first)
        assert ids(ours) == {"a": ["theirs", "mine2", "mine1", "mine0"]}
        ours = saved(cell("a", output(run("newer", 10.0))), over=ours)
        assert ids(ours) == {"a": ["newer", "mine2", "mine1", "mine0"]}

    def test_one_of_the_users_ids_does_not_take_the_records_place(self, owner):
        mine = owner("r1", 2.0)
        first = saved(cell("a", output(mine)))
        for forged in (
            run("r1", 3.0),
            {**mine, "status": "error"},
            UserKey(b"another user").sign(run("r1", 3.0)),
        ):
            ours = saved(cell("a", output(forged)), over=first)
            assert ours["runs"]["a"] == [mine]
            assert saved(cell("a"), over=first, agent_nb={**first, "runs": {"a": [forged]}})[
                "runs"
            ]["a"] == [mine]

    def test_without_a_signature_the_later_source_counts(self, owner):
        first = saved(cell("a", output(run("r1", 1.0))))
        assert (
            saved(cell("a", output(run("r1", 2.0))), over=first)["runs"]["a"][0]["started"] == 2.0
        )

    def test_its_payloads_do_not_take_the_place_of_the_users(self, owner):
        large = "x" * 70_000
        key = payload_key(large)
        event = {"type": "result", "call_id": "c", "content": {"$payload": key}}
        mine = owner("r1", events=[event], payloads={key: large})
        forged = {**run("r2"), "events": [event], "payloads": {key: "swapped"}}
        for cells in (("a", "b"), ("b", "a")):
            ours = saved(cell(cells[0], output(mine)), cell(cells[1], output(forged)))
            assert ours["payloads"] == {key: large}

    def test_a_server_with_another_secret_treats_all_alike(self, owner, monkeypatch, tmp_path):
        """Without a secret the newest records stay, by the times they name."""
        runs = [output(owner(f"mine{n}", float(n))) for n in range(3)]
        monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other"))
        more = output(run("theirs", 9.0)), output(run("future", FUTURE))
        assert ids(saved(cell("a", *runs, *more))) == {"a": ["theirs", "mine2", "mine1"]}


PASSING = {"agent_nb": {"run": "r1"}}
SHOWN = {
    "without our metadata": ({}, "display_data"),
    "with metadata that names another run": ({"agent_nb": {"run": "r2"}}, "display_data"),
    "with metadata that names none": ({"agent_nb": {"version": 1}}, "display_data"),
    "with metadata of another form": ({"agent_nb": "r1"}, "display_data"),
    "as the value of a cell": (PASSING, "execute_result"),
}


@pytest.mark.parametrize("how", SHOWN)
def test_a_record_that_our_publisher_did_not_write_is_not_lifted(how):
    metadata, kind = SHOWN[how]
    shown = {
        "output_type": kind,
        "data": {"text/plain": "x", MIME: run("r1")},
        "metadata": metadata,
    }
    nb = notebook(cell("a", shown))
    before = copy.deepcopy(nb)
    assert not NotebookRuns(nb).lift()
    assert nb == before
    assert NotebookRuns(nb).by_cell() == {}
    assert NotebookRuns(nb).list_all() == []
    assert NotebookRuns(nb).strip() > 0


def test_a_record_left_in_the_place_of_a_run_that_never_began_is_named():
    shown = {
        "output_type": "display_data",
        "data": {MIME: run("r1")},
        "metadata": {"agent_nb": {"run": "r2", "record": "r1"}},
    }
    assert ids(saved(cell("a", shown))) == {"a": ["r1"]}


# Cells whose ids are not the ones they had: nbstripout numbers them from 0 at each commit.

A, B, NEW = "%%agent\nfirst", "%%agent -m x\nsecond", "%%agent\nnew"


def made(name, source, started=1.0, **more):
    option, _, body = source.removeprefix("%%agent").partition("\n")
    return {**run(name, started), "source": content_hash(option, body), **more}


def numbered(*sources):
    return [cell(str(number), source=source) for number, source in enumerate(sources)]


def over(runs):
    return {"version": 1, "runs": runs}


@pytest.mark.parametrize(
    ("before", "sources", "after"),
    [
        # for the first time
        ({"a1": [("r1", A)], "b2": [("r2", B)]}, [A, B], {"0": ["r1"], "1": ["r2"]}),
        # a cell was inserted
        ({"0": [("r1", A)], "1": [("r2", B)]}, [NEW, A, B], {"1": ["r1"], "2": ["r2"]}),
        # one text twice
        (
            {"0": [("r1", A)], "1": [("r2", B)], "2": [("r3", A)]},
            [NEW, A, B, A],
            {"1": ["r1"], "2": ["r2"], "3": ["r3"]},
        ),
        ({"0": [("r1", A)], "1": [("r2", B)]}, [B, A], {"0": ["r2"], "1": ["r1"]}),  # moved
        # ids are numbers
        ({"10": [("r1", A)], "9": [("r2", A)]}, [A, A], {"0": ["r2"], "1": ["r1"]}),
        # the text was changed: its record stays, and is stale
        ({"0": [("r1", A)]}, [NEW], {"0": ["r1"]}),
        # an earlier text of the cell
        ({"x": [("r2", B), ("r1", A)], "y": [("r3", A)]}, [A, B], {"0": ["r3"], "1": ["r2", "r1"]}),
        ({"x": [("r2", B), ("r1", A)]}, [A], {"0": ["r2", "r1"]}),  # changed back
        # the id is that of other code
        ({"0": [("r1", A)], "1": [("r2", B)]}, ["x = 1", A, B], {"1": ["r1"], "2": ["r2"]}),
    ],
)
def test_a_record_goes_with_its_text_when_ids_are_numbered_anew(before, sources, after):
    listed = {
        name: [made(n, s, 10.0 - i) for i, (n, s) in enumerate(of)] for name, of in before.items()
    }
    ours = over(listed)
    nb = notebook(*numbered(*sources), agent_nb=copy.deepcopy(ours))
    assert {c: [r["id"] for r in found] for c, found in NotebookRuns(nb).by_cell().items()} == after
    # the file holds the previous save, the page what it loaded
    for _ in range(3):
        nb["metadata"]["agent_nb"] = copy.deepcopy(over(listed))
        NotebookRuns(nb).lift(ours)
        ours = nb["metadata"]["agent_nb"]
        assert ids(ours) == after
        assert "gone" not in ours


def test_the_record_of_a_deleted_cell_does_not_go_to_the_heir_of_its_id():
    listed = {
        "0": [made(f"a{n}", A, 100.0 + n) for n in range(3)],
        "1": [made(f"b{n}", B, n) for n in range(3)],
    }
    ours = saved(*numbered(B), over=over(listed))
    assert ids(ours) == {"0": ["b2", "b1", "b0"], "0~": ["a2", "a1", "a0"]}
    # undone
    assert ids(saved(*numbered(A, B), over=ours)) == {
        "0": ["a2", "a1", "a0"],
        "1": ["b2", "b1", "b0"],
    }
    # gone for two saves
    assert ids(saved(*numbered(B), over=ours, agent_nb=over(listed))) == {"0": ["b2", "b1", "b0"]}


def test_a_cell_with_a_record_of_its_text_keeps_its_records():
    listed = {"a": [made("r1", A), made("r0", B, 0.5)], "b": [made("r2", B)]}
    assert ids(saved(cell("a", source=A), cell("b", source=B), over=over(listed))) == {
        "a": ["r1", "r0"],
        "b": ["r2"],
    }


def test_runs_that_a_cell_only_followed_do_not_become_another_cells():
    listed = {"code": [made("r1", A, conversation="")]}
    assert ids(
        saved(cell("code", source="await agent('first')"), cell("0", source=A), over=over(listed))
    ) == {"code": ["r1"]}


def test_records_that_do_not_say_their_text_stay_where_they_are():
    assert ids(saved(*numbered(NEW, A), over=over({"0": [run("r1")], "1": [run("r2")]}))) == {
        "0": ["r1"],
        "1": ["r2"],
    }


def test_runs_that_lose_their_id_join_those_that_lost_it_before():
    listed = {"0": [made("b", B)], "1": [made("y", NEW)], "1~": [made("z", NEW)]}
    moved = reassign_runs([cell("1", source=B)], listed)
    assert {cell: [r["id"] for r in of] for cell, of in moved.items()} == {
        "1": ["b"],
        "1~": ["y", "z"],
    }


def test_a_start_in_the_future_gives_no_record_to_another_cell():
    future = made("r3", B, time.time() + 1e6)
    listed = {"x": [future, made("r1", A)], "y": [made("r2", B)]}
    moved = reassign_runs(numbered(A, B), listed)
    assert {cell: [r["id"] for r in of] for cell, of in moved.items()} == {
        "0": ["r3", "r1"],
        "1": ["r2"],
    }


@pytest.mark.parametrize(
    "started", [10**400, -(10**400), float("nan"), float("inf"), None, "x", [1], True]
)
def test_no_time_of_a_start_keeps_records_from_being_found(started):
    listed = {"x": [made("r2", B, started), made("r1", A, 1.0)], "y": [made("r3", B, started)]}
    found = reassign_runs(numbered(A, B, B), listed)
    assert sorted(r["id"] for of in found.values() for r in of) == ["r1", "r2", "r3"]


@pytest.mark.parametrize(
    "change",
    [
        {
            "op": "patch",
            "diff": [
                {
                    "op": "patch",
                    "key": "a",
                    "diff": [{"op": "addrange", "key": 0, "valuelist": [run("r2", 2.0)]}],
                }
            ],
        },
        {"op": "add", "value": {"a": [run("r2", 2.0)]}},
    ],
)
def test_a_record_that_nbdime_has_put_aside_is_read_lifted_and_stripped(change):
    def merged():
        sides = {
            "local_diff": [{"op": "patch", "key": "agent_nb", "diff": [{**change, "key": "runs"}]}],
            "remote_diff": [],
        }
        return notebook(
            cell("a"),
            agent_nb={"version": 1, "runs": {"a": [run("r1")]}},
            **{"nbdime-conflicts": sides},
        )

    assert [r["id"] for r in NotebookRuns(merged()).by_cell()["a"]] == ["r2", "r1"]
    assert [found.record["id"] for found in NotebookRuns(merged()).list_all()] == ["r1", "r2"]
    lifted, stripped = merged(), merged()
    assert NotebookRuns(lifted).lift()
    assert (ids(lifted["metadata"]["agent_nb"]), "nbdime-conflicts" in lifted["metadata"]) == (
        {"a": ["r2", "r1"]},
        False,
    )
    assert NotebookRuns(stripped).strip() == 2
    assert stripped["metadata"] == {}


@pytest.mark.parametrize("payload", [{"op": "add", "value": 1}, [{"op": "add"}, 2]])
def test_a_payload_that_nbdime_has_put_aside_is_read_whole(payload):
    key = payload_key(payload)
    record = run("r2", payload=key)
    del record["payloads"]
    added = {"runs": {"a": [record]}, "payloads": {key: payload}}
    diff = [{"op": "add", "key": "agent_nb", "value": added}]
    nb = notebook(cell("a"), **{"nbdime-conflicts": {"local_diff": diff}})
    assert NotebookRuns(nb).by_cell()["a"][0]["payloads"] == {key: payload}


@pytest.mark.parametrize(
    "aside",
    [
        None,
        1,
        [],
        {},
        {"local_diff": 1},
        {"local_diff": [{"key": "agent_nb", "diff": [[None]]}, 5]},
    ],
)
def test_other_output_is_not_a_record(aside):
    nb = notebook(cell("a"), **{"nbdime-conflicts": aside})
    assert NotebookRuns(nb).by_cell() == {}
    NotebookRuns(nb).lift()
    NotebookRuns(nb).strip()


def test_a_link_to_a_notebook_stays_when_the_notebook_is_written(tmp_path):
    file, link = tmp_path / "folder" / "a.ipynb", tmp_path / "link.ipynb"
    file.parent.mkdir()
    file.write_text("{}")
    link.symlink_to(file)
    save_notebook({"cells": []}, link)
    assert link.is_symlink()
    assert json.loads(file.read_text()) == {"cells": []}


@pytest.mark.parametrize("start", [b"{\r\n  ", b"\xef\xbb\xbf{\r\n  "], ids=["", "with a BOM"])
def test_a_file_with_the_line_ends_of_windows_stays_one(tmp_path, start):
    path = tmp_path / "n.ipynb"
    path.write_bytes(start + b'"cells": []\r\n}\r\n')
    save_notebook(load_notebook(path), path)
    assert path.read_bytes() == b'{\r\n  "cells": []\r\n}\r\n'


def test_a_notebook_whose_name_is_as_long_as_names_can_be_is_written(tmp_path):
    path = tmp_path / f"{'n' * 249}.ipynb"
    path.write_text("{}")
    save_notebook({"cells": []}, path)
    assert load_notebook(path) == {"cells": []}


@pytest.mark.parametrize("number", [errno.EACCES, errno.EBUSY, errno.EROFS])
def test_a_file_that_cannot_be_replaced_is_written_over(tmp_path, monkeypatch, number):
    """As one that is mounted into a container is."""

    def replace(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", replace)
    path = tmp_path / "n.ipynb"
    path.write_text("{}")
    save_notebook({"cells": []}, path)
    assert load_notebook(path) == {"cells": []}
    assert list(tmp_path.iterdir()) == [path]


def refuse_other_files(**_):
    raise PermissionError(errno.EACCES, "the folder takes no other file")


def test_a_file_that_cannot_be_replaced_survives_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", refuse_other_files)
    path = tmp_path / "n.ipynb"
    path.write_text('{"cells": []}')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))  # fails as a full disk does
    try:
        with pytest.raises(OSError, match="too large"):
            save_notebook({"cells": [], "metadata": {}}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == '{"cells": []}'


def test_a_file_that_is_written_over_may_become_shorter(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", refuse_other_files)
    path = tmp_path / "n.ipynb"
    path.write_text('{"cells": [], "metadata": {"long": "text"}}')
    save_notebook({"cells": []}, path)
    assert load_notebook(path) == {"cells": []}


def test_what_is_not_a_file_is_written_to_and_stays(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    save_notebook({"cells": []}, pipe)
    reader.join(10)
    assert json.loads(received[0]) == {"cells": []}
    assert pipe.is_fifo()


def test_an_error_of_reading_names_the_file_once(tmp_path):
    with pytest.raises(UsageError) as fault:
        load_notebook(tmp_path)
    assert str(fault.value).count(str(tmp_path)) == 1
