"""A run in a cell's output: a live view while it goes on, then its static page with the record.

Why one class: `%%agent` cells, awaited runs, runs of other systems and `run.show()` show runs
alike.

Rules
- A page is divided at its charts, each part an output. A page that replaces another updates the
  other's outputs, so it has at most as many.
- Where outputs are dropped (`unshown`), nothing is drawn and only the numbers are published.
- While a run without a journal is shown as widgets, an empty journal says that the run goes on: a
  notebook that is saved meanwhile keeps the view (`saved_views`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...agent import Played, Stream
from ...events import Event, EventLog, new_run_id
from ...record import METADATA_KEY, RECORD_MIME, Journal, Record, RunNumbers
from ...view import Views
from ...wire import Attachment, describe_picture
from ..identity import Cell
from ..notices import print_warning
from ..options import Options
from .frontend import choose_view_kind, is_headless, is_unshown
from .publish import publish_display

if TYPE_CHECKING:
    from ...view import LiveView

EMPTY_OUTPUT: dict[str, Any] = {"text/plain": ""}  # an output for its metadata alone
_output_counts: dict[str, int] = {}  # display id -> how many outputs the page has
Actions = Mapping[str, Callable[..., Any]]


class Display:
    """The display of one run of `cell`; `options` choose its view and how thoughts are shown.

    actions: the functions that its buttons call, by action. can_click: whether clicks arrive while
    the cell runs, or a function that returns it.
    above: the text of the cell (see `ViewOptions`).
    replaces: the id of the display whose place it takes ("": a new display).
    """

    def __init__(
        self,
        cell: Cell,
        options: Options,
        *,
        actions: Actions | None = None,
        can_click: bool | Callable[[], bool] = False,
        above: str = "",
        replaces: str = "",
    ) -> None:
        self.cell, self.options = cell, options
        self.kind = choose_view_kind(options.view, cell)
        self._actions, self._can_click, self._replaces = actions or {}, can_click, replaces
        self._above = above
        self._view: LiveView | None = None
        self._static_id = replaces  # display id of a page without a live view
        self._empty_journal: Journal | None = None  # says to other processes that the run goes on

    @property
    def id(self) -> str:
        """The display id, "" before there is a display."""
        return self._view.display_id if self._view is not None else self._static_id

    @property
    def opened(self) -> bool:
        """Whether a live view was opened here."""
        return self._view is not None

    @property
    def caught_up(self) -> bool:
        """Whether the view, if there is one, shows every event so far."""
        return self._view is None or self._view.caught_up

    @property
    def views(self) -> Views:
        """The views of the page, as far as front ends count them."""
        return self._view.views if self._view is not None else Views()

    def open(
        self,
        log: EventLog | UntilDrift,
        *,
        badge: str = "",
        recorded: bool = False,
        journal: bool = False,
    ) -> None:
        """Show a run from its first event on; see `LiveView.open`."""
        if is_unshown(self.cell):
            return
        from ...view import LiveView, ViewOptions  # a test draws nothing and needs no import

        self._mark_as_running(log, journal)
        self._publish_parts([], log.run)  # empties the further outputs of the page it replaces
        self._view = LiveView.open(
            log,
            ViewOptions(
                kind=self.kind,
                thoughts=self.options.thoughts,
                can_click=self._can_click,
                above=self._above,
                badge=badge,
                recorded=recorded,
                journal=journal,
                display_id=self._replaces,
                seen=not is_headless(self.cell),
            ),
            actions=self._actions,
            publish=publish_display,
        )

    def follow(self, log: EventLog | UntilDrift, *, badge: str, events: int, journal: bool) -> None:
        """Show another run in the open view from now on; see `LiveView.follow`."""
        if self._view is not None:
            self._mark_as_running(log, journal)
            self._view.follow(log, badge=badge, events=events, journal=journal)

    def _mark_as_running(self, log: EventLog | UntilDrift, journal: bool) -> None:
        """Write an empty journal for a run without one (`journal`), shown as widgets."""
        self._drop_empty_journal()
        if self.kind == "widgets" and self.cell.kernel and not journal:
            self._empty_journal = Journal(log.run, clean=False)

    def _drop_empty_journal(self) -> None:
        if self._empty_journal is not None:
            self._empty_journal.close(discard=True)
            self._empty_journal = None

    def close(
        self,
        log: Sequence[Event],
        record: Record | None = None,
        numbers: Mapping[str, Any] | None = None,
        *,
        badge: str = "",
    ) -> None:
        """Leave the static page of an ended run, with its `record` and `numbers` (`summary`).

        `badge`: a remark on the whole run.
        """
        metadata = {METADATA_KEY: dict(numbers)} if numbers else {}
        data: dict[str, Any] = {RECORD_MIME: dict(record)} if record else {}
        self._drop_empty_journal()
        if is_unshown(self.cell):
            if numbers:
                publish_display(EMPTY_OUTPUT, metadata, {}, False)
            return
        first, *rest = self._make_bundles(log, badge)
        run = next((event.run for event in log if event.run), "")
        if self._view is not None:
            self._view.close(first | data, metadata)
        elif self.kind != "text":
            # the outputs below carry this id, so that a run that takes its place can replace them;
            # not the run's id, since a run may be shown several times
            if rest and not self._static_id:
                self._static_id = f"agent-nb-{new_run_id()}"
            transient = {"display_id": self._static_id} if self._static_id else {}
            publish_display(first | data, metadata, transient, bool(self._replaces))
        self._publish_parts(rest, run)
        if self.kind == "text" and self.cell.kernel and data and numbers and numbers["recorded"]:
            publish_display(data, metadata, {}, False)

    def _make_bundles(self, log: Sequence[Event], badge: str) -> list[dict[str, Any]]:
        """Return the bundles of the page, each for one output."""
        if self.kind == "text":
            return [{}]
        from ...view import LiveView

        if self._replaces:  # as many as the replaced page had
            most_parts = _output_counts.get(self._replaces, 1)
        else:  # any (0), or 1 after a new view (`Views.shown_again`)
            most_parts = int(self.views.shown_again)
        return LiveView.make_parts(
            log,
            thoughts=self.options.thoughts,
            badge=badge,
            above=self._above,
            most=most_parts,
            folds=self._view.folds if self._view is not None else {},
        )

    def _publish_parts(self, bundles: Sequence[dict[str, Any]], run: str) -> None:
        """Publish the outputs below the first one; empty those that a longer former page leaves."""
        former_count = _output_counts.get(self.id, 1) if self.id else 1
        empty = [EMPTY_OUTPUT] * (former_count - 1 - len(bundles))
        for number, bundle in enumerate([*bundles, *empty], 2):
            transient = {"display_id": f"{self.id}-{number}"}
            metadata = {METADATA_KEY: {RunNumbers.PART: run}}
            publish_display(bundle, metadata, transient, number <= former_count)
        if bundles:
            _output_counts[self.id] = max(former_count, 1 + len(bundles))


def show_unrecorded(played: Played) -> None:
    """Show the pictures and displays of calls that a replay ran again, below the card.

    Records of older versions do not hold them; a replay that goes on live records them.
    """
    for shown in map(Attachment, played.unrecorded if played.resume is None else ()):
        picture = {str(shown["media_type"]): shown["data"]} if shown["data"] else {}
        description = {"text/plain": describe_picture(1, shown)} if picture else {}
        publish_display({**description, **shown.display, **picture}, {}, {}, False)


def warn_of_faults(log: EventLog) -> None:
    """Print a warning for each subscriber of a log that failed."""
    for _, fault in log.faults:
        print_warning(
            f"a subscriber of the run failed and was detached: {type(fault).__name__}: {fault}"
        )


class UntilDrift:
    """The log of a replay as its view shows it: up to a drift, without the events that close it."""

    def __init__(self, replay: Stream) -> None:
        self.run = replay.log.run
        self._replay = replay

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Call `subscriber` with every event up to the drift; see `EventLog.subscribe`."""

        def pass_on(event: Event) -> None:
            if self._replay.played.resume is None:
                subscriber(event)

        return self._replay.log.subscribe(pass_on)
