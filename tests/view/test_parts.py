"""A page is divided at its charts; each part is an output, and folds keep pictures."""

import msgspec
import pytest
from helpers.pictures import attached, png

from agent_nb import events as e
from agent_nb.record.packing import Packer, home_at
from agent_nb.view import nodes
from agent_nb.view.bundle import make_bundle, make_parts
from agent_nb.view.draw.markdown import row as draw_row
from agent_nb.wire.chart_safety import PLOTLY
from agent_nb.wire.charts import WIDGET

FIGURE = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}
CHART = {
    "media_type": PLOTLY,
    "data": "",
    "display": {PLOTLY: FIGURE},
    "chart_note": "no picture of it: pip install kaleido makes one",
}
DRAWN = {**attached(png()), "display": {PLOTLY: FIGURE}}


def call(name, *attachments, span="", **fields):
    """Return the events of a call that shows these."""
    where = {"span": span} if span else {}
    return [
        e.Call(call_id=name, name="draw", args={"code": "x = 1\n" * 3}, **where),
        e.Execute(calls=(name,), **where),
        e.Started(call_id=name, name="draw", **where),
        e.Result(
            call_id=name, name="draw", content=name, attachments=attachments, **where, **fields
        ),
    ]


def run(*parts):
    log = [e.RunStart(model="m"), e.User(content="go")]
    for part in parts:
        log += [e.Respond(content=part)] if isinstance(part, str) else part
    return [*log, e.Respond(content="The end."), e.End(status="ok")]


def shows(parts):
    """Return each part as the kinds of a chart, or its plain text."""
    return [PLOTLY if PLOTLY in part else part["text/plain"] for part in parts]


def test_a_page_without_charts_is_one_part():
    log = run(call("a", attached(png())))
    assert make_parts(log) == [make_bundle(log)]


def test_a_chart_stands_between_the_parts_of_the_page():
    before, chart, after = shows(make_parts(run("First.", call("a", CHART))))
    assert "First." in before
    assert "draw" in before
    assert chart == PLOTLY
    assert "The end." in after


def test_charts_of_one_call_and_of_parallel_calls_stand_in_order():
    both = [*call("a", CHART, DRAWN)[:1], *call("b", DRAWN)[:1], e.Execute(calls=("a", "b"))]
    both += [*call("a", CHART, DRAWN)[2:], *call("b", DRAWN)[2:]]
    kinds = shows(make_parts(run(both)))
    assert [kind == PLOTLY for kind in kinds] == [False, True, True, False, True, False]


def test_a_chart_has_its_picture_or_a_sentence_beside_its_json():
    _, without, _, drawn, _ = make_parts(run(call("a", CHART), "Then.", call("b", DRAWN)))
    assert without.keys() == {PLOTLY, "text/plain"}
    assert without["text/plain"] == (
        "figure 1 of draw: a Plotly chart; no picture of it: pip install kaleido makes one"
    )
    assert drawn["image/png"] == DRAWN["data"]


def test_a_chart_of_a_sub_agent_stands_below_its_call():
    inner = call("c/a", CHART, span="c")
    log = run([*call("c")[:3], *inner, call("c", DRAWN)[3]])
    kinds = shows(make_parts(log))
    assert [kind == PLOTLY for kind in kinds].count(True) == 2


def test_a_page_in_the_place_of_another_has_no_more_parts():
    log = run(call("a", CHART), "Then.", call("b", DRAWN))
    assert len(make_parts(log)) == 5
    parts = make_parts(log, most=3)
    assert len(parts) == 3
    assert "The end." in parts[-1]["text/plain"]
    assert DRAWN["data"] in parts[-1]["text/html"]  # as a picture
    assert make_parts(log, most=1) == [make_bundle(log)]


def test_a_widget_is_drawn_in_its_kernel_and_has_forms_without_it():
    table = {"text/html": "<b>bins</b>", "text/plain": "IntSlider"}
    widget = {"media_type": "text/html", "data": "", "display": table, "live": {"model_id": "abc"}}
    _, shown, _ = make_parts(run(call("a", widget)))
    assert shown[WIDGET]["model_id"] == "abc"
    assert "bins" in shown["text/html"]
    recorded = Packer(home_at("")).pack_picture(widget)
    assert "live" not in recorded
    assert len(make_parts(run(call("a", recorded)))) == 1


def test_a_forged_chart_is_not_drawn():
    forged = {
        **CHART,
        "display": {PLOTLY: {"layout": {"images": [{"source": "https://a.example"}]}}},
    }
    (page,) = make_parts(run(call("a", forged)))
    assert "a.example" not in str(page)


def test_a_table_that_is_displayed_stands_in_the_open_and_is_sanitised():
    html = "<table><tr><td onclick='x()'>7</td></tr></table>"
    table = {"media_type": "text/html", "data": "", "display": {"text/html": html}}
    page = make_bundle(run(call("a", table)))["text/html"]
    assert "<td>7</td>" in page
    assert page.index("</details>") < page.index("<td>7")


def test_the_last_value_of_code_stands_in_the_open_as_in_any_cell():
    shown = {"text/html": "<b>seven</b>", "text/plain": "seven"}
    log = run(call("a", display=shown))
    for name, before in (("python", True), ("draw", False)):
        events = [msgspec.structs.replace(x, name=name) if hasattr(x, "name") else x for x in log]
        page = make_bundle(events)["text/html"]
        call_page = page[page.index("<details") : page.index("The end.")]
        assert (call_page.rindex("</details>") < call_page.index("seven")) is before


def test_the_text_of_a_chart_is_not_shown_beside_the_chart():
    code = "Figure({\n    'data': [{'x': (1, 2)}]\n})\n[figure 1: a Plotly chart]"
    log = run(call("a", CHART))
    log[-3] = msgspec.structs.replace(log[-3], content=code)
    assert "Figure(" not in str(shows(make_parts(log)))
    log[-3] = msgspec.structs.replace(log[-3], attachments=())
    assert "Figure(" in str(shows(make_parts(log)))


@pytest.mark.parametrize(
    ("text", "markdown"),
    [("1. x", "1\\. x"), ("12) x", "12\\) x"), ("- x", "\\- x"), ("-x", "-x"), ("2026", "2026")],
)
def test_a_row_that_looks_like_a_list_is_a_paragraph_in_markdown(text, markdown):
    assert draw_row(nodes.Row((nodes.T(text),))) == [markdown]
