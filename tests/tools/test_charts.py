"""What a call shows: charts as JSON with a name in the text, pictures of them, tables, widgets."""

import json
import logging
import sys
from types import SimpleNamespace

import pytest
from helpers.pictures import base64_of, png

from agent_nb.tools import chart_notes, charts, figures
from agent_nb.tools.base import Outcome, Pictured
from agent_nb.tools.call_displays import CallDisplays
from agent_nb.tools.capture import OutputCapture
from agent_nb.tools.figures import Figures
from agent_nb.tools.results import convert_result
from agent_nb.wire.chart_safety import PLOTLY, VEGA_LITE
from agent_nb.wire.charts import WIDGET, Attachment

FIGURE = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}


@pytest.fixture(autouse=True)
def nothing_draws(monkeypatch):
    """No package draws charts here, whatever is installed."""
    monkeypatch.setattr(charts, "find_library", lambda name: None)
    monkeypatch.setattr(chart_notes, "find_library", lambda name: None)


@pytest.fixture
def displays():
    """Take displays; `displays.text` is what was written."""
    text: list[str] = []
    made = CallDisplays(text.append)
    made.text = text
    return made


def altair():
    altair = pytest.importorskip("altair")
    return (
        altair.Chart(pytest.importorskip("pandas").DataFrame({"a": [1]})).mark_bar().encode(x="a")
    )


def plotly():
    return pytest.importorskip("plotly.graph_objects").Figure({"data": [{"type": "bar", "y": [1]}]})


@pytest.mark.parametrize(("make", "kind"), [(altair, VEGA_LITE), (plotly, PLOTLY)])
def test_a_chart_that_a_tool_returns_is_kept_as_json_and_named(make, kind):
    outcome = convert_result(make())
    (shown,) = map(Attachment, outcome.attachments)
    assert shown.chart[0] == kind
    assert outcome.display is None
    assert (
        f"\n[figure 1: {shown.chart_name}]\n[no picture of {shown.chart_name}: pip install"
        in outcome.content
    )


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "null"])
def test_a_figure_of_plotly_without_valid_json_is_an_ordinary_value(text):
    broken = {"__module__": "plotly.other", "to_json": lambda self: text}
    assert convert_result(type("Broken", (), broken)()).attachments == ()


def test_what_code_displays_stays_beside_the_pictures_that_it_returns(displays):
    displays.keep({"image/png": base64_of(png()), "text/plain": "p"}, "", update=False)
    for value, count in ((Pictured("two", [png(9, 9)]), 2), (Pictured("one"), 1)):
        assert len(displays.convert_value(value, {}).attachments) == count
    assert len(displays.convert_value(Outcome("ok", "one"), {}).attachments) == 1


def test_html_of_altair_is_replaced_by_its_json(displays):
    bundle = displays.format_value(altair(), {"text/html": "<script>x</script>", "text/plain": "c"})
    assert bundle.keys() == {VEGA_LITE, "text/plain"}
    assert bundle["text/plain"] == "c"


def test_a_displayed_chart_has_its_text_its_name_and_what_to_install(displays):
    assert displays.keep({PLOTLY: FIGURE}, "", update=False) is None
    assert displays.text == [
        """[shown in the cell]
[figure 1: a Plotly chart]
[no picture of a Plotly chart: pip install kaleido makes one]
"""
    ]
    assert displays.all[0]["chart_note"] == "no picture of it: pip install kaleido makes one"


def test_what_draws_a_chart_gives_its_picture_at_the_end(displays, monkeypatch):
    monkeypatch.setattr(chart_notes, "find_library", lambda name: name)
    monkeypatch.setattr(figures, "draw_chart", lambda kind, chart: png(30, 20))
    displays.keep({PLOTLY: FIGURE}, "", update=False)
    assert displays.text == ["[shown in the cell]\n[figure 1: a Plotly chart]\n"]
    outcome = convert_result("done", figures=displays.figures)
    (shown,) = map(Attachment, outcome.attachments)
    assert shown["media_type"] == "image/png"
    assert shown.chart == (PLOTLY, FIGURE)
    assert "chart_note" not in shown


def test_what_a_library_prints_and_logs_while_it_draws_is_dropped(displays, monkeypatch, capsys):
    def draw(chart, **options):
        print("drawing")
        logging.getLogger("fake").error("cannot read a message")
        return png(30, 20)

    monkeypatch.setattr(charts, "find_library", lambda name: name)
    monkeypatch.setitem(sys.modules, "vl_convert", SimpleNamespace(vegalite_to_png=draw))
    displays.keep({VEGA_LITE: {"mark": "bar"}}, "", update=False)
    printed = []
    with OutputCapture(printed.append):
        outcome = convert_result("done", figures=displays.figures)
    assert outcome.attachments[0]["data"]
    assert (printed, capsys.readouterr()) == ([], ("", ""))


def test_a_library_that_cannot_draw_is_named_in_the_result(displays, monkeypatch):
    monkeypatch.setattr(chart_notes, "find_library", lambda name: name)
    displays.keep({PLOTLY: FIGURE}, "", update=False)
    outcome = convert_result("done", figures=displays.figures)
    assert outcome.content == "done\n[no picture of a Plotly chart: kaleido could not draw it]"


