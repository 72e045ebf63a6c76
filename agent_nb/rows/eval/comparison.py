"""`compare(a, b)`: does one prompt score higher than another over the same rows?

The intervals of two means may overlap although the differences by row clearly favour one prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from . import plot, score_frame, summary
from .compared import Compared, changed_pairs
from .evaluation import Evaluation
from .intervals import check_level
from .pairing import pair_rows
from .statistic import summarize_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Comparison(Compared, frozen=True, kw_only=True, eq=False):
    """How much higher `b` scores than `a` over the same rows, and how certain that is.

    `difference`, `interval`, `words` and `verdict` are the result. `changes` counts the rows by
    change. `cost` and `tokens` are differences too. `frame` holds all rows, `changed` those that
    got better or worse.
    """

    @property
    def changed(self) -> Any:
        """The frame of the rows that improved or got worse, the largest change first."""
        return score_frame.pair_frame(self, changed_pairs(self.pairs))

    @property
    def frame(self) -> Any:
        """One row for each row of a, in the kind of its data, with both scores and the change."""
        return score_frame.pair_frame(self, self.pairs)

    def to_frame(self) -> Any:
        """Return `frame`."""
        return self.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the differences by row, and their mean, with Matplotlib; return the axes.

        Raises MissingExtra without Matplotlib.
        """
        return plot.plot_differences(self, ax)

    def __repr__(self) -> str:
        return f"<Comparison {summary.comparison_line(self)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return summary.render_comparison(self)


def compare(
    a: Evaluation,
    b: Evaluation,
    *,
    on: str | Sequence[str] | None = None,
    level: float | None = None,
) -> Comparison:
    """Return the comparison of `b` with `a` over the same rows, paired by row; no model is asked.

    `on`: the columns that identify a row (default: all). `level`: the confidence level of the
    interval, between 0 and 1 (default: the level of `a`). Raises UsageError if the two are not
    evaluations of the same rows.
    """
    for side, evaluation in (("a", a), ("b", b)):
        if not isinstance(evaluation, Evaluation):
            raise UsageError(
                f"compare takes two evaluations; {side} is a {type(evaluation).__name__}. Write compare(await agent.eval(…), await other.eval(…))."
            )
    pairs = pair_rows(a, b, (on,) if isinstance(on, str) else on)
    scores = [(p.a.score, p.b.score) for p in pairs]
    complete = [(x, y) for x, y in scores if x is not None and y is not None]
    statistic = summarize_pairs(
        [score_a for score_a, _ in complete],
        [score_b for _, score_b in complete],
        # 1 keeps repeats out of the description; `notes` names them if the two sides differ
        repeats=a.repeats if a.repeats == b.repeats else 1,
        level=check_level(a.level if level is None else level),
        bounded=a.bounded and b.bounded,
    )
    return Comparison(a=a, b=b, names=_choose_names(a, b), pairs=tuple(pairs), statistic=statistic)


def _choose_names(a: Evaluation, b: Evaluation) -> tuple[str, str]:
    """Return the names of the evaluations if they differ, else ("a", "b")."""
    if a.name and b.name and a.name != b.name:
        return a.name, b.name
    return "a", "b"
