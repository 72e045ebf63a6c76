"""Reruns of cells: what is played, what goes live, and what the records say, in a shell that is
told cell ids.
"""

import json
import os
import re
import time
from contextlib import suppress

import pytest
from helpers.agent_cells import SECRET
from helpers.scripts import calling

from agent_nb import Scripted
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.host import launch
from agent_nb.notebook.cell.controls import Controls
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record import journal, journal_recovery
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import (
    METADATA_KEY,
    RECORD_MIME,
    Provenance,
    events_of,
    record_hash,
    run_record,
)
from agent_nb.record.signing import UserKey

CALL = calling("python", code="base + 2")


class Once(Scripted):
    """A script that goes on where it stopped: a second run of it says something else."""

    def start(self):
        return self

    identity = "once"


def test_an_unchanged_cell_is_replayed(nb):
    first = nb.cell("hi", model=Once(["one", "two"]))
    record = nb.record
    second = nb.cell("hi")
    assert (second.id, second.answer) == (first.id, "one")
    assert list(second.log) == list(first.log)
    assert nb.record == record
    assert nb.last[1][METADATA_KEY]["replayed"] is True
    assert "replayed" in nb.last[0]["text/plain"]


def test_an_empty_name_means_the_default_conversation(nb):
    first = nb.cell("hi", '-m model -c ""', model=Once(["one", "two"]))
    assert nb.cell("hi", '-m model -c ""').id == first.id


def test_a_replay_inserts_no_cell_although_one_is_chosen(nb, monkeypatch):
    inserted = []
    monkeypatch.setattr(nb.shell, "set_next_input", lambda code, replace: inserted.append(code))
    plain = Controls.set_driver

    def set_driver(controls, driver):
        plain(controls, driver)
        controls.actions["insert"]("df.head()")

    monkeypatch.setattr(Controls, "set_driver", set_driver)
    line = "-m model -t add_cell"
    model = Once([calling("add_cell", code="df.head()"), "Done."])
    assert nb.cell("offer", line, model=model).status == "ok"
    assert inserted == ["df.head()"]
    assert nb.cell("offer", line).status == "ok"
    assert "replayed" in nb.last[0]["text/plain"]
    assert inserted == ["df.head()"]


@pytest.mark.parametrize(
    "line",
    ["-m model --live", "-m model --rerun live", "-m model --temperature 1", "-m model --system x"],
)
def test_a_cell_that_asks_for_it_or_has_changed_goes_live(nb, line):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi", line=line).answer == "two"
    assert "replayed" not in nb.last[1][METADATA_KEY]


