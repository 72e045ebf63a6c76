"""The frames of events in other people's libraries, as they are: polars, pyarrow, plotly, altair,
spreadsheets.
"""

import importlib
import os

import pandas as pd
import pytest

from agent_nb import events as e
from agent_nb.events.columns import PRESETS
from agent_nb.events.frame import to_frame
from agent_nb.events.rows import Place

pytestmark = pytest.mark.extra
SHORT = ("events", "calls", "turns", "runs")
HOSTILE = '=HYPERLINK("http://x.test")\x1b[31m red\x00 \x0b' + "x" * 40_000


def library(name):
    """Import a library; in CI its absence is a failure."""
    if os.environ.get("CI") == "true":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is missing: pip install '.[interop]'")


@pytest.fixture(scope="module")
def events():
    """Events of two runs whose nested values have all kinds of shapes; one call never ended, one
    text is hostile.
    """
    call = {"turn": 1, "origin": "model", "run": "r1"}
    return [
        e.RunStart(
            run="r1",
            seq=1,
            ts=1_763_760_000.0,
            model="m/x",
            tools=("a", "b"),
            settings={"hash": "h"},
        ),
        e.User(
            run="r1",
            seq=2,
            ts=1_763_760_000.1,
            content="go",
            attachments=({"media_type": "image/png", "data": ""},),
        ),
        e.Call(
            seq=3,
            ts=1_763_760_001.0,
            call_id="c1",
            name="a",
            args={"x": 1},
            raw_args='{"x": 1}',
            **call,
        ),
        e.Call(
            seq=4,
            ts=1_763_760_001.1,
            call_id="c2",
            name="b",
            args={"x": "text", "y": [1, {"z": None}]},
            **call,
        ),
        e.Progress(seq=5, ts=1_763_760_001.5, run="r1", turn=1, call_id="c1", fraction=0.5),
        e.Result(
            seq=6,
            ts=1_763_760_002.0,
            run="r1",
            turn=1,
            call_id="c1",
            name="a",
            content=[1, "x", {"k": [2]}],
            duration=0.75,
        ),
        e.Respond(seq=7, ts=1_763_760_003.0, run="r1", turn=2, content=HOSTILE),
        e.Metric(
            seq=8,
            ts=1_763_760_003.0,
            run="r1",
            turn=2,
            step=e.Counts(input=10, output=5),
            total=e.Counts(input=10, output=5),
        ),
        e.End(seq=9, ts=1_763_760_003.5, run="r1", status="ok"),
        e.User(run="r2", seq=1, ts=1_763_770_000.0, content="and?"),
    ]


@pytest.fixture(params=SHORT)
def frame(request, events):
    """A frame of each table."""
    return to_frame(events, request.param, places={"r1": Place("c1", "a.ipynb")})


def test_polars_takes_a_frame(frame):
    table = library("polars").from_pandas(frame)
    assert table.columns == list(frame.columns)
    assert [table[c].null_count() for c in table.columns] == [
        int(frame[c].isna().sum()) for c in frame.columns
    ]


def test_arrow_takes_a_frame_by_every_way(frame):
    arrow = library("pyarrow")
    assert arrow.Table.from_pandas(frame).column_names[: len(frame.columns)] == list(frame.columns)
    assert arrow.table(frame).num_rows == len(frame)


def test_plotly_draws_a_frame(events):
    express = library("plotly.express")
    frame = to_frame(events)
    chart = express.scatter(
        frame,
        x="seconds",
        y="tokens_in",
        color="name",
        symbol="type",
        hover_data=list(frame.columns),
    )
    assert chart.to_json()
    assert express.bar(
        to_frame(events, "calls"), x="duration_s", y="name", color="status", text="arguments"
    ).to_json()
    assert express.line(to_frame(events, "runs"), x="ts", y="tokens_in", color="model").to_json()


def test_altair_draws_a_frame(frame):
    altair = library("altair")
    y = next(c for c in ("seconds", "duration_s") if c in frame)
    chart = (
        altair.Chart(frame)
        .mark_point()
        .encode(x=f"{y}:Q", y=f"{frame.columns[0]}:N", tooltip=list(frame.columns))
    )
    assert chart.to_dict()["datasets"]


@pytest.mark.parametrize("columns", PRESETS)
def test_a_spreadsheet_holds_a_frame_and_no_formula(events, tmp_path, columns):
    openpyxl = library("openpyxl")
    frame = to_frame(events, columns, places={"r1": Place("c1", "a.ipynb")})
    frame.to_excel(tmp_path / "x.xlsx", index=False)
    back = pd.read_excel(tmp_path / "x.xlsx")
    assert list(back.columns) == list(frame.columns)
    assert len(back) == len(frame)
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "x.xlsx").active for cell in row]
    assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
    if "answer" in back:
        assert back["answer"][0].startswith("'=HYPERLINK")
        assert back["ts"][0] == pd.Timestamp("2025-11-21 21:20:00")
    if "args" in back:
        assert '{"x":1}' in set(back["args"])


def test_names_of_rows_and_columns_are_no_formulas_in_a_spreadsheet(events, tmp_path):
    openpyxl = library("openpyxl")
    frame = to_frame(events)[["type", "seq"]].head(2)
    frame = frame.set_index(pd.Index(["=1+1", "b"], name="row")).rename(columns={"seq": "=2+2"})
    frame.to_excel(tmp_path / "x.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "x.xlsx").active for cell in row]
    assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
    assert {"'=1+1", "'=2+2"} <= {cell.value for cell in cells}
