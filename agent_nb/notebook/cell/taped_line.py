"""The line below a cell that counts the model calls of other libraries: a live line while the cell
runs, and the final line at its end.

Why: a call of another library shows nothing while it goes on, and costs money.

Rules
- The live line appears where a user watches: not in a test, a headless run, a terminal.
- The live line is drawn a moment after a call begins, by a thread of its own: a call never waits
  for it, and a cell of quick calls never shows it.
- A click opens the line to the cards of the newest calls that have ended; a redraw closes it, so
  it is drawn again only when it says something else.
- The end of the cell empties the live line, since the final line stands below all that the cell
  printed. The save hook and our runner remove the empty output; other programs may save it, and it
  shows nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...agent import Run
from ...record import METADATA_KEY, RunNumbers
from ..identity import Cell
from .frontend import choose_view_kind, is_headless, is_unshown
from .publish import publish_display

_PAUSE = 0.3  # seconds between a call and the line that counts it, and between two lines
_MOST_LIVE_CARDS = 5  # cards of a live line, which are drawn while the cell runs


def describe_calls(
    runs: Sequence[Run], replayed: int, misses: Sequence[str], *, running: int = 0
) -> str:
    """Return one line about the model calls of a cell.

    `replayed`: how many of `runs` were not sent. `running`: how many go on. `misses`: texts on the
    calls without a record.
    """
    from ...models import format_dollars
    from ...view import count_noun, format_count

    models = dict.fromkeys(str(run.log[0].model).partition("/")[2] for run in runs)  # type: ignore[attr-defined]  # a log begins with its start
    sent, written = sum(r.usage.input for r in runs), sum(r.usage.output for r in runs)
    costs = [run.usage.cost for run in runs if run.usage.cost is not None]
    unpriced = any(r.usage.cost is None and (r.usage.input or r.usage.output) for r in runs)
    parts = [
        count_noun(len(runs), "model call"),
        ", ".join(filter(None, models)),
        f"{format_count(sent)} in, {format_count(written)} out" if sent + written else "",
        f"{'at least ' if unpriced else ''}{format_dollars(sum(costs))}" if costs else "",
        "" if not replayed else "replayed" if replayed == len(runs) else f"{replayed} replayed",
        f"{running} running" if running else "",
        f"{len(misses)} without a record" if misses else "",
    ]
    return " · ".join(filter(None, parts))


class LiveLine:
    """The line of one execution while it runs.

    `list_calls` returns the runs of all calls so far, how many of them were replayed, and what the
    record lacked; from any thread. Runs without an end go on.
    """

    def __init__(
        self,
        cell: Cell,
        execution: str,
        list_calls: Callable[[], tuple[Sequence[Run], int, Sequence[str]]],
    ) -> None:
        self._list_calls = list_calls
        self._metadata = {METADATA_KEY: RunNumbers({RunNumbers.LIVE: execution})}
        self._display = {"display_id": f"agent-nb-calls-{execution}"}
        watched = cell.kernel and not is_unshown(cell) and not is_headless(cell)
        self._ended = not watched or choose_view_kind("auto", cell) == "text"
        self._lock = threading.Lock()  # never held while the line is drawn
        self._drawing = threading.Lock()  # held while the line is drawn, so that `end` waits
        self._shown = False
        self._drawn: tuple[str, list[str]] | None = None  # the line, and the runs of its cards
        self._timer: threading.Timer | None = None

    def note_change(self) -> None:
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
                if self._ended:
                    return
            runs, replayed, misses = self._list_calls()
            ended = [run.log for run in runs if run.status != "running"]
            line = describe_calls(runs, replayed, misses, running=len(runs) - len(ended))
            cards = ended[-_MOST_LIVE_CARDS:]
            drawn = line, [log.run for log in cards]
            if drawn != self._drawn:
                self._drawn = drawn
                self._publish(make_folded_bundle(line, cards, misses))

    def _publish(self, bundle: dict[str, Any]) -> None:
        publish_display(bundle, self._metadata, self._display, self._shown)
        self._shown = True
