"""The page of a run in a file that was saved before the run ended.

Why: such a page may be read while the run goes on, after its end, or when its kernel is long gone;
it says which of them holds, as far as the process that saves the file knows, and what to do.

Rule: the page has a class of its own, `SAVED`, since the live view of the same run may stand below
it, which then hides it (`live.css`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from ..events import Event, complete_log
from ..record import LIVE_KEY, METADATA_KEY
from .bundle import page_forms
from .cards.base import Context, Thoughts
from .layout import page
from .nodes import Page, Row, Section, T
from .state.fold import RunView

SAVED = "agent-nb-saved"
#: What is known of a run: it goes on, its kernel is gone, it ended, nothing.
Fate = Literal["going on", "gone", "ended", "unknown"]


class Recovery(NamedTuple):
    """How to get a run back if its kernel dies: from its journal, or by running its cell again."""

    run: str
    journal: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        """The mark of an output whose run is still running."""
        return {METADATA_KEY: {LIVE_KEY: self.run}}

    def words(self, when: str) -> tuple[T, ...]:
        """Return the advice, which begins with `when`."""
        if not self.journal:
            return (T(f"{when}, run the cell again.", tone="muted"),)
        return (T(f"{when}: ", tone="muted"), T(f"%agent recover {self.run}", mono=True))


def unfinished(whole: Page, advice: tuple[T, ...]) -> Page:
    """Return the page of a running run, with the advice below."""
    return Page(whole.label, (*whole.sections, Section("unfinished", Row(advice, wrap=True))))


def saved_forms(
    events: Iterable[Event], recovery: Recovery, fate: Fate, *, thoughts: Thoughts = "collapse"
) -> dict[str, str]:
    """Return the forms of a run's page in a file that is saved now, from its events so far."""
    if fate == "gone":
        events = [
            e for e in complete_log(list(events)) if e.span or e.type not in ("interrupt", "end")
        ]
    context = Context(thoughts=thoughts, alive=fate == "going on")
    said = {
        "going on": recovery.words("Saved while the run went on. If it has ended since"),
        "gone": recovery.words("The kernel ended before the run did. To have what came"),
        "ended": recovery.words("The run ended, and this page did not hear of it. To have it here"),
        "unknown": recovery.words("It is not known how this run ended. To have it here"),
    }[fate]
    made = page_forms(unfinished(page(RunView().extend(events), context), said))
    return {**made, "text/html": f'<div class="{SAVED}">{made["text/html"]}</div>'}
