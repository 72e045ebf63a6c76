"""The page: header, prompt, panels of steps, answers, footer, as nodes with stable keys.

Why: consecutive thoughts and calls form one panel and answers stay outside it; the static and the
live view are both arranged here.

Rules
- An unchanged card yields the identical node, since a redraw compares identities.
- Cards with a running clock, and the figures of the header, are drawn again once a second at most.
"""

from __future__ import annotations

import math

from .cards.base import Context, draw
from .nodes import Node, Page, Panel, Row, Section, Step, Tone
from .state.cards import CallCard, Card, ErrorCard, NodeCard, RetryCard
from .state.fold import RunView

OUTSIDE = frozenset({"user", "respond", "error", "interrupt"})


class Layout:
    """Arranges one view again and again, reusing the nodes of what has not changed."""

    def __init__(self, context: Context | None = None) -> None:
        self._context = context or Context()
        self._drawn: dict[str, tuple[object, Node | None]] = {}
        self._panels: dict[str, tuple[tuple[Node, ...], Panel]] = {}
        self._header: tuple[object, Node | None] = (None, None)

    def page(self, view: RunView, context: Context | None = None) -> Page:
        """Return the current page of `view`."""
        context = context or self._context
        header = self._head(view, context)
        sections = [Section("header", header)] if header else []
        steps: list[Step] = []
        for card in view.cards:
            node = self._card(card, context)
            if node is None:
                continue
            if card.kind in OUTSIDE and not (isinstance(card, ErrorCard) and card.soft):
                self._close(steps, sections)
                sections.append(Section(card.key, node))
            else:
                steps.append(Step(card.key, node, attention(card)))
        self._close(steps, sections)
        footer = draw(view, context, "footer")
        sections.extend((Section("footer", footer),) if footer else ())
        return Page(label(view, still=context.still and not context.alive), tuple(sections))

    def _card(self, card: Card, context: Context) -> Node | None:
        moving = (
            _tick(context)
            if isinstance(card, CallCard | NodeCard | RetryCard) and not card.done
            else None
        )
        mark = (
            card.version,
            moving,
            context.editing,
            context.pressed,
            len(context.notes),
            context.thoughts,
            context.can_click,
            context.inserting,
            context.chosen,
        )
        found = self._drawn.get(card.key)
        if found is not None and found[0] == mark:
            return found[1]
        node = draw(card, context)
        self._drawn[card.key] = (mark, node)
        return node

    def _head(self, view: RunView, context: Context) -> Node | None:
        """Return the header; within a second it is reused unless more than its figures changed."""
        node = draw(view, context, "header")
        if not isinstance(node, Row) or context.now is None:
            return node
        said = (
            tuple(t.text for t in node.left),
            tuple((b.key, b.label, b.enabled) for b in node.buttons),
        )
        mark = (_tick(context), said)
        if self._header[0] != mark:
            self._header = (mark, node)
        return self._header[1]

    def _close(self, steps: list[Step], sections: list[Section]) -> None:
        """End the open panel, if there is one."""
        if not steps:
            return
        key = f"panel-{steps[0].key}"
        children = tuple(s.child for s in steps)
        found = self._panels.get(key)
        if found is None or found[0] != children:
            found = self._panels[key] = (children, Panel(tuple(steps)))
        sections.append(Section(key, found[1]))
        steps.clear()


def page(view: RunView, context: Context | None = None) -> Page:
    """Return the page of a view, drawn once."""
    return Layout(context).page(view)


def attention(card: Card) -> Tone:
    """Return the tint of a step; only a step that runs or waits for the user has one."""
    if isinstance(card, ErrorCard) or (isinstance(card, RetryCard) and not card.done):
        return "wait"
    status = (
        card.status
        if isinstance(card, CallCard)
        else "running"
        if isinstance(card, NodeCard) and not card.done
        else ""
    )
    tones: dict[str, Tone] = {"running": "run", "waiting": "wait"}
    return tones.get(status, "")


def label(view: RunView, *, still: bool = False) -> str:
    """Return the name of the view for assistive technology.

    `still`: the page is never drawn again.
    """
    status = "unfinished" if still and view.status in {"", "running"} else view.status or "starting"
    return f"Agent run{f' with {view.model}' if view.model else ''}: {status}"


def _tick(context: Context) -> int | None:
    return None if context.now is None else math.floor(context.now)
