"""Plots evaluations and comparisons with Matplotlib, which is imported here alone, on first use.

A mean does not show whether all rows changed a little, or a few rows a lot. The figure follows the
user's style, except for four colours that are legible on white and on black.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...errors import MissingExtra
from ...view import clip_text
from .compared import Compared
from .evaluated import Evaluated
from .intervals import Interval
from .summary import format_interval, format_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BETTER, WORSE, SAME = "#2f9e6e", "#d6524a", "#8a8f98"
MAIN = "#3f86d8"  # the mean and its interval
MOST_BARS = 20  # of a histogram; up to this many different scores, each has its own bar
MOST_GAPS = 60  # up to this many differences are drawn with gaps between them
_FIGURE_WIDTH, _FIGURE_HEIGHT = 7.0, 3.4  # inches


def plot_scores(evaluation: Evaluated, ax: Axes | None = None) -> Axes:
    """Draw the rows' scores, and their mean with its interval, on `ax` (None: a new figure)."""
    scores = [row.score for row in evaluation.scored if row.score is not None]
    levels = sorted(set(scores))
    ax = ax if ax is not None else _new_axes()
    if len(levels) <= MOST_BARS:
        _draw_levels(ax, scores, levels)
    else:
        ax.hist(scores, bins=MOST_BARS, color=SAME, alpha=0.55, label="rows")
    if evaluation.bounded:
        ax.set_xlim(-0.2, 1.2)
    ax.set_ylabel("rows")
    repeats = f" (mean of {evaluation.repeats} repeats)" if evaluation.repeats > 1 else ""
    ax.set_xlabel(f"score of a row{repeats}")
    if evaluation.mean is not None:
        top = ax.get_ylim()[1] * 1.12  # above the bars, where the mean is drawn
        ax.set_ylim(0, top * 1.06)
        _draw_mean(ax, evaluation.mean, evaluation.interval, top)
    mean = _describe_mean(evaluation.mean, evaluation.interval)
    _set_title(ax, _escape_name(evaluation.name) or "Scores", mean)
    from matplotlib.ticker import MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def plot_differences(comparison: Compared, ax: Axes | None = None) -> Axes:
    """Draw the rows' differences, sorted, and their mean, on `ax` (None: a new figure)."""
    differences = sorted(p.difference for p in comparison.pairs if p.difference is not None)
    ax = ax if ax is not None else _new_axes()
    positions = range(len(differences))
    ax.bar(
        positions,
        differences,
        color=[WORSE if d < 0 else BETTER for d in differences],
        width=0.8 if len(differences) <= MOST_GAPS else 1.0,
    )
    ax.axhline(0, color=SAME, linewidth=1)
    unchanged = [position for position in positions if not differences[position]]
    size = 4 if len(differences) <= MOST_GAPS else 2
    ax.plot(unchanged, [0.0] * len(unchanged), "o", color=SAME, markersize=size, clip_on=False)
    if comparison.difference is not None:
        _draw_mean_difference(ax, comparison.difference, comparison.interval, len(differences))
    a, b = map(_escape_name, comparison.names)
    counts = (f"{comparison.changes[name]:,} {name}" for name in ("worse", "same", "improved"))
    ax.set_ylabel(f"score of {b} − {a}")
    ax.set_xlabel(f"rows, sorted ({', '.join(counts)})")
    ax.set_xticks([])
    mean = _describe_mean(comparison.difference, comparison.interval, signed=True)
    _set_title(ax, f"{b} compared with {a}", mean)
    return ax


def _draw_mean_difference(ax: Axes, mean: float, interval: Interval | None, rows: int) -> None:
    """Draw a mean difference and its interval right of the rows, and as a band behind them."""
    x = rows * 1.06 + 0.5
    if interval is not None:
        ax.axhspan(interval.low, interval.high, color=MAIN, alpha=0.14, linewidth=0, zorder=0)
        ax.plot([x, x], [interval.low, interval.high], color=MAIN, linewidth=3)
    ax.plot([x], [mean], "o", color=MAIN, markersize=8)
    ax.set_xlim(-1, x + rows * 0.06 + 0.5)


def _draw_levels(ax: Axes, scores: Sequence[float], levels: Sequence[float]) -> None:
    """Draw a bar for each of a few scores, with the number of rows on it."""
    counts = [scores.count(level) for level in levels]
    score_range = (levels[-1] - levels[0] if levels else 0.0) or 1.0  # of equal scores: 1
    gaps = [after - before for before, after in pairwise(levels)]
    width = min(0.8 * min(gaps, default=score_range), 0.25 * score_range)
    bars = ax.bar(levels, counts, width=width, color=SAME, alpha=0.55)
    ax.bar_label(bars, labels=[f"{count:,}" for count in counts], padding=2, fontsize="small")
    if len(levels) <= MOST_BARS // 2:
        ax.set_xticks(levels)


def _draw_mean(ax: Axes, mean: float, interval: Interval | None, height: float) -> None:
    """Draw a mean as a point with its interval, above the rows."""
    if interval is not None:
        ax.plot([interval.low, interval.high], [height, height], color=MAIN, linewidth=3)
    ax.plot([mean], [height], "o", color=MAIN, markersize=8)
    ax.axvline(mean, color=MAIN, linewidth=1, linestyle=":")


def _describe_mean(mean: float | None, interval: Interval | None, *, signed: bool = False) -> str:
    text = f"{'mean difference' if signed else 'mean'} {format_score(mean, signed=signed)}"
    if interval is None:
        return f"{text}, no interval"
    return f"{text}, {interval.level * 100:g} % interval {format_interval(interval, signed=signed)}"


def _escape_name(name: str) -> str:
    """Return a name, clipped, with escaped dollar signs: Matplotlib reads formulas between them."""
    return clip_text(name, 40).replace("$", r"\$")


def _set_title(ax: Axes, title: str, below: str) -> None:
    ax.set_title(f"{title}\n{below}", loc="left", fontsize="medium")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _new_axes() -> Axes:
    """Return the axes of a new figure. Raises MissingExtra without Matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra("Matplotlib", "pip install 'jupyter-agent-nb[plots]'") from None
    figure: Any = pyplot.subplots(figsize=(_FIGURE_WIDTH, _FIGURE_HEIGHT), layout="constrained")
    axes: Axes = figure[1]
    return axes
