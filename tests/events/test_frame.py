"""Frames of events: rows, types, and what becomes of them elsewhere."""

import json
import re

import pandas as pd
import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb import events as e
from agent_nb.errors import UsageError
from agent_nb.events.column_type import Column
from agent_nb.events.columns import CALLS, EVENTS, PRESETS, TURNS
from agent_nb.events.event_json import encode_event, event_from
from agent_nb.events.frame import to_frame
from agent_nb.events.log import EventLog
from agent_nb.events.rows import Place

TEXT = str(to_frame([])["text"].dtype)
SHORT = {
    "turn": "int64",
    "type": "category",
    "name": "category",
    "text": TEXT,
    "seconds": "float64",
    "status": "category",
    "duration_s": "float64",
    "fraction": "float64",
    "tokens_in": "float64",
    "tokens_out": "float64",
    "seq": "int64",
    "call_id": TEXT,
    "span": "category",
    "cell": "category",
    "notebook": "category",
    "run": "category",
}
LONG = {
    "ts": "datetime64[ms, UTC]",
    "dt": "timedelta64[ms]",
    "duration": "timedelta64[ms]",
    "cost": "float64",
    "origin": "category",
    "args": "object",
    "payload": "object",
    "parent": "category",
    "path": "category",
    "block": TEXT,
    "batch": TEXT,
    "incomplete": "bool",
    "tokens_cached": "float64",
    "tokens_cache_written": "float64",
    "tokens_reasoning": "float64",
    "ttft": "timedelta64[ms]",
    "ttft_s": "float64",
    "model": "category",
    "extra": "object",
}


@pytest.fixture
def log():
    now = iter(range(1_763_760_000, 1_763_770_000))
    log = EventLog("r1", clock=lambda: next(now))
    call = {"call_id": "c1", "name": "python", "turn": 1}
    for event in (
        e.RunStart(model="m/x", dialect="xml", tools=("python",), settings={"hash": "h"}),
        e.User(content="add up", origin="user"),
        e.Think(content="hm", block="1.1", turn=1, origin="model"),
        e.Call(
            args={"code": "1+1"}, raw_args='{"code": "1+1"}', block="1.2", origin="model", **call
        ),
        e.Approval(call_id="c1", stage="decided", decision="allow", by="click", turn=1),
        e.Started(origin="tool", **call),
        e.Progress(call_id="c1", text="running", turn=1, origin="tool"),
        e.Progress(call_id="c1", fraction=0.5, turn=1, origin="tool"),
        e.Result(content={"value": 2}, duration=0.25, origin="tool", **call),
        e.Metric(
            step=e.Counts(input=10, output=5, ttft=0.5), total=e.Counts(input=10, output=5), turn=1
        ),
        e.Respond(content="Two.", block="2.1", turn=2, origin="model"),
        e.Metric(
            step=e.Counts(input=30, output=6, cost=0.01),
            total=e.Counts(input=40, output=11, cost=0.01),
            turn=2,
        ),
        e.End(status="ok"),
    ):
        log.append(event)
    return log


def test_there_is_one_row_per_event(log):
    frame = to_frame(log)
    assert list(frame["type"]) == [x.type for x in log]
    assert list(frame["seq"]) == list(range(1, 14))


@pytest.mark.parametrize("events", [0, 1, 13])
def test_columns_have_their_types_also_when_empty_or_partial(log, events):
    assert {k: str(v) for k, v in to_frame(log[:events]).dtypes.items()} == SHORT
    assert {k: str(v) for k, v in to_frame(log[:events], "all").dtypes.items()} == SHORT | LONG


@pytest.mark.parametrize("preset", ["events", "calls", "turns", "runs"])
def test_a_short_list_goes_from_the_most_read_columns_to_ids(preset):
    names = [c.name for c in PRESETS[preset]]
    assert names[0] in ("turn", "prompt")
    assert names[-3:] == ["cell", "notebook", "run"]
    assert [c.name for c in EVENTS[:5]] == ["turn", "type", "name", "text", "seconds"]
    assert [c.name for c in PRESETS["all" if preset == "events" else f"all {preset}"]][
        : len(names)
    ] == names


def test_every_column_says_what_it_is():
    assert all(
        len(c.doc) > 5 and c.doc.endswith((".", "…"))
        for columns in PRESETS.values()
        for c in columns
    )


def test_a_name_is_of_one_kind_in_every_list():
    kinds = {(c.name, c.kind) for columns in PRESETS.values() for c in columns}
    assert len(kinds) == len({name for name, _ in kinds})


