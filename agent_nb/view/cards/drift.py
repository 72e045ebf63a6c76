"""A replay went another way than its record, and the run went on live from here."""

from __future__ import annotations

from typing import Any

from ..cardstates import NoteCard
from ..nodes import Box, Node, Row, T
from ..words import clip
from .base import Context


def card(state: NoteCard, context: Context) -> Node:
    """Return what was different, and since when the model answers."""
    return Box(tuple(_said(payload) for _, payload in state.items), tone="wait")


def _said(payload: Any) -> Node:
    found = payload if isinstance(payload, dict) else {}
    name = clip(str(found.get("name") or "a tool"), 60)
    rest = " returned something else than in the record; from here on the model was asked again."
    return Row((T("↻ ", tone="wait", bold=True), T(name, mono=True, bold=True), T(rest)), wrap=True)
