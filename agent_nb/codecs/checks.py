"""Checks that writers share: count the values that a format cannot carry in fields that it has.

Why apart from the encoder: the encoder counts whole fields. Only a writer knows, for example, that
its format distinguishes no more than two statuses of a result.
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

    `text`: the format's name for content that has to be text; "" if it takes any JSON value.
    """
    if event.status not in statuses:
        losses.add("result.status", why)
    if text and not isinstance(event.content, str):
        losses.add("result.content", f"{text} is text: the value is written as JSON text")


def check_step(losses: Losses, event: Metric, *, all_tokens: bool = False) -> None:
    """Count as lost the figures of a step that a format with token counts alone cannot hold.

    `all_tokens`: the format also holds tokens of thoughts, and tokens written to a cache.
    """
    step = event.step
    uncounted = not all_tokens and (step.reasoning or step.cache_written)
    if uncounted or step.duration or step.ttft is not None or step.cost is not None:
        counted = " of input, output and those read from a cache" if not all_tokens else ""
        losses.add("metric.step", f"only tokens{counted} are counted here")


def is_question(losses: Losses, event: Approval, word: str) -> bool:
    """Return whether an approval event is the question; count an answer as lost.

    `word`: the format's name for its units (an event, a frame), for the reason of the loss.
    """
    if event.stage == "requested":
        return True
    if not event.decision:  # an answer with a decision was counted by the encoder
        losses.add("approval.decision", f"only the question has {word}")
    return False


def is_nested(losses: Losses, event: Event, why: str) -> bool:
    """Return whether an event belongs to a sub-agent; if so, count it as lost for reason `why`."""
    if event.span:
        losses.add(f"nested {event.type}", why)
    return bool(event.span)


class LastError:
    """Keeps the newest error of a run for formats in which an error ends the run.

    An error that did not end the run counts as lost.
    """

    def __init__(self, losses: Losses, why: str) -> None:
        self._losses, self._why = losses, why
        self._error: Error | None = None

    def add(self, error: Error) -> None:
        """Keep an error; the previous one did not end the run and is lost."""
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
