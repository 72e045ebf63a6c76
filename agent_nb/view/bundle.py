"""Events → the three forms that a saved notebook carries: HTML, markdown, plain text.

Why: a swapped output must read in every front end, in a converter and in a diff, with no widget and
no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..events import Event
from .cards.base import Context, Thoughts
from .draw import html, markdown, text
from .layout import page
from .nodes import Page
from .state.fold import RunView


def bundle(
    events: Iterable[Event], *, badge: str = "", thoughts: Thoughts = "collapse"
) -> dict[str, str]:
    """Return the mime bundle (`text/html`, `text/markdown`, `text/plain`) of a run's events.

    `badge` is a remark that is no event, such as "replayed from 21 Nov".
    """
    return forms(page(RunView(badge=badge).extend(events), Context(thoughts=thoughts)))


def forms(node: Page) -> dict[str, str]:
    """Return the three forms of a page."""
    return {
        "text/html": html.draw(node),
        "text/markdown": markdown.draw(node),
        "text/plain": text.draw(node),
    }
