"""Reruns of cells: what is played, what goes live, and what the records say, in a shell that is told cell ids."""

import json
from types import SimpleNamespace

import pytest

from agent_nb import Scripted, journal
from agent_nb.notebook.failure import AgentCellError
from agent_nb.notebook.metadata import lift
from agent_nb.record import KEY, MIME, events_of
from agent_nb.signing import sign, signed_by, user_key
from agent_nb.tape import TRUST

CALL = '<execute>[{"name": "python", "args": {"code": "base + 2"}}]</execute>'


class Notebook:
    """Cells with ids in the shell of this process, and what they have shown."""

    def __init__(self, shell, run):
        self.shell, self._run = shell, run
        self.parent = {"metadata": {}, "content": {"allow_stdin": False}}
        self.shown = []
        self.displays = set()
        shell.kernel = SimpleNamespace(get_parent=lambda: self.parent)

    def cell(self, body, line="-m model", cell="c1", sent=None, **names):
        """Run one agent cell and return its Run."""
        self.shell.user_ns.update(names)
        self.parent["metadata"] = {"cellId": cell, "agent_nb": {"headless": True, **(sent or {})}}
        code = self.shell.transform_cell(f"%%agent {line}\n{body}")
        result = self._run(self.shell.run_cell_async(code, transformed_cell=code))
        if result.error_in_exec is not None:
            raise result.error_in_exec
        return self.shell.user_ns["_agent"]

    def command(self, line):
        self.parent["metadata"] = {"cellId": "command"}
        self.shell.run_line_magic("agent", line)

    def restart(self):
        """Forget what a kernel forgets."""
        self.shell.magics_manager.registry["AgentMagics"]._session = None

    @property
    def last(self):
        """The bundle that stayed in the last cell, and its metadata."""
        return self.shown[-1]

    @property
    def record(self):
        return self.last[0][MIME]


class Once(Scripted):
    """A script that goes on where it stopped: a second run of it says something else."""

    def start(self):
        return self

    identity = "once"


@pytest.fixture
def nb(loaded, run, monkeypatch, tmp_path):
    from agent_nb.notebook import cellend, cellrun, publish

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    notebook = Notebook(loaded, run)

    def show(data, metadata, transient, update):
        notebook.shown.append((data, metadata))
        notebook.displays.add(transient.get("display_id"))

    monkeypatch.setattr(publish, "publish", show)
    monkeypatch.setattr(cellrun, "publish", show)
    monkeypatch.setattr(cellend, "publish", show)
    yield notebook
    del loaded.kernel


def test_an_unchanged_cell_is_replayed(nb):
    first = nb.cell("hi", model=Once(["one", "two"]))
    record = nb.record
    second = nb.cell("hi")
    assert (second.id, second.answer) == (first.id, "one")
    assert list(second.log) == list(first.log)
    assert nb.record == record
    assert nb.last[1][KEY]["replayed"] is True
    assert "replayed" in nb.last[0]["text/plain"]


@pytest.mark.parametrize("line", ["-m model --live", "-m model --rerun live", "-m model --temperature 1", "-m model --system x"])
def test_a_cell_that_asks_for_it_or_has_changed_goes_live(nb, line):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi", line=line).answer == "two"
    assert "replayed" not in nb.last[1][KEY]


