"""Deny a question whose card no front end shows any more, and end its run.

Why: the question would wait for ever, and so would the cells queued behind it. Often one of them is
the rerun that removed the card. A question that can be answered elsewhere (over HTTP) does wait.

Rule: the cell ends without an error, or the queued rerun would not start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...events import Event, Result
from ...tools import Decision, Question
from ...view import Views

if TYPE_CHECKING:
    from ...agent import Stream

INTERVAL = 0.25  # s between two looks at the views
UNSEEN = (
    "its question could not be seen any more: the cell was run again, its output was cleared, or "
    "the page was opened anew without it"
)


class UnseenQuestions:
    """Denies questions of one run that no view shows; `views` returns the views of its page."""

    def __init__(self, views: Callable[[], Views]) -> None:
        self._views = views
        self._reachable_elsewhere: Callable[[], bool] = lambda: False
        self._denied: set[str] = set()

    @property
    def views_counted(self) -> bool:
        """Whether front ends count the views of the page."""
        return self._views().counted

    def cancel_after_denial(self, stream: Stream) -> None:
        """Cancel `stream`, which is about to start, when a call denied here has its result."""
        self._reachable_elsewhere = lambda: stream.questions.reachable

        def cancel_run(event: Event) -> None:
            if isinstance(event, Result) and event.call_id in self._denied:
                stream.cancel("user", UNSEEN)

        stream.log.subscribe(cancel_run)

    async def wait_while_visible(
        self, answer: asyncio.Future[Decision | None], question: Question
    ) -> Decision | None:
        """Return the answer, or a denial once no view shows the question."""
        while not (await asyncio.wait([answer], timeout=INTERVAL))[0]:  # [0]: what is done
            if self._views().lost and not self._reachable_elsewhere():
                self._denied.add(question.call_id)
                return Decision(False, reason=UNSEEN)
        return answer.result()