def test_a_changed_prompt_goes_live(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi there").answer == "two"


def test_options_that_decide_nothing_do_not_matter(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert (
        nb.cell("hi", line="-m model --thoughts show --max-turns 5 --approve auto").answer == "one"
    )


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


class TestWhoDecides:
    """What a request asks for counts with the kernel's secret; a kernel that only replays is not
    talked out of it.
    """

    def strict(self, monkeypatch):
        monkeypatch.setattr(
            launch,
            "LAUNCH",
            launch.Launch({launch.Launch.PROOF: SECRET, launch.Launch.STRICT: "1"}),
        )

    def only_replaying(self, monkeypatch):
        monkeypatch.setenv("AGENT_NB_RERUN", "replay")

    @pytest.mark.parametrize("only", [strict, only_replaying])
    @pytest.mark.parametrize(
        ("line", "sent"),
        [
            ("--live", None),
            ("--rerun live", None),
            ("", {"rerun": "live"}),
            ("--live", {"rerun": "auto"}),
            ("", {"rerun": "live", "proof": ""}),
        ],
    )
    def test_a_kernel_that_only_replays_stands_above_cell_and_request(
        self, nb, monkeypatch, only, line, sent
    ):
        first = nb.cell("hi", model=Once(["one", "two"]))
        only(self, monkeypatch)
        assert nb.cell("hi", line=f"-m model {line}".rstrip(), sent=sent).id == first.id
        with pytest.raises(
            AgentCellError,
            match=r"stale.*Nothing runs live here \(AGENT_NB_(STRICT=1|RERUN=replay)\)",
        ):
            nb.cell("ho", line=f"-m model {line}".rstrip(), sent=sent)

    @pytest.mark.parametrize("only", [strict, only_replaying])
    def test_and_above_the_configuration(self, nb, monkeypatch, only):
        nb.cell("hi", model=Once(["one", "two"]))
        only(self, monkeypatch)
        nb.shell.run_line_magic("config", "AgentMagics.rerun = 'live'")
        assert nb.cell("hi").answer == "one"

    def test_a_strict_kernel_stays_strict_when_the_environment_changes(self, nb, monkeypatch):
        nb.cell("hi", model=Once(["one", "two"]))
        self.strict(monkeypatch)
        monkeypatch.delenv("AGENT_NB_STRICT", raising=False)
        monkeypatch.setenv("AGENT_NB_RERUN", "live")
        assert nb.cell("hi").answer == "one"

    @pytest.mark.parametrize("proof", ["", "0" * 64, None])
    def test_a_request_without_the_secret_chooses_neither_mode_nor_model(self, nb, proof):
        nb.cell("hi", model=Once(["one", "two"]))
        sent = {"rerun": "live", "model": "nobody/x", "trust": True, "proof": proof}
        assert nb.cell("hi", sent=sent).answer == "one"

    def test_nor_does_it_bring_records(self, nb):
        nb.cell("hi", model=Once(["one", "two"]))
        record = json.loads(json.dumps(nb.record))
        nb.restart()
        with pytest.raises(AgentCellError, match="unrecorded"):
            nb.cell("hi", sent={"runs": [record], "rerun": "replay", "proof": ""})
        assert nb.cell("hi", sent={"runs": [record], "rerun": "replay"}).answer == "one"

    def test_nor_does_it_name_the_file_of_the_notebook(self, nb, tmp_path):
        nb.cell("hi", model=Once(["one", "two"]))
        cell = {"cell_type": "code", "id": "c1", "source": "%%agent -m model\nhi", "outputs": []}
        path = tmp_path / "n.ipynb"
        path.write_text(
            json.dumps(
                {
                    "cells": [cell],
                    "metadata": {METADATA_KEY: {"version": 1, "runs": {"c1": [nb.record]}}},
                }
            )
        )
        nb.restart()
        sent = {"notebook": str(path), "rerun": "replay"}
        with pytest.raises(AgentCellError, match="AGENT_NB_NOTEBOOK"):
            nb.cell("hi", sent={**sent, "proof": ""})
        assert nb.cell("hi", sent=sent).answer == "one"

    def test_nor_does_it_have_events_written_anywhere(self, nb, tmp_path):
        sent = {"stream": str(tmp_path / "stream"), "rerun": "live"}
        nb.cell("hi", model=Once(["one", "two", "three"]), sent={**sent, "proof": ""})
        assert not (tmp_path / "stream").exists()
        nb.cell("ho", sent=sent)
        assert (tmp_path / "stream").read_text().count('"ho"') == 1


def test_records_that_the_runner_sends_are_played(nb):
    nb.cell("hi", line="-m model -c a", model=Once(["one", "two"]))
    record = json.loads(json.dumps(nb.record))
    nb.restart()
    assert nb.cell("hi", line="-m model -c a", cell="c9", sent={"runs": [record]}).answer == "one"


def test_a_record_without_option_keeps_nothing(nb):
    nb.cell("hi", line="-m model --no-record", model=Once(["one", "two"]))
    assert RECORD_MIME not in nb.last[0]
    assert journal.Journal.files() == []
    assert nb.cell("hi", line="-m model --no-record").answer == "two"


def test_live_runs_are_signed_and_in_the_journal(nb):
    run = nb.cell("hi", model=Once(["one"]))
    assert UserKey.read().signed(nb.record)
    (path,) = journal.Journal.files()
    assert list(journal_recovery.RecoverableRun.recover(path)) == list(run.log)


def test_a_replay_writes_no_journal(nb):
    nb.cell("hi", model=Once(["one"]))
    nb.cell("hi")
    assert len(journal.Journal.files()) == 1


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
        call = calling("python", code="made = 7")
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
        nb.cell(
            "go",
            line=self.LINE,
            model=Once([f"Let me see.{CALL}", "It is 42.", "It is 43."]),
            base=40,
        )
        nb.shown.clear()
        nb.displays.clear()
        nb.cell("go", line=self.LINE, base=41)
        assert len(nb.displays) == 1
        told = nb.last[0]["text/plain"]
        assert (
            "python returned something else than in the record; from here on the model was asked again."
            in told
        )
        assert told.index("Let me see.") < told.index("from here on") < told.index("It is 43.")
        assert "replayed" not in told
        assert not any("Stopped" in str(data) or "stopped" in str(data) for data, _ in nb.shown)

    def test_in_a_terminal_nothing_is_printed_twice(self, nb, capsys):
        line = f"{self.LINE} --view text --thoughts show"
        nb.cell(
            "go",
            line=line,
            model=Once([f"<think>Hm.</think>{CALL}", "It is 42.", "It is 43."]),
            base=40,
        )
        capsys.readouterr()
        nb.cell("go", line=line, base=41)
        told = capsys.readouterr().out
        assert [
            told.count(words)
            for words in (
                "● ",
                "Hm.",
                "base + 2",
                "from here on the model was asked again",
                "It is 43.",
            )
        ] == [1] * 5
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
        drift = nb.last[1][METADATA_KEY]["drift"]
        assert (drift["name"], drift["recorded"], drift["fresh"]) == ("python", "42", "43")
        assert run.answer == "It is 42."
        assert nb.record == record
        assert "drifted" in capsys.readouterr().err

    def test_foreign_code_needs_trust(self, nb):
        nb.cell("go", line=self.LINE, model=Once([CALL, "done"]), base=40)
        foreign = UserKey(b"another user").sign({**nb.record, "id": "foreign"})
        nb.command("forget all")
        nb.shell.user_ns["base"] = 0
        with pytest.raises(AgentCellError) as error:
            nb.cell("go", line=self.LINE, sent={"runs": [foreign]})
        assert str(error.value) == RecordedTurns.NOT_TRUSTED
        sent = {"runs": [foreign], "trust": True, "rerun": "replay"}
        assert nb.cell("go", line=self.LINE, sent=sent, base=40).answer == "done"

    def test_trust_cannot_be_given_in_the_cell(self, nb):
        with pytest.raises(AgentCellError, match="no option --trust-record"):
            nb.cell("go", line="-m model --trust-record", model=Once(["x"]))


FOREIGN = "turn comes from a record you did not sign"


class TestForeignTurns:
    """What a stranger's record says was said before is matched and replayed; a model reads it only
    where somebody sees that.
    """

    SEEN = "-m model --view html"

    @pytest.fixture
    def opened(self, nb, tmp_path, monkeypatch):
        """Open the notebook anew, its records changed by `forge(cell, record)`."""

        def opened(forge, cells=("c1",), last=True):
            nb.cell("hi", model=Once(["one", "two", "three", "four", "five"]))
            records = {"c1": nb.record}
            for cell in ("c2", "c3")[: 2 if last else 1]:
                nb.cell({"c2": "ho", "c3": "hm"}[cell], cell=cell)
                records[cell] = nb.record
            records = {
                cell: forge(record) if cell in cells else record for cell, record in records.items()
            }
            code = [
                {"cell_type": "code", "id": c, "source": f"%%agent -m model\n{b}", "outputs": []}
                for c, b in (("c1", "hi"), ("c2", "ho"), ("c3", "hm"))
            ]
            runs = {cell: [record] for cell, record in records.items()}
            path = tmp_path / "n.ipynb"
            path.write_text(
                json.dumps(
                    {"cells": code, "metadata": {METADATA_KEY: {"version": 1, "runs": runs}}}
                )
            )
            monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))
            nb.restart()
            return nb

        return opened

    @staticmethod
    def unsigned(record):
        return {k: v for k, v in record.items() if k != "signature"}

    def named(self, run):
        """The words of the log about turns of others."""
        return [x.payload["note"] for x in run.log.of("state") if x.kind == "foreign_turns"]

    def test_rebuilt_turns_of_others_are_not_sent_unseen(self, opened):
        nb = opened(self.unsigned)
        with pytest.raises(AgentCellError) as error:
            nb.cell("ho", cell="c2", line="-m model --live")
        assert str(error.value) == f"1 earlier {FOREIGN}, {RecordedTurns.NOBODY_TO_ASK}"
        assert "--trust-record" in str(error.value)
        assert "AGENT_NB_TRUST_RECORD" in str(error.value)
        assert nb.cell("x", line="-m model -c other", cell="c9").answer == "four", (
            "no model was asked before"
        )

    def test_those_of_a_replay_neither(self, opened):
        nb = opened(self.unsigned, cells=("c1", "c2"))
        assert nb.cell("hi").answer == "one"
        assert nb.cell("ho", cell="c2").answer == "two"
        with pytest.raises(
            AgentCellError, match="2 earlier turns come from records you did not sign"
        ):
            nb.cell("hm!", cell="c3")

    @pytest.mark.parametrize("by", ["option", "environment"])
    def test_with_trust_they_are_sent_and_named(self, opened, monkeypatch, by):
        nb = opened(self.unsigned)
        if by == "environment":
            monkeypatch.setenv("AGENT_NB_TRUST_RECORD", "1")
        run = nb.cell("ho!", cell="c2", sent={"trust": by == "option"})
        assert run.answer == "four"
        assert self.named(run) == [f"1 earlier {FOREIGN}"]

    def test_a_folder_cannot_trust_its_records_by_a_front_ends_variables(
        self, opened, monkeypatch, tmp_path
    ):
        (tmp_path / ".env").write_text("AGENT_NB_TRUST_RECORD=1")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("AGENT_NB_TRUST_RECORD", "1")
        nb = opened(self.unsigned)
        with pytest.raises(AgentCellError, match="1 earlier turn comes from a record"):
            nb.cell("ho!", cell="c2")

    def test_where_somebody_looks_on_the_header_names_them_before_the_request(self, opened):
        nb = opened(self.unsigned, cells=("c1", "c2"))
        run = nb.cell("hm!", cell="c3", line=self.SEEN, seen=True)
        assert run.answer == "four"
        words = "2 earlier turns come from records you did not sign"
        assert self.named(run) == [words]
        kinds = [
            x.kind if x.type == "state" else x.name if x.type == "node" else x.type for x in run.log
        ]
        assert kinds.index("foreign_turns") < kinds.index("llm")
        assert words in nb.last[0]["text/plain"].splitlines()[0]

    @pytest.mark.parametrize("forge", [lambda r: r, lambda r: UserKey.read().sign(r)])
    def test_the_users_own_are_not_named(self, opened, forge):
        nb = opened(forge)
        assert self.named(nb.cell("ho!", cell="c2")) == []

    def test_they_count_for_matching_and_replaying(self, opened):
        nb = opened(self.unsigned, cells=("c1", "c2", "c3"))
        assert nb.cell("hm", cell="c3", line="-m model --rerun replay").answer == "three"
        assert self.named(nb.shell.user_ns["_agent"]) == []

    def test_a_record_that_was_changed_is_no_history(self, opened):
        nb = opened(lambda r: json.loads(json.dumps(r).replace('"one"', '"other"')))
        run = nb.cell("ho!", cell="c2")
        assert (run.answer, self.named(run)) == ("four", [])
        assert "rebuilt" not in json.dumps([x.payload for x in run.log.of("state")])

    def test_a_conversation_that_begins_anew_and_another_one_have_none(self, opened):
        nb = opened(self.unsigned)
        assert self.named(nb.cell("ho!", cell="c2", line="-m model --new")) == []
        assert self.named(nb.cell("ho!", cell="c3", line="-m model -c other")) == []

    def test_a_turn_that_was_run_anew_is_the_users(self, opened):
        nb = opened(self.unsigned)
        nb.cell("hi", line="-m model --live")
        assert self.named(nb.cell("ho!", cell="c2")) == []

    def test_a_drift_does_not_send_them_unseen(self, opened, monkeypatch):
        line = "-m model -t python --approve auto"
        nb = opened(self.unsigned, last=False)
        nb.cell(
            "go",
            line=f"{line} --live",
            cell="c3",
            sent={"trust": True},
            model=Once([CALL, "It is 42.", "It is 43."]),
            base=40,
        )
        nb.shell.user_ns["base"] = 41
        with pytest.raises(AgentCellError, match=FOREIGN):
            nb.cell("go", line=line, cell="c3")
        run = nb.cell("go", line=f"{line} --view html", cell="c3", seen=True)
        assert run.answer == "It is 43."
        assert self.named(run)[-1] == f"1 earlier {FOREIGN}"
        kinds = [x.kind if x.type == "state" else x.type for x in run.log]
        assert "foreign_turns" in kinds[: len(kinds) - kinds[::-1].index("respond")]

    def test_a_recovered_run_is_the_users(self, nb):
        lost = nb.cell("hi", model=Once(["one", "two"]))
        nb.restart()
        nb.command(f"recover {lost.id}")
        nb.cell("hi")
        assert self.named(nb.cell("ho", cell="c2")) == []


