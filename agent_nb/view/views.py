"""Whether anyone can see a live page: its views, as front ends count them.

Why: a question whose card is gone would wait for ever. A front end drops a card without a word to
its run: the cell runs again, its output is cleared, or the page is reloaded.

Rules
- Counts and times go in, what to do comes out: no widget, no clock.
- Where no view was ever counted, nothing is known, and nothing is ever lost.
- A page that opens replaces another or joins it, and a page that closes sends nothing: counting
  starts again at 0, and the new page has `OPENING` seconds to show the card.
- A moved cell loses its view for a moment; only a loss of `GONE` seconds counts. From then on its
  output area does not hear what takes the place of a display (JupyterLab 4.6), so it is noted.
- Front ends report views on several threads.
"""

from __future__ import annotations

import threading
from typing import Literal

GONE = 3.0  # s without a view before the page is shown again
SHOWN = 3.0  # s for a page that was shown again to be counted
OPENING = 30.0  # s for a page that opens to show the card
#: What to do: draw the page again where it stands, or display it anew.
Act = Literal["", "redraw", "display"]
Plan = tuple[tuple[float, Act], ...]  # what to do without a view, each after so many seconds
MISSED: Plan = ((GONE, "display"), (SHOWN, ""))


class Views:
    """The views of one live page. `counted`: there was one; `lost`: there is none, for good.

    A page that is lost is found again if a view appears after all. `shown_again`: the front end
    made a new view of the page by itself, after a page was opened or the cell was moved.
    """

    def __init__(self) -> None:
        self.counted = self.lost = self.shown_again = False
        self._number = 0
        self._since = 0.0
        self._plan: Plan = ()
        self._opening = False
        self._lock = threading.Lock()

    def count(self, number: int, now: float) -> None:
        """Take the number of views that a front end reports at the time `now`, in seconds.

        Below 1 it still counts as seen when it rises: a page that was open before shows it.
        """
        with self._lock:
            seen = number > 0 or (self.counted and number > self._number)
            self._number = number
            if seen:
                self.shown_again = self.shown_again or self._plan == MISSED
                self.counted, self.lost, self._plan = True, False, ()
            elif self.counted and not self.lost and (self._opening or not self._plan):
                self._since, self._plan = now, MISSED
            self._opening = False

    def opened(self, now: float) -> None:
        """Note that a page opens: from now on views are counted from 0."""
        with self._lock:
            self._number = 0
            if self.counted:
                self.shown_again = True
                self.lost, self._opening, self._since = False, True, now
                self._plan = ((OPENING, "redraw"), (SHOWN, "display"), (SHOWN, ""))

    def act(self, now: float) -> Act:
        """Return what to do at the time `now`, at most one thing a call."""
        with self._lock:
            if not self._plan or now - self._since < self._plan[0][0]:
                return ""
            (_, act), *rest = self._plan
            self._since, self._plan = now, tuple(rest)
            self.lost = not rest
            return act
