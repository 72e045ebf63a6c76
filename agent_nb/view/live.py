"""A view of a run that goes on: opened with its log, closed with the static bundle that stays.

Three kinds: `widgets` (ipywidgets under a display id, swapped for the bundle at the end), `html`
(the static page published again and again under one display id) and `text` (streamed lines, for
terminals; no swap).

Rules
- Nothing is shown through IPython's display objects (they open files of a given name); raw bundles
  go to `publish`.
- While widgets live, their bundle carries the static forms too, so that an interrupted save still
  exports.
- A page may outlive its kernel, on the screen and in a file: wherever a run is said to go on, it
  says how to tell, and what to do then.
- `close` never raises and always leaves the static bundle, also when the painter failed; the
  widgets are closed after the swap.
- A press only notes itself and calls `actions`, which must return at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from ..errors import UsageError
from ..record.record import KEY, LIVE
from .bundle import forms
from .cards.base import Context, Thoughts
from .draw import html as static
from .draw.terminal import TextPainter
from .layout import Layout
from .nodes import Button, Page, Row, Section, T
from .renderer import HERTZ, Renderer, Source
from .run_live import Publish, new_display, widget
from .state.fold import RunView

if TYPE_CHECKING:
    from .widgets import Board

Kind = Literal["widgets", "html", "text"]
Actions = Callable[[str, Any], None] | Mapping[str, Callable[..., None]]
PAGE_PER_MESSAGE = 4_000  # characters of a published page that count as one message


class Again:
    """What brings a run back whose kernel is gone: its journal, if it has one, else its cell."""

    def __init__(self, run: str, journal: bool) -> None:
        self._run, self._journal = run, journal

    @property
    def metadata(self) -> dict[str, Any]:
        """What marks an output in which the run goes on."""
        return {KEY: {LIVE: self._run}}

    def __call__(self, when: str) -> tuple[T, ...]:
        """Return words that begin with `when`."""
        if not self._journal:
            return (T(f"{when}, run the cell again.", tone="muted"),)
        return (T(f"{when}: ", tone="muted"), T(f"%agent recover {self._run}", mono=True))


class Presses:
    """What was pressed: the part of the view's state that is in no log."""

    def __init__(
        self, actions: Actions, typed: Callable[[str], str | None], nudge: Callable[[], None]
    ) -> None:
        self._actions = actions
        self._typed = typed
        self._nudge = nudge
        self.pressed: set[str] = set()
        self.editing: set[str] = set()
        self.notes: dict[str, str] = {}
        self.lasting = isinstance(actions, Mapping) and "approve_lasting" in actions

    def press(self, button: Button) -> None:
        """Take a press; called by the front end, perhaps on a thread of its own."""
        call_id = button.payload.get("call_id", "") if isinstance(button.payload, dict) else ""
        handler = {"edit": self._edit, "unedit": self._unedit, "submit": self._submit}.get(
            button.action
        )
        if handler is not None:
            handler(button, call_id)
        elif button.key not in self.pressed:
            self.pressed.add(button.key)
            self._act(
                "approve" if button.action == "approve_all" else button.action, button.payload
            )
        self._nudge()

    def _act(self, action: str, payload: Any) -> None:
        if not isinstance(self._actions, Mapping):
            self._actions(action, payload)
        elif action in self._actions:
            handler = self._actions[action]
            handler() if payload is None else handler(payload)

    def _edit(self, button: Button, call_id: str) -> None:
        self.editing.add(call_id)

    def _unedit(self, button: Button, call_id: str) -> None:
        self.editing.discard(call_id)
        self.notes.pop(call_id, None)

    def _submit(self, button: Button, call_id: str) -> None:
        """Approve with edited arguments, if they are a JSON object."""
        try:
            args = json.loads(self._typed(call_id) or "")
        except ValueError as fault:
            self.notes[call_id] = f"This is not JSON: {fault}."
            return
        if not isinstance(args, dict):
            self.notes[call_id] = "Arguments are a JSON object: {…}."
            return
        self.notes.pop(call_id, None)
        self.pressed.add(button.key)
        self._act("approve", {**button.payload, "scope": "once", "args": args})


