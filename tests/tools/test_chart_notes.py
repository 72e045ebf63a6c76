"""What a result says of a chart without a picture."""

import pytest

from agent_nb.tools import chart_notes
from agent_nb.tools.base import Outcome
from agent_nb.tools.chart_notes import remove_chart_notes, write_display_note
from agent_nb.tools.results import convert_result


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch):
    monkeypatch.setattr(chart_notes, "find_library", lambda name: None)


def plotly():
    return pytest.importorskip("plotly.graph_objects").Figure()


def altair():
    data = pytest.importorskip("pandas").DataFrame({"a": [1]})
    return pytest.importorskip("altair").Chart(data).mark_bar()


def styler():
    pytest.importorskip("jinja2")
    return pytest.importorskip("pandas").DataFrame({"a": [1]}).style


def bokeh():
    return type("figure", (), {"__module__": "bokeh.plotting._figure"})()


CHARTS = {
    plotly: "[no picture of a Plotly chart: pip install kaleido makes one]",
    altair: "[no picture of an Altair chart: pip install vl-convert-python makes one]",
    styler: "[no picture of a styled table: pip install dataframe-image, then ",
    bokeh: "[no picture of a Bokeh chart: pip install selenium, then ",
}


@pytest.mark.parametrize("make", CHARTS)
def test_a_chart_without_a_picture_says_so_and_what_to_install(make):
    *before, last = str(convert_result(make()).content).splitlines()
    assert last.startswith(CHARTS[make])
    assert before


def test_what_is_installed_need_not_be_installed(monkeypatch):
    monkeypatch.setattr(chart_notes, "find_library", lambda name: name)
    assert "pip install" not in convert_result(bokeh()).content


@pytest.mark.parametrize(
    ("bundle", "words"),
    [
        ({"application/vnd.plotly.v1+json": {}}, "a Plotly chart"),
        ({"application/vnd.vegalite.v5+json": {}}, "an Altair chart"),
        ({"application/vnd.bokehjs_exec.v0+json": ""}, "a Bokeh chart"),
        ({"text/plain": "<pandas.io.formats.style.Styler object at 0x7f>"}, "a styled table"),
        ({"text/html": "<p>", "text/plain": "x"}, ""),
        ({1: "<p>", "text/plain": "x"}, ""),
    ],
)
def test_a_displayed_chart_says_so_too(bundle, words):
    assert words in write_display_note(bundle)
    assert bool(words) is bool(write_display_note(bundle))


def test_other_values_say_nothing():
    frame = pytest.importorskip("pandas").DataFrame({"a": [1]})
    for value in (7, "x", None, [1], frame):
        assert "no picture" not in str(convert_result(value).content)


def test_a_replay_compares_results_without_these_words():
    text = convert_result(bokeh()).content
    assert "no picture" not in remove_chart_notes(text)
    assert remove_chart_notes(f"{text}\nafter").endswith("\nafter")
    assert remove_chart_notes({"a": 1}) == {"a": 1}


def test_a_chart_whose_picture_fails_once_is_no_other_result(monkeypatch):
    monkeypatch.setattr(chart_notes, "find_library", lambda name: name)
    failed = f"{Outcome.NOTHING}\n{chart_notes.write_missing_note('a Plotly chart')}"
    assert "kaleido could not draw it" in failed
    printed = "ready\n[figure 1: a Plotly chart]\n"
    texts = [Outcome("ok", text).after(printed).content for text in (Outcome.NOTHING, failed)]
    assert [remove_chart_notes(text) for text in texts] == ["ready\n", "ready\n"]
    assert remove_chart_notes(failed) == Outcome.NOTHING
