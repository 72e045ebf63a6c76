"""Checks that writers share: count the losses inside a field that a format carries.

The encoder counts the fields and events that it does not carry at all.
"""

from __future__ import annotations

from ..events import Approval, Error, Event, Metric, Result
from .losses import Losses

TWO_STATUSES = "only ok and error are distinguished"


def check_result(
    losses: Losses,
    event: Result,
    *,
    statuses: tuple[str, ...] = ("ok", "error"),
    why: str = TWO_STATUSES,
    text: str = "a result",
) -> None:
    """Count a status outside `statuses` (reason `why`), and content that becomes JSON text.

    `text`: what the format calls such content, where it has to be a text; "" where any JSON fits.
    """
    if event.status not in statuses:
        losses.add("result.status", why)
    if text and not isinstance(event.content, str):
        losses.add("result.content", f"{text} is text: the value is written as JSON text")


def check_step(losses: Losses, event: Metric, *, all_tokens: bool = False) -> None:
    """Count the counts of a step that a format with token counts only cannot hold.

    `all_tokens`: the format also counts thoughts, and tokens written to a cache.
    """
    step = event.step
    uncounted = not all_tokens and (step.reasoning or step.cache_written)
    if uncounted or step.duration or step.ttft is not None or step.cost is not None:
        some = " of input, output and those read from a cache" if not all_tokens else ""
        losses.add("metric.step", f"only tokens{some} are counted here")


def is_question(losses: Losses, event: Approval, word: str) -> bool:
    """Return whether an approval is a question. An answer is counted as lost.

    `word`: what the format calls its units, for the reason of the loss.
    """
    if event.stage == "requested":
        return True
    if not event.decision:  # the encoder has counted one with a decision
        losses.add("approval.decision", f"only the question has {word}")
    return False


def is_nested(losses: Losses, event: Event, why: str) -> bool:
    """Return whether an event is of a sub-agent; count it as lost then. `why`: the reason."""
    if event.span:
        losses.add(f"nested {event.type}", why)
    return bool(event.span)


class LastError:
    """The newest error of a run, in formats whose errors are terminal; count the others."""

    def __init__(self, losses: Losses, why: str) -> None:
        self._losses, self._why = losses, why
        self._error: Error | None = None

    def add(self, error: Error) -> None:
        """Take an error; the one before did not end the run."""
        self.drop()
        self._error = error

    def take(self) -> Error | None:
        """Return the error that ended the run."""
        error, self._error = self._error, None
        return error

    def drop(self) -> None:
        """Count the newest error as lost: the run went on, or its end never came."""
        if self.take() is not None:
            self._losses.add("error", self._why)
