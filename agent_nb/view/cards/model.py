"""A change of the model: a fallback goes on, since the one before was unreachable or overloaded."""

from __future__ import annotations

from typing import Any

from ...wire import as_dict
from ..format import clip_text
from ..nodes import Fold, Node, Pre, Row, Stack, T
from ..state.cards import NoteCard
from ..values import bound_text
from .base import Context


def card(state: NoteCard, context: Context) -> Node:
    """Return a row for each change of the model; it opens to the server's last reply."""
    rows = tuple(_row(as_dict(payload)) for _, payload in state.items)
    return rows[0] if len(rows) == 1 else Stack(rows)


def _row(payload: dict[str, Any]) -> Node:
    model, why = (clip_text(str(payload.get(name) or ""), 300) for name in ("model", "why"))
    left = (
        T("⇢ ", tone="wait", label="Another model"),
        T("going on with ", tone="wait"),
        T(model, mono=True),
        T(f"  {why.rstrip('.')}", tone="muted"),
    )
    raw = bound_text(str(payload.get("raw") or ""), 4000)
    return Fold((Row(left),), (Pre(raw),), title=f"going on with {model}") if raw else Row(left)
