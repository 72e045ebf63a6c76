"""The displays beside the card of an agent cell, in the file and in a replay."""

import io

import pytest
from helpers.pictures import attached, base64_of, png

from agent_nb.runner.shown_pictures import describe_differences

RUN = {"run": "r1", "ran": 1, "calls": 1}
PICTURE = {"image/png": attached(png())["data"]}
CHART = {"application/vnd.plotly.v1+json": {"data": [{"y": [1]}]}}
OTHER = {"application/vnd.plotly.v1+json": {"data": [{"y": [2]}]}}


def differences(before, now):
    """Return how a cell whose displays are `now` differs from one with `before`."""
    card = {"output_type": "display_data", "data": {}, "metadata": {"agent_nb": {"run": "r1"}}}
    cells = (
        {"outputs": [card, {"output_type": "display_data", "data": data, "metadata": {}}]}
        for data in (before, now)
    )
    return list(describe_differences(*cells, RUN))


@pytest.mark.parametrize("pair", [(CHART, CHART | PICTURE), (CHART | PICTURE, CHART)])
def test_a_chart_with_a_picture_on_one_side_only_is_the_same(pair):
    assert differences(*pair) == []


@pytest.mark.parametrize("picture", [{}, PICTURE])
def test_another_chart_differs_with_and_without_a_picture(picture):
    (difference,) = differences(CHART | PICTURE, OTHER | picture)
    assert difference.startswith("display 1: its plotly chart differs")


def test_a_chart_that_became_a_picture_differs():
    assert differences(CHART, PICTURE) == [
        "it shows 1 picture, and the recording 0",
        "it shows 0 displays, and the recording 1",
    ]


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_a_lone_picture_of_any_kind_that_is_shown_is_compared(kind):
    pillow = pytest.importorskip("PIL.Image")
    displays = []
    for colour in ("red", "blue"):
        target = io.BytesIO()
        pillow.new("RGB", (9, 9), colour).save(target, kind)
        displays.append({f"image/{kind}": base64_of(target.getvalue())})
    assert differences(displays[0], displays[0]) == []
    assert differences(*displays) == ["picture 1: 100.0% of its pixels differ"]