@pytest.mark.parametrize("started", [9e9, 1e300, float("nan"), 10**400, True, "9e9", -1, None])
def test_a_record_may_name_any_time(nb, started):
    nb.cell("hi", model=Once(["one", "two"]))
    record = {**nb.record, "started": started}
    record = {**record, "hash": record_hash(record)}
    nb.restart()
    try:
        run = nb.cell("hi", sent={"runs": [record]})
    except AgentCellError as fault:  # what has no hash is tampered with
        pytest.fail(str(fault))
    assert run.answer == ("one" if record["hash"] else "two")
    assert "recorded earlier" in nb.last[0]["text/plain"] or not record["hash"]


class TestFile:
    def save(self, nb, path, *cells):
        """Write a notebook of agent cells and what they showed last, as a front end and the server
        hook do.
        """
        made = []
        for cell, line, body in cells:
            numbers = {METADATA_KEY: {"run": self.records[cell]["id"]}}
            outputs = [
                {
                    "output_type": "display_data",
                    "data": {RECORD_MIME: self.records[cell]},
                    "metadata": numbers,
                }
            ]
            made.append(
                {
                    "cell_type": "code",
                    "id": cell,
                    "source": f"%%agent {line}\n{body}",
                    "metadata": {},
                    "outputs": outputs,
                }
            )
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}
        NotebookRuns(notebook).lift()
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

    @pytest.fixture
    def nameless(self, path):
        """The same file without the ids of its cells; each cell of it stands twice."""
        notebook = json.loads(path.read_text())
        for cell in notebook["cells"]:
            del cell["id"]
        again = [{**cell, "outputs": []} for cell in notebook["cells"]]
        notebook |= {"cells": [*notebook["cells"], *again], "nbformat_minor": 4}
        path.write_text(json.dumps(notebook))
        return path

    def test_in_a_file_without_ids_those_of_the_front_end_count_by_text(self, nb, nameless):
        """A front end makes up new ids each time that it opens such a file."""
        assert nb.cell("hi", cell="made-up-1").answer == "one"
        assert nb.cell("and?", cell="made-up-2").answer == "two"
        assert nb.cell("hi", cell="made-up-1").answer == "one"
        assert nb.cell("hi", cell="made-up-3").answer == "three"

    def test_a_later_cell_of_a_file_without_ids_is_replayed_first(self, nb, nameless):
        assert nb.cell("and?", cell="made-up-2").answer == "two"

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

    def status(self, nb):
        """Return the rows of cells that `%agent status` shows: (state, prompt, why) by cell."""
        nb.command("status")
        table = re.search("<tbody>(.*?)</tbody>", nb.last[0]["text/html"])[1]
        rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in table.split("</tr>")[:-1]]
        return {cell: (state, prompt, why) for cell, state, _, prompt, why in rows}

    def test_status_knows_the_type_of_the_answer(self, nb, path):
        nb.shell.user_ns |= {"Kind": int, "typed": Scripted(["3"])}
        nb.cell("how many?", "-m typed --output Kind", cell="c3")
        assert self.status(nb)["c3"] == ("recorded", "how many?", "")
        nb.shell.user_ns["Kind"] = str
        assert self.status(nb)["c3"] == ("stale", "how many?", "output changed")
        del nb.shell.user_ns["Kind"]
        assert "Kind is not defined" in self.status(nb)["c3"][2]

    def test_status_names_what_has_changed(self, nb, path):
        notebook = json.loads(path.read_text())
        notebook["cells"][1]["source"] = "%%agent -m model\nand now?"
        notebook["cells"].append(
            {**notebook["cells"][0], "id": "c3", "source": "%%agent -m model\nnew"}
        )
        notebook["cells"].append(
            {**notebook["cells"][0], "id": "c4", "source": "%%agent --nope\nnew"}
        )
        path.write_text(json.dumps(notebook))
        found = self.status(nb)
        assert found["c1"] == ("recorded", "hi", "")
        assert found["c2"] == ("stale", "and now?", "prompt changed")
        assert found["c3"] == ("unrecorded", "new", "")
        assert found["c4"][0] == "unknown"
        assert "--nope" in found["c4"][2]
        assert "c2    stale" in nb.last[0]["text/plain"]

    def test_status_counts_what_ran_since_the_file_was_saved(self, nb, path):
        nb.cell("and now?", cell="c2", model=Once(["five", "six"]))
        nb.cell("<b>new</b>", cell="c9")
        found = self.status(nb)
        assert list(found) == ["c1", "c2", "c9"]
        assert found["c2"] == ("recorded", "and now?", "")
        assert found["c9"] == ("recorded", "&lt;b&gt;new&lt;/b&gt;", "")

    def test_status_counts_the_file_when_it_was_saved_later(self, nb, path):
        nb.cell("and now?", cell="c2", model=Once(["five", "six"]))
        nb.cell("new", cell="c9")
        notebook = json.loads(path.read_text())
        notebook["cells"][1]["source"] = "%%agent -m model\nand then?"
        path.write_text(json.dumps(notebook))
        os.utime(path, (time.time() + 10,) * 2)
        found = self.status(nb)
        assert list(found) == ["c1", "c2"]
        assert found["c2"] == ("stale", "and then?", "prompt changed")

    def test_status_goes_by_what_this_kernel_would_send(self, nb, path):
        """The conversation was led here otherwise than the file says: the cell has an answer to
        that.
        """
        nb.cell("other", cell="c0", model=Once(["zero", "seven"]))
        nb.cell("and?", line="-m model --live", cell="c2")
        assert self.status(nb)["c2"] == ("recorded", "and?", "")

    @pytest.fixture
    def begun(self, nb, path):
        """Add to the first cell of the file a later run that code in it began; restart."""
        other = nb.cell("zero", cell="c7")
        begun = run_record(other.log, Provenance(cell="c1", conversation=""))
        begun = UserKey.read().sign(begun)
        notebook = json.loads(path.read_text())
        notebook["cells"][0]["outputs"].append(
            {
                "output_type": "display_data",
                "data": {RECORD_MIME: begun},
                "metadata": {METADATA_KEY: {"run": begun["id"]}},
            }
        )
        path.write_text(json.dumps(notebook))
        nb.restart()
        return path

    def test_status_knows_the_turn_of_a_cell_whose_code_began_a_later_run(self, nb, begun):
        assert self.status(nb)["c2"] == ("recorded", "and?", "")

    def test_status_names_no_difference_from_a_run_that_the_cell_began(self, nb, begun):
        assert self.status(nb)["c1"] == ("recorded", "hi", "")
        begun.write_text(begun.read_text().replace("-m model\\nhi", "-m model --seed 3\\nhi"))
        assert self.status(nb)["c1"] == ("stale", "hi", "settings changed")

    def test_status_takes_no_cell_that_a_tool_runs_for_the_cell_itself(self, nb, path):
        code = "%%agent -m inner -c other --live\ninner"
        nb.shell.user_ns["inner"] = Scripted(["In."])
        outer = Scripted([calling("python", code=code), "Out."])
        run = nb.cell("outer", "-m model --approve auto --new --live", cell="c9", model=outer)
        assert run.log.of("result")[0].status == "ok"
        assert self.status(nb)["c9"][1] == "outer"

    @pytest.fixture
    def unanswered(self, nb, tmp_path, monkeypatch):
        """Return a function that saves a cell without an answer and one below it, and restarts."""

        def save(line, turn):
            with suppress(AgentCellError):
                nb.cell("first", line, cell="c1", model=Once([turn, "two", "three"]))
            self.records = {"c1": nb.record}
            assert nb.cell("and?", cell="c2").answer == "two"
            self.records["c2"] = nb.record
            path = tmp_path / "unanswered.ipynb"
            self.save(nb, path, ("c1", line, "first"), ("c2", "-m model", "and?"))
            nb.restart()
            monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))

        return save

    @pytest.mark.parametrize(
        ("line", "turn"),
        [
            ("-m model", {"error": {"status": 400, "message": "no"}}),
            ("-m model -t python --approve auto --max-turns 1", calling("python", code="1")),
        ],
        ids=["failed", "limit"],
    )
    def test_a_run_without_an_answer_counts_alike_after_a_restart(self, nb, unanswered, line, turn):
        unanswered(line, turn)
        assert self.status(nb)["c2"] == ("recorded", "and?", "")
        assert nb.cell("and?", cell="c2").answer == "two"

    def test_forgetting_a_cell_by_its_whole_id_keeps_those_it_begins(self, nb, path):
        longer = nb.cell("new", cell="c10")
        nb.command("forget c1")
        assert nb.last[1][METADATA_KEY]["forget"] == [self.records["c1"]["id"]]
        nb.command("forget c10")
        assert nb.last[1][METADATA_KEY]["forget"] == [longer.id]

    def test_a_forgotten_run_leaves_the_file_with_the_next_save(self, nb, path):
        nb.command("forget c1")
        ids = nb.last[1][METADATA_KEY]["forget"]
        assert ids == [self.records["c1"]["id"]]
        notebook = json.loads(path.read_text())
        mark = {
            "output_type": "display_data",
            "data": {"text/plain": "x"},
            "metadata": {METADATA_KEY: {"forget": ids}},
        }
        notebook["cells"].append(
            {
                "cell_type": "code",
                "id": "f",
                "source": "%agent forget",
                "metadata": {},
                "outputs": [mark],
            }
        )
        NotebookRuns(notebook).lift(json.loads(path.read_text())["metadata"][METADATA_KEY])
        assert list(notebook["metadata"][METADATA_KEY]["runs"]) == ["c2"]
        assert ids[0] not in json.dumps(
            [o["data"] for c in notebook["cells"] for o in c["outputs"]]
        )
        assert nb.cell("hi").answer == "three"


