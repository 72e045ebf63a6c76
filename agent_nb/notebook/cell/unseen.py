"""A question whose card nobody can see any more: it is denied, and its run ends.

Why: it would wait for ever, and what is queued behind its cell with it: a rerun of the cell most of
all, which removes the card.

Rules
- Only where views of the card were counted and are lost for good (`view.views`).
- A question that can be answered elsewhere, such as over HTTP, waits.
- The run is cancelled when the denied call has its result, so that the log says what happened. The
  cell ends without an error, or the queued rerun would not start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...events import Event, Result
from ...tools import ApprovalSource, Decision, Question
from ...view import Views

if TYPE_CHECKING:
    from ...agent import Stream

LOOK = 0.25  # s between two looks at the views
UNSEEN = (
    "its question could not be seen any more: the cell was run again, its output was cleared, or "
    "the page was opened anew without it"
)


class Unseen:
    """Denies the questions of one run that nobody can see. `views` returns those of its page."""

    def __init__(self, views: Callable[[], Views]) -> None:
        self._views = views
        self._elsewhere: Callable[[], bool] = lambda: False
        self._denied: set[str] = set()

    @property
    def counted(self) -> bool:
        """Whether front ends count the views of the page."""
        return self._views().counted

    def end(self, stream: Stream) -> None:
        """End `stream`, which is about to start, once a question of it was denied here."""
        self._elsewhere = lambda: stream.questions.reachable

        def hear(event: Event) -> None:
            if isinstance(event, Result) and event.call_id in self._denied:
                stream.cancel("user", UNSEEN)

        stream.log.subscribe(hear)

    async def denied_or(self, ask: ApprovalSource, question: Question) -> Decision | None:
        """Return the answer that `ask` gets, or a denial once nobody can see the question."""
        asking = asyncio.ensure_future(ask(question))
        try:
            while not (await asyncio.wait([asking], timeout=LOOK))[0]:
                if self._views().lost and not self._elsewhere():
                    self._denied.add(question.call_id)
                    return Decision(False, reason=UNSEEN)
            return asking.result()
        finally:
            asking.cancel()