def test_columns_that_frames_once_had_are_still_in_all(log):
    frame = to_frame(log, "all")
    assert {
        "run",
        "cell",
        "turn",
        "seq",
        "ts",
        "dt",
        "type",
        "duration",
        "fraction",
        "cost",
        "origin",
        "args",
        "payload",
    } <= {*frame}
    assert {"ts", "waited", "duration", "args", "content", "display"} <= {
        *to_frame(log, "all calls")
    }


def test_the_short_lists_have_one_kind_of_missing_value(log):
    for name in ("events", "calls", "turns", "runs"):
        frame = to_frame([*log[:7], *log[10:]], name)  # a call without an end among them
        missing = [v for column in frame for v in frame[column].array if pd.isna(v)]
        assert all(isinstance(v, float) for v in missing), (name, missing)


def test_seconds_stand_beside_the_timedeltas(log):
    frame = to_frame(log, "all")
    assert list(frame["seconds"]) == list(frame["dt"].dt.total_seconds()) == list(range(13))
    assert (
        list(frame["duration_s"].dropna())
        == list(frame["duration"].dropna().dt.total_seconds())
        == [0.25, 0.0, 0.0]
    )
    (call,) = to_frame(log, "all calls").itertuples()
    assert (call.seconds, call.duration_s, call.waited_s) == (3.0, 0.25, 2.0)
    assert list(to_frame(log, "turns")["seconds"]) == [2.0, 10.0]
    assert list(to_frame(log, "turns")["ttft_s"].dropna()) == [0.5]
    assert list(to_frame(log, "runs")["duration_s"]) == [12.0]


def test_an_unknown_time_is_missing():
    frame = to_frame([e.User(run="r", ts=0.0), e.Call(run="r", ts=5.0)])
    assert list(frame["seconds"].isna()) == [True, False]
    assert (
        to_frame([e.User(run="r", ts=0.0), e.Call(run="r", ts=5.0)], "calls")["seconds"]
        .isna()
        .all()
    )


def test_a_time_beyond_all_bounds_is_missing():
    frame = to_frame([e.RunStart(ts=1e308)], "all")
    assert frame["ts"].isna().all()


def test_times_are_utc_and_count_from_the_runs_start(log):
    frame = to_frame(log, "all")
    assert frame["ts"][0] == pd.Timestamp("2025-11-21T21:20:00Z")
    assert frame["dt"][4] == pd.Timedelta(seconds=4)


def test_each_run_counts_from_its_own_start(log):
    other = EventLog.of_events(
        event_from({"type": "user", "run": "r2", "ts": 5000 + n, "seq": n}) for n in (1, 2)
    )
    assert list(to_frame([*log[:1], *other])["seconds"]) == [0, 0, 1]


def test_values_stand_where_their_type_has_them_and_are_missing_elsewhere(log):
    frame = to_frame(log)
    assert list(frame["text"].dropna()) == [
        "add up",
        "hm",
        '{"code": "1+1"}',
        "running",
        '{"value": 2}',
        "Two.",
    ]
    assert list(frame["tokens_in"].dropna()) == [10, 30]
    assert frame["duration_s"][8] == 0.25
    assert frame["name"].isna().sum() == 10
    assert list(frame["status"].dropna()) == ["allow", "ok", "ok"]


def test_nested_values_stay_objects(log):
    frame = to_frame(log, "all")
    assert frame["args"][3] == {"code": "1+1"}
    assert frame["payload"][8] == {"value": 2}


def test_lists_of_lists_stay_single_values():
    frame = to_frame(
        [e.Result(content=[[1, 2], [3, 4]]), e.Result(content=[[5, 6], [7, 8]])], "all"
    )
    assert frame["payload"][1] == [[5, 6], [7, 8]]


def test_an_unknown_type_has_its_own_name():
    assert list(
        to_frame([event_from({"type": "novel"}), e.User(), event_from({"type": "later"})])["type"]
    ) == ["novel", "user", "later"]


def test_columns_are_chosen_by_name(log):
    assert list(to_frame(log, ["ts", "type", "model"]).columns) == ["ts", "type", "model"]
    assert list(to_frame(log, ["model"])["model"].dropna()) == ["m/x"]


def test_a_column_of_ones_own_is_a_row_in_the_list(log):
    column = Column("length", "int", {e.Respond: lambda x: len(x.content)})
    assert list(to_frame(log, [*EVENTS, column])["length"].dropna()) == [4]


def test_an_unknown_column_is_an_error_with_the_nearest_name(log):
    with pytest.raises(UsageError, match="tokens_in"):
        to_frame(log, ["token_in"])
    with pytest.raises(UsageError, match="calls"):
        to_frame(log, "callz")


def test_columns_of_two_tables_do_not_mix(log):
    with pytest.raises(UsageError, match="different tables"):
        to_frame(log, [*CALLS, *TURNS])


