"""Painters that show a view in a display of the front end: as widgets, or as a static page.

Why two: a front end without widgets can only replace the whole page, at the cost of its size. A
page may outlive its kernel: where it says that the run goes on, it also says what to do if the
kernel is gone (`Recovery`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .bundle import page_forms
from .cards.base import Context, Thoughts
from .display import Publish, widget
from .draw import html
from .folds import SETTLED
from .layout import Layout
from .nodes import Field, Page, Row, T
from .presses import Actions, Presses
from .saved_page import Recovery, add_advice
from .state.fold import RunView
from .views import Views

if TYPE_CHECKING:
    from .widgets import Board

PAGE_PER_MESSAGE = 4_000  # characters of a published page that count as one message


class DisplayPainter(ABC):
    """A `Painter` that fills a display of the front end."""

    #: Whether the static bundle at the end replaces all that was painted: no last paint is needed.
    replaced: bool

    def __init__(self, thoughts: Thoughts, above: str) -> None:
        self._thoughts: Thoughts = thoughts
        self._above = above  # the text of the cell above the page (see `Context`)
        self._recovery = Recovery("")  # of no run, until `open`
        self._layout = Layout()
        #: The views of the page that front ends count; of a static page they count none.
        self.views = Views()

    @abstractmethod
    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Return the bundle that opens the display with `view` at `now` (see `Painter.paint`)."""

    def follow(self, recovery: Recovery) -> dict[str, Any]:
        """Name the run that is shown from now on; return the bundle to publish, {} for none."""
        self._recovery = recovery
        return {}

    @abstractmethod
    def paint(self, view: RunView, now: float | None) -> int:
        """Show the view (see `Painter.paint`)."""

    def folds(self, *, by_reader: bool) -> dict[str, tuple[bool, float]]:
        """Return which cards are open (see `Context.folds`), or only the choices of the reader.

        A static page does not report these.
        """
        return {} if by_reader else dict(self._layout.folds.states)

    @property
    def moving(self) -> bool:
        """Whether the next paint changes the page, also without an event."""
        return self._layout.folds.moving

    def restart(self) -> None:
        """Start over with another view."""
        self._layout = Layout()

    def leave(self) -> None:  # noqa: B027  (a page of HTML needs nothing)
        """Prepare for the static bundle that will replace the display."""

    def close(self) -> None:  # noqa: B027
        """Release the widgets, if the painter has any."""


class WidgetPainter(DisplayPainter):
    """Paints a view as widgets; its constructor makes the first of them.

    - `nudge` asks the renderer for a paint after a press.
    - `show(bundle, metadata, update)` publishes the page again when no front end shows it any more:
      in its own display (`update`), or in a new one.
    """

    replaced = False  # the widgets may stay (see `close`)

    def __init__(
        self,
        actions: Actions,
        thoughts: Thoughts,
        can_click: Callable[[], bool],
        nudge: Callable[[], None] = lambda: None,
        *,
        above: str = "",
        show: Callable[[dict[str, Any], dict[str, Any], bool], None] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from .widgets import Board

        super().__init__(thoughts, above)
        self.presses = Presses(actions, self._typed, nudge)
        self.board: Board = Board(self.presses.press, self)
        self._show = show
        self._clock = clock
        self._can_click = can_click

    def _typed(self, about: str) -> list[tuple[Field, Any]]:
        return self.board.typed(about)

    def count(self, number: int) -> None:
        """Take the number of views that a front end reports (`widgets.root.Watch`)."""
        self.views.count(number, self._clock())

    def opened(self) -> None:
        """Note that a browser page opens (`widgets.root.Watch`)."""
        self.views.opened(self._clock())

    def context(self, now: float | None, *, recorded: bool = False) -> Context:
        """Return how the cards of a run are drawn now; `recorded`: the run is past."""
        presses = self.presses
        return Context(
            now=now,
            live=True,
            thoughts=self._thoughts,
            above=self._above,
            can_click=self._can_click(),
            pressed=frozenset(presses.pressed),
            opened=dict(presses.opened),
            schemas=dict(presses.schemas),
            faults=dict(presses.faults),
            lasting=presses.lasting,
            inserting=presses.inserting and not recorded,
            chosen=presses.chosen,
            folds=dict(presses.folds),
        )

    def restart(self) -> None:
        """Start over with another view, of which no button is pressed yet."""
        super().restart()
        self.presses.restart()

    def paint(self, view: RunView, now: float | None) -> int:
        """Show the view; return the number of messages it took."""
        self.board.beat(now)
        sent = self.board.draw(self._layout.page(view, self.context(now, recorded=view.recorded)))
        if now is not None and (act := self.views.act(self._clock())):
            self._show(self._bundle(view), self._recovery.metadata, act == "redraw")
        return sent

    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Paint the view; return the bundle of the widget and of its static forms."""
        self._recovery = recovery
        self.paint(view, now)
        return self._bundle(view)

    def follow(self, recovery: Recovery) -> dict[str, Any]:
        """Return the bundle of the widget, with static forms that name the new run."""
        super().follow(recovery)
        return self._bundle(RunView())

    def _bundle(self, view: RunView) -> dict[str, Any]:
        """Return the bundle of the widget, with the static forms that a save during the run keeps.

        It also sets the advice that the live view shows when its kernel is gone.
        """
        recovery = self._recovery
        silent = T("■ No sign of the kernel", tone="wait", bold=True)
        self.board.gone(Row((silent, *recovery.advice("  If it is gone")), wrap=True))
        page = Layout().page(view, Context(thoughts=self._thoughts, above=self._above))
        saved = recovery.advice("Saved while the run went on. If its kernel is gone")
        return {**widget(self.board.root.model_id), **page_forms(add_advice(page, saved))}

    def folds(self, *, by_reader: bool) -> dict[str, tuple[bool, float]]:
        """Return which cards are open, or only the choices of the reader."""
        return dict(self.presses.folds) if by_reader else super().folds(by_reader=False)

    def leave(self) -> None:
        """Wait until the page has shown the last step of a fold, then stop counting the views."""
        if self._layout.folds.moving and self.views.counted:
            time.sleep(SETTLED)
        self.board.root.end()

    def close(self) -> None:
        """Close the widgets, unless a browser page was opened or the cell moved during the run.

        In these cases the front end ignores updates of the display, and the last painted widgets
        stay.
        """
        if not self.views.shown_again:
            self.board.close()


class HtmlPainter(DisplayPainter):
    """Paints a view as static HTML, published again and again in one display."""

    replaced = True

    def __init__(
        self, publish: Publish, display: dict[str, Any], thoughts: Thoughts, *, above: str = ""
    ) -> None:
        super().__init__(thoughts, above)
        self._publish, self._display = publish, display
        self._last = ""  # the page that was published last

    def paint(self, view: RunView, now: float | None) -> int:
        """Publish the page if it changed; a long page counts as several messages."""
        page = self._page(view, now)
        text = html.draw_html(page)
        if text == self._last:
            return 0
        self._last = text
        data = {"text/html": text, "text/plain": page.label}
        self._publish(data, self._recovery.metadata, self._display, True)
        return 1 + len(text) // PAGE_PER_MESSAGE

    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Return the forms of the first page, without a clock."""
        self._recovery = recovery
        return page_forms(self._page(view, None))

    def _page(self, view: RunView, now: float | None) -> Page:
        page = self._layout.page(view, Context(now=now, thoughts=self._thoughts, above=self._above))
        if not view.running:
            return page
        advice = self._recovery.advice("If this stands still, the kernel may be gone. Then")
        return add_advice(page, advice)