def test_a_chart_that_loads_something_is_not_drawn_either(displays, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "draw_chart", lambda kind, chart: drawn.append(kind) or b"")
    displays.keep({VEGA_LITE: {"data": {"url": "https://a.example"}}}, "", update=False)
    assert displays.text == [
        "[an Altair chart is not kept as one: it loads something from an address]\n"
    ]
    assert (drawn, displays.all) == ([], ())


def test_a_huge_chart_is_a_picture_with_a_sentence(displays, monkeypatch):
    monkeypatch.setattr(figures, "draw_chart", lambda kind, chart: png(30, 20))
    displays.keep({PLOTLY: {"data": ["x" * 2_000_000]}}, "", update=False)
    (shown,) = map(Attachment, displays.all)
    assert not shown.display
    assert (
        shown["chart_note"]
        == "a Plotly chart is not kept as one: its JSON has 2.0 MB, at most 2 MB are kept"
    )
    assert displays.text[0].splitlines()[1:] == [
        "[figure 1: 30×20 pixels]",
        f"[{shown['chart_note']}]",
    ]


def test_a_replay_does_not_compare_what_depends_on_packages(displays):
    displays.keep({PLOTLY: FIGURE, "text/plain": "a"}, "", update=False)
    displays.keep({PLOTLY: {"data": ["x" * 2_000_000]}, "text/plain": "b"}, "", update=False)
    assert chart_notes.remove_chart_notes("".join(displays.text)) == "a\n"


@pytest.mark.parametrize(
    "bundle",
    [
        {"application/javascript": "alert()", "text/plain": "x"},
        {"text/html": "<iframe></iframe>", "text/plain": "x"},
        {"application/vnd.other+json": {}, "text/plain": "x"},
        {"application/vnd.bokehjs_exec.v0+json": "", "text/html": "<div></div>", "text/plain": "x"},
    ],
)
def test_what_only_a_script_or_an_extension_shows_stays_in_the_cell(displays, bundle):
    assert displays.keep(bundle, "", update=False) == bundle
    assert displays.text[0].startswith("x\n")
    assert displays.all == ()


def test_a_table_and_a_widget_belong_to_the_call_and_text_is_printed(displays):
    view = {"model_id": "abc", "version_major": 2}
    for bundle in (
        {"text/html": "<table></table>", "text/plain": "t"},
        {WIDGET: view, "text/plain": "IntSlider(value=0)"},
        {"text/plain": "only text"},
    ):
        assert displays.keep(bundle, "", update=False) is None
    assert displays.text == ["t\n", "IntSlider(value=0)\n", "only text\n"]
    table, widget = map(Attachment, displays.all)
    assert table.display["text/html"] == "<table></table>"
    assert widget.model_id == "abc"


def test_an_updated_display_replaces_what_it_showed(displays):
    displays.keep({"text/html": "<b>1</b>"}, "one", update=False)
    displays.keep({"text/html": "<b>2</b>"}, "one", update=True)
    assert [Attachment(one).display["text/html"] for one in displays.all] == ["<b>2</b>"]
    other = {"text/html": "<b>3</b>"}
    assert displays.keep(other, "of the cell", update=True) == other


def test_an_update_that_is_too_large_is_written_and_the_earlier_one_stays(displays, monkeypatch):
    first, large = base64_of(png()), base64_of(png(3, 3))
    displays.keep({"image/png": first}, "one", update=False)
    displays.text.clear()
    monkeypatch.setattr(figures, "fit_size", lambda picture: None)
    displays.keep({"image/png": large}, "one", update=True)
    assert displays.text == [
        "[figure 1: 3×3 pixels; not kept, it is too large; the earlier one stays]\n"
    ]
    assert [Attachment(one)["data"] for one in displays.all] == [first]


def test_an_update_to_text_is_written_and_the_earlier_picture_stays(displays):
    displays.keep({"image/png": base64_of(png())}, "one", update=False)
    displays.text.clear()
    displays.keep({"text/plain": "done"}, "one", update=True)
    assert displays.text == ["done\n"]
    assert len(displays.all) == 1


def test_the_same_chart_counts_once_and_tables_each_time(displays):
    for bundle in ({PLOTLY: FIGURE}, {PLOTLY: json.loads(json.dumps(FIGURE))}):
        displays.keep(bundle, "", update=False)
    for _ in range(2):
        displays.keep({"text/html": "<b>1</b>"}, "", update=False)
    assert len(displays.all) == 3


def test_where_no_card_is_seen_a_display_is_shown_as_well():
    displays = CallDisplays(lambda text: None, through=True)
    bundle = {"text/html": "<b>1</b>"}
    assert displays.keep(bundle, "", update=False) == bundle
    assert len(displays.all) == 1


def test_a_picture_that_is_shown_while_charts_are_drawn_is_kept(monkeypatch):
    """A thread of the call may still display when the call has ended."""
    collected = Figures()
    collected.add_display({VEGA_LITE: {"$schema": "", "data": {"values": []}, "mark": "bar"}})

    def draw_and_show(kind, chart):
        collected.add(Figures.draw(png()))
        return b""

    monkeypatch.setattr(figures, "draw_chart", draw_and_show)
    collected.draw_charts()
    assert len(collected.all) == 2
