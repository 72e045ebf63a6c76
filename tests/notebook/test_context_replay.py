"""Context and records: what is compared before a record is played, and what never is."""

import json

import pandas as pd
import pytest
from helpers.asked_models import Asked
from helpers.scripts import batch, calling

from agent_nb import Agent
from agent_nb.agent.context import find_context
from agent_nb.host import launch
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record.record import METADATA_KEY, RECORD_MIME, record_hash
from agent_nb.record.signing import UserKey
from agent_nb.tools import describe

LINE = "-m model -t python --approve auto"


def frame(rows=3, **columns):
    return pd.DataFrame({"n": range(rows), **columns})


def asked(code="len(df)", *, times=3):
    """Return a model that runs `code` and answers, in each of its runs."""
    return Asked([calling("python", code=code), "The answer."] * times)


def page(nb):
    return nb.last[0]["text/plain"]


def test_the_same_look_with_other_values_is_replayed(nb):
    model = asked("df.shape")
    nb.cell("Go.", LINE, model=model, df=frame(m=[1, 2, 3]))
    nb.cell("Go.", LINE, df=frame(m=[7, 8, 9]))
    assert len(model.requests) == 2
    assert nb.last[1][METADATA_KEY]["replayed"] is True


def test_a_used_variable_of_another_shape_goes_live_and_is_named(nb):
    model = asked("df.columns")
    nb.cell("Go.", LINE, model=model, df=frame(120))
    run = nb.cell("Go.", LINE, df=frame(121))
    assert len(model.requests) == 4
    assert "`df` 120×1 → 121×1" in page(nb)
    assert find_context(list(run.log)).payload["changed"] == ["`df` 120×1 → 121×1"]
    nb.cell("Go.", LINE, df=frame(121))
    assert len(model.requests) == 4


@pytest.mark.parametrize("line", ["-m model", "-m model --context none", "-m model --output int"])
def test_a_cell_below_a_changed_one_says_that_the_conversation_changed(nb, line):
    model = Asked([str(n) for n in range(9)], dialect="xml")
    nb.cell("Go.", "-m model", model=model)
    nb.cell("And?", line, cell="c2")
    assert "asked anew" not in page(nb)
    nb.cell("Go on.", "-m model")
    assert "asked anew" not in page(nb)  # the cell shows that its prompt is another one
    run = nb.cell("And?", line, cell="c2")
    assert len(model.requests) == 4
    assert "asked anew: the conversation changed" in page(nb)
    assert find_context(list(run.log)).payload["changed"] == ["the conversation changed"]
    nb.cell("And?", line, cell="c2")
    assert len(model.requests) == 4
    assert "asked anew" not in page(nb)


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        ("How long is df?", "1"),
        ("Is `df` long?", "1"),
        ("Go.", "for x in range(2):\n    print(df.columns)"),
        ("Go.", "def f():\n    return df.columns\nf()"),
        ("Go.", "df['m'] = 1"),
        ("Go.", "df = df.copy(); df.columns"),
        ("Go.", "%timeit -n 1 -r 1 df.columns\n1"),
        ("Go.", "uses()"),
    ],
)
def test_a_variable_counts_as_used(nb, prompt, code):
    nb.shell.run_cell("def uses():\n    return df.columns")
    model = asked(code)
    nb.cell(prompt, LINE, model=model, df=frame(3))
    nb.cell(prompt, LINE, df=frame(4))
    assert len(model.requests) == 4
    assert "`df` 3×1 → 4×1" in page(nb)


@pytest.mark.parametrize(
    "code",
    [
        "1",
        "df = 1\nprint(df)",
        "import math as df; df.pi",
        "[df for df in range(3)]",
        "def f(df):\n    return df\nf(1)",
        "for df in range(2):\n    print(df)",
        "class A:\n    df = 1",
        "text = 'df'",
        "(lambda df: df)(1)",
        "if True:\n    df = 2\ndf",
    ],
)
def test_a_variable_that_the_run_made_or_did_not_name_does_not_count(nb, code):
    model = asked(code)
    nb.cell("Go.", LINE, model=model, df=frame(3))
    nb.cell("Go.", LINE, df=frame(4))
    assert len(model.requests) == 2
    assert "since then `df` 3×1 → 4×1" in page(nb)


