"""A replay departed from its record, and the run went on live from there."""

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
    """Return what differed, and that the model answers from here on."""
    return Box(tuple(_said(payload) for _, payload in state.items), tone="wait")


def _said(payload: Any) -> Node:
    found = payload if isinstance(payload, dict) else {}
    name = clip_text(str(found.get("name") or "a tool"), 60)
    how = clip_text(str(found.get("how") or ""), 200)
    rest = (
        f" returned something else than in the record{f': {how}' if how else ''};"
        " from here on the model was asked again."
    )
    head = Row((T("↻ ", tone="wait", bold=True), T(name, mono=True, bold=True), T(rest)), wrap=True)
    texts = (bounded(str(found.get(side, "")), LONGEST) for side in ("recorded", "fresh"))
    sides = SideBySide(*texts).rows()
    return (
        Stack((head, Table(("", "recorded", "now"), tuple(sides), sides=True))) if sides else head
    )
