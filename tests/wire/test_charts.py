"""What is kept of a display: charts as JSON that loads nothing, tables, never a script."""

import pytest
from helpers.pictures import attached, png

from agent_nb.wire.chart_safety import LARGEST, PLOTLY, VEGA, VEGA_LITE
from agent_nb.wire.charts import Attachment

BARS = {"mark": "bar", "data": {"values": [{"a": 1, "url": "https://a.example"}]}, "encoding": {}}
FIGURE = {"data": [{"type": "bar", "x": [1], "y": [2]}], "layout": {"title": {"text": "http://a"}}}
ADDRESS = "https://stranger.example/seen"


def button(*args):
    """Return a Plotly chart with a button that sets something."""
    buttons = [{"method": "relayout", "args": list(args)}]
    return {"data": [], "layout": {"updatemenus": [{"buttons": buttons}]}}


def titled(text):
    """Return a Plotly chart with a title."""
    return {"data": [], "layout": {"title": {"text": text}}}


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("application/vnd.vegalite.v6.json", VEGA_LITE),
        ("application/vnd.vegalite.v6+json", VEGA_LITE),
        ("application/vnd.vegalite.v5.20.1+json", VEGA_LITE),
        ("application/vnd.vega.v6+json", VEGA),
    ],
)
def test_a_newer_type_of_vega_is_kept_as_one_that_is_drawn(kind, kept):
    assert Attachment.clean_display({kind: BARS, "text/plain": "x"}) == {
        kept: BARS,
        "text/plain": "x",
    }


@pytest.mark.parametrize(
    ("kind", "chart"),
    [
        (VEGA_LITE, {"data": {"url": ADDRESS}, "mark": "bar"}),
        (VEGA_LITE, {"data": {"url": "data/cars.csv"}, "mark": "bar"}),
        (VEGA_LITE, {**BARS, "layer": [{"mark": {"type": "image", "url": ADDRESS}}]}),
        (VEGA_LITE, {**BARS, "mark": "image", "encoding": {"url": {"field": "url"}}}),
        (VEGA, {"data": [{"name": "t", "url": {"signal": "'https://a'"}}]}),
        (VEGA, {"marks": [{"type": "image", "encode": {"enter": {"url": {"value": ADDRESS}}}}]}),
        (PLOTLY, {"data": [], "layout": {"images": [{"source": ADDRESS}]}}),
        (PLOTLY, {"data": [], "layout": {"images": [{"source": " //stranger.example/a.png"}]}}),
        (PLOTLY, {"data": [], "layout": {"images": [{"source": "\x01//stranger.example/a.png"}]}}),
        (PLOTLY, {"data": [], "layout": {"images": [{"source": "ht\ntps://stranger.example"}]}}),
        (PLOTLY, {"data": [], "layout": {"map": {"style": ADDRESS}}}),
        (PLOTLY, {"data": [{"type": "choropleth", "geojson": ADDRESS}], "layout": {}}),
        (PLOTLY, {"data": [], "layout": {"mapbox": {"layers": [{"source": [ADDRESS]}]}}}),
        (PLOTLY, {"data": [], "layout": {"images": [{"source": "/logout"}]}}),
        (PLOTLY, {"data": [], "layout": {"mapbox": {"style": {"sprite": ADDRESS}}}}),
        (
            PLOTLY,
            {"data": [], "layout": {"mapbox": {"style": {"sources": {"a": {"data": ADDRESS}}}}}},
        ),
        (PLOTLY, {"data": [], "frames": [{"layout": {"images[0].source": ADDRESS}}]}),
        (PLOTLY, titled(f'<span style="background:url({ADDRESS})">a</span>')),
        (PLOTLY, titled(f"<a style='mask:&#117;rl&#40;{ADDRESS})'>a</a>")),
        (PLOTLY, titled(rf'<b style="background:u\72l\28{ADDRESS}\29">a</b>')),
        (PLOTLY, {"data": [{"texttemplate": '<i style="%{customdata}">a</i>'}]}),
        (PLOTLY, {"data": [], "layout": {"xaxis": {"tickprefix": '<span style="a:'}}}),
        (PLOTLY, {"data": [{"customdata": [["<a", f" style='background:url({ADDRESS})'>"]]}]}),
        (PLOTLY, button("title.text", f'<sup style="background:url({ADDRESS})">a')),
        (PLOTLY, button({"images[0].source": ADDRESS})),
        (PLOTLY, button("images[0].source", ADDRESS)),
        (PLOTLY, button("visible", True, {"images[0].source": ADDRESS})),
        (VEGA, {"marks": [{"type": "image", "encode": {"values": {"url": {"value": ADDRESS}}}}]}),
        (VEGA, {"marks": [{"type": "image", "encode": {"datasets": {"url": {"value": ADDRESS}}}}]}),
        (VEGA, {"marks": [{"encode": {"update": {"cursor": {"value": f"url({ADDRESS})"}}}}]}),
        (VEGA, {"marks": [{"encode": {"update": {"cursor": {"field": "a"}}}}]}),
        (VEGA, {"marks": [{"encode": {"hover": {"tooltip": {"signal": "{'image': datum.a}"}}}}]}),
        (VEGA, {"marks": [{"encode": {"hover": {"tooltip": {"signal": r"{'im\u0061ge': 1}"}}}}]}),
        (VEGA_LITE, {**BARS, "encoding": {"tooltip": {"field": "a", "title": "image"}}}),
        (
            VEGA_LITE,
            {
                "mark": {"type": "bar", "tooltip": {"content": "data"}},
                "data": {"values": [{"image": ADDRESS}]},
            },
        ),
    ],
)
def test_a_chart_that_loads_from_an_address_is_not_kept(kind, chart):
    assert Attachment.explain_refusal(kind, chart) == "it loads something from an address"
    assert Attachment.clean_display({kind: chart}) == {}


