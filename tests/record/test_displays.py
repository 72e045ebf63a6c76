"""What people see beside text: equal apart from generated ids, or another."""

import io
import json

import pytest

from agent_nb.record.displays import DisplayPair


def styler(data=(1, 2), colour="yellow"):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    frame = pandas.DataFrame({"a": [1, 2], "b": list(data)})
    return {"text/html": frame.style.highlight_max(color=colour).to_html()}


def altair(mark="bar", height=4):
    alt = pytest.importorskip("altair")
    pandas = pytest.importorskip("pandas")
    chart = alt.Chart(pandas.DataFrame({"a": [1, 2], "b": [3, height]}), mark=mark)
    chart = chart.encode(x="a", y="b").interactive()
    return chart._repr_mimebundle_(None, None), {
        "application/vnd.vegalite.v6+json": chart.to_dict()
    }


def plotly(height=4, name="wood"):
    objects = pytest.importorskip("plotly.graph_objects")
    figure = objects.Figure(objects.Bar(x=[1, 2], y=[3, height], name=name))
    json_kind = {"application/vnd.plotly.v1+json": json.loads(figure.to_json())}
    return {"text/html": figure.to_html(include_plotlyjs="cdn")}, json_kind


def svg(title="p = 0.04", colour="red"):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    axes.plot([1, 2], color=colour, marker="o")
    axes.set_title(title)
    target = io.StringIO()
    figure.savefig(target, format="svg")
    pyplot.close(figure)
    return {"image/svg+xml": target.getvalue()}


# a display, and displays of the same kind that show something else
CASES = {
    "a styled table": (styler, [{"data": (2, 2)}, {"data": (3, 2)}, {"colour": "red"}]),
    "an HTML of Altair": (lambda **c: altair(**c)[0], [{"mark": "line"}, {"height": 5}]),
    "a chart of Altair": (lambda **c: altair(**c)[1], [{"mark": "line"}, {"height": 5}]),
    "an HTML of Plotly": (lambda **c: plotly(**c)[0], [{"height": 5}, {"name": "oak"}]),
    "a chart of Plotly": (lambda **c: plotly(**c)[1], [{"height": 5}, {"name": "oak"}]),
    "an SVG": (svg, [{"title": "p = 0.05"}, {"colour": "blue"}]),
}
CHANGES = [(name, n) for name, (_, changes) in CASES.items() for n in range(len(changes))]


@pytest.mark.parametrize("name", CASES)
def test_a_display_that_is_made_again_is_the_same(name):
    make, _ = CASES[name]
    assert DisplayPair(make(), make()).difference() == ""
    assert DisplayPair(make(), make()).uncompared_kinds() == []


@pytest.mark.parametrize(("name", "number"), CHANGES)
def test_a_display_that_shows_something_else_is_a_difference(name, number):
    make, changes = CASES[name]
    words = DisplayPair(make(), make(**changes[number])).difference()
    assert words.startswith("its ")
    assert " differs: …" in words


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('<p id="a1">x</p>', '<p id="b2">x</p>', True),
        ('<a id="a1"/><a href="#a1">', '<a id="b2"/><a href="#b2">', True),
        ('<a id="a1"/><a id="a2"/><a href="#a1">', '<a id="b1"/><a id="b2"/><a href="#b2">', False),
        ('<p id="one"/>one<p id="two"/>', '<p id="two"/>two<p id="one"/>', False),
        ("<p><!-- made 1 -->x</p>", "<p><!-- made 2 -->x</p>", True),
        ("<svg><metadata>1</metadata></svg>", "<svg><metadata>2</metadata></svg>", True),
        ('<script>f("12345678-1234-1234-1234-123456789abc", 1)</script>',
         '<script>f("87654321-1234-1234-1234-123456789abc", 1)</script>', True),
        ("<b>12345678-1234-1234-1234-123456789abc</b>",
         "<b>87654321-1234-1234-1234-123456789abc</b>", False),
        ("<p" * 10_000, "<p" * 10_001, False),
    ],
)  # fmt: skip
def test_only_ids_that_nobody_sees_are_renamed(old, new, same):
    assert (DisplayPair({"text/html": old}, {"text/html": new}).difference() == "") is same


def test_texts_of_a_display_are_compared_by_the_masks():
    old, new = ({"text/html": f"<p>{n} ms</p>"} for n in (1, 2))
    assert DisplayPair(old, new).difference()
    assert DisplayPair(old, new).difference(lambda one, other: True) == ""


def test_an_output_of_a_file_may_hold_its_text_as_lines():
    assert DisplayPair({"text/html": ["<p>\n", "x"]}, {"text/html": "<p>\nx"}).difference() == ""


def test_a_kind_of_one_side_only_or_an_unknown_one_is_named():
    old = {"text/html": "x", "application/vnd.bokehjs_exec.v0+json": {}, "text/plain": "x"}
    new = {"image/png": "x", "text/latex": "y", "text/plain": "z"}
    assert DisplayPair(old, new).difference() == ""
    assert DisplayPair(old, new).uncompared_kinds() == [
        "text/html",
        "application/vnd.bokehjs_exec.v0+json",
        "text/latex",
    ]


@pytest.mark.parametrize("fresh", [[1, 3], ["ab", "c"], {"a": 1}])
def test_lists_in_json_are_compared_as_json(fresh):
    recorded = ["a", "bc"] if fresh == ["ab", "c"] else [1, 2]
    pair = DisplayPair({"application/json": recorded}, {"application/json": fresh})
    assert pair.difference().startswith("its JSON differs")
    assert DisplayPair(*[{"application/json": recorded}] * 2).difference() == ""


@pytest.mark.parametrize(("recorded", "fresh"), [("1", 1), ("[1]", [1]), ("null", None)])
def test_a_text_in_json_is_not_the_value_that_it_spells(recorded, fresh):
    pair = DisplayPair({"application/json": recorded}, {"application/json": fresh})
    assert pair.difference().startswith("its JSON differs")


def deep_list(levels):
    return [deep_list(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "value",
    [float("nan"), 10**400, deep_list(450)],
    ids=["NaN", "a huge number", "450 levels"],
)
def test_json_without_a_canonical_form_is_compared(value):
    same = DisplayPair(*({"application/json": {"a": value}} for _ in range(2)))
    other = DisplayPair({"application/json": {"a": value}}, {"application/json": {"b": value}})
    assert same.difference() == ""
    assert other.difference().startswith("its JSON differs")


@pytest.mark.few("<!--", "<a")
@pytest.mark.parametrize("opening", ["<!--", "<script ", "<style ", "<metadata ", "<a", "<"])
def test_markup_that_is_never_closed_is_compared_in_linear_time(opening):
    """In quadratic time it would exceed the test's time limit."""
    old, new = ({"text/html": f"{end}{opening * 200_000}"} for end in "ab")
    assert DisplayPair(old, new).difference()
    assert DisplayPair(old, old).difference() == ""


def test_the_beginning_of_a_comment_in_a_script_hides_no_change():
    old, new = ({"text/html": f"<script>a = '<!--'</script><p>{n}</p>"} for n in (5, 6))
    assert DisplayPair(old, new).difference().startswith("its HTML differs")
