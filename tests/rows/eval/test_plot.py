"""The plots of evaluations and comparisons: what they show, and where they are drawn."""

from __future__ import annotations

import builtins

import pytest
from helpers.evaluations import evaluation

from agent_nb import compare
from agent_nb.errors import MissingExtra
from agent_nb.rows.eval.plot import BETTER, WORSE

SHORT = evaluation([0] * 20 + [1] * 20, name="short")
CAREFUL = evaluation([1] * 18 + [0] * 2 + [1] * 19 + [0], name="careful")


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def drawn(ax):
    """Draw the figure, which reports what does not fit, and return its title."""
    ax.figure.canvas.draw()
    return ax.get_title(loc="left")


def test_the_scores_of_rows_are_bars_with_their_numbers(pyplot):
    ax = SHORT.plot()
    assert drawn(ax) == "short\nmean 0.500, 95 % interval 0.352 to 0.648"
    assert [bar.get_height() for bar in ax.patches] == [20, 20]
    assert ax.get_xlabel() == "score of a row"


def test_many_different_scores_are_a_histogram(pyplot):
    ax = evaluation([n / 100 for n in range(100)]).plot()
    assert drawn(ax).startswith("Scores\nmean 0.495")
    assert sum(bar.get_height() for bar in ax.patches) == 100


def test_rows_that_did_not_change_are_whole_points_at_the_edge_of_the_plot(pyplot):
    a, b = evaluation([0] * 12), evaluation([0] * 6 + [1] * 6)
    ax = compare(a, b).plot()
    (points,) = (
        line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 6
    )
    assert not points.get_clip_on()


def test_the_differences_are_sorted_and_coloured_by_what_they_mean(pyplot):
    from matplotlib.colors import to_hex

    ax = compare(SHORT, CAREFUL).plot()
    assert drawn(ax) == (
        "careful compared with short\nmean difference +0.425, 95 % interval +0.232 to +0.581"
    )
    bars = [
        p for p in ax.patches if p.get_height() and to_hex(p.get_facecolor()) in (BETTER, WORSE)
    ]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [WORSE] + [BETTER] * 18
    assert ax.get_xlabel() == "rows, sorted (1 worse, 21 same, 18 improved)"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "scores", [[], [None, None], [0.5], [1] * 12, [0.25] * 30, [-5.0, 3.0, 1e6] * 30]
)
def test_whatever_was_scored_can_be_drawn(pyplot, scores):
    shown = evaluation(scores, bounded=False)
    drawn(shown.plot())
    drawn(compare(shown, shown).plot())


def test_given_axes_are_used_and_returned(pyplot):
    _, both = pyplot.subplots(1, 2)
    assert SHORT.plot(both[0]) is both[0]
    assert compare(SHORT, CAREFUL).plot(ax=both[1]) is both[1]
    assert len(pyplot.get_fignums()) == 1


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    real = builtins.__import__

    def lacking(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtra, match=r"jupyter-agent-nb\[plots\]"):
        SHORT.plot()


def test_a_name_with_dollar_signs_is_no_formula(pyplot):
    a = evaluation([1, 0] * 6, name=r"$\frac{ for $5")
    b = evaluation([0, 1] * 6, name="a long name " * 20)
    assert drawn(a.plot()).startswith(r"\$\frac{ for \$5")
    assert len(drawn(compare(a, b).plot()).splitlines()[0]) < 100