@pytest.mark.parametrize(
    ("kind", "chart"),
    [
        (PLOTLY, {"data": [], "layout": {"__proto__": {"x": 1}}}),
        (PLOTLY, button("a.__proto__.x", 1)),
        (PLOTLY, {"data": [], "frames": [{"layout": {"constructor.prototype.x": 1}}]}),
        (VEGA_LITE, {**BARS, "config": {"__proto__": {"x": 1}}}),
    ],
)
def test_a_chart_that_changes_the_objects_of_the_page_is_not_kept(kind, chart):
    assert Attachment.explain_refusal(kind, chart) == "it would change every object of the page"
    assert Attachment.clean_display({kind: chart}) == {}


@pytest.mark.parametrize(
    "bind",
    [
        {"element": "button.approve", "event": "click"},
        {"input": "image", "src": ADDRESS},
        {"input": "text", "autofocus": True, "onfocus": "alert(1)"},
        {"a": {"input": "text", "style": ["position:fixed"]}},
    ],
)
def test_a_chart_whose_inputs_reach_out_of_it_is_not_kept(bind):
    for kind, chart in (
        (VEGA, {"signals": [{"name": "s", "bind": bind}]}),
        (VEGA_LITE, {**BARS, "params": [{"name": "s", "select": "point", "bind": bind}]}),
    ):
        assert Attachment.explain_refusal(kind, chart) == "its inputs may change the page"
        assert Attachment.clean_display({kind: chart}) == {}


def pick(bind):
    return {**BARS, "params": [{"name": "s", "select": "point", "bind": bind}]}


@pytest.mark.parametrize(
    ("kind", "chart"),
    [
        (VEGA_LITE, pick("scales")),
        (VEGA_LITE, pick({"legend": "dblclick"})),
        (VEGA_LITE, pick({"input": "range", "min": 0, "max": 9, "step": 1, "name": "a: "})),
        (VEGA_LITE, pick({"a": {"input": "select", "options": [1, 2], "labels": ["b", "c"]}})),
        (VEGA_LITE, {**BARS, "mark": {"type": "bar", "tooltip": True, "cursor": "pointer"}}),
        (VEGA, {"marks": [{"encode": {"update": {"cursor": {"value": "pointer"}}}}]}),
        (VEGA_LITE, {"datasets": {"d": [{"url": ADDRESS, "kind": "image"}]}, "mark": "bar"}),
        (PLOTLY, {"data": [], "layout": {"mapbox": {"style": "open-street-map"}}}),
        (PLOTLY, {"data": [{"type": "sankey", "link": {"source": [0], "target": [1]}}]}),
        (PLOTLY, button({"visible": [True, False]})),
        (PLOTLY, titled('<b style="color:rgb(1,2,3)">f(x) < 2</b><br><a href="https://a">b</a>')),
        (PLOTLY, {"data": [{"hovertemplate": "x=%{x}<br>y=%{y}<extra></extra>"}]}),
    ],
)
def test_ordinary_charts_are_kept(kind, chart):
    assert Attachment.clean_display({kind: chart}) == {kind: chart}


