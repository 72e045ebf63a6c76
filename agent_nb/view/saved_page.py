"""The page of a run in a file that is saved before the run has ended.

Why: such a page may be read while the run goes on, after its end, or when its kernel is gone. It
says which of these holds, as far as the saving process knows, and how to get the run back, as in
"The kernel ended before the run did. To have what came, run the cell again."
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ..events import Event, complete_log
from ..record import METADATA_KEY, RunNumbers
from .bundle import page_forms
from .cards.base import Context
from .layout import page
from .nodes import Page, Row, Section, T
from .state.fold import RunView

#: What became of a run: it goes on, its kernel ended before it did, it ended, or unknown.
Fate = Literal["going on", "gone", "ended", "unknown"]
# the beginning of the advice (`Recovery.advice` completes the sentence)
_ADVICE: dict[Fate, str] = {
    "going on": "Saved while the run went on. If it has ended since",
    "gone": "The kernel ended before the run did. To have what came",
    "ended": "The run ended, and this page did not hear of it. To have it here",
    "unknown": "It is not known how this run ended. To have it here",
}


@dataclass(frozen=True)
class Recovery:
    """How to get the run with the id `run` back if its kernel dies.

    `journal`: the run can be read from its journal; otherwise its cell must be run again.
    """

    #: CSS class of a saved page. If the live view of the same run stands below it, `live.css` hides
    #: the saved page.
    SAVED: ClassVar[str] = "agent-nb-saved"

    run: str
    journal: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of an output whose run has not ended: it names the run."""
        return {METADATA_KEY: {RunNumbers.LIVE: self.run}}

    def advice(self, when: str) -> tuple[T, ...]:
        """Return a sentence on how to get the run back; `when`: its beginning, up to the comma."""
        if not self.journal:
            return (T(f"{when}, run the cell again.", tone="muted"),)
        return (T(f"{when}: ", tone="muted"), T(f"%agent recover {self.run}", mono=True))

    def saved_forms(self, events: Iterable[Event], fate: Fate) -> dict[str, str]:
        """Return the static forms of the run's page, from its events so far."""
        if fate == "gone":
            # close open events, but add no end of the run: the advice says what happened
            completed = complete_log(list(events))
            events = [e for e in completed if e.span or e.type not in ("interrupt", "end")]
        static_page = page(RunView().extend(events), Context(alive=fate == "going on"))
        forms = page_forms(add_advice(static_page, self.advice(_ADVICE[fate])))
        return {**forms, "text/html": f'<div class="{self.SAVED}">{forms["text/html"]}</div>'}


def add_advice(whole: Page, advice: tuple[T, ...]) -> Page:
    """Return the page of a run that has not ended, with the advice as its last section."""
    return Page(whole.label, (*whole.sections, Section("unfinished", Row(advice, wrap=True))))