class WidgetPainter:
    """Paints a view as widgets."""

    def __init__(self, actions: Actions, thoughts: Thoughts, can_click: Callable[[], bool]) -> None:
        from .widgets import Board

        self.presses = Presses(actions, self._typed, lambda: self.nudge())  # noqa: PLW0108  (it is set later)
        self.nudge: Callable[[], None] = lambda: None
        self.board: Board = Board(self.presses.press)
        self._layout = Layout()
        self._thoughts: Thoughts = thoughts
        self._can_click = can_click

    def _typed(self, call_id: str) -> str | None:
        return self.board.edited(call_id)

    def context(self, now: float | None) -> Context:
        """Return how the cards are looked at now."""
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
        )

    def restart(self) -> None:
        """Arrange the next view anew; buttons can be pressed again."""
        self._layout = Layout()
        self.presses.pressed.clear()

    def paint(self, view: RunView, now: float | None) -> int:
        """Show the view; returns the messages it took."""
        self.board.beat(now)
        return self.board.draw(self._layout.page(view, self.context(now)))

    def bundle(self, view: RunView, again: Again) -> dict[str, Any]:
        """Return the widget with the static forms beside it, which are what is saved while the run
        goes on.
        """
        self.board.gone(
            Row(
                (T("■ No sign of the kernel", tone="wait", bold=True), *again("  If it is gone")),
                wrap=True,
            )
        )
        page = Layout().page(view, Context(thoughts=self._thoughts))
        note = Row(again("Saved while the run went on. If its kernel is gone"), wrap=True)
        return {
            **widget(self.board.root),
            **forms(Page(page.label, (*page.sections, Section("unfinished", note)))),
        }

    def named(self, again: Again) -> dict[str, Any]:
        """Return what is to be saved while another run goes on in this place."""
        return self.bundle(RunView(), again)

    def close(self) -> None:
        """Close the widgets."""
        self.board.close()


class HtmlPainter:
    """Paints a view as static HTML under a display id."""

    def __init__(
        self, publish: Publish, display: dict[str, Any], thoughts: Thoughts, again: Again
    ) -> None:
        self._publish, self._display, self._thoughts, self._again = (
            publish,
            display,
            thoughts,
            again,
        )
        self._layout = Layout()
        self._last = ""

    def restart(self) -> None:
        """Arrange the next view anew."""
        self._layout = Layout()

    def named(self, again: Again) -> dict[str, Any]:
        """Name the run in what is published from now on; nothing is to be published for that."""
        self._again = again
        return {}

    def paint(self, view: RunView, now: float | None) -> int:
        """Publish the page if it changed; a long page counts as several messages."""
        page = self._page(view, now)
        text = static.draw(page)
        if text == self._last:
            return 0
        self._last = text
        self._publish(
            {"text/html": text, "text/plain": page.label}, self._again.metadata, self._display, True
        )
        return 1 + len(text) // PAGE_PER_MESSAGE

    def bundle(self, view: RunView, again: Again) -> dict[str, Any]:
        """Return the first page."""
        return forms(self._page(view, None))

    def _page(self, view: RunView, now: float | None) -> Page:
        page = self._layout.page(view, Context(now=now, thoughts=self._thoughts))
        if view.status not in {"", "running"}:
            return page
        note = Row(self._again("If this stands still, the kernel may be gone. Then"), wrap=True)
        return Page(page.label, (*page.sections, Section("unfinished", note)))

    def close(self) -> None:
        """Nothing is left behind."""


