"""The result of `agent.eval`: figures that can be printed, displayed, plotted and put in frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import plot, score_frame, summary
from .evaluated import Evaluated

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Evaluation(Evaluated, frozen=True, kw_only=True, eq=False):
    """How well a prompt did over the rows of a table, and how certain that is.

    `mean`, `interval` and `words` are the result. `rows`, `failed`, `failures`, `tokens` and `cost`
    are the counts behind it. `frame` has a row for each row, `answers` one for each answer.
    """

    @property
    def frame(self) -> Any:
        """One row for each row of the data, in its order and kind, with the score beside it."""
        return score_frame.row_frame(self)

    @property
    def answers(self) -> Any:
        """One row for each answer, with its score, its error, its run and its cost."""
        return score_frame.answer_frame(self)

    def to_frame(self) -> Any:
        """Return `frame`."""
        return self.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the scores and their mean with Matplotlib; return the axes.

        Raises MissingExtra without Matplotlib.
        """
        return plot.plot_scores(self, ax)

    def __repr__(self) -> str:
        return f"<Evaluation {summary.evaluation_line(self)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return summary.render_evaluation(self)
