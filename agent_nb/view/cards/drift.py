"""A replay went another way than its record, and the run went on live from here."""

from __future__ import annotations

from typing import Any

from ..cardstates import NoteCard
from ..nodes import Box, Node, Row, T
from ..words import clip
from .base import Context

LONGEST = 200  # characters of each side


def card(state: NoteCard, context: Context) -> Node:
    """Return what was different, and since when the model answers."""
    rows = tuple(Row((T("↻ Went on live here", tone="wait", bold=True), T(f"  {_why(payload)}")), wrap=True) for _, payload in state.items)
    return Box(rows, tone="wait")


def _why(payload: Any) -> str:
    found = payload if isinstance(payload, dict) else {}
    name = str(found.get("name") or "a tool")
    fresh, recorded = (clip(" ".join(str(found.get(side, "")).split()), LONGEST) for side in ("fresh", "recorded"))
    return f"because {name} gave {fresh or 'nothing'} now and {recorded or 'nothing'} when it was recorded."