def test_calls_have_one_row_each(log):
    frame = to_frame(log, [*CALLS, "waited", "duration", "args", "content"])
    assert len(frame) == 1
    row = frame.iloc[0]
    assert (row["name"], row["status"], row["decision"], row["by"], row["progress"]) == (
        "python",
        "ok",
        "allow",
        "click",
        2,
    )
    assert (row["waited"], row["duration"]) == (pd.Timedelta(seconds=2), pd.Timedelta(seconds=0.25))
    assert (row["args"], row["content"]) == ({"code": "1+1"}, {"value": 2})
    assert (row["arguments"], row["text"]) == ('{"code":"1+1"}', '{"value": 2}')


def test_a_call_that_never_ended_has_a_row_without_an_end(log):
    row = to_frame(log[:5], "calls").iloc[0]
    assert pd.isna(row["status"])
    assert pd.isna(row["duration_s"])


def test_turns_have_one_row_each(log):
    frame = to_frame(log, "turns")
    assert list(frame["turn"]) == [1, 2]
    assert list(frame["calls"]) == [1, 0]
    assert list(frame["text"]) == ["", "Two."]
    assert list(frame["tokens_out"]) == [5, 6]


def test_runs_have_one_row_each(log):
    other = [e.User(seq=1, run="r2", ts=5000.0, content="and?")]
    frame = to_frame([*log, *other], "runs", places={"r1": Place("c1", "a.ipynb")})
    assert list(frame["status"]) == ["ok", "running"]
    assert list(frame["prompt"]) == ["add up", "and?"]
    assert frame["answer"][0] == "Two."
    assert (frame["cell"][0], frame["notebook"][0]) == ("c1", "a.ipynb")
    assert (frame["turns"][0], frame["calls"][0], frame["tokens_in"][0]) == (2, 1, 40)
    assert to_frame(log, "all runs")["tools"][0] == ["python"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_takes_an_empty_log_with_the_types_of_a_full_one(log, name):
    assert list(map(str, to_frame([], name).dtypes)) == list(map(str, to_frame(log, name).dtypes))


def test_places_fill_cell_and_notebook(log):
    frame = to_frame(log, ["cell", "notebook"], places={"r1": Place("c1", "a.ipynb")})
    assert set(frame["cell"]) == {"c1"}
    assert set(frame["notebook"]) == {"a.ipynb"}


@pytest.mark.parametrize("columns", PRESETS)
def test_every_list_says_cell_notebook_and_run(log, columns):
    frame = to_frame(log, columns, places={"r1": Place("c1", "a.ipynb")})
    assert {(r.cell, r.notebook, r.run) for r in frame.itertuples()} == {("c1", "a.ipynb", "r1")}


@pytest.mark.parametrize("columns", PRESETS)
def test_parquet_holds_the_whole_frame_nested_values_as_json(log, columns, tmp_path):
    pytest.importorskip("pyarrow")
    frame = to_frame(
        [
            *log,
            e.Result(content=[1, "x"], seq=14),
            e.Call(args={"code": 5}, seq=15),
            e.Call(args={}, seq=16),
        ],
        columns,
    )
    frame.to_parquet(tmp_path / "x.parquet")
    back = pd.read_parquet(tmp_path / "x.parquet")
    assert list(back.columns) == list(frame.columns)
    assert len(back) == len(frame)
    if "args" in back:
        assert [json.loads(a) for a in back["args"].dropna()] == [
            a for a in frame["args"] if a is not None
        ]


def test_a_filtered_frame_still_goes_to_parquet(log, tmp_path):
    pytest.importorskip("pyarrow")
    frame = to_frame(log)
    frame[frame["type"] == "call"].to_parquet(tmp_path / "x.parquet")
    assert len(pd.read_parquet(tmp_path / "x.parquet")) == 1


def test_an_empty_frame_goes_to_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    to_frame([]).to_parquet(tmp_path / "x.parquet")
    assert list(pd.read_parquet(tmp_path / "x.parquet").columns) == [c.name for c in EVENTS]


def test_arrow_takes_a_frame_as_it_is(log):
    pa = pytest.importorskip("pyarrow")
    assert pa.table(to_frame(log)).num_rows == len(log)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda v: st.lists(v, max_size=3),
)
FIELDS = st.dictionaries(
    st.sampled_from(
        ["content", "args", "ts", "turn", "seq", "run", "duration", "step", "name", "call_id"]
    ),
    JSON,
)


@settings(max_examples=count_examples(40))
@given(st.lists(st.tuples(st.sampled_from([*e.TYPES, "novel"]), FIELDS), max_size=5))
def test_no_foreign_log_raises(objects):
    log = [event_from({"type": t, **f}) for t, f in objects]
    for columns in PRESETS:
        assert len(to_frame(log, columns)) <= len(log)


