"""Events → the three forms that a saved notebook carries: HTML, markdown, plain text.

Why: a finished output must be readable in every front end, in converters and in diffs, without
widgets and without a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events import Event
from .cards.base import Context, Thoughts
from .draw import html, markdown, text
from .layout import page
from .nodes import Page
from .state.fold import RunView


def make_bundle(
    events: Iterable[Event],
    *,
    badge: str = "",
    thoughts: Thoughts = "collapse",
    above: str = "",
    typeset: bool = False,
) -> dict[str, str]:
    """Return the mime bundle (`text/html`, `text/markdown`, `text/plain`) of a run's events.

    `badge`: a remark that is not an event, such as "replayed from 21 Nov"; `above`: the text of the
    cell above the page (see `Context`); `typeset`: the HTML has its formulas as MathML, because no
    front end will typeset them.
    """
    view = RunView(badge=badge).extend(events)
    return page_forms(page(view, Context(thoughts=thoughts, above=above)), typeset=typeset)


def page_forms(node: Page, *, typeset: bool = False) -> dict[str, str]:
    """Return the three forms of a page, as a mime bundle."""
    return {
        "text/html": html.draw_html(node, typeset=typeset),
        "text/markdown": markdown.draw(node),
        "text/plain": text.draw(node),
    }
