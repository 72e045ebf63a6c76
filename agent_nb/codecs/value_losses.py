"""Counts losses inside a field: a format has the field, but not every value of it.

The encoder counts whole fields. Only a writer knows, for example, that its format distinguishes two
statuses of a result.
"""

from __future__ import annotations

from typing import Any

from ..events import Approval, End, Error, Metric, Result
from .losses import Losses


def count_result_losses(
    losses: Losses,
    event: Result,
    *,
    statuses: tuple[str, ...] = ("ok", "error"),
    why: str = "only ok and error are distinguished",
    content_name: str = "a result",
) -> None:
    """Count a status outside `statuses` (reason `why`), and content that becomes JSON text.

    `content_name`: the format's name for content that has to be text; "" if it takes any value.
    """
    if event.status not in statuses:
        losses.add("result.status", why)
    if content_name and not isinstance(event.content, str):
        losses.add("result.content", f"{content_name} is text: the value is written as JSON text")


def count_step_losses(losses: Losses, event: Metric, *, all_tokens: bool = False) -> None:
    """Count as lost the figures of a step that a format with token counts alone cannot hold.

    `all_tokens`: the format also holds tokens of thoughts, and tokens written to a cache.
    """
    step = event.step
    has_more = bool(step.duration) or step.ttft is not None or step.cost is not None
    if all_tokens and has_more:
        losses.add("metric.step", "only tokens are counted here")
    elif not all_tokens and (has_more or step.reasoning or step.cache_written):
        reason = "only tokens of input, output and those read from a cache are counted here"
        losses.add("metric.step", reason)


def count_answer_loss(losses: Losses, answer: Approval, unit: str) -> None:
    """Count the answer to an approval as lost, for a format that holds only the question.

    `unit`: what the format calls its lines, with an article ("an event", "a frame").
    """
    if not answer.decision:  # the encoder has counted an answer with a decision
        losses.add("approval.decision", f"only the question has {unit}")


class LastError:
    """The newest error of a run, for formats in which an error ends the run.

    An error that did not end the run counts as lost, for the reason `why`.
    """

    def __init__(self, losses: Losses, why: str = "") -> None:
        self._losses = losses
        self._why = why or "an error is terminal here; this one did not end the run"
        self._error: Error | None = None

    def add(self, error: Error) -> list[Any]:
        """Hold an error, return no objects; the previous one did not end the run and is lost."""
        self.count_as_lost()
        self._error = error
        return []

    def take_last(self) -> Error | None:
        """Return the error that ended the run, and forget it."""
        error, self._error = self._error, None
        return error

    def take_cause(self, end: End) -> Error:
        """Return the error that ended the run, else one made from its end; forget it."""
        return self.take_last() or Error(message=end.finish_reason or "the run failed")

    def count_as_lost(self) -> None:
        """Count the newest error as lost: the run went on, or its end never came."""
        if self.take_last() is not None:
            self._losses.add("error", self._why)