def test_addresses_among_the_data_and_inline_pictures_load_nothing():
    inline = {"data": [], "layout": {"images": [{"source": "data:image/png;base64,iVBORw0K"}]}}
    for kind, chart in ((VEGA_LITE, BARS), (PLOTLY, FIGURE), (PLOTLY, inline)):
        assert Attachment.clean_display({kind: chart}) == {kind: chart}


def test_instructions_for_what_embeds_a_chart_are_removed():
    embed = {"embedOptions": {"config": ADDRESS, "loader": {}, "sourceHeader": "<script>"}}
    assert Attachment.clean_display({VEGA_LITE: {**BARS, "usermeta": embed}}) == {VEGA_LITE: BARS}
    config = {"plotlyServerURL": "https://plot.ly", "topojsonURL": ADDRESS, "scrollZoom": True}
    kept = Attachment.clean_display({PLOTLY: {**FIGURE, "config": config}})
    assert kept == {PLOTLY: {**FIGURE, "config": {"scrollZoom": True}}}


@pytest.mark.parametrize("chart", ["<script>", [], None, 7])
def test_what_is_no_object_of_json_is_no_chart(chart):
    assert Attachment.clean_display({PLOTLY: chart}) == {}


def test_a_chart_that_is_nested_without_end_is_not_kept():
    chart: dict = {}
    chart["data"] = chart
    deep: dict = {}
    for _ in range(400):
        deep = {"a": deep}
    for one in (chart, deep):
        assert "not an object of JSON" in Attachment.explain_refusal(VEGA_LITE, one)


def test_a_huge_chart_is_not_kept_and_the_reason_names_its_size():
    chart = {"data": [{"x": ["x" * 1000] * (LARGEST // 1000)}]}
    assert Attachment.explain_refusal(PLOTLY, chart) == "its JSON has 2.0 MB, at most 2 MB are kept"


@pytest.mark.parametrize("html", ["<b>a</b><script>x</script>", '<IFRAME src="a">', "<canvas>"])
def test_html_that_needs_a_script_or_a_frame_is_not_kept(html):
    assert Attachment.clean_display({"text/html": html, "text/plain": "x"}) == {}


def test_a_picture_stays_beside_a_chart_and_alone_beside_html():
    picture = attached(png())
    chart = Attachment.clean({**picture, "display": {PLOTLY: FIGURE}, "other": 1})
    assert chart == {**picture, "display": {PLOTLY: FIGURE}}
    assert Attachment.clean({**picture, "display": {"text/html": "<b>a</b>"}}) == picture


def test_tables_and_widgets_have_no_number_among_the_figures():
    table = {"media_type": "text/html", "data": "", "display": {"text/html": "<table>"}}
    chart = {"media_type": PLOTLY, "data": "", "display": {PLOTLY: FIGURE}}
    listed = [attached(png()), table, chart]
    assert [number for number, _ in Attachment.number_all(listed)] == [1, 0, 2]


@pytest.mark.parametrize(
    "live", [{"model_id": "<b>"}, {"model_id": 7}, "x", {"model_id": "a" * 99}]
)
def test_only_an_id_names_a_widget(live):
    assert Attachment({"live": live}).model_id == ""


@pytest.mark.parametrize("content", [{"a": object()}, {"a": 10**5000}, {"a": {1: {(): 2}}}])
def test_json_that_cannot_be_written_is_not_kept_as_a_display(content):
    assert Attachment.clean({"display": {"application/json": content, "text/plain": "x"}}) is None
