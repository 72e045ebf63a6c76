"""Painters that show a view in a display of the front end: as widgets, or as a static page.

Rules
- While widgets live, their bundle carries the static forms too, so that a notebook saved meanwhile
  still exports.
- A page may outlive its kernel, on the screen and in a file: where it says that the run is running,
  it also says how to find out and what to do then (`Recovery`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..record.record import KEY, LIVE
from .bundle import forms
from .cards.base import Context, Thoughts
from .display import Publish, widget
from .draw import html
from .layout import Layout
from .nodes import Page, Row, Section, T
from .presses import Actions, Presses
from .renderer import Painter
from .state.fold import RunView

if TYPE_CHECKING:
    from .widgets import Board

PAGE_PER_MESSAGE = 4_000  # characters of a published page that count as one message


class Recovery(NamedTuple):
    """How to get a run back if its kernel dies: from its journal, or by running its cell again."""

    run: str
    journal: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        """The mark of an output whose run is still running."""
        return {KEY: {LIVE: self.run}}

    def words(self, when: str) -> tuple[T, ...]:
        """Return the advice, which begins with `when`."""
        if not self.journal:
            return (T(f"{when}, run the cell again.", tone="muted"),)
        return (T(f"{when}: ", tone="muted"), T(f"%agent recover {self.run}", mono=True))


class DisplayPainter(Painter, Protocol):
    """A painter that fills a display of the front end."""

    #: Whether the bundle that stays replaces all there is, so that a last paint would be lost.
    replaced: bool

    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Return the bundle that opens the display with `view` at the time `now`."""

    def follow(self, recovery: Recovery) -> dict[str, Any]:
        """Name the run that is shown from now on; return the bundle to publish, or {}."""

    def close(self) -> None:
        """Release what the painter made."""


class WidgetPainter:
    """Paints a view as widgets. `nudge` asks the renderer for a paint after a press."""

    replaced = False

    def __init__(
        self,
        actions: Actions,
        thoughts: Thoughts,
        can_click: Callable[[], bool],
        nudge: Callable[[], None] = lambda: None,
    ) -> None:
        from .widgets import Board

        self.presses = Presses(actions, self._typed, nudge)
        self.board: Board = Board(self.presses.press)
        self._layout = Layout()
        self._thoughts: Thoughts = thoughts
        self._can_click = can_click

    def _typed(self, call_id: str) -> str | None:
        return self.board.edited(call_id)

    def context(self, now: float | None, *, recorded: bool = False) -> Context:
        """Return how the cards of a run are drawn now; `recorded`: the run is past."""
        p = self.presses
        return Context(
            now=now,
            live=True,
            thoughts=self._thoughts,
            can_click=self._can_click(),
            pressed=frozenset(p.pressed),
            editing=frozenset(p.editing),
            notes=dict(p.notes),
            lasting=p.lasting,
            inserting=p.inserting and not recorded,
            chosen=p.chosen,
        )

    def restart(self) -> None:
        """Forget the arrangement; the buttons of the next view can be pressed."""
        self._layout = Layout()
        self.presses.pressed.clear()
        self.presses.chosen = ""

    def paint(self, view: RunView, now: float | None) -> int:
        """Show the view; return the number of messages it took."""
        self.board.beat(now)
        return self.board.draw(self._layout.page(view, self.context(now, recorded=view.recorded)))

    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Paint the view; return the widget with the static forms beside it."""
        self.paint(view, now)
        return self._bundle(view, recovery)

    def follow(self, recovery: Recovery) -> dict[str, Any]:
        """Return the widget, with static forms that name the run."""
        return self._bundle(RunView(), recovery)

    def _bundle(self, view: RunView, recovery: Recovery) -> dict[str, Any]:
        """Return the widget with the static forms, which a save during the run stores."""
        silent = T("■ No sign of the kernel", tone="wait", bold=True)
        self.board.gone(Row((silent, *recovery.words("  If it is gone")), wrap=True))
        page = Layout().page(view, Context(thoughts=self._thoughts))
        saved = recovery.words("Saved while the run went on. If its kernel is gone")
        return {**widget(self.board.root), **forms(_unfinished(page, saved))}

    def close(self) -> None:
        """Close the widgets."""
        self.board.close()


class HtmlPainter:
    """Paints a view as static HTML, published again and again in one display."""

    replaced = True

    def __init__(
        self, publish: Publish, display: dict[str, Any], thoughts: Thoughts, recovery: Recovery
    ) -> None:
        self._publish, self._display = publish, display
        self._thoughts: Thoughts = thoughts
        self._recovery = recovery
        self._layout = Layout()
        self._last = ""

    def restart(self) -> None:
        """Forget the arrangement of the page."""
        self._layout = Layout()

    def paint(self, view: RunView, now: float | None) -> int:
        """Publish the page if it changed; a long page counts as several messages."""
        page = self._page(view, now)
        text = html.draw(page)
        if text == self._last:
            return 0
        self._last = text
        data = {"text/html": text, "text/plain": page.label}
        self._publish(data, self._recovery.metadata, self._display, True)
        return 1 + len(text) // PAGE_PER_MESSAGE

    def open(self, view: RunView, now: float | None, recovery: Recovery) -> dict[str, Any]:
        """Return the first page."""
        return forms(self._page(view, None))

    def follow(self, recovery: Recovery) -> dict[str, Any]:
        """Name the run in the pages to come; nothing is published for that."""
        self._recovery = recovery
        return {}

    def _page(self, view: RunView, now: float | None) -> Page:
        page = self._layout.page(view, Context(now=now, thoughts=self._thoughts))
        if view.status not in {"", "running"}:
            return page
        still = "If this stands still, the kernel may be gone. Then"
        return _unfinished(page, self._recovery.words(still))

    def close(self) -> None:
        """Do nothing: the painter made nothing to release."""


def _unfinished(page: Page, advice: tuple[T, ...]) -> Page:
    """Return the page of a running run, with the advice below."""
    return Page(page.label, (*page.sections, Section("unfinished", Row(advice, wrap=True))))
