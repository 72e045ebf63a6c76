"""A change of the model: a fallback goes on, since the model before was unreachable or overloaded.

Why: the answer then comes from another model than the user named.
"""

from __future__ import annotations

from typing import Any

from ..format import clip_text
from ..nodes import Fold, Node, Pre, Row, Stack, T
from ..state.cards import NoteCard
from ..values import bounded
from .base import Context


def card(state: NoteCard, context: Context) -> Node:
    """Return a row for each change of the model; it opens to the server's last reply."""
    rows = tuple(_row(payload if isinstance(payload, dict) else {}) for _, payload in state.items)
    return rows[0] if len(rows) == 1 else Stack(rows)


def _row(payload: dict[str, Any]) -> Node:
    model, why = (clip_text(str(payload.get(name) or ""), 300) for name in ("model", "why"))
    left = (
        T("⇢ ", tone="wait", label="Another model"),
        T("going on with ", tone="wait"),
        T(model, mono=True),
        T(f"  {why.rstrip('.')}", tone="muted"),
    )
    raw = bounded(str(payload.get("raw") or ""), 4000)
    return Fold((Row(left),), (Pre(raw),), title=f"going on with {model}") if raw else Row(left)
