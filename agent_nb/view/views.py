"""Whether anyone can see a live page: its views (renderings) as front ends count them.

Why: a question whose card cannot be seen would wait for ever. A front end drops a card without a
message: the cell runs again, its output is cleared, or the browser page is reloaded.

Rules
- A browser page that opens may replace another or join it, and one that closes sends nothing. So
  each opening starts the count at 0, and the page has `OPENING` seconds to show the card.
- A moved cell loses its view for a moment, so only a loss of `GONE` seconds counts. After the move,
  its output area ignores updates of its display (JupyterLab 4.6): `shown_again`.
- Front ends report views on several threads, so every method takes the lock.
"""

from __future__ import annotations

import threading
from typing import Literal

GONE = 3.0  # s without a view before the page is shown again
SHOWN = 3.0  # s for a page that was shown again to be counted
OPENING = 30.0  # s for a browser page that opens to show the card
#: What to do: nothing, update the display that is there, or open the page in a new display.
Act = Literal["", "redraw", "display"]
#: What to do while no view is counted: steps of (seconds to wait, the act after them). After the
#: last step the page is lost.
Schedule = tuple[tuple[float, Act], ...]
MISSED: Schedule = ((GONE, "display"), (SHOWN, ""))  # the views fell to 0
OPENED: Schedule = ((OPENING, "redraw"), (SHOWN, "display"), (SHOWN, ""))  # a browser page opened


class Views:
    """The views of one live page. Before a first view is counted, the page is not lost.

    - `counted`: a view was counted at least once.
    - `lost`: no view is left, and showing the page again failed, until a view or a page comes.
    - `shown_again`: the front end made a new view by itself: a browser page was opened, or the cell
      was moved.
    """

    def __init__(self) -> None:
        self.counted = self.lost = self.shown_again = False
        self._number = 0
        self._since = 0.0  # when the first step of `_schedule` began to wait
        self._schedule: Schedule = ()  # () while there is a view
        self._opening = False  # a browser page opened, and no count came since
        self._lock = threading.Lock()

    def count(self, number: int, now: float) -> None:
        """Take the number of views that a front end reports at the time `now`, in seconds.

        After a browser page opened, the number may be below 1, because it leaves out the views of
        earlier pages. If it rises, there is a view all the same.
        """
        with self._lock:
            has_view = number > 0 or (self.counted and number > self._number)
            # a browser page that opened and reports no view does not get the time of `OPENING`
            waits_already = bool(self._schedule) and not self._opening
            self._number, self._opening = number, False
            if has_view:
                # the first step of `MISSED` is still due: the front end made this view, not `act`
                self.shown_again = self.shown_again or self._schedule == MISSED
                self.counted, self.lost, self._schedule = True, False, ()
            elif self.counted and not self.lost and not waits_already:
                self._since, self._schedule = now, MISSED

    def opened(self, now: float) -> None:
        """Note that a browser page opens: from now on views are counted from 0."""
        with self._lock:
            self._number = 0
            if self.counted:
                self.shown_again = True
                self.lost, self._opening, self._since = False, True, now
                self._schedule = OPENED

    def act(self, now: float) -> Act:
        """Return the act that is due at the time `now`; each call takes at most one step."""
        with self._lock:
            if not self._schedule or now - self._since < self._schedule[0][0]:
                return ""
            (_, act), *later_steps = self._schedule
            self._since, self._schedule = now, tuple(later_steps)
            self.lost = not later_steps
            return act
