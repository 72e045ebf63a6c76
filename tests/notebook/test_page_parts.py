"""The outputs of a page that is divided at charts: new ones, and those of a page in its place."""

import pytest

from agent_nb import events as e
from agent_nb.notebook.cell import display as module
from agent_nb.notebook.cell.display import EMPTY_OUTPUT, Display
from agent_nb.notebook.identity import Cell
from agent_nb.notebook.options import Options
from agent_nb.wire.chart_safety import PLOTLY

FIGURE = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}
CHART = {"media_type": PLOTLY, "data": "", "display": {PLOTLY: FIGURE}}


@pytest.fixture
def outputs(monkeypatch):
    """What is published, as a front end keeps it: display id -> (bundle, our metadata)."""
    shown = {}

    def publish(data, metadata, transient, update):
        name = transient["display_id"]
        assert update == (name in shown), name
        shown[name] = (data, metadata.get("agent_nb", {}))

    monkeypatch.setattr(module, "publish_display", publish)
    monkeypatch.setattr(module, "_output_counts", {})
    return shown


def log(charts, run="r1"):
    """Return the events of a run with so many charts."""
    events = [e.RunStart(run=run, model="m"), e.User(run=run, content="go")]
    for name in map(str, range(charts)):
        events += [
            e.Call(run=run, call_id=name, name="draw"),
            e.Execute(run=run, calls=(name,)),
            e.Result(run=run, call_id=name, name="draw", attachments=(CHART,)),
            e.Respond(run=run, content=f"After {name}."),
        ]
    return [*events, e.End(run=run, status="ok")]


def close(charts, run="r1", replaces=""):
    """Leave the page of a run with so many charts; return its display."""
    display = Display(Cell(key="k", kernel=True), Options(view="html"), replaces=replaces)
    display.close(log(charts, run), {}, {"run": run, "recorded": True})
    return display


def kinds(outputs):
    """Return what each output is: a chart, nothing, or a part of the page."""
    bundles = [bundle for bundle, _ in outputs.values()]
    return ["chart" if PLOTLY in b else "" if b == EMPTY_OUTPUT else "page" for b in bundles]


def test_each_part_is_an_output_with_the_id_of_its_run(outputs):
    close(2)
    assert kinds(outputs) == ["page", "chart", "page", "chart", "page"]
    numbers = [ours for _, ours in outputs.values()]
    assert [n.get("run") or n["part"] for n in numbers] == ["r1"] * 5


def test_a_page_that_is_shown_twice_is_whole_both_times(outputs):
    close(1)
    close(1)
    assert kinds(outputs) == ["page", "chart", "page"] * 2


@pytest.mark.parametrize(
    ("charts", "left"),
    [
        (0, ["page", "", "", "", ""]),
        (1, ["page", "chart", "page", "", ""]),
        (2, ["page", "chart", "page", "chart", "page"]),
        (3, ["page", "chart", "page", "chart", "page"]),  # the last one has the third as a picture
    ],
)
def test_a_page_in_the_place_of_another_takes_its_outputs(outputs, charts, left):
    first = close(2)
    second = close(charts, "r2", replaces=first.id)
    assert kinds(outputs) == left
    assert {ours.get("run") or ours["part"] for _, ours in outputs.values()} == {"r2"}
    close(2, "r3", replaces=second.id)
    assert kinds(outputs) == ["page", "chart", "page", "chart", "page"]


def test_charts_in_the_place_of_one_output_stay_pictures(outputs):
    outputs["d1"] = ({}, {})
    close(2, replaces="d1")
    assert kinds(outputs) == ["page"]