class TestLost:
    """`%agent recover` offers what is in no notebook."""

    def listed(self, nb, which=""):
        nb.command(f"recover {which}".strip())
        return nb.last[0]["text/plain"]

    @pytest.fixture
    def files(self, tmp_path, monkeypatch):
        """Two notebooks without runs; the kernel is that of the first."""
        files = [tmp_path / "one.ipynb", tmp_path / "two.ipynb"]
        for path in files:
            self.save(path, {})
        monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(files[0]))
        return files

    def save(self, path, runs):
        metadata = {METADATA_KEY: {"version": 1, "runs": runs}}
        path.write_text(
            json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": []})
        )

    def test_a_run_that_another_notebook_has_saved_is_not_lost(self, nb, files, monkeypatch):
        run = nb.cell("hi", model=Once(["one"]))
        record = nb.record
        nb.restart()
        monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(files[1]))
        listed = self.listed(nb)
        assert run.id not in listed
        assert "1 run of other notebooks was lost: %agent recover others" in listed
        assert run.id in self.listed(nb, "others")
        nb.command("status")
        assert "1 run of other notebooks was lost" not in nb.last[0]["text/plain"]  # it ended
        self.save(files[0], {"c1": [record]})
        assert "Nothing was lost" in self.listed(nb)

    def test_a_run_that_newer_ones_of_its_cell_have_replaced_is_not_lost(self, nb, files):
        records = []
        for number in range(5):
            nb.cell("hi", line="-m model --live", model=Once([str(number)]))
            records.insert(0, nb.record)
        nb.command("recover")
        assert "Nothing was lost" in nb.shown[-2][0]["text/plain"]
        assert all(r["id"] in nb.last[0]["text/plain"] for r in records)  # made here, not saved yet
        self.save(files[0], {"c1": records[:3]})
        assert "Nothing was lost" in self.listed(nb)
        nb.restart()
        assert "Nothing was lost" in self.listed(nb)
        self.save(files[0], {"c1": [{**r, "status": "error"} for r in records[:2]]})
        assert "Nothing was lost" not in self.listed(nb)

    def test_the_beginning_of_several_ids_recovers_nothing(self, nb, files):
        for cell in ("c1", "c2"):
            nb.cell("hi", model=Once(["1"]), cell=cell)
        nb.restart()
        with pytest.raises(AgentCellError, match="Several runs begin with ''"):
            nb.command("recover ''")

    def test_a_run_whose_cell_was_answered_since_is_not_offered(self, nb, files):
        nb.cell("hi", line="-m model --live", model=Once(["1"]))
        first = nb.record
        nb.cell("hi", line="-m model --live", model=Once(["2"]))
        second = nb.record
        nb.restart()
        listed = self.listed(nb)
        assert second["id"] in listed
        assert first["id"] not in listed
        nb.command(f"recover {first['id']}")  # its id still brings it back
        assert nb.record["id"] == first["id"]


def test_a_run_that_was_not_saved_is_asked_again_after_a_restart(nb):
    nb.cell("hi", model=Once(["one", "two"]))
    assert nb.cell("hi").answer == "one"
    nb.restart()
    assert nb.cell("hi").answer == "two"


def test_a_lost_run_is_recovered_into_the_notebook(nb):
    lost = nb.cell("hi", model=Once(["one", "two"]))
    nb.restart()
    nb.command("recover")
    assert lost.id in nb.last[0]["text/plain"]
    nb.command(f"recover {lost.id}")
    assert nb.record["id"] == lost.id
    assert events_of(nb.record) == list(lost.log)
    assert nb.cell("hi").answer == "one"
    nb.command("recover")
    assert "Nothing was lost" in nb.shown[-2][0]["text/plain"]