def test_a_changed_prompt_goes_live(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi there").answer == "two"


def test_options_that_decide_nothing_do_not_matter(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi", line="-m model --thoughts show --max-turns 5 --approve auto").answer == "one"


def test_a_run_that_failed_is_not_replayed(nb):
    with pytest.raises(AgentCellError):
        nb.cell("hi", model=Once([{"error": {"status": 401, "message": "no"}}, "two"]))
    assert nb.cell("hi").answer == "two"


def test_another_cell_of_the_same_text_is_a_cell_of_its_own(nb):
    nb.cell("hi", line="-m model --new", model=Once(["one", "two"]))
    assert nb.cell("hi", line="-m model --new", cell="c2").answer == "two"


def test_replay_without_a_record_fails_and_says_how_to_record(nb):
    with pytest.raises(AgentCellError, match=r"unrecorded.*--live"):
        nb.cell("hi", line="-m model --rerun replay", model=Once(["one"]))


def test_replay_of_a_changed_cell_fails_and_names_the_input(nb):
    nb.cell("hi", model=Once(["one"]))
    with pytest.raises(AgentCellError, match=r"stale \(prompt changed\)"):
        nb.cell("ho", line="-m model --rerun replay")


def test_the_runner_stands_above_the_cell(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi", line="-m model --live", sent={"rerun": "replay"}).answer == "one"
    assert nb.cell("hi", sent={"rerun": "live"}).answer == "two"


def test_the_environment_can_ask_for_it_too(nb, monkeypatch):
    monkeypatch.setenv("AGENT_NB_RERUN", "live")
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi").answer == "two"


def test_records_that_the_runner_sends_are_played(nb):
    nb.cell("hi", line="-m model -c a", model=Once(["one", "two"]))
    record = json.loads(json.dumps(nb.record))
    nb.restart()
    assert nb.cell("hi", line="-m model -c a", cell="c9", sent={"runs": [record]}).answer == "one"


def test_a_record_without_option_keeps_nothing(nb):
    nb.cell("hi", line="-m model --no-record", model=Once(["one", "two"]))
    assert MIME not in nb.last[0]
    assert journal.journals() == []
    assert nb.cell("hi", line="-m model --no-record").answer == "two"


def test_live_runs_are_signed_and_in_the_journal(nb):
    run = nb.cell("hi", model=Once(["one"]))
    assert signed_by(nb.record, user_key())
    (path,) = journal.journals()
    assert list(journal.recover(path)) == list(run.log)


def test_a_replay_writes_no_journal(nb):
    nb.cell("hi", model=Once(["one"]))
    nb.cell("hi")
    assert len(journal.journals()) == 1


class TestConversations:
    def test_a_replay_leaves_later_turns_and_a_live_rerun_drops_them(self, nb):
        nb.cell("hi", model=Once(["one", "two", "three"]))
        nb.cell("and?", cell="c2")
        nb.cell("hi")
        assert nb.cell("and?", cell="c2").answer == "two"
        nb.cell("hi", line="-m model --live")
        assert nb.shell.user_ns["_agent"].answer == "three"

    def test_another_answer_before_makes_a_cell_stale(self, nb):
        nb.cell("hi", model=Once(["one", "two", "other", "four"]))
        nb.cell("and?", cell="c2")
        nb.cell("hi", line="-m model --live")
        assert nb.cell("and?", cell="c2").answer == "four"

    def test_a_rerun_never_sees_its_own_answer(self, nb):
        nb.cell("hi", model=Once(["one", "two"]))
        nb.cell("hi", line="-m model --live")
        contents = [m["content"] for m in nb.shell.user_ns["_agent"].messages()]
        assert contents == ["hi", "two"]


class TestKernelCalls:
    LINE = "-m model -t python --approve auto"

    def test_they_run_again_so_that_later_cells_find_their_variables(self, nb):
        call = '<execute>[{"name": "python", "args": {"code": "made = 7"}}]</execute>'
        nb.cell("go", line=self.LINE, model=Once([call, "done"]))
        del nb.shell.user_ns["made"]
        assert nb.cell("go", line=self.LINE).answer == "done"
        assert nb.shell.user_ns["made"] == 7

    def test_a_drift_goes_on_live_with_the_fresh_result(self, nb):
        nb.cell("go", line=self.LINE, model=Once([CALL, "It is 42.", "It is 43."]), base=40)
        first = nb.record
        nb.shell.user_ns["base"] = 41
        run = nb.cell("go", line=self.LINE)
        assert run.answer == "It is 43."
        assert [r.content for r in run.log.of("result")] == [43]
        assert nb.record["id"] == run.id != first["id"]

    def test_a_drift_is_shown_in_one_view_that_says_so(self, nb):
        nb.cell("go", line=self.LINE, model=Once([f"Let me see.{CALL}", "It is 42.", "It is 43."]), base=40)
        nb.shown.clear()
        nb.displays.clear()
        nb.cell("go", line=self.LINE, base=41)
        assert len(nb.displays) == 1
        told = nb.last[0]["text/plain"]
        assert "Went on live here  because python gave 43 now and 42 when it was recorded." in told
        assert told.index("Let me see.") < told.index("Went on live here") < told.index("It is 43.")
        assert "replayed" not in told
        assert not any("Stopped" in str(data) or "stopped" in str(data) for data, _ in nb.shown)

    def test_in_a_terminal_nothing_is_printed_twice(self, nb, capsys):
        line = f"{self.LINE} --view text --thoughts show"
        nb.cell("go", line=line, model=Once([f"<think>Hm.</think>{CALL}", "It is 42.", "It is 43."]), base=40)
        capsys.readouterr()
        nb.cell("go", line=line, base=41)
        told = capsys.readouterr().out
        assert [told.count(words) for words in ("● ", "Hm.", "base + 2", "Went on live here", "It is 43.")] == [1] * 5
        assert "stopped" not in told.lower(), told

    def test_the_log_of_a_run_that_went_on_live_is_whole(self, nb):
        nb.cell("go", line=self.LINE, model=Once([CALL, "It is 42.", "It is 43."]), base=40)
        run = nb.cell("go", line=self.LINE, base=41)
        assert [e.seq for e in run.log] == list(range(1, len(run.log) + 1))
        assert {e.run for e in run.log} == {run.id}
        assert [e.type for e in run.log].count("run_start") == 1
        assert [e.payload["fresh"] for e in run.log.of("extension")] == ["43"]
        assert events_of(nb.record) == list(run.log)

    def test_in_the_mode_replay_a_drift_is_reported_and_the_record_stays(self, nb, capsys):
        nb.cell("go", line=self.LINE, model=Once([CALL, "It is 42."]), base=40)
        record = nb.record
        nb.shell.user_ns["base"] = 41
        run = nb.cell("go", line=f"{self.LINE} --rerun replay")
        drift = nb.last[1][KEY]["drift"]
        assert (drift["name"], drift["recorded"], drift["fresh"]) == ("python", "42", "43")
        assert run.answer == "It is 42."
        assert nb.record == record
        assert "drifted" in capsys.readouterr().err

    def test_foreign_code_needs_trust(self, nb):
        nb.cell("go", line=self.LINE, model=Once([CALL, "done"]), base=40)
        foreign = sign({**nb.record, "id": "foreign"}, b"somebody else")
        nb.command("forget all")
        nb.shell.user_ns["base"] = 0
        with pytest.raises(AgentCellError) as error:
            nb.cell("go", line=self.LINE, sent={"runs": [foreign]})
        assert str(error.value) == TRUST
        sent = {"runs": [foreign], "trust": True, "rerun": "replay"}
        assert nb.cell("go", line=self.LINE, sent=sent, base=40).answer == "done"

    def test_trust_cannot_be_given_in_the_cell(self, nb):
        with pytest.raises(AgentCellError, match="no option --trust-record"):
            nb.cell("go", line="-m model --trust-record", model=Once(["x"]))


class TestFile:
    def save(self, nb, path, *cells):
        """Write a notebook of agent cells and what they showed last, as a front end and the server hook do."""
        made = []
        for cell, line, body in cells:
            outputs = [{"output_type": "display_data", "data": {MIME: self.records[cell]}, "metadata": {}}]
            made.append({"cell_type": "code", "id": cell, "source": f"%%agent {line}\n{body}", "metadata": {}, "outputs": outputs})
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}
        lift(notebook)
        path.write_text(json.dumps(notebook))
        return notebook

    @pytest.fixture
    def path(self, nb, tmp_path, monkeypatch):
        """A notebook of two cells, and a kernel that has forgotten everything."""
        nb.cell("hi", model=Once(["one", "two", "three", "four"]))
        self.records = {"c1": nb.record}
        nb.cell("and?", cell="c2")
        self.records["c2"] = nb.record
        path = tmp_path / "n.ipynb"
        self.save(nb, path, ("c1", "-m model", "hi"), ("c2", "-m model", "and?"))
        nb.restart()
        monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))
        return path

    def test_a_restarted_kernel_finds_the_records_by_cell_id(self, nb, path):
        assert nb.cell("hi").answer == "one"
        assert nb.cell("and?", cell="c2").answer == "two"

    def test_without_cell_ids_they_are_found_by_text(self, nb, path):
        assert nb.cell("hi", cell="").answer == "one"
        assert nb.cell("and?", cell="").answer == "two"

    def test_the_conversation_is_rebuilt_from_the_cells_above(self, nb, path):
        run = nb.cell("and?", line="-m model --live", cell="c2")
        assert run.answer == "three"
        (note,) = [x.payload["note"] for x in run.log.of("state") if x.kind == "conversation"]
        assert "rebuilt" in note
        session = nb.shell.magics_manager.registry["AgentMagics"].session
        assert [t.cell for t in session.conversations["main"].turns] == ["c1", "c2"]

    def test_a_later_cell_is_replayed_first_after_a_restart(self, nb, path):
        assert nb.cell("and?", cell="c2").answer == "two"

    def test_a_broken_file_is_as_if_there_were_none(self, nb, path):
        path.write_text("{")
        assert nb.cell("hi").answer == "three"

    def test_status_names_what_has_changed(self, nb, path, capsys):
        notebook = json.loads(path.read_text())
        notebook["cells"][1]["source"] = "%%agent -m model\nand now?"
        notebook["cells"].append({**notebook["cells"][0], "id": "c3", "source": "%%agent -m model\nnew"})
        notebook["cells"].append({**notebook["cells"][0], "id": "c4", "source": "%%agent --nope\nnew"})
        path.write_text(json.dumps(notebook))
        nb.command("status")
        told = capsys.readouterr().out
        for cell, status in (("c1", "recorded"), ("c2", "stale (prompt changed)"), ("c3", "unrecorded"), ("c4", "unknown: There is no")):
            assert f"{cell}    {status}" in told

    def test_a_forgotten_run_leaves_the_file_with_the_next_save(self, nb, path):
        nb.command("forget c1")
        ids = nb.last[1][KEY]["forget"]
        assert ids == [self.records["c1"]["id"]]
        notebook = json.loads(path.read_text())
        mark = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {KEY: {"forget": ids}}}
        notebook["cells"].append({"cell_type": "code", "id": "f", "source": "%agent forget", "metadata": {}, "outputs": [mark]})
        lift(notebook, json.loads(path.read_text())["metadata"][KEY])
        assert list(notebook["metadata"][KEY]["runs"]) == ["c2"]
        assert ids[0] not in json.dumps({**notebook, "cells": notebook["cells"][:-1]})
        assert nb.cell("hi").answer == "three"


def test_a_lost_run_is_recovered_into_the_notebook(nb, capsys):
    lost = nb.cell("hi", model=Once(["one", "two"]))
    nb.restart()
    nb.command("recover")
    assert lost.id in capsys.readouterr().out
    nb.command(f"recover {lost.id}")
    assert nb.record["id"] == lost.id
    assert events_of(nb.record) == list(lost.log)
    assert nb.cell("hi").answer == "one"
    nb.command("recover")
    assert "Nothing was lost" in capsys.readouterr().out
