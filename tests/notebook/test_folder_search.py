"""The notebook of the kernel's folder that holds the running cell, if no path is known."""

import json
import os

import pytest

from agent_nb.notebook.files import folder_search as module
from agent_nb.notebook.files.folder_search import FolderSearch
from agent_nb.notebook.files.library import Library
from agent_nb.notebook.files.notebook_finder import UNKNOWN
from agent_nb.notebook.identity import Cell
from agent_nb.record.agent_cells import content_hash
from agent_nb.record.record import METADATA_KEY

AGENT = "%%agent -m model\nhi"
TEXT = content_hash("-m model", "hi")
RUN = Cell(key="sha256:x:1", line="-m model", body="hi", kernel=True)


@pytest.fixture(autouse=True)
def nameless(monkeypatch):
    for name in ("AGENT_NB_NOTEBOOK", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(tmp_path):
    def write(name, *sources, shown=None, **metadata):
        outputs = (
            [{"output_type": "display_data", "data": {}, "metadata": {METADATA_KEY: shown}}]
            if shown
            else []
        )
        cells = [
            {"cell_type": "code", "id": f"c{n}", "source": s, "outputs": outputs}
            for n, s in enumerate(sources)
        ]
        path = tmp_path / name
        path.write_text(
            json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
        )
        return path

    return write


@pytest.fixture
def library(tmp_path):
    return Library({"_dh": [str(tmp_path)]})


def recorded(name):
    record = {
        "id": name,
        "cell": "c0",
        "source": TEXT,
        "events": [{"type": "run_start"}],
        "started": 1.0,
    }
    return {METADATA_KEY: {"version": 1, "runs": {"c0": [record]}}}


def test_the_one_notebook_that_holds_the_cell_is_taken(write, library):
    path = write("n.ipynb", AGENT, **recorded("r1"))
    write("other.ipynb", "%%agent -m model\nho")
    write("text.ipynb", "print(1)")
    assert [r["id"] for r in library.rank_records(RUN)] == ["r1"]
    assert library.finder.path() == path
    assert library.finder.advice(RUN) == ""


def test_several_matches_are_named_and_none_is_taken(write, library):
    for name in ("a.ipynb", "b.ipynb", "c.ipynb"):
        write(name, AGENT, **recorded(name))
    assert library.rank_records(RUN) == []
    assert library.finder.path() is None
    assert (
        "this cell stands in a.ipynb, b.ipynb and c.ipynb: name the file in AGENT_NB_NOTEBOOK"
        in library.finder.advice(RUN)
    )


def test_one_line_says_that_nothing_is_replayed_beside_a_copy(write, library):
    write("a.ipynb", AGENT, **recorded("a"))
    write("copy.ipynb", AGENT, **recorded("a"))
    words = library.finder.ambiguity_warning(RUN)
    assert words.startswith("Nothing is replayed. ")
    assert "a.ipynb and copy.ipynb" in words
    assert library.finder.ambiguity_warning(RUN) == ""


def test_copies_without_records_are_no_news(write, library):
    write("a.ipynb", AGENT)
    write("copy.ipynb", AGENT)
    assert library.finder.ambiguity_warning(RUN) == ""


def test_where_there_is_none_the_variable_is_named(write, library):
    write("n.ipynb", "print(1)")
    assert library.rank_records(RUN) == []
    assert library.finder.advice(RUN) == UNKNOWN


def test_a_found_notebook_stays_when_others_hold_a_later_cell(write, library):
    path = write("n.ipynb", AGENT, "%%agent\nagain", **recorded("r1"))
    write("other.ipynb", "%%agent\nagain")
    library.rank_records(RUN)
    library.rank_records(Cell(key="k", body="again", kernel=True))
    assert library.finder.path() == path


def test_a_notebook_that_does_not_hold_a_later_cell_was_the_wrong_one(write, library):
    write("n.ipynb", AGENT, **recorded("r1"))
    library.rank_records(RUN)
    library.rank_records(Cell(key="k", body="another", kernel=True))
    assert library.finder.path() is None


COPIES = {
    "our own": ("n.run.ipynb", {}),
    "one that papermill is writing": (
        "out.ipynb",
        {"papermill": {"start_time": "2026-01-01", "end_time": None}},
    ),
    "one that shows replays only": ("out.ipynb", {"shown": {"run": "r1", "replayed": True}}),
}


@pytest.mark.parametrize("what", COPIES)
def test_a_copy_that_a_runner_writes_does_not_count_beside_the_notebook(write, library, what):
    name, more = COPIES[what]
    path = write("n.ipynb", AGENT, shown={"run": "r1"}, **recorded("r1"))
    write(name, AGENT, **{**recorded("copy"), **more})
    assert [r["id"] for r in library.rank_records(RUN)] == ["r1"]
    path.unlink()
    assert [r["id"] for r in Library({"_dh": [str(path.parent)]}).rank_records(RUN)] == ["copy"]


def test_an_explicit_path_wins_over_the_folder(write, library, monkeypatch, tmp_path):
    write("n.ipynb", AGENT, **recorded("r1"))
    (tmp_path / "below").mkdir()
    monkeypatch.setenv(
        "AGENT_NB_NOTEBOOK", str(write("below/said.ipynb", AGENT, **recorded("said")))
    )
    assert [r["id"] for r in library.rank_records(RUN)] == ["said"]


def test_a_terminal_looks_into_no_folder(write, library):
    write("n.ipynb", AGENT, **recorded("r1"))
    assert library.rank_records(Cell(key=RUN.key, line=RUN.line, body=RUN.body)) == []


NO_NOTEBOOKS = [
    "",
    "[]",
    "{",
    '{"cells": 1}',
    '{"cells": [1], "metadata": []}',
    '{"cells": [{"cell_type": "code", "source": 1}]}',
    "[" * 9999,
]


@pytest.mark.parametrize("text", NO_NOTEBOOKS)
def test_invalid_notebooks_are_ignored(write, library, tmp_path, text):
    write("n.ipynb", AGENT, **recorded("r1"))
    (tmp_path / "bad.ipynb").write_text(text)
    (tmp_path / "folder.ipynb").mkdir()
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert [r["id"] for r in library.rank_records(RUN)] == ["r1"]


@pytest.mark.parametrize(("name", "value"), [("MOST_NOTEBOOKS", 1), ("MOST_BYTES", 100)])
def test_a_folder_with_too_much_in_it_is_not_searched(write, library, monkeypatch, name, value):
    monkeypatch.setattr(module, name, value)
    write("n.ipynb", AGENT, **recorded("r1"))
    write("other.ipynb", "print(1)")
    assert library.rank_records(RUN) == []


def test_a_file_is_read_again_only_when_it_has_changed(write, monkeypatch, tmp_path):
    read = []
    plain = module._read_content
    monkeypatch.setattr(
        module, "_read_content", lambda path, stamp: read.append(path.name) or plain(path, stamp)
    )
    write("n.ipynb", AGENT)
    write("other.ipynb", "print(1)")
    folder = FolderSearch(tmp_path)
    assert [len(folder.find_holding(TEXT)) for _ in range(3)] == [1, 1, 1]
    assert sorted(read) == ["n.ipynb", "other.ipynb"]
    write("other.ipynb", "print(1)", AGENT)
    assert len(folder.find_holding(TEXT)) == 2
    assert read[2:] == ["other.ipynb"]