def test_a_used_variable_that_is_gone_goes_live(nb):
    model = asked("df.columns")
    nb.cell("Go.", LINE, model=model, df=frame(3))
    del nb.shell.user_ns["df"]
    nb.cell("Go.", LINE)
    assert len(model.requests) == 4
    assert "`df` is gone" in page(nb)


def test_a_record_that_lists_what_was_imported_is_played(nb, monkeypatch):
    nb.shell.run_cell("from dataclasses import dataclass")
    model = asked("dataclass.__name__")
    with monkeypatch.context() as earlier:
        earlier.setattr(describe, "is_imported", lambda name, value: False)
        run = nb.cell("Use dataclass.", LINE, model=model)
    assert "dataclass" in find_context(list(run.log)).payload["variables"]
    nb.cell("Use dataclass.", LINE)
    assert len(model.requests) == 2
    assert "since then" not in page(nb)


def test_an_unused_variable_that_is_gone_is_not_spoken_of(nb):
    model = asked("1")
    nb.cell("Go.", LINE, model=model, df=frame(3))
    del nb.shell.user_ns["df"]
    nb.cell("Go.", LINE)
    assert len(model.requests) == 2
    assert "since then" not in page(nb)


def test_what_a_call_assigned_is_not_read_by_a_later_one(nb):
    turns = [batch(("python", {"code": "t = 1"})), calling("python", code="t + 1"), "Done."]
    model = Asked(turns * 2)
    nb.cell("Go.", LINE, model=model)
    nb.shell.user_ns["t"] = "another type"
    nb.cell("Go.", LINE)
    assert len(model.requests) == 3


def test_a_variable_that_was_asked_for_counts(nb):
    model = Asked([calling("variables", name="df"), "Done."] * 2)
    nb.cell("Go.", "-m model -t variables", model=model, df=frame(3))
    nb.cell("Go.", "-m model -t variables", df=frame(4))
    assert "`df` 3×1 → 4×1" in page(nb)


def test_a_variable_that_a_function_of_the_notebook_reads_counts(nb):
    nb.shell.run_cell("def uses():\n    'Count.'\n    return len(df.columns)")
    model = Asked([calling("uses"), "Done."] * 2)
    nb.cell("Go.", "-m model -t uses", model=model, df=frame(3))
    nb.cell("Go.", "-m model -t uses", df=frame(4))
    assert len(model.requests) == 4
    assert "`df` 3×1 → 4×1" in page(nb)


def test_run_all_twice_asks_the_model_once(nb):
    """The first pass leaves behind what the run made, and what cells below made."""
    model = asked("total = int(df.n.sum())\ndf2 = df[df.n > 0]\ntotal")
    for rows in (3, 3):
        nb.cell("Sum up df2 and total.", LINE, model=model, df=frame(rows))
        nb.shell.run_cell("below = [total]")
    assert len(model.requests) == 2


def test_a_record_made_beside_old_leftovers_is_played_without_them(nb):
    """Recorded a second time in one kernel, the run's own variables were there already."""
    model = asked("total = int(df.n.sum())\ntotal", times=2)
    nb.cell("Compute total.", LINE, model=model, df=frame(3))
    nb.cell("Compute total.", f"{LINE} --live")
    del nb.shell.user_ns["total"]
    nb.cell("Compute total.", LINE)
    assert len(model.requests) == 4


@pytest.mark.parametrize("how", ["cell", "runner"])
def test_where_only_records_are_played_a_difference_is_a_failure(nb, how):
    nb.cell("Go.", LINE, model=asked("df.columns"), df=frame(120))
    line = f"{LINE} --rerun replay" if how == "cell" else LINE
    sent = {"rerun": "replay"} if how == "runner" else None
    with pytest.raises(AgentCellError, match="what the run used has changed: `df` 120×1 → 121×1"):
        nb.cell("Go.", line, sent=sent, df=frame(121))
    assert nb.last[1][METADATA_KEY]["differences"] == ["`df` 120×1 → 121×1"]


