"""When to paint: one thread folds the events of a log and paints a few times a second.

Why: a model and ten tools send thousands of events a second; a front end draws a few dozen frames,
and Jupyter's server drops messages above 1000 a second, including the record.

Rules
- A fold takes only the events present when it begins: a flood neither piles up nor prevents a
  paint.
- Painting takes a quarter of the time at most, and all renderers of the process share one rate of
  messages. Events in `URGENT` wait for neither, unless nobody watches (`seen=False`).
- An exception of the painter never reaches the log or the run.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Protocol

from msgspec import structs

from ..events import Approval, Delta, End, Error, Event, Interrupt
from .state.fold import TEXTS, RunView

HERTZ, UNSEEN = 10.0, 1.0  # most paints a second, watched and not
MESSAGES = 180.0  # most messages a second, by all renderers together
DUTY = 4.0  # a paint of 1 ms is followed by 3 ms of rest at least
FRAME = 0.02  # seconds between checks of a view that waits for events (`follow`)
PATIENCE = 3  # failed paints in a row after which a painter is not called any more
# events that are painted at once
URGENT = (Approval, Error, Interrupt, End)


class Source(Protocol):
    """The log of a run, or a part of it, as a renderer sees it."""

    @property
    def run(self) -> str:
        """The id of the run."""

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Call `subscriber` with every event so far and each new one; return its detacher."""


class Painter(Protocol):
    """Shows a view. If it has a true attribute `moving`, it is called without new events too."""

    def restart(self) -> None:
        """Start over: from now on `paint` shows another view, which begins like the last one."""

    def paint(self, view: RunView, now: float | None) -> int:
        """Show `view` as it is at `now` (epoch seconds; None: the run has ended).

        Returns the number of messages sent.
        """


class Budget:
    """A shared rate of messages."""

    def __init__(self, rate: float = MESSAGES) -> None:
        self._rate = rate
        self._free = 0.0  # time at which all messages so far are within the rate
        self._lock = threading.Lock()

    def spend(self, messages: int, now: float) -> float:
        """Return the seconds until all messages so far are within the rate."""
        with self._lock:
            self._free = max(self._free, now) + messages / self._rate
            return self._free - now


SHARED = Budget()  # of all renderers of the process


# what the deltas of one text have in common
_text_of = attrgetter("block", "of", "span", "name", "run")


class JoinedDeltas:
    """Consecutive deltas of one text, folded as one delta with the time of the first."""

    def __init__(self, first: Delta) -> None:
        self._first = first
        self._texts = [first.text]

    def take(self, event: Event) -> bool:
        """Add an event if it is a delta that continues the text; return whether it is."""
        if type(event) is not Delta or _text_of(event) != _text_of(self._first):
            return False
        self._texts.append(event.text)
        return True

    @property
    def delta(self) -> Delta:
        """All deltas taken so far, as one."""
        return structs.replace(self._first, text="".join(self._texts))


