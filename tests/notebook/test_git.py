"""Notebooks with records in a real git repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.marks import starts

import agent_nb
from agent_nb.cli.main import main
from agent_nb.events import Call, End, Respond, Result, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.notebook import doctor
from agent_nb.notebook.files.git import diff_text
from agent_nb.record.ipynb import load_notebook, source_of
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import RECORD_MIME, Provenance, run_record

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


CALL = (
    Call(call_id="c", name="read", args={"file": "a.txt"}, turn=1),
    Result(call_id="c", name="read", content="text", turn=1),
)


def record(run, answer="Hello.", started=1.0, calls=CALL, **fields):
    log = EventLog(run, clock=lambda: started)
    for event in (
        RunStart(model="scripted/x"),
        User(content="hi"),
        *calls,
        Respond(content=answer, turn=2),
        End(),
    ):
        log.append(event)
    return run_record(log, Provenance(**fields))


def plain(name, source, shown="", **more):
    outputs = [{"output_type": "stream", "name": "stdout", "text": shown}] if shown else []
    return {**cell(name, source=source), "outputs": outputs, **more}


def cell(name, *made, source="%%agent\nhi"):
    outputs = [
        {
            "output_type": "display_data",
            "data": {"text/plain": "…", RECORD_MIME: r},
            "metadata": {"agent_nb": {"run": r["id"]}},
        }
        for r in made
    ]
    return {
        "cell_type": "code",
        "id": name,
        "execution_count": None,
        "metadata": {},
        "source": source.splitlines(True),
        "outputs": outputs,
    }


def write(path, *cells):
    nb = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    NotebookRuns(nb).lift()
    path.write_text(json.dumps(nb, indent=1, sort_keys=True) + "\n")


class Repository:
    """Return a repository of one notebook with the drivers installed."""

    def __init__(self, folder):
        self.folder, self.notebook = folder, folder / "n.ipynb"
        self.git("init", "-q", "-b", "main")
        for name, value in (
            ("user.name", "a"),
            ("user.email", "a@example.org"),
            ("commit.gpgsign", "false"),
        ):
            self.git("config", name, value)

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
        return done

    def commit(self, *cells):
        write(self.notebook, *cells)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def runs(self):
        return {
            name: [r["id"] for r in listed]
            for name, listed in NotebookRuns(json.loads(self.notebook.read_text()))
            .by_cell()
            .items()
        }


@pytest.fixture
@starts("slow")
def repository(tmp_path):
    made = Repository(tmp_path)
    assert main(["git-setup", str(tmp_path)]) == 0
    return made


def test_the_drivers_import_nothing_of_the_repository(repository):
    repository.commit(cell("a", record("r1")))
    for name in ("agent_nb", "typing", "json", "argparse"):
        (repository.folder / f"{name}.py").write_text("open('executed', 'w').close()")
    write(repository.notebook, cell("a", record("r2", answer="Other.")))
    assert "Other." in repository.git("diff").stdout
    assert not (repository.folder / "executed").exists()


def test_setting_up_twice_changes_nothing(repository, capsys):
    before = (repository.folder / ".gitattributes").read_text()
    assert main(["git-setup", str(repository.folder)]) == 0
    assert (
        (repository.folder / ".gitattributes").read_text()
        == before
        == "*.ipynb diff=agent-nb merge=agent-nb\n"
    )


def test_setting_up_does_not_write_through_a_link(repository, tmp_path, capsys):
    attributes, outside = repository.folder / ".gitattributes", tmp_path / "outside"
    outside.write_text("theirs\n")
    attributes.unlink()
    attributes.symlink_to(outside)
    repository.git("config", "--unset", "merge.agent-nb.driver")
    capsys.readouterr()
    assert main(["git-setup", str(repository.folder)]) == 2
    assert "nothing is written through it" in capsys.readouterr().err
    assert outside.read_text() == "theirs\n"
    assert "merge.agent-nb.driver" not in repository.git("config", "--list").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="names of folders are bytes on Linux only")
def test_setting_up_takes_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    assert main(["git-setup", str(folder)]) == 0
    assert (folder / ".gitattributes").exists()


def test_setting_up_keeps_lines_of_any_encoding(repository):
    attributes = repository.folder / ".gitattributes"
    attributes.write_bytes(b"caf\xe9 text\n")
    assert main(["git-setup", str(repository.folder)]) == 0
    assert attributes.read_bytes().startswith(b"caf\xe9 text\n*.ipynb ")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("clean", "hooks", "said"),
    [
        ('"python" -m nbstripout', "", "git's filter nbstripout gives all cells new ids"),
        (
            "",
            "repos: [{repo: x, hooks: [{id: nbstripout}]}]",
            ".pre-commit-config.yaml gives all cells new ids",
        ),
        ('"python" -m nbstripout --keep-id', "", ""),
        ("", "repos: [{repo: x, hooks: [{id: nbstripout, args: [--keep-id]}]}]", ""),
        ("", "repos: [{repo: x, hooks: [{id: black}]}]", ""),
    ],
)
def test_a_filter_that_renumbers_cells_is_named_by_setup_and_doctor(
    repository, capsys, monkeypatch, clean, hooks, said
):
    if clean:
        repository.git("config", "filter.nbstripout.clean", clean)
    if hooks:
        (repository.folder / ".pre-commit-config.yaml").write_text(hooks)
    capsys.readouterr()
    assert main(["git-setup", str(repository.folder)]) == 0
    told = capsys.readouterr().out
    assert (said in told, "--keep-id" in told) == (True, bool(said))
    monkeypatch.chdir(repository.folder)
    findings = [f for f in doctor.CHECKS["git"]() if f.topic == "nbstripout"]
    assert [(f.state, "--keep-id" in f.todo) for f in findings] == [("missing", True)] * bool(said)


def test_without_git_no_filter_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(doctor.CHECKS["git"]()) == []


def test_outside_a_repository_it_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["git-setup", str(tmp_path)]) == 2
    assert "not in a git repository" in capsys.readouterr().err


def test_a_diff_shows_what_was_said_and_no_ids(repository):
    repository.commit(cell("a", record("r1")))
    write(repository.notebook, cell("a", record("r2", "Good day.", started=9.0)))
    shown = repository.git("diff").stdout
    changes = [
        line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert changes == ["-    Hello.", "+    Good day."]


def test_the_newest_execution_of_a_cell_is_shown_with_all_its_runs(tmp_path):
    made = [record(f"r{n}", f"Answer {n}.", started=float(n)) for n in range(1, 3)]
    latest = [
        record(f"n{n}", f"New {n}.", started=9.0, execution="e", ordinal=n, conversation="")
        for n in (2, 1)
    ]
    write(tmp_path / "n.ipynb", cell("a", *made), cell("b", *latest, made[0]))
    shown = diff_text(load_notebook(tmp_path / "n.ipynb"))
    assert [line.strip() for line in shown.splitlines() if "Answer" in line or "New" in line] == [
        "Answer 2.",
        "New 1.",
        "New 2.",
    ]


def test_agents_that_ran_at_the_same_time_are_shown_one_after_the_other(tmp_path):
    def calls(*order):
        asked = [Call(call_id=f"{c}", name="helper", args={"n": c}, turn=1) for c in "ab"]
        child = {
            c: [User(content=f"sub {c}", span=c), Respond(content=f"said {c}", span=c)]
            for c in "ab"
        }
        return [
            *asked,
            *(child[c].pop(0) for c in order),
            *(Result(call_id=c, name="helper", content=c, turn=1) for c in "ab"),
        ]

    shown = []
    for order in ("abab", "bbaa", "abba"):
        write(tmp_path / "n.ipynb", cell("a", record("r", calls=calls(*order))))
        shown.append(diff_text(load_notebook(tmp_path / "n.ipynb")))
    assert shown[0] == shown[1] == shown[2]
    assert shown[0].index("said a") < shown[0].index("result helper") < shown[0].index("sub b")


def test_however_deep_a_record_says_that_agents_ran_it_is_shown(tmp_path):
    calls, span = [], ""
    for _ in range(1500):
        below = f"{span}/a" if span else "a"
        calls += [
            Call(call_id=below, name="helper", span=span),
            Result(call_id=below, name="helper", content="\x1b[2J", span=span),
        ]
        span = below[-200:]
    write(tmp_path / "n.ipynb", cell("a", record("r", calls=calls)))
    assert "\x1b" not in diff_text(load_notebook(tmp_path / "n.ipynb"))


def test_addresses_in_reprs_are_not_shown_and_other_numbers_are(tmp_path):
    result = Result(call_id="c", name="read", content="<object object at 0x7f12ab> 0x1F", turn=1)
    write(tmp_path / "n.ipynb", cell("a", record("r", calls=(CALL[0], result))))
    assert "<object object at 0x…> 0x1F" in diff_text(load_notebook(tmp_path / "n.ipynb"))


def test_runs_of_both_sides_are_kept(repository):
    repository.commit(cell("a"), cell("b"))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(cell("a"), cell("b", record("rb")))
    repository.git("checkout", "-q", "main")
    repository.commit(cell("a", record("ra")), cell("b"))
    repository.git("merge", "-q", "other")
    assert repository.runs() == {"a": ["ra"], "b": ["rb"]}


def test_a_run_that_one_side_removed_is_gone(repository):
    def listed(*made):
        metadata = {"agent_nb": {"version": 1, "runs": {"a": list(made)}}}
        nb = {"cells": [cell("a")], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        repository.notebook.write_text(json.dumps(nb, indent=1))
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "x")

    listed(record("ra"))
    repository.git("checkout", "-q", "-b", "other")
    listed()
    repository.git("checkout", "-q", "main")
    listed(record("ra"), record("rn", started=5.0))
    repository.git("merge", "-q", "other")
    assert repository.runs() == {"a": ["rn"]}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("ours", "theirs", "shown"),
    [
        (
            plain("p", "f()", "mine", execution_count=2),
            plain("p", "f()", "yours", execution_count=3),
            ("mine", 2),
        ),
        (
            plain("p", "f()", "mine", execution_count=2),
            plain("p", "g()", "yours", execution_count=3),
            ("yours", 3),
        ),
        (
            plain("p", "f()", "base", execution_count=1),
            plain("p", "f()", "yours", execution_count=3),
            ("yours", 3),
        ),
        (
            plain("p", "f()", metadata={"execution": {"t": "1"}}),
            plain("p", "f()", "base", metadata={"execution": {"t": "2"}}),
            ("", None),
        ),
    ],
)
def test_outputs_that_both_sides_changed_come_whole_from_one(repository, ours, theirs, shown):
    repository.commit(plain("p", "f()", "base", execution_count=1))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(theirs)
    repository.git("checkout", "-q", "main")
    repository.commit(ours)
    repository.git("merge", "-q", "other")
    (found,) = json.loads(repository.notebook.read_text())["cells"]
    assert ("".join(o["text"] for o in found["outputs"]), found["execution_count"]) == shown


def test_of_two_reruns_of_one_cell_the_newer_is_shown_and_both_are_kept(repository):
    repository.commit(cell("a", record("r", started=1.0)))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(cell("a", record("theirs", started=5.0)))
    repository.git("checkout", "-q", "main")
    repository.commit(cell("a", record("ours", started=3.0)))
    repository.git("merge", "-q", "other")
    nb = json.loads(repository.notebook.read_text())
    assert [o["data"][RECORD_MIME]["ref"] for o in nb["cells"][0]["outputs"]] == ["theirs"]
    assert repository.runs() == {"a": ["theirs", "ours"]}


def test_a_cell_that_both_branches_added_is_merged(repository):
    repository.git("add", ".gitattributes")
    repository.git("commit", "-q", "-m", "x")
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(cell("a", record("theirs", started=5.0)))
    repository.git("checkout", "-q", "main")
    repository.commit(cell("a", record("ours", started=3.0)))
    repository.git("merge", "-q", "other")
    assert repository.runs() == {"a": ["theirs", "ours"]}


def test_what_either_side_has_forgotten_stays_forgotten(repository):
    def forget(run):
        nb = load_notebook(repository.notebook)
        shown = {
            "output_type": "display_data",
            "data": {"text/plain": "1 run forgotten."},
            "metadata": {"agent_nb": {"forget": [run]}},
        }
        nb["cells"][2]["outputs"] = [shown]
        NotebookRuns(nb).lift()
        nb["cells"][2]["outputs"] = []
        repository.notebook.write_text(json.dumps(nb, indent=1, sort_keys=True) + "\n")
        repository.git("commit", "-q", "-a", "-m", "x")

    repository.commit(cell("a", record("ra")), cell("b", record("rb")), plain("c", "%agent forget"))
    repository.git("checkout", "-q", "-b", "other")
    forget("ra")
    repository.git("checkout", "-q", "main")
    forget("rb")
    repository.git("merge", "-q", "other")
    assert repository.runs() == {}
    assert len(load_notebook(repository.notebook)["metadata"]["agent_nb"]["forgotten"]) == 2


@pytest.fixture
def conflict(repository):
    """Return a repository in a merge conflict: two texts of cell a, runs on both sides."""
    repository.commit(cell("a"), cell("b"), cell("c"))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(cell("a", source="%%agent\ntheirs"), cell("b", record("rb")), cell("c"))
    repository.git("checkout", "-q", "main")
    repository.commit(cell("a", source="%%agent\nours"), cell("b"), cell("c", record("rc")))
    return repository


def test_a_conflict_between_cells_is_marked_around_their_text_alone(conflict):
    assert conflict.git("merge", "-q", "other", check=False).returncode != 0
    nb = load_notebook(conflict.notebook)
    assert source_of(nb["cells"][0]) == "\n".join(
        ["%%agent", "<<<<<<< ours", "ours", "=======", "theirs", ">>>>>>> theirs", ""]
    )
    assert [source_of(c) for c in nb["cells"][1:]] == ["%%agent\nhi"] * 2
    assert conflict.runs() == {"b": ["rb"], "c": ["rc"]}


@pytest.mark.few(1)
@pytest.mark.parametrize("ids", [True, False])
def test_cells_that_both_branches_append_stand_one_after_the_other(repository, ids):
    def commit(*cells):
        nb = {
            "cells": list(cells),
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5 if ids else 4,
        }
        for each in () if ids else cells:
            del each["id"]
        repository.notebook.write_text(json.dumps(nb, indent=1, sort_keys=True) + "\n")
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", "x")

    first = "%%agent\nfirst"
    commit(cell("a", source=first), plain("z", "last"))
    repository.git("checkout", "-q", "-b", "other")
    theirs = (cell("t", record("rt"), source="%%agent\ntheirs"), plain("t2", "two"))
    commit(plain("y", "top"), cell("a", source=first), plain("z", "last"), *theirs)
    repository.git("checkout", "-q", "main")
    commit(
        cell("a", source=first), plain("z", "last"), cell("o", record("ro"), source="%%agent\nours")
    )
    repository.git("merge", "-q", "other")
    nb = load_notebook(repository.notebook)
    texts = ["top", first, "last", "%%agent\nours", "%%agent\ntheirs", "two"]
    assert [source_of(c) for c in nb["cells"]] == texts
    assert [r for listed in repository.runs().values() for r in listed] == ["ro", "rt"]
    assert all(("id" in c) is ids for c in nb["cells"])


def test_a_removed_cell_that_the_other_side_changed_stays_as_a_conflict(repository):
    repository.commit(plain("a", "x = 1"), plain("b", "y = 1"), plain("c", "z = 1"))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(plain("c", "z = 1"))
    repository.git("checkout", "-q", "main")
    repository.commit(plain("a", "x = 1"), plain("b", "y = 2"), plain("c", "z = 1"))
    assert repository.git("merge", "-q", "other", check=False).returncode != 0
    assert [source_of(c) for c in load_notebook(repository.notebook)["cells"]] == ["y = 2", "z = 1"]


def test_cells_that_one_side_moved_keep_the_edits_of_the_other(repository):
    repository.commit(plain("a", "x = 1"), plain("b", "y = 1"), plain("c", "z = 1"))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(plain("c", "z = 1"), plain("a", "x = 1"), plain("b", "y = 1"))
    repository.git("checkout", "-q", "main")
    repository.commit(plain("a", "x = 2"), plain("b", "y = 1"), plain("c", "z = 1"))
    repository.git("merge", "-q", "other")
    assert [source_of(c) for c in load_notebook(repository.notebook)["cells"]] == [
        "z = 1",
        "x = 2",
        "y = 1",
    ]


def test_values_that_both_sides_changed_are_named_and_ours_stays(repository):
    repository.commit(plain("a", "x", metadata={"tags": [], "gone": 1, "left": 1}))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(plain("a", "x", metadata={"tags": ["t"], "more": 1, "gone": 1}))
    repository.git("checkout", "-q", "main")
    repository.commit(plain("a", "x", metadata={"tags": ["o"], "left": 1}))
    done = repository.git("merge", "-q", "other", check=False)
    assert done.returncode != 0
    assert "cell a, metadata: both sides changed 'tags': ours stays" in done.stdout + done.stderr
    assert load_notebook(repository.notebook)["cells"][0]["metadata"] == {"tags": ["o"], "more": 1}


def test_a_file_with_conflict_markers_is_named_with_what_to_do(conflict, capsys):
    attributes = (conflict.folder / ".gitattributes").read_text()
    (conflict.folder / ".gitattributes").write_text("")  # as if the drivers were not set up
    conflict.git("merge", "-q", "other", check=False)
    for command in ("test", "run", "pack", "strip", "events", "verify", "export"):
        capsys.readouterr()
        assert main([command, str(conflict.notebook)]) != 0, command
        said = "".join(capsys.readouterr())
        assert "holds a merge conflict that git has left (line " in said, command
        assert "git checkout -m n.ipynb" in said
    assert main(["git-text", str(conflict.notebook)]) == 0  # the diff still works
    assert capsys.readouterr().out == conflict.notebook.read_text()
    (conflict.folder / ".gitattributes").write_text(attributes)
    conflict.git("checkout", "-m", "n.ipynb")  # as the message says
    assert conflict.notebook.read_text().count("<<<<<<<") == 1


def test_records_can_be_kept_out_of_commits(repository):
    assert main(["git-setup", "--strip", str(repository.folder)]) == 0
    repository.commit(cell("a", record("ra")))
    assert "agent_nb" not in repository.git("show", "HEAD:n.ipynb").stdout
    assert repository.runs() == {"a": ["ra"]}