def test_the_status_names_the_variable(nb, monkeypatch):
    nb.cell("Go.", LINE, model=asked("df.columns"), df=frame(120))
    nb.shell.user_ns["df"] = frame(121)
    nb.command("status")
    said = nb.last[0]["text/plain"]
    assert "`df` 120×1 → 121×1" in said
    assert "stale" in said


def test_an_awaited_run_is_refused_where_only_records_are_played(nb, run, monkeypatch):
    model = Asked([calling("variables", name="df"), "Done."] * 2)
    nb.shell.user_ns.update(model=model, df=frame(3), Agent=Agent)
    code = "r = await Agent(model, ['variables'])('Go.', check=False)"

    def cell():
        nb.parent["metadata"] = {"cellId": "w"}
        run(nb.shell.run_cell_async(code, transformed_cell=code)).raise_error()
        return nb.shell.user_ns["r"]

    cell()
    monkeypatch.setattr(launch, "LAUNCH", launch.Launch({launch.Launch.STRICT: "1"}))
    assert cell().answer == "Done."
    nb.shell.user_ns["df"] = frame(4)
    assert "`df` 3×1 → 4×1" in cell().reason
    assert len(model.requests) == 2


def test_the_exported_page_has_the_context(nb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nb.cell("Go.", LINE, model=asked("df.columns"), df=frame(120))
    nb.command("export page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<details" in page
    assert "context: 2 variables" in page
    assert "df: pandas.DataFrame 120×1 (n:\u00a0int64)" in page


def test_context_is_no_key_of_the_record(nb):
    model = asked("df.columns")
    nb.cell("Go.", LINE, model=model, df=frame(3))
    for mode in ("none", "vars", "cells"):
        nb.cell("Go.", f"{LINE} --context {mode}", df=frame(3))
    assert len(model.requests) == 2
    nb.cell("Go.", f"{LINE} --context none", df=frame(4))
    assert len(model.requests) == 4


def test_a_record_without_context_is_played_whatever_the_variables(nb):
    model = asked("1")
    nb.cell("Go for df.", f"{LINE} --context none", model=model, df=frame(3))
    nb.cell("Go for df.", LINE, df=frame(4))
    assert len(model.requests) == 2


def test_a_drift_goes_on_with_the_context_of_now(nb):
    model = Asked([calling("python", code="int(df.n.sum())"), "Six.", "Ten."])
    nb.cell("Go.", LINE, model=model, df=frame(4))
    run = nb.cell("Go.", LINE, df=frame(4) + 1, new=1)
    assert len(model.requests) == 3
    texts = [e.payload["text"] for e in run.log.of("state") if e.kind == "context"]
    assert len(texts) == 1
    assert "new: int" in texts[0]
    assert model.prompt(2).count("Variables in the kernel") <= 1
    assert [e.seq for e in run.log] == list(range(1, len(run.log) + 1))
    nb.cell("Go.", LINE)
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    "forged",
    [None, 7, {"df": 3}, {"df": {"kind": 3}}, {"df": {"kind": "x", "shape": ["a"]}}, []],
)
def test_a_record_with_a_context_of_another_form_is_played(nb, forged):
    model = asked("df.columns")
    nb.cell("Go.", LINE, model=model, df=frame(3))
    listed = nb.shell.magics_manager.registry["AgentMagics"].session.library._records["c1"]
    whole = json.loads(json.dumps(listed[0]))
    for event in whole["events"]:
        if event["type"] == "state" and event.get("kind") == "context":
            event["payload"]["variables"] = forged
    whole["hash"] = record_hash(whole)
    listed[0] = UserKey.read().sign(whole)
    nb.cell("Go.", LINE, df=frame(4))
    assert nb.last[1][METADATA_KEY].get("replayed") is True


def test_the_record_names_looks_and_no_values(nb):
    nb.cell("Go.", LINE, model=asked(), df=frame(city="Rome"), key="a secret word")
    event = next(e for e in nb.record["events"] if e.get("kind") == "context")
    assert event["payload"]["variables"]["df"]["dtypes"][0] == ["n", "int64"]
    assert "Rome" not in json.dumps(event)
    assert "secret word" not in json.dumps(event)
    assert RECORD_MIME in nb.last[0]
