"""The card of a drift: a replayed call returned another result than recorded.

Why: after a drift the model is asked again, so the answer is a new one, and the reader must see
which result caused that. The payload may come from a foreign record: any field may be missing or of
any type.
"""

from __future__ import annotations

from typing import Any

from ...record import SideBySide
from ...wire import as_dict
from ..format import clip_text
from ..nodes import Box, Node, Row, Stack, T, Table
from ..state.cards import NoteCard
from ..values import bound_text
from .base import Context

LONGEST = 20_000  # characters of each side


def card(state: NoteCard, context: Context) -> Node:
    """Return a box with both results of each call that differed, line by line."""
    return Box(tuple(_draw_difference(payload) for _, payload in state.items), tone="wait")


def _draw_difference(payload: Any) -> Node:
    """Return a heading, and below it a table of the lines that differ, if any does.

    `payload`: the tool's `name`, `how` its results differ, the `recorded` and the `fresh` result.
    """
    fields = as_dict(payload)
    name = clip_text(str(fields.get("name") or "a tool"), 60)
    difference = clip_text(str(fields.get("how") or ""), 200)
    sentence = (
        f" returned something else than in the record{f': {difference}' if difference else ''};"
        " from here on the model was asked again."
    )
    head = Row(
        (T("↻ ", tone="wait", bold=True), T(name, mono=True, bold=True), T(sentence)), wrap=True
    )
    recorded, fresh = (bound_text(str(fields.get(k, "")), LONGEST) for k in ("recorded", "fresh"))
    rows = tuple(SideBySide(recorded, fresh).rows())
    return Stack((head, Table(("", "recorded", "now"), rows, sides=True))) if rows else head
