"""The three forms of a run that a saved notebook holds: HTML, markdown, plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..events import Event
from ..wire import Attachment
from .cards.base import Context, Thoughts
from .draw import html, markdown, text
from .format import text_row
from .layout import page
from .nodes import Fold, Interactive, Page, Section, Stack, T
from .parts import split_page
from .state.fold import RunView


def make_bundle(
    events: Iterable[Event],
    *,
    badge: str = "",
    thoughts: Thoughts = "collapse",
    typeset: bool = False,
) -> dict[str, str]:
    """Return the mime bundle (`text/html`, `text/markdown`, `text/plain`) of a run's events.

    `badge`: a remark that is not an event, such as "replayed from 21 Nov"; `typeset`: the HTML has
    its formulas as MathML, because no front end will typeset them.
    """
    view = RunView(badge=badge).extend(events)
    return page_forms(page(view, Context(thoughts=thoughts)), typeset=typeset)


def make_parts(
    events: Iterable[Event],
    *,
    badge: str = "",
    thoughts: Thoughts = "collapse",
    above: str = "",
    most: int = 0,
    folds: Mapping[str, tuple[bool, float]] | None = None,
) -> list[dict[str, Any]]:
    """Return the mime bundles of a run's events, each for an output of its own, in order.

    The bundles are parts of the page, and the charts and widgets between the parts. `most`: the
    largest number of bundles (0: any); the last one has the rest, with charts as pictures. `above`:
    the text of the cell above the page. `folds`: what is open, as the live view left it
    (`LiveView.folds`; keys and values: `Context.folds`). The others are those of `make_bundle`.
    """
    context = Context(thoughts=thoughts, above=above, folds=folds or {})
    full_page = page(RunView(badge=badge).extend(events), context)
    return [
        page_forms(part) if isinstance(part, Page) else _output_of(part)
        for part in split_page(full_page, most)
    ]


def make_folded_bundle(
    line: str, logs: Sequence[Iterable[Event]], remarks: Sequence[str] = ()
) -> dict[str, str]:
    """Return the mime bundle of a `line` that opens to `remarks` and the cards of several runs.

    `logs`: the events of each run, which no variable of the kernel holds.
    """
    pages = [page(RunView().extend(log), Context(latest=False)) for log in logs]
    cards = (section.child for each in pages for section in each.sections)
    body = (*(text_row(remark, "", wrap=True) for remark in remarks), *cards)
    fold = Fold((T(line, tone="muted"),), body, accordion=True, title=line)
    return page_forms(Page(line, (Section("calls", fold),)))


def _output_of(drawn: Interactive) -> dict[str, Any]:
    """Return the mime bundle of a chart or widget, with forms for where it cannot be drawn."""
    still = page_forms(Page("", (Section("chart", Stack(drawn.still)),)))
    # a widget is gone with its kernel
    forms = still if Attachment.WIDGET in drawn.data else {"text/plain": still["text/plain"]}
    return {**forms, **drawn.data}


def page_forms(node: Page, *, typeset: bool = False) -> dict[str, str]:
    """Return the three forms of a page, as a mime bundle."""
    return {
        "text/html": html.draw_html(node, typeset=typeset),
        "text/markdown": markdown.draw(node),
        "text/plain": text.draw(node),
    }
