"""The line below a cell that counts the model calls of other libraries, live and at its end.

Why: a call of another library shows nothing while it goes on, and costs money.

Rules
- A thread of its own draws the live line, so that a call never waits for it.
- A redraw closes the line if the user has opened it, so it is drawn again only when it says
  something else.
- The end of the cell empties the live line; the final one stands below all that the cell printed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ...agent import Run
from ...record import METADATA_KEY, RunNumbers
from ..identity import Cell
from .frontend import choose_view_kind, is_headless, is_unshown
from .publish import is_captured, publish_display

_PAUSE = 0.3  # seconds between a call and the line that counts it, and between two lines
_MOST_LIVE_CARDS = 5  # cards of a live line, which are drawn while the cell runs


class CountedCalls(msgspec.Struct, frozen=True):
    """The `runs` of a cell's model calls; those without an end go on.

    `replayed`: how many were not sent. `misses`: why further calls have no record.
    """

    runs: Sequence[Run]
    replayed: int
    misses: Sequence[str]

    def describe(self) -> str:
        """Return a line like `2 model calls · gpt-5 · 812 in, 96 out · $0.002 · 1 running`."""
        from ...models import format_dollars
        from ...view import count_noun, format_count

        runs, usages = self.runs, [run.usage for run in self.runs]
        models = dict.fromkeys(str(run.log[0].model).partition("/")[2] for run in runs)  # type: ignore[attr-defined]  # a log begins with its start
        sent, written = sum(u.input for u in usages), sum(u.output for u in usages)
        costs = [usage.cost for usage in usages if usage.cost is not None]
        # calls without a price make the sum a lower bound
        at_least = any(u.cost is None and (u.input or u.output) for u in usages)
        running = sum(run.status == "running" for run in runs)
        parts = [count_noun(len(runs), "model call"), ", ".join(filter(None, models))]
        if sent + written:
            parts.append(f"{format_count(sent)} in, {format_count(written)} out")
        if costs:
            parts.append(f"{'at least ' if at_least else ''}{format_dollars(sum(costs))}")
        if self.replayed:
            some = "" if self.replayed == len(runs) else f"{self.replayed} "
            parts.append(f"{some}replayed")
        parts.append(f"{running} running" if running else "")
        parts.append(f"{len(self.misses)} not from a record" if self.misses else "")
        return " · ".join(filter(None, parts))


class LiveLine:
    """The line of one execution while it runs; `count_calls` counts all so far, from any thread.

    It appears where a user watches: not in a test, a headless run or a terminal.
    """

    def __init__(self, cell: Cell, execution: str, count_calls: Callable[[], CountedCalls]) -> None:
        self._count_calls = count_calls
        self._metadata = {METADATA_KEY: RunNumbers({RunNumbers.LIVE: execution})}
        self._display = {"display_id": f"agent-nb-calls-{execution}"}
        watched = cell.kernel and not is_unshown(cell) and not is_headless(cell)
        # where no user watches, the line has ended before it begins
        self._ended = not watched or choose_view_kind("auto", cell) == "text"
        self._lock = threading.Lock()  # never held while the line is drawn
        self._drawing = threading.Lock()  # held while the line is drawn, so that `end` waits
        self._shown = False
        self._drawn: tuple[str, list[str]] | None = None  # the line, and the runs of its cards
        self._timer: threading.Timer | None = None

    def redraw_soon(self) -> None:
        """Draw the line soon: a call has begun or ended. From any thread."""
        with self._lock:
            if self._timer is None and not self._ended:
                self._timer = threading.Timer(_PAUSE, self._draw)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """Empty the line; later changes are not drawn."""
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
        with self._drawing:
            if self._shown:
                self._publish({})
            self._shown = False

    def _draw(self) -> None:
        from ...view import make_folded_bundle

        with self._drawing:
            with self._lock:
                self._timer = None  # what changes from here on is drawn by the next timer
                if self._ended or is_captured():
                    return
            calls = self._count_calls()
            ended = [run.log for run in calls.runs if run.status != "running"]
            line, cards = calls.describe(), ended[-_MOST_LIVE_CARDS:]
            drawn = line, [log.run for log in cards]
            if drawn != self._drawn:
                self._drawn = drawn
                self._publish(make_folded_bundle(line, cards, calls.misses))

    def _publish(self, bundle: dict[str, Any]) -> None:
        publish_display(bundle, self._metadata, self._display, self._shown)
        self._shown = True
