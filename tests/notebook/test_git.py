"""Notebooks with records in a real git repository."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import agent_nb
from agent_nb.cli import main
from agent_nb.events import Call, End, Respond, Result, RunStart, User
from agent_nb.log import EventLog
from agent_nb.notebook import doctor
from agent_nb.notebook.metadata import lift, records
from agent_nb.record import MIME, run_record

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def record(run, answer="Hello.", started=1.0):
    log = EventLog(run, clock=lambda: started)
    for event in (
        RunStart(model="scripted/x"), User(content="hi"), Call(call_id="c", name="read", args={"file": "a.txt"}, turn=1),
        Result(call_id="c", name="read", content="text", turn=1), Respond(content=answer, turn=2), End(),
    ):  # fmt: skip
        log.append(event)
    return run_record(log)


def cell(name, *made, source="%%agent\nhi"):
    outputs = [
        {"output_type": "display_data", "data": {"text/plain": "…", MIME: r}, "metadata": {"agent_nb": {"run": r["id"]}}} for r in made
    ]
    return {"cell_type": "code", "id": name, "execution_count": None, "metadata": {}, "source": source.splitlines(True), "outputs": outputs}


def write(path, *cells):
    nb = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    lift(nb)
    path.write_text(json.dumps(nb, indent=1, sort_keys=True) + "\n")


class Repository:
    """A repository of one notebook with the drivers installed."""

    def __init__(self, folder):
        self.folder, self.notebook = folder, folder / "n.ipynb"
        self.git("init", "-q", "-b", "main")
        for name, value in (("user.name", "a"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")):
            self.git("config", name, value)

    def git(self, *words, check=True):
        env = {**os.environ, "PYTHONPATH": str(Path(agent_nb.__file__).parents[1]), "GIT_CONFIG_GLOBAL": os.devnull}
        done = subprocess.run(["git", *words], check=False, cwd=self.folder, env=env, capture_output=True, text=True)
        assert not check or not done.returncode, done.stderr
        return done

    def commit(self, *cells):
        write(self.notebook, *cells)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def runs(self):
        return {name: [r["id"] for r in listed] for name, listed in records(json.loads(self.notebook.read_text())).items()}


@pytest.fixture
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
    assert (repository.folder / ".gitattributes").read_text() == before == "*.ipynb diff=agent-nb merge=agent-nb\n"


@pytest.mark.parametrize(
    ("clean", "hooks", "said"),
    [
        ('"python" -m nbstripout', "", "git's filter nbstripout gives all cells new ids"),
        ("", "repos: [{repo: x, hooks: [{id: nbstripout}]}]", ".pre-commit-config.yaml gives all cells new ids"),
        ('"python" -m nbstripout --keep-id', "", ""),
        ("", "repos: [{repo: x, hooks: [{id: nbstripout, args: [--keep-id]}]}]", ""),
        ("", "repos: [{repo: x, hooks: [{id: black}]}]", ""),
    ],
)
def test_a_filter_that_renumbers_cells_is_named_by_the_setup_and_by_the_doctor(repository, capsys, monkeypatch, clean, hooks, said):
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


def test_without_git_nothing_is_said_of_filters(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(doctor.CHECKS["git"]()) == []


def test_outside_a_repository_it_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(["git-setup", str(tmp_path)]) == 2
    assert "no git repository" in capsys.readouterr().err


def test_a_diff_shows_what_was_said_and_no_ids(repository):
    repository.commit(cell("a", record("r1")))
    write(repository.notebook, cell("a", record("r2", "Good day.", started=9.0)))
    shown = repository.git("diff").stdout
    changes = [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changes == ["-    Hello.", "+    Good day."]


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


def test_a_conflict_between_cells_is_left_as_git_writes_it(repository):
    repository.commit(cell("a"))
    repository.git("checkout", "-q", "-b", "other")
    repository.commit(cell("a", source="%%agent\ntheirs"))
    repository.git("checkout", "-q", "main")
    repository.commit(cell("a", record("ra"), source="%%agent\nours"))
    assert repository.git("merge", "-q", "other", check=False).returncode != 0
    text = repository.notebook.read_text()
    assert "<<<<<<<" in text
    assert "ra" in text


def test_records_can_be_kept_out_of_commits(repository):
    assert main(["git-setup", "--strip", str(repository.folder)]) == 0
    repository.commit(cell("a", record("ra")))
    assert "agent_nb" not in repository.git("show", "HEAD:n.ipynb").stdout
    assert repository.runs() == {"a": ["ra"]}