class LiveView:
    """An open view. `close` must be called, also when the run broke."""

    def __init__(
        self,
        log: Source,
        renderer: Renderer,
        publish: Publish | None,
        display: dict[str, Any],
        painter: Any,
    ) -> None:
        self.log = log
        self.renderer = renderer
        self.display_id: str = display.get("display_id", "")
        self._publish, self._display, self._painter = publish, display, painter
        self._closed = False

    @property
    def fault(self) -> Exception | None:
        """What made the painter fail, if it did."""
        return self.renderer.fault

    @property
    def caught_up(self) -> bool:
        """Whether all that has happened so far is shown."""
        return self.renderer.caught_up

    def follow(
        self, log: Source, *, badge: str = "", events: int = 0, journal: bool = False
    ) -> None:
        """Show another run in the same place from now on; see `Renderer.follow`. What is saved
        meanwhile names that run.
        """
        self.log = log
        self.renderer.follow(log, RunView(badge=badge), events)
        again = Again(log.run, journal)
        if self._publish is not None and (data := self._painter.named(again)):
            self._publish(data, again.metadata, self._display, True)

    def close(self, final: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Paint the last state, replace the display by the mime bundle `final`, and close the
        widgets. Calling it again does nothing.
        """
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):
            # a page is replaced as a whole
            self.renderer.stop(paint=not isinstance(self._painter, HtmlPainter))
        if self._publish is None:
            return
        try:
            self._publish(final, metadata or {}, self._display, True)
        finally:
            with suppress(Exception):
                self._painter.close()


def open_view(
    log: Source,
    *,
    kind: str = "widgets",
    actions: Actions = lambda action, payload: None,
    thoughts: str = "collapse",
    can_click: bool | Callable[[], bool] = False,
    publish: Publish | None = None,
    badge: str = "",
    recorded: bool = False,
    journal: bool = False,
    display_id: str = "",
    hz: float = HERTZ,
    seen: bool = True,
    write: Callable[[str], None] | None = None,
) -> LiveView:
    """Show the run of `log` while it goes on.

    `kind`: `widgets`, `html` or `text` (`choose_view`). `actions(id, payload)` is called for `stop`
    (None), `approve` (`{"call_id", "scope", "args"?}`) and `deny` (`{"call_id"}`); a mapping from
    id to function does as well. `can_click`: whether clicks arrive while the cell runs, or a
    function that tells (it may become so). `publish` sends bundles, which all kinds but `text`
    need; `write` takes the text of the kind `text`. `badge` is a remark on the whole run; the clock
    of a `recorded` one stands. `journal`: the run can be recovered when its kernel is gone. `seen`:
    somebody looks on. `display_id`: of the display to take the place of ("": a new one). Raises
    UsageError where `publish` is missing, ImportError where ipywidgets is.
    """
    view = RunView(badge=badge, recorded=recorded)
    shown: Thoughts = "show" if thoughts == "show" else "hide" if thoughts == "hide" else "collapse"
    if kind == "text":
        renderer = Renderer(
            log, TextPainter(write or _stdout, thoughts=shown), view=view, hz=hz, seen=seen
        )
        renderer.start()
        return LiveView(log, renderer, None, {}, None)
    if publish is None:
        raise UsageError(
            f"A view of the kind {kind!r} needs `publish`, which sends mime bundles to the front end."
        )
    display = {"display_id": display_id or new_display()}
    clickable = can_click if callable(can_click) else lambda: bool(can_click)
    again = Again(log.run, journal)
    painter: WidgetPainter | HtmlPainter = HtmlPainter(publish, display, shown, again)
    if kind == "widgets":
        painter = WidgetPainter(actions, shown, clickable)
    renderer = Renderer(log, painter, view=view, hz=hz, seen=seen)
    now = renderer.begin()
    if isinstance(painter, WidgetPainter):
        painter.nudge = renderer.nudge
        painter.paint(view, now)
    publish(painter.bundle(view, again), again.metadata, display, bool(display_id))
    renderer.start()
    return LiveView(log, renderer, publish, display, painter)


def choose_view(*, jupyter: bool, widgets: bool, updates: bool) -> Kind:
    """Return the kind of view for a front end: `widgets` if it shows them, `html` if it updates
    displays, else `text`.
    """
    if not jupyter or not updates:
        return "text"
    return "widgets" if widgets else "html"


def _stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
