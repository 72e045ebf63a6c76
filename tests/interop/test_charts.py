"""Charts of Plotly and Altair become pictures with the packages that draw them."""

import shutil

import pytest
from helpers.jupyter_server import BROWSERS

from agent_nb.tools.results import convert_result
from agent_nb.wire.charts import Attachment

pytestmark = pytest.mark.extra


def is_drawn(chart):
    """Return whether a chart that a tool returns has a picture beside its JSON, and no excuse."""
    outcome = convert_result(chart)
    (shown,) = map(Attachment, outcome.attachments)
    return (
        shown["media_type"] == "image/png"
        and shown.chart_name
        and "no picture" not in outcome.content
    )


def test_vl_convert_draws_a_chart_of_altair():
    altair = pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    frame = pytest.importorskip("pandas").DataFrame({"a": [1, 2], "b": [3, 4]})
    assert is_drawn(altair.Chart(frame).mark_bar().encode(x="a", y="b"))


@pytest.mark.timeout(120)
def test_kaleido_draws_a_chart_of_plotly(monkeypatch):
    plotly = pytest.importorskip("plotly.graph_objects")
    pytest.importorskip("kaleido")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("kaleido needs Chrome")
    monkeypatch.setenv("BROWSER_PATH", browser)
    assert is_drawn(plotly.Figure({"data": [{"type": "bar", "y": [1, 2]}]}))