def test_the_log_and_the_run_give_the_same_frame(log):
    from agent_nb.agent.run import Run

    assert to_frame(log).equals(Run(log).to_frame())
    assert list(log.to_frame(["type"]).columns) == ["type"]


# In a notebook, and in files.


def cells(html):
    """The texts of the cells of an HTML table, row by row, without the index."""
    return [re.findall(r"<td>(.*?)</td>", row) for row in html.split("<tr")[2:]]


def test_a_notebook_shows_empty_cells_whole_counts_and_unwrapped_lines(log):
    html = to_frame(log)._repr_html_()
    assert ".agent-nb-frame td, .agent-nb-frame th { white-space: nowrap; }" in html
    assert 'class="dataframe agent-nb-frame agent-nb-left-2-3-4-6-12-13-14-15-16"' in html
    assert ".agent-nb-left-2-3-4-6-12-13-14-15-16 td:nth-of-type(4), " in html  # the text
    shown = cells(html)
    assert dict(zip(to_frame(log), shown[9], strict=True)) | {"run": ""} == {
        "turn": "1",
        "type": "metric",
        "name": "",
        "text": "",
        "seconds": "9.0",
        "status": "",
        "duration_s": "0.00",
        "fraction": "",
        "tokens_in": "10",
        "tokens_out": "5",
        "seq": "10",
        "call_id": "",
        "span": "",
        "cell": "",
        "notebook": "",
        "run": "",
    }


@pytest.mark.parametrize("columns", PRESETS)
def test_missing_values_are_empty_cells_in_a_notebook(log, columns):
    assert not {text for row in cells(to_frame(log[:5], columns)._repr_html_()) for text in row} & {
        "NaN",
        "NaT",
        "None",
        "&lt;NA&gt;",
    }


def test_a_notebook_shows_the_time_of_a_run_to_the_second(log):
    row = dict(
        zip(to_frame(log, "runs"), cells(to_frame(log, "runs")._repr_html_())[0], strict=True)
    )
    assert row["ts"] == "2025-11-21 21:20:00+00:00"


def test_a_long_frame_is_shown_as_pandas_shows_one(log):
    frame = to_frame([*log] * 10)
    html = frame._repr_html_()
    assert len(cells(html)) == pd.get_option("display.min_rows") + 1
    assert "130 rows × 16 columns" in html
    with pd.option_context("display.notebook_repr_html", False):
        assert frame._repr_html_() is None


def test_what_pandas_makes_of_a_frame_is_shown_too(log):
    frame = to_frame(log, "all")
    means = frame.groupby("turn", observed=True)[["tokens_in", "seconds"]].mean()
    assert "<td>20</td>" in (means * 2)._repr_html_()
    assert "<td>10.5</td>" in (means + 0.5)._repr_html_()
    assert frame.T._repr_html_()
    assert pd.concat([frame, frame], axis=1)._repr_html_()
    assert frame.pivot_table(
        index="turn", columns="type", values="seconds", observed=True
    )._repr_html_()
    assert frame.iloc[:0]._repr_html_()


@pytest.mark.parametrize("columns", PRESETS)
def test_csv_holds_whole_counts_and_nested_values_as_json(log, columns, tmp_path):
    to_frame(log, columns).to_csv(tmp_path / "x.csv", index=False)
    back = pd.read_csv(tmp_path / "x.csv", dtype=str, keep_default_na=False)
    assert "10.0" not in set(back.get("tokens_in", ()))
    assert "10" in set(back.get("tokens_in", ("10",))) or columns.endswith("runs")
    assert [json.loads(v) for v in back.get("args", ()) if v] == [{"code": "1+1"}] * (
        "args" in back
    )


def test_a_mean_of_counts_goes_to_files(log, tmp_path):
    pytest.importorskip("pyarrow")
    means = to_frame(log, "turns")[["turn", "tokens_in"]] / 4
    means.to_parquet(tmp_path / "x.parquet")
    assert list(pd.read_parquet(tmp_path / "x.parquet")["tokens_in"]) == [2.5, 7.5]


@pytest.mark.parametrize("field", ["content", "run", "span"])
def test_half_a_character_of_a_record_is_a_question_mark(field):
    event = event_from({"type": "user", field: "half \ud800"})
    assert b"half ?" in encode_event(event)
    assert "half ?" in to_frame([event]).to_csv()


def test_a_count_beyond_every_integer_type_is_written():
    log = EventLog("r")
    log.append(e.Metric(turn=1, step=e.Counts(input=10**30), total=e.Counts(input=10**30)))
    for columns in ("turns", "runs"):
        frame = log.to_frame(columns)
        assert "1e+30" in frame.to_csv()
        assert "1e+30" in frame._repr_html_().replace("1.000000e+30", "1e+30")
