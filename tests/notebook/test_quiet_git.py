"""Recorded notebooks in git: what a replay, a live rerun and a merge change in the file."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import agent_nb
from agent_nb.cli.main import main
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

SETUP = """%load_ext agent_nb
import json
from pathlib import Path
from agent_nb import Agent, Scripted
said = json.loads(Path('answers.json').read_text())
def model(name, *turns):
    return type(name, (Scripted,), {'identity': name})([*turns, said[name]])
one, two, three, four, five = map(model, ('one', 'two', 'three', 'four', 'five'))
six = model('six', '<execute>[{"name": "python", "args": {"code": "object()"}}]</execute>')"""
CELLS = {
    "setup": SETUP,
    "one": "%%agent -m one\nSay one.",
    "plain": "x = 1\nprint(x)",
    "two": "%%agent -m two\nSay two.",
    "three": "%%agent -c aside -m three\nSay three.",
    "four": "%%agent -c aside -m four\nSay four.",
    "loop": "for n in range(3):\n    await Agent(model=five)(f'Say {n}.')",
    "six": "%%agent -c last -m six -t python --approve auto\nMake one.",
}
LINES = "\n".join(f"Line {n} of it." for n in range(30))
ANSWERS = {
    name: f"This is {name}.\n{LINES}" for name in ("one", "two", "three", "four", "five", "six")
}
REPLAY = ("--rerun", "replay")


def executed(folder, answers=ANSWERS, of=None):
    """Return the file of a notebook that ran live, anew or as it is in the file `of`."""
    folder.mkdir(exist_ok=True)
    path = folder / "n.ipynb"
    (folder / "answers.json").write_text(json.dumps(answers))
    if of is None:
        cells = [
            {
                "cell_type": "code",
                "id": name,
                "source": text.splitlines(True),
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
            for name, text in CELLS.items()
        ]
        path.write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
    else:
        shutil.copy(of, path)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


def other(*names):
    return {
        **ANSWERS,
        **{name: ANSWERS[name].replace("Line 7 of it.", "Another line.") for name in names},
    }


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="module")
def ours(recorded, tmp_path_factory):
    """Run all cells live again; cell two has another answer."""
    return executed(tmp_path_factory.mktemp("ours"), other("two"), recorded)


@pytest.fixture(scope="module")
def theirs(recorded, tmp_path_factory):
    """Run all cells live again, later; cells one and four have other answers."""
    return executed(tmp_path_factory.mktemp("theirs"), other("one", "four"), recorded)


class Repository:
    """Return a repository with a committed notebook and our drivers."""

    def __init__(self, folder, notebook, *options):
        self.folder, self.path = folder, folder / "n.ipynb"
        self.git("init", "-q", "-b", "main")
        for name, value in (
            ("user.name", "a"),
            ("user.email", "a@example.org"),
            ("commit.gpgsign", "false"),
        ):
            self.git("config", name, value)
        assert main(["git-setup", *options, str(folder)]) == 0
        (folder / "answers.json").write_text(json.dumps(ANSWERS))
        (folder / ".gitignore").write_text("answers.json\n")
        self.commit(Path(notebook).read_text())

    def git(self, *words, check=True):
        env = {
            **os.environ,
            "PYTHONPATH": str(Path(agent_nb.__file__).parents[1]),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(
            ["git", *words], check=False, cwd=self.folder, env=env, capture_output=True, text=True
        )
        assert not check or not done.returncode, done.stderr
        return done.stdout + done.stderr

    def commit(self, text):
        self.path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def run(self, *options):
        assert main(["run", "--inplace", "--trust-record", *options, str(self.path)]) == 0

    def branch(self, text, before=None):
        """Commit a notebook on the branch `other`, and `before`, which is ours, on `main`."""
        self.git("checkout", "-q", "-b", "other")
        self.commit(text)
        self.git("checkout", "-q", "main")
        if before is not None:
            self.commit(before)

    def tested(self, capsys):
        capsys.readouterr()
        code = main(["test", "--trust-record", str(self.path)])
        return code, capsys.readouterr().out


@pytest.fixture
def repository(recorded, tmp_path):
    return Repository(tmp_path, recorded)


def with_cell(name, source, base):
    """Return the text of `base` with one cell rerun, as it ran in `source`."""
    nb, ran = load_notebook(base), load_notebook(source)
    for place, cell in enumerate(ran["cells"]):
        if cell["id"] == name:
            nb["cells"][place] = cell
    nb["metadata"]["agent_nb"]["runs"][name] = ran["metadata"]["agent_nb"]["runs"][name]
    return json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def changes(diff):
    return [
        line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]


@pytest.mark.long
def test_a_replay_of_an_unchanged_notebook_changes_nothing(repository):
    before = repository.path.read_bytes()
    for _ in range(2):
        repository.run(*REPLAY)
        assert repository.path.read_bytes() == before
        assert repository.git("status", "--short") == ""


@pytest.mark.long
def test_a_replay_in_cells_without_outputs_is_the_same_twice(repository):
    nb = load_notebook(repository.path)
    for cell in nb["cells"]:
        cell["outputs"] = []
    repository.path.write_text(json.dumps(nb))
    repository.run(*REPLAY)
    once = repository.path.read_bytes()
    repository.run(*REPLAY)
    assert repository.path.read_bytes() == once
    assert b"replayed, recorded" in once


@pytest.mark.long
def test_only_cells_that_ran_live_are_rewritten_and_no_times_are_written(repository):
    nb = load_notebook(repository.path)
    before = {cell["id"]: json.dumps(cell, sort_keys=True) for cell in nb["cells"]}
    nb["cells"][4]["source"] = ["%%agent -c aside -m three\n", "Say three again."]
    repository.commit(json.dumps(nb, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    repository.run()
    after = {
        cell["id"]: json.dumps(cell, sort_keys=True)
        for cell in load_notebook(repository.path)["cells"]
    }
    # `auto` runs Python code live
    assert {name for name in after if after[name] != before[name]} == {"three", "four", "loop"}
    assert not any(
        "execution" in cell["metadata"] for cell in load_notebook(repository.path)["cells"]
    )
    assert repository.path.read_text().startswith('{\n  "cells"')


@pytest.mark.long
def test_what_options_change_of_the_view_of_a_replay_is_written(repository):
    nb = load_notebook(repository.path)
    nb["cells"][1]["source"] = ["%%agent -m one --thoughts hide\n", "Say one."]
    repository.path.write_text(json.dumps(nb))
    repository.run(*REPLAY)
    assert "replayed, recorded" in json.dumps(load_notebook(repository.path)["cells"][1]["outputs"])
    assert "replayed, recorded" not in json.dumps(
        load_notebook(repository.path)["cells"][3]["outputs"]
    )


@pytest.mark.long
def test_a_live_rerun_with_the_same_answers_has_no_lines_in_the_diff(repository):
    repository.run("--live")
    assert repository.git("diff", "--stat") != ""
    assert repository.git("diff") == ""


@pytest.mark.long
def test_one_changed_answer_is_a_few_lines_in_the_diff(repository, ours):
    repository.path.write_text(ours.read_text())
    shown = repository.git("diff")
    assert changes(shown) == ["-    Line 7 of it.", "+    Another line."]
    assert len(shown.splitlines()) <= 40


@pytest.mark.long
def test_branches_that_reran_cells_of_two_conversations_merge_and_pass(
    repository, recorded, ours, theirs, capsys
):
    repository.branch(with_cell("four", theirs, recorded), with_cell("two", ours, recorded))
    repository.git("merge", "-q", "other")
    merged = NotebookRuns(load_notebook(repository.path)).by_cell()
    assert {name: len(listed) for name, listed in merged.items()} == {
        "one": 1,
        "two": 2,
        "three": 1,
        "four": 2,
        "loop": 3,
        "six": 1,
    }
    cells = {cell["id"]: cell for cell in load_notebook(repository.path)["cells"]}
    assert [cells[name]["outputs"] for name in ("two", "four")] == [
        load_notebook(ours)["cells"][3]["outputs"],
        load_notebook(theirs)["cells"][5]["outputs"],
    ]
    code, said = repository.tested(capsys)
    assert code == 0, said
    assert "8 runs replayed" in said
    assert changes(repository.git("diff", "HEAD^1")) == ["-    Line 7 of it.", "+    Another line."]


@pytest.mark.long
def test_two_branches_that_ran_every_cell_live_merge_and_pass(repository, ours, theirs, capsys):
    repository.branch(theirs.read_text(), ours.read_text())
    repository.git("merge", "-q", "other")
    code, said = repository.tested(capsys)
    assert code == 0, said
    before = repository.path.read_bytes()
    repository.run(*REPLAY)  # what the cells show are the runs that are replayed
    assert repository.path.read_bytes() == before


@pytest.mark.long
def test_a_merge_in_one_conversation_succeeds_and_names_cells_to_rerun(
    repository, recorded, ours, theirs, capsys
):
    repository.branch(with_cell("one", theirs, recorded), with_cell("two", ours, recorded))
    repository.git("merge", "-q", "other")
    code, said = repository.tested(capsys)
    assert code == 1
    problems = [line for line in said.splitlines() if line.startswith("  cell ")]
    assert [(line.split('"')[0], "conversation" in line) for line in problems] == [
        ("  cell 4 (two) ", True)
    ]
    assert "run --inplace" in said  # asks only these


@pytest.mark.long
def test_work_that_was_stashed_or_rebased_keeps_its_runs(
    repository, recorded, ours, theirs, capsys
):
    repository.path.write_text(with_cell("four", theirs, recorded))
    repository.git("stash", "-q")
    assert repository.path.read_text() == recorded.read_text()
    repository.commit(with_cell("two", ours, recorded))
    repository.git("stash", "pop", "-q")
    assert (
        len(NotebookRuns(load_notebook(repository.path)).by_cell()["two"])
        == len(NotebookRuns(load_notebook(repository.path)).by_cell()["four"])
        == 2
    )
    repository.git("checkout", "-q", "--", ".")
    repository.git("checkout", "-q", "-b", "other", "HEAD^")
    repository.commit(with_cell("four", theirs, recorded))
    repository.git("rebase", "-q", "main")
    code, said = repository.tested(capsys)
    assert code == 0, said
    assert (
        len(NotebookRuns(load_notebook(repository.path)).by_cell()["two"])
        == len(NotebookRuns(load_notebook(repository.path)).by_cell()["four"])
        == 2
    )


@pytest.mark.long
def test_where_commits_hold_no_records_a_live_rerun_is_in_the_file_alone(
    recorded, ours, tmp_path, capsys
):
    repository = Repository(tmp_path, recorded, "--strip")
    assert "agent_nb" not in repository.git("show", "HEAD:n.ipynb").replace(
        "%load_ext agent_nb", ""
    ).replace("from agent_nb", "")
    repository.run(*REPLAY)
    assert repository.git("status", "--short") == ""
    code, said = repository.tested(capsys)
    assert code == 0, said
    repository.commit(ours.read_text())
    assert len(NotebookRuns(load_notebook(repository.path)).by_cell()["two"]) == 2
