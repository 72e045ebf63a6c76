"""`%%agent --map`: rows of a variable, `_map` and the frame, replay of the record."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from agent_nb import RUNS, Scripted
from agent_nb.errors import ModelError
from agent_nb.events.mapped import is_map
from agent_nb.models.script_turn import Case, read_turn
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record.record import METADATA_KEY, record_hash
from agent_nb.record.signing import UserKey
from agent_nb.rows.recorded_runs import Runs

ASK = "Classify {{ text }}"


class Words(Scripted):
    """A script that answers by the last word of the prompt and counts the requests."""

    def __init__(self, **answers):
        cases = [Case(when=word, turns=(read_turn(said, word),)) for word, said in answers.items()]
        super().__init__(["other"], cases=cases)
        self.asked = []
        self.refused = set()

    def start(self):
        return self

    async def stream(self, request):
        self.asked.append(request.messages[-1].text)
        if request.messages[-1].text.rpartition(" ")[2] in self.refused:
            raise ModelError("No room for this row.", status=400)
        script = Scripted(["other"], cases=self.cases)
        async for parts in script.start().stream(request):
            yield parts

    identity = "words"


@pytest.fixture
def model():
    return Words(good="yes", bad="no")


@pytest.fixture
def df():
    return pd.DataFrame({"text": ["good", "bad", "ugly"]}, index=[7, 7, 9])


def test_a_cell_asks_each_row_and_leaves_the_map_and_the_frame(nb, model, df):
    run = nb.cell(ASK, "-m model --map df -o out", model=model, df=df)
    out, made = nb.shell.user_ns["out"], nb.shell.user_ns["_map"]
    assert list(out["answer"]) == ["yes", "no", "other"]
    assert list(out.index) == [7, 7, 9]
    assert list(df.columns) == ["text"]
    assert made.log is run.log
    assert [r.answer for r in made.results] == ["yes", "no", "other"]
    assert nb.shell.user_ns["_agent"] is run
    assert run.status == "ok"
    assert "3 of 3 rows answered" in nb.last[0]["text/plain"]


def test_without_o_the_frame_is_in_the_map(nb, model, df):
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    assert len(nb.shell.user_ns["_map"].frame) == 3
    assert not isinstance(nb.shell.user_ns["_agent"], pd.DataFrame)


def test_data_is_an_expression_too(nb, model, df):
    nb.cell(ASK, "-m model --map 'df.head(1)' -o out", model=model, df=df)
    assert len(nb.shell.user_ns["out"]) == 1
    nb.cell(ASK, "-m model --map df --limit 2 -o out", model=model, df=df)
    assert len(nb.shell.user_ns["out"]) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--map dg", "there is no variable of this name"),
        ("--map 1/0", "ZeroDivisionError"),
        ("--map 'df['", "SyntaxError"),
        ("--map 5", "has no rows"),
        ("--map df --new", "--new does not go with --map"),
        ("--map df -c other", "-c does not go with --map"),
        ("--map df --context vars", "--context does not go with --map"),
        ("--rpm 5", "--rpm belongs to --map"),
        ("--store x.sqlite", "--store belongs to --map"),
        ("--map df --concurrency 0", "concurrency=0"),
        ("--map df -t shell --approve ask", "Nobody can be asked"),
    ],
)
def test_what_cannot_be_asked_is_said_before_the_first_request(nb, model, df, line, words):
    with pytest.raises(AgentCellError, match=words[:20].replace("(", r"\(")):
        nb.cell(ASK, f"-m model {line}", model=model, df=df)
    assert words in nb.last[0]["text/plain"]
    assert model.asked == []


def test_a_configured_context_is_for_other_cells(nb, model, df):
    nb.shell.run_line_magic("config", "AgentMagics.context = 'vars'")
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    assert len(nb.shell.user_ns["_map"].frame) == 3


def test_run_again_only_the_failed_rows_are_asked(nb, model, df):
    model.refused.add("bad")
    nb.cell(ASK, "-m model --map df -o out", model=model, df=df)
    assert list(nb.shell.user_ns["out"]["_status"]) == ["ok", "error", "ok"]
    nb.command("status")
    assert "1 row failed and will be asked again" in nb.last[0]["text/plain"]
    model.refused.clear()
    model.asked.clear()
    nb.cell(ASK, "-m model --map df -o out")
    assert model.asked == ["Classify bad"]
    assert list(nb.shell.user_ns["out"]["answer"]) == ["yes", "no", "other"]
    nb.cell(ASK, "-m model --map df -o out")
    assert model.asked == ["Classify bad"]


@pytest.mark.parametrize("strange", [False, True], ids=["replay", "record of others"])
def test_failed_rows_are_played_where_they_cannot_be_asked(nb, model, df, monkeypatch, strange):
    model.refused.add("bad")
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    if strange:
        monkeypatch.setattr(UserKey, "read", lambda: UserKey(b"another key"))
    model.asked.clear()
    nb.cell(ASK, "-m model --map df" + ("" if strange else " --rerun replay"))
    assert model.asked == []
    assert [r.status for r in nb.shell.user_ns["_map"].results] == ["ok", "error", "ok"]


def test_run_again_the_record_plays_byte_by_byte_and_makes_the_frame(nb, model, df):
    first = nb.cell(ASK, "-m model --map df -o out", model=model, df=df)
    record, out = nb.record, nb.shell.user_ns.pop("out")
    asked = len(model.asked)
    second = nb.cell(ASK, "-m model --map df -o out")
    assert len(model.asked) == asked == 3
    assert nb.record == record
    assert (second.id, list(second.log)) == (first.id, list(first.log))
    pd.testing.assert_frame_equal(nb.shell.user_ns["out"], out)
    assert {r.origin for r in nb.shell.user_ns["_map"].results} == {"record"}
    assert nb.last[1][METADATA_KEY]["replayed"] is True


def test_the_record_replays_without_the_model_after_a_restart(nb, model, df, monkeypatch):
    nb.cell(ASK, "-m model --map df -o out", model=model, df=df)
    out, record = nb.shell.user_ns.pop("out"), nb.record
    nb.restart()
    sent = {"runs": [record], "rerun": "replay"}
    nb.cell(ASK, "-m model --map df -o out", sent=sent)
    assert len(model.asked) == 3
    pd.testing.assert_frame_equal(nb.shell.user_ns["out"], out)


def test_a_map_is_no_turn_of_the_conversation(nb, model, df):
    nb.cell("good morning", model=model, cell="a")
    nb.cell(ASK, "-m model --map df", model=model, df=df, cell="b")
    model.asked.clear()
    run = nb.cell("and now", model=model, cell="c")
    assert run.status == "ok"
    session = nb.shell.magics_manager.registry["AgentMagics"].session
    (conversation,) = session.conversations
    assert [t.cell for t in conversation.turns] == ["a", "c"]
    assert not any(is_map(t.events) for t in conversation.turns)


def test_a_map_that_raises_leaves_the_rows_so_far(nb, df):
    cases = [
        Case(when="bad", turns=(read_turn({"error": {"status": 400, "message": "no"}}, "bad"),))
    ]
    script = Scripted(["fine"], cases=cases)
    with pytest.raises(AgentCellError):
        nb.cell(
            ASK, "-m script --map df --on-error raise --concurrency 1 -o out", script=script, df=df
        )
    assert list(nb.shell.user_ns["out"]["_status"]) == ["ok", "error", "pending"]
    assert nb.shell.user_ns["_map"].results[0].answer == "fine"


def test_a_cell_whose_rows_all_fail_fails_and_leaves_the_rows(nb, df):
    script = Scripted([read_turn({"error": {"status": 400, "message": "no"}}, "bad")])
    with pytest.raises(AgentCellError, match="All 3 rows failed alike"):
        nb.cell(ASK, "-m script --map df -o out", script=script, df=df)
    assert list(nb.shell.user_ns["out"]["_status"]) == ["error"] * 3
    assert nb.record["status"] == "error"


def test_typed_answers_are_columns(nb, df):
    script = Scripted(['{"label": "good", "score": 3}'])
    nb.shell.run_cell(
        "from dataclasses import dataclass\n@dataclass\nclass Label:\n    label: str\n    score: int"
    )
    nb.cell(ASK, "-m script --map df --output Label -o out", script=script, df=df)
    assert list(nb.shell.user_ns["out"]["score"]) == [3, 3, 3]


def test_status_knows_maps(nb, model, df, capsys):
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    nb.command("status")
    shown = capsys.readouterr().out + str(nb.shown[-1])
    assert "recorded" in shown
    assert "stale" not in shown


@pytest.fixture
def empty_store(monkeypatch, tmp_path):
    """Let the store of the maps be empty from the call on."""
    count = iter(range(99))

    def empty():
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state{next(count)}"))

    empty()
    return empty


def strict(record, **sent):
    return {"runs": [record], "rerun": "replay", **sent}


def test_of_changed_data_only_the_changed_rows_are_asked(nb, model, df, empty_store):
    nb.cell(ASK, "-m model --map df -o out", model=model, df=df)
    model.asked.clear()
    empty_store()
    changed = pd.DataFrame({"text": ["bad", "new", "good", "ugly"]})
    nb.cell(ASK, "-m model --map df -o out", df=changed)
    assert model.asked == ["Classify new"]
    assert list(nb.shell.user_ns["out"]["answer"]) == ["no", "other", "yes", "other"]
    origins = [r.origin for r in nb.shell.user_ns["_map"].results]
    assert origins == ["record", "live", "record", "record"]
    again = nb.record
    nb.cell(ASK, "-m model --map df -o out")
    assert model.asked == ["Classify new"]
    assert nb.record == again


def test_rows_of_a_record_of_others_are_asked_again_unless_it_is_trusted(
    nb, model, df, empty_store, monkeypatch, tmp_path
):
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    record = nb.record
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "another"))
    nb.restart()
    for trust, asked in (({}, 4), ({"trust": True}, 1)):
        empty_store()
        model.asked.clear()
        nb.restart()
        data = pd.DataFrame({"text": ["good", "bad", "ugly", "new"]})
        nb.cell(ASK, "-m model --map df", df=data, sent={"runs": [record], **trust})
        assert len(model.asked) == asked


def test_live_asks_every_row_anew_and_keeps_it_in_the_store(nb, model, df, empty_store, tmp_path):
    line = f"-m model --map df --store {tmp_path / 'rows.sqlite'}"
    nb.cell(ASK, line, model=model, df=df)
    nb.cell(ASK, f"{line} --live")
    assert len(model.asked) == 6
    nb.restart()
    nb.cell(ASK, line, sent={"runs": []})
    assert len(model.asked) == 6
    assert {r.origin for r in nb.shell.user_ns["_map"].results} == {"store"}


def test_strictly_replayed_a_changed_row_is_named(nb, model, df, empty_store, monkeypatch):
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    record = nb.record
    nb.restart()
    empty_store()
    data = pd.DataFrame({"text": ["good", "worse", "ugly", "worst"]})
    words = "2 of 4 rows have no record: rows 1 and 3 (row 1 asks “Classify worse”)."
    with pytest.raises(AgentCellError, match="Nothing to replay: 2 of 4 rows"):
        nb.cell(ASK, "-m model --map df", df=data, sent=strict(record))
    assert words in nb.last[0]["text/plain"].replace("\n", " ")
    with pytest.raises(AgentCellError, match="the data was sorted or cut"):
        nb.cell(ASK, "-m model --map df", df=df.iloc[::-1], sent=strict(record))
    assert len(model.asked) == 3


def test_a_large_map_replays_from_its_store_and_without_it_names_the_rows(
    nb, model, empty_store, monkeypatch, tmp_path
):
    monkeypatch.setattr("agent_nb.rows.map.sample.MOST_ROWS", 2)
    path = tmp_path / "rows.sqlite"
    df = pd.DataFrame({"text": ["good", "bad", "ugly"]})
    line = f"-m model --map df --store {path} -o out"
    nb.cell(ASK, line, model=model, df=df)
    out, record = nb.shell.user_ns.pop("out"), nb.record
    assert "map.rows" not in str(record)
    for sent in ({"runs": [record]}, strict(record)):
        nb.restart()
        nb.cell(ASK, line, sent=sent)
        pd.testing.assert_frame_equal(nb.shell.user_ns.pop("out"), out)
        assert nb.record == record
        assert nb.last[1][METADATA_KEY]["replayed"] is True
    path.unlink()
    nb.restart()
    lost = (
        rf"3 of 3 rows have no record: rows 0, 1 and 2 .*The store of this map, {path}, is missing"
    )
    with pytest.raises(AgentCellError, match=lost):
        nb.cell(ASK, line, sent=strict(record))
    assert len(model.asked) == 3


def test_a_stopped_large_map_replays_what_it_has(nb, empty_store, monkeypatch, tmp_path):
    monkeypatch.setattr("agent_nb.rows.map.sample.MOST_ROWS", 2)
    fault = {"error": {"status": 400, "message": "no"}}
    script = Words()
    script.cases = [Case(when="bad", turns=(read_turn(fault, "bad"),))]
    df = pd.DataFrame({"text": ["good", "bad", "ugly"]})
    line = f"-m model --map df --concurrency 1 --on-error raise --store {tmp_path / 'rows.sqlite'}"
    with pytest.raises(AgentCellError):
        nb.cell(ASK, line, model=script, df=df)
    record = nb.record
    nb.restart()
    with pytest.raises(AgentCellError, match="Row 1: no"):
        nb.cell(ASK, line, sent=strict(record))
    states = [r.status for r in nb.shell.user_ns["_map"].results]
    assert states == ["ok", "error", "pending"]


def test_the_runs_of_the_rows_are_loaded_when_they_are_used(
    nb, model, df, empty_store, monkeypatch
):
    run = nb.cell(ASK, "-m model --map df", model=model, df=df)
    made = nb.shell.user_ns["_map"]
    assert [r.answer for r in made.runs] == ["yes", "no", "other"]
    rows = Runs([run]).rows
    assert [r.answer for r in rows] == ["yes", "no", "other"]
    assert {r.cell for r in rows} == {"c1"}
    assert [r.prompt for r in made.runs[1:]] == ["Classify bad", "Classify ugly"]
    assert list(made.runs.to_frame(RUNS)["run"]) == [r.run for r in made.results]
    assert list(rows.to_frame(RUNS)["status"]) == ["ok"] * 3


def test_the_runs_of_a_large_map_are_in_its_store(nb, model, df, empty_store, monkeypatch):
    monkeypatch.setattr("agent_nb.rows.map.sample.MOST_ROWS", 2)
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    runs = nb.shell.user_ns["_map"].runs
    assert [r.answer for r in runs] == ["yes", "no", "other"]
    assert runs[-1].answer == "other"


@pytest.mark.parametrize(
    "row",
    [
        None,
        "words",
        {},
        {"id": 5, "events": "none"},
        {"id": "x", "status": "ok", "events": [{"type": "respond", "content": ["x"]}, 7, None]},
        {"events": [{"type": "end", "status": "ok", "ts": "late"}, {"type": "metric", "total": 1}]},
    ],
)
def test_a_strangers_record_with_broken_rows_plays_and_makes_its_frame(
    nb, model, df, empty_store, row
):
    nb.cell(ASK, "-m model --map df", model=model, df=df)
    record = json.loads(json.dumps(nb.record))
    (state,) = (e for e in record["events"] if e.get("kind") == "map.rows")
    state["payload"]["rows"] = dict.fromkeys(state["payload"]["rows"], row)
    record |= {"hash": record_hash(record), "signature": ""}
    nb.restart()
    nb.cell(ASK, "-m model --map df -o out", sent=strict(record))
    assert len(nb.shell.user_ns["out"]) == 3
    assert len(model.asked) == 3


def test_a_map_of_data_whose_error_has_no_text_names_its_type(agent):
    def fail():
        raise type("Untold", (Exception,), {"__str__": lambda _: 1 / 0})

    with pytest.raises(AgentCellError, match=r"--map 'fail\(\)' failed: Untold\. Nothing was sent"):
        agent("--map fail()", "x", fail=fail)
