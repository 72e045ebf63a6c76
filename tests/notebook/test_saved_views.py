"""A notebook that is saved while a run goes on says what holds then, and keeps the live view."""

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook import presave
from agent_nb.notebook.saved_views import goes_on
from agent_nb.record import journal
from agent_nb.record.journal import Journal
from agent_nb.wire.charts import WIDGET


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(journal.Journal, "folder", staticmethod(lambda: tmp_path / "journals"))


@pytest.fixture
def log():
    """A run with a journal, in the middle of a call that asks."""
    log = EventLog()
    log.journal = Journal(log.run)
    log.subscribe(log.journal)
    log.append(e.RunStart(model="m"))
    log.append(e.User(content="Send it."))
    log.append(e.Call(call_id="c1", name="send", args={"text": "hello"}))
    yield log
    log.journal.close()


def opened(run):
    """Return a notebook as the page that ran the cell has it."""
    output = {
        "output_type": "display_data",
        "data": {WIDGET: {"model_id": "m"}, "text/html": "as begun", "text/plain": "as begun"},
        "metadata": {"agent_nb": {"live": run}},
    }
    return {
        "cells": [
            {"cell_type": "code", "id": "c", "source": "", "metadata": {}, "outputs": [output]}
        ],
        "metadata": {},
    }


def saved(nb):
    """Save a notebook; return its static form, and whether the live view stands below."""
    presave.before_save({"type": "notebook", "content": nb}, "n.ipynb", None)
    form, *views = nb["cells"][0]["outputs"]
    return form["data"]["text/plain"], [list(v["data"]) for v in views] == [[WIDGET]]


def ask(log):
    log.append(e.Approval(call_id="c1", stage="requested", args={"text": "hello"}))


def end(log):
    log.append(e.End(status="ok"))
    log.journal.close()


def test_a_run_that_goes_on_is_saved_as_still_running_with_its_view(log):
    text, live = saved(opened(log.run))
    assert "still running" in text
    assert "Send it." in text
    assert "gone" not in text
    assert live


def test_a_run_that_asks_is_saved_as_waiting_for_a_yes(log):
    ask(log)
    text, live = saved(opened(log.run))
    assert "waiting for your yes" in text
    assert "kernel" not in text
    assert live


def test_a_run_whose_kernel_is_gone_is_saved_as_unfinished(log):
    log.append(e.Started(call_id="c1", name="send"))
    nb = opened(log.run)
    saved(nb)
    log.journal.close()
    text, live = saved(nb)
    assert "unfinished" in text
    assert "running" not in text
    assert f"%agent recover {log.run}" in text
    assert not live


def test_a_page_that_opened_before_the_end_is_saved_with_the_whole_run(log):
    nb = opened(log.run)
    saved(nb)
    log.append(e.Respond(content="It is **sent**."))
    end(log)
    text, live = saved(nb)
    assert "done" in text
    assert "It is **sent**." in text
    assert f"%agent recover {log.run}" in text
    assert not live


def test_a_run_without_a_journal_goes_on_while_its_mark_is_held():
    mark = Journal("r1", clean=False)
    nb = opened("r1")
    assert goes_on("r1")
    assert saved(nb) == saved(nb)
    assert saved(nb)[1]
    mark.close(discard=True)
    text, live = saved(nb)
    assert "It is not known how this run ended" in text
    assert "run the cell again" in text
    assert not live


def test_a_run_that_this_machine_does_not_know_keeps_its_form():
    assert saved(opened("r1")) == ("as begun", False)


@pytest.mark.parametrize("run", ["", "-", "*", "../x", 7, None, ["r"]])
def test_a_notebook_cannot_name_the_journal_of_another_run(log, run):
    assert saved(opened(run)) == ("as begun", False)


def test_a_journal_that_cannot_be_read_leaves_the_form(log, monkeypatch):
    monkeypatch.setattr(
        "agent_nb.notebook.saved_views.RecoverableRun.read_events", lambda path: 1 / 0
    )
    assert saved(opened(log.run)) == ("as begun", True)


def test_the_events_of_a_huge_journal_are_not_read(log, monkeypatch):
    monkeypatch.setattr("agent_nb.notebook.saved_views.MOST_BYTES", 10)
    text, live = saved(opened(log.run))
    assert "still running" in text
    assert "Send it." not in text
    assert live
    log.journal.close()
    assert (
        f"The kernel ended before the run did. To have what came: %agent recover {log.run}"
        in (saved(opened(log.run))[0])
    )


def test_a_huge_journal_of_an_ended_run_says_that_it_ended(log, monkeypatch):
    monkeypatch.setattr("agent_nb.notebook.saved_views.MOST_BYTES", 10)
    end(log)
    text, live = saved(opened(log.run))
    assert (
        f"The run ended, and this page did not hear of it. To have it here: %agent recover {log.run}"
        in text
    )
    assert not live
