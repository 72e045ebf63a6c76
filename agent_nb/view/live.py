"""A live view of a run: opened with its log, closed with the static bundle that stays in the cell.

Three kinds, since front ends can change widgets, replace an output, or only print more text:
`widgets` (ipywidgets in a display, replaced by the bundle at the end), `html` (the static page,
published again and again in one display) and `text` (streamed lines for terminals).

Rules
- Mime bundles go to `publish` as they are: IPython's display objects may open the file or address
  that a string names.
- `close` publishes the static bundle even if the painter fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from .bundle import make_parts
from .cards.base import Thoughts
from .display import Publish, new_display
from .painters import DisplayPainter, HtmlPainter, WidgetPainter
from .presses import Actions
from .renderer import HERTZ, Renderer, Source
from .saved_page import Recovery
from .state.fold import RunView
from .views import Views

_THOUGHTS: Mapping[str, Thoughts] = {"show": "show", "hide": "hide"}


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """How a run is shown.

    - `kind`: `widgets`, `html` or `text`.
    - `thoughts`: `collapse`, `show` or `hide`.
    - `can_click`: whether presses arrive while the cell runs, or a function that returns it.
    - `above`: the text of the cell above the page; a prompt that only repeats it is not shown.
    - `badge`: a remark on the whole run; `recorded`: the run is past, so its clock does not move.
    - `journal`: the run can be recovered if its kernel dies.
    - `display_id`: the display to replace ("": a new one). `hz`: the most paints a second.
    - `seen`: whether anyone watches; if not, there is at most one paint a second.
    """

    kind: str = "widgets"
    thoughts: str = "collapse"
    can_click: bool | Callable[[], bool] = False
    above: str = ""
    badge: str = ""
    recorded: bool = False
    journal: bool = False
    display_id: str = ""
    hz: float = HERTZ
    seen: bool = True

    @property
    def shown_thoughts(self) -> Thoughts:
        """How thoughts are shown; an unknown word collapses them."""
        return _THOUGHTS.get(self.thoughts, "collapse")


PLAIN = ViewOptions()


class LiveView:
    """An open view, made by `LiveView.open`. `close` must be called, also when the run failed.

    `publish` and `painter` are None for the kind `text`, which has no display.
    """

    def __init__(
        self,
        log: Source,
        renderer: Renderer,
        publish: Publish | None = None,
        display: dict[str, Any] | None = None,
        painter: DisplayPainter | None = None,
        *,
        unwatched: bool = False,
    ) -> None:
        self.log = log
        self.renderer = renderer
        self._display = display or {}
        self.display_id: str = self._display.get("display_id", "")
        self._publish, self._painter = publish, painter
        self._unwatched = unwatched  # nobody saw the page grow (see `folds`)
        self._closed = False
        #: The views of the page, as far as front ends count them.
        self.views = painter.views if painter is not None else Views()

    @classmethod
    def open(
        cls,
        log: Source,
        options: ViewOptions = PLAIN,
        *,
        actions: Actions = lambda action, payload: None,
        publish: Publish | None = None,
        write: Callable[[str], None] | None = None,
    ) -> LiveView:
        """Show the run of `log` while it runs.

        - `actions(id, payload)` is called for `stop` (None), `approve` (`{"call_id", "scope"?,
          "args"?}`) and `deny` (`{"call_id", "reason"?}`), both with `question` if it has an id; a
          mapping from id to function works too.
        - In a mapping, `describe({"call_id"})` may return the schema of a call's arguments and a
          function that returns what is wrong with edited arguments. The keys `approve_lasting`
          (as `approve`) and `insert` (takes code; "": withdrawn) enable buttons for them.
        - `publish` sends bundles; all kinds but `text` need it. `write` takes the output of the
          kind `text` (None: it goes to stdout).

        Raises UsageError if `publish` is missing, ImportError if ipywidgets is.
        """
        view = RunView(badge=options.badge, recorded=options.recorded)
        if options.kind == "text":
            return cls._open_text(log, view, options, write)
        if publish is None:
            raise UsageError(
                f"A view of the kind {options.kind!r} needs `publish`, which sends mime bundles to the front end."
            )
        thoughts = options.shown_thoughts
        display = {"display_id": options.display_id or new_display()}
        can_click = options.can_click
        clickable = can_click if callable(can_click) else lambda: bool(can_click)
        recovery = Recovery(log.run, options.journal)

        def nudge() -> None:
            renderer.nudge()  # assigned below, because it needs the painter, which needs `nudge`

        def show(data: dict[str, Any], metadata: dict[str, Any], update: bool) -> None:
            publish(data, metadata, display, update)

        painter: DisplayPainter
        if options.kind == "widgets":
            painter = WidgetPainter(
                actions, thoughts, clickable, nudge, above=options.above, show=show
            )
        else:
            painter = HtmlPainter(publish, display, thoughts, above=options.above)
        renderer = Renderer(log, painter, view=view, hz=options.hz, seen=options.seen)
        unwatched = options.recorded or not options.seen
        opened = cls(log, renderer, publish, display, painter, unwatched=unwatched)
        try:
            opening = painter.open(view, renderer.begin(), recovery)
            publish(opening, recovery.metadata, display, bool(options.display_id))
        except BaseException:  # nobody gets the view, so nobody could close it
            renderer.stop(paint=False)
            painter.close()
            raise
        renderer.start()
        return opened

    @classmethod
    def _open_text(
        cls, log: Source, view: RunView, options: ViewOptions, write: Callable[[str], None] | None
    ) -> LiveView:
        """Print the run; in a terminal, answers are drawn as markdown."""
        from .draw.terminal import TextPainter
        from .draw.terminal_blocks import Terminal

        terminal = None if write is not None else Terminal.find()
        painter = TextPainter(write or _stdout, thoughts=options.shown_thoughts, terminal=terminal)
        renderer = Renderer(log, painter, view=view, hz=options.hz, seen=options.seen)
        renderer.start()
        return cls(log, renderer)

    @property
    def caught_up(self) -> bool:
        """Whether every event so far is shown."""
        return self.renderer.caught_up

    @property
    def folds(self) -> dict[str, tuple[bool, float]]:
        """Which cards are open on the page (see `Context.folds`), to draw the static page alike.

        If nobody saw the page grow (`recorded`, or not `seen`), only the cards that a reader opened
        or closed.
        """
        if self._painter is None:
            return {}
        return self._painter.folds(by_reader=self._unwatched)

    def follow(
        self, log: Source, *, badge: str = "", events: int = 0, journal: bool = False
    ) -> None:
        """Show another run in the same display from now on (see `Renderer.follow`).

        A notebook that is saved meanwhile names the new run. `badge`, `journal`: see `ViewOptions`.
        """
        self.log = log
        self.renderer.follow(log, RunView(badge=badge), events)
        recovery = Recovery(log.run, journal)
        if self._publish is None or self._painter is None:
            return
        if data := self._painter.follow(recovery):
            self._publish(data, recovery.metadata, self._display, True)

    make_parts = staticmethod(make_parts)  # the mime bundles that stay in the notebook

    @staticmethod
    def import_widgets() -> None:
        """Import what draws widgets, so that the first view opens at once.

        Raises ImportError if ipywidgets is missing.
        """
        import nh3  # noqa: F401  (imported only to be loaded)

        from .widgets import board  # noqa: F401

    def close(self, final: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        """Paint the last state (a static page needs none), then replace the display by `final`.

        `final` is a mime bundle; the kind `text` ignores it. A second call does nothing. Raises
        only what `publish` raises.
        """
        if self._closed:
            return
        self._closed = True
        # faults are swallowed here, because the static bundle below must reach the notebook
        with suppress(Exception):
            self.renderer.stop(paint=self._painter is None or not self._painter.replaced)
        if self._publish is None or self._painter is None:
            return
        with suppress(Exception):
            self._painter.leave()
        try:
            self._publish(final, metadata or {}, self._display, True)
        finally:
            with suppress(Exception):
                self._painter.close()


def _stdout(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
