"""A drift: the first difference between a record and its replay, after which the run is live."""

from __future__ import annotations

from typing import Any

from ...record import SideBySide
from ..format import clip_text
from ..nodes import Box, Node, Row, Stack, T, Table
from ..state.cards import NoteCard
from ..values import bounded
from .base import Context

LONGEST = 20_000  # characters of each side


def card(state: NoteCard, context: Context) -> Node:
    """Return a box with both results of the call that differed, line by line."""
    return Box(tuple(_difference(payload) for _, payload in state.items), tone="wait")


def _difference(payload: Any) -> Node:
    fields = payload if isinstance(payload, dict) else {}
    name = clip_text(str(fields.get("name") or "a tool"), 60)
    how = clip_text(str(fields.get("how") or ""), 200)
    rest = (
        f" returned something else than in the record{f': {how}' if how else ''};"
        " from here on the model was asked again."
    )
    head = Row((T("↻ ", tone="wait", bold=True), T(name, mono=True, bold=True), T(rest)), wrap=True)
    texts = (bounded(str(fields.get(side, "")), LONGEST) for side in ("recorded", "fresh"))
    sides = SideBySide(*texts).rows()
    return (
        Stack((head, Table(("", "recorded", "now"), tuple(sides), sides=True))) if sides else head
    )