class Renderer:
    """Paints a growing log. `step` does all the work; `start` runs it on a thread.

    `view`: what is painted (None: a new view). `hz`: most paints a second. `seen`: whether anyone
    watches; if not, there is a paint a second. `clock`: monotonic seconds. `wall`: epoch seconds.
    `fault`: the last exception of the painter.
    """

    def __init__(
        self,
        log: Source,
        painter: Painter,
        *,
        view: RunView | None = None,
        hz: float = HERTZ,
        seen: bool = True,
        budget: Budget = SHARED,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.view = view or RunView()
        self.fault: Exception | None = None
        self._painter = painter
        self._log = log
        self._frame = 1 / (hz if seen else UNSEEN)
        self._seen = seen
        self._budget = budget
        self._clock, self._wall = clock, wall
        # what to fold next; a view in it (`follow`) takes the place of `self.view`
        self._pending: list[Event | RunView | JoinedDeltas] = []
        self._lock = threading.Lock()  # guards `_pending`
        self._fewest_events = 0  # that a view must have before it is painted,
        self._fewest_until = 0.0  # but not after this time
        self._wake = threading.Event()  # set: the thread has something to do
        self._over = threading.Event()  # set by `stop`
        self._dirty = False  # the view changed since the last paint
        self._urgent = False  # the next paint does not wait for its frame
        self._painting = False
        # when a view may be painted that has new events, and when one that only its clock changes
        # (an unwatched run that ends within a second is painted only once, at its end)
        self._next_frame = self._next_tick = 0.0 if seen else clock() + self._frame
        self._failures = 0  # failed paints in a row
        self._thread: threading.Thread | None = None
        self._detach: Callable[[], None] | None = None

    @property
    def caught_up(self) -> bool:
        """Whether everything so far is painted, or painting has ended."""
        return self._over.is_set() or not (self._pending or self._dirty or self._painting)

    def subscribe(self) -> None:
        """Subscribe to the log, once: the events so far, then each new one."""
        if self._detach is None:
            self._detach = self._log.subscribe(self.push)

    def begin(self) -> float | None:
        """Subscribe and fold the events so far.

        Returns the epoch seconds at which to paint them, or None if the run has ended or not begun.
        """
        self.subscribe()
        self._fold()
        return self._wall() if self.view.status == "running" else None

    def push(self, event: Event) -> None:
        """Take an event from the log; the renderer's thread folds it."""
        with self._lock:
            last = self._pending[-1] if self._pending else None
            if not (type(last) is JoinedDeltas and last.take(event)):
                self._pending.append(
                    JoinedDeltas(event) if type(event) is Delta and event.of in TEXTS else event
                )
        if not self._wake.is_set():  # setting takes a lock, and there are many events
            self._wake.set()

    def follow(self, log: Source, view: RunView, events: int = 0) -> None:
        """Show another log from now on, in the new `view`.

        The old picture stays until the new view has `events` events, but a second at most: a run
        that repeats the old one then seems to continue it.
        """
        if self._detach is not None:
            self._detach()
            self._detach = None
        self._fewest_events, self._fewest_until = events, self._clock() + 1.0
        with self._lock:
            self._pending.append(view)
        self._log = log
        self.subscribe()

    def nudge(self) -> None:
        """Paint although no event came, because a button was pressed: at once if it is seen."""
        self._dirty = True
        self._urgent = self._urgent or self._seen
        self._wake.set()

    def start(self) -> None:
        """Subscribe, and paint on a new thread until `stop`, in a copy of the caller's context."""
        self.subscribe()
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="agent_nb view", daemon=True
        )
        self._thread.start()

    def stop(self, *, patience: float = 2.0, paint: bool = True) -> None:
        """Detach from the log, end the thread and paint the last state, unless `paint` is False.

        Waits at most `patience` seconds for a paint under way; if it goes on, paints no more.
        """
        if self._detach is not None:
            self._detach()
        self._over.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(patience)
            if self._thread.is_alive():
                return
        self._fold()
        if paint:
            self._paint(self._clock())

    def step(self) -> float:
        """Fold the events that came; paint if the view or its clock changed and a frame is due.

        Returns the seconds to wait for the next step if no event comes: until the next paint is
        due, or at most 1.
        """
        now = self._clock()
        self._fold()
        if self.view.events < self._fewest_events and now < self._fewest_until:
            return FRAME
        clock_moved = self.view.running and now >= self._next_tick
        if not (self._dirty or clock_moved):
            return self._until_tick(now)
        if now < self._next_frame and not self._urgent:
            return self._next_frame - now
        self._paint(now)
        return self._until_tick(self._clock())

    def _run(self) -> None:
        """Paint until `stop`: the body of the thread."""
        while not self._over.is_set():
            wait = self.step()
            self._wake.wait(wait)
            self._wake.clear()
            self._fold_until(self._next_frame)

    def _fold_until(self, end: float) -> None:
        """Fold events up to a time, so that none pile up; an urgent one ends the wait."""
        while (left := end - self._clock()) > 0 and not self._urgent and not self._over.is_set():
            self._fold()
            self._over.wait(min(left, 0.01))

    def _fold(self) -> None:
        """Fold the events present now: with later ones, a flood would never let a paint begin."""
        with self._lock:
            # only ever set here: a press on another thread may set it at the same time
            if self._pending:
                self._dirty = True
            items, self._pending = self._pending, []
        for item in items:
            if isinstance(item, RunView):
                self.view = item
                self._call_painter(self._painter.restart)
            else:
                self.view.apply(item.delta if isinstance(item, JoinedDeltas) else item)
                # not when it is pushed: a paint that does not contain it would clear the flag
                if self._seen and isinstance(item, URGENT):
                    self._urgent = True

    def _paint(self, now: float) -> None:
        """Paint, and set when to paint next."""
        self._painting = True
        # before the paint: an event that comes during it must cause another one
        self._dirty = self._urgent = False
        wall = self._wall() if self.view.running else None
        sent = self._call_painter(lambda: self._send(wall))
        self._painting = False
        after = self._clock()
        self._next_tick = now + 1.0
        self._next_frame = max(  # the frame, the time that painting may take, the rate of messages
            now + self._frame,
            after + (DUTY - 1) * (after - now),
            after + self._budget.spend(sent, after),
        )

    def _send(self, wall: float | None) -> int:
        """Paint; return the number of messages. A painter that moves is called again."""
        sent = self._painter.paint(self.view, wall)
        if wall is not None and getattr(self._painter, "moving", False):
            self._dirty = True
        self._failures = 0
        return sent

    def _call_painter(self, call: Callable[[], int | None]) -> int:
        """Call the painter unless it is given up; return the messages it sent, 1 if it failed."""
        if self._failures >= PATIENCE:
            return 0
        try:
            return call() or 0
        except Exception as fault:
            self.fault = fault
            self._failures += 1
            return 1

    def _until_tick(self, now: float) -> float:
        """Return the seconds until the clock of a running view changes; 1 if the run has ended."""
        return max(0.0, min(1.0, self._next_tick - now)) if self.view.running else 1.0
