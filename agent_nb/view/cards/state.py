"""States (snapshots, updates, checkpoints) of an imported run: one quiet line that opens.

Each snapshot shows what changed since the snapshot before, because states are large and change
little. The card of extensions uses `notes`, which shows each payload as a whole.
"""

from __future__ import annotations

import json
from typing import Any

from ..format import clip_text, count_noun, join_parts, text_row
from ..nodes import Diff, Fold, Json, Node, Row, T
from ..state.cards import NoteCard
from ..state.json_diff import MISSING, Change, changes
from .base import Context

SHOWN = 50  # snapshots
FEW = 6  # changes that are shown without opening
LINES = 40  # changes that are listed
LONGEST = 400  # characters of a note
VALUE = 160  # characters of a value in a change
TELLING = ("step", "id", "checkpoint_id", "status", "state")  # fields that identify a snapshot


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive snapshots as one fold."""
    pairs = list(zip(state.items, state.before, strict=False))[:SHOWN]
    if len(pairs) == 1:
        ((title, payload), before) = pairs[0]
        return _snapshot(title, payload, before, alone=True)
    names = list(dict.fromkeys(_named(title, payload) for title, payload in state.items[:SHOWN]))
    size = count_noun(len(state.items), "state event")
    left = (T(f"⟳ {size}", tone="muted"), T(f"  {clip_text(', '.join(names), 100)}", tone="muted"))
    body = tuple(_snapshot(title, payload, before) for (title, payload), before in pairs)
    return Fold((Row(left),), (*body, *_more(state)), title=f"{size}: {', '.join(names)}")


def _snapshot(title: str, payload: Any, before: Any, *, alone: bool = False) -> Node:
    """Return one snapshot: a line with the number of changes, which opens to them and the whole.

    `alone`: the snapshot is not in a group; if its state is only a note, it is one line.
    """
    payload_tree, name = Json(payload), _named(title, payload)
    note = payload.get("note") if isinstance(payload, dict) and len(payload) == 1 else None
    if alone and isinstance(note, str):
        return text_row(f"⟳ {name}  {clip_text(note, LONGEST)}", wrap=True)
    left = (T(f"⟳ {name}", tone="muted"),) if alone else (T(name),)
    if before is MISSING:
        return Fold((Row(left),), (payload_tree,), title=name)
    changed = changes(inner(before), inner(payload))
    diff = (Diff("\n".join(_line(c) for c in changed[:LINES])),) if changed else ()
    more = len(changed) - LINES
    unlisted = (text_row(f"… {count_noun(more, 'more change')}"),) if more > 0 else ()
    row = Row(left, (T(_counts(changed), tone="muted"),))
    full = Fold((text_row("whole"),), (payload_tree,), title="whole")
    return Fold(
        (row,), (*diff, *unlisted, full), open=not alone and 0 < len(changed) <= FEW, title=name
    )


def inner(payload: Any) -> Any:
    """Return the state inside a checkpoint, or the whole payload if it has none.

    The checkpoint's own ids and times change every time, so they are not compared.
    """
    state = payload.get("state") if isinstance(payload, dict) else None
    return state if isinstance(state, dict | list) else payload


def _named(title: str, payload: Any) -> str:
    """Return the kind of a snapshot with the fields that identify it."""
    fields = payload if isinstance(payload, dict) else {}
    status = fields.get("status")
    if isinstance(status, dict) and isinstance(status.get("state"), str):
        return clip_text(join_parts(title, status["state"]), 100)
    identifying = [
        f"{k} {fields[k]}"
        for k in TELLING
        if isinstance(fields.get(k), str | int) and not isinstance(fields.get(k), bool)
    ]
    return clip_text(join_parts(title, *identifying), 100)


def _counts(listed: list[Change]) -> str:
    kinds = [c.kind for c in listed]
    numbers = {kind: kinds.count(kind) for kind in ("changed", "added", "removed")}
    return join_parts(*(f"{n} {kind}" for kind, n in numbers.items() if n)) or "unchanged"


def _line(change: Change) -> str:
    lines = (
        (sign, value)
        for sign, value in (("-", change.before), ("+", change.after))
        if value is not MISSING
    )
    return "\n".join(f"{sign} {change.path or '(all)'}: {_value(value)}" for sign, value in lines)


def _value(value: Any) -> str:
    try:
        return clip_text(json.dumps(value, ensure_ascii=False, default=str), VALUE)
    except (ValueError, RecursionError):
        return "…"


def _more(state: NoteCard) -> tuple[Node, ...]:
    left_out = len(state.items) - SHOWN
    return (text_row(f"… {left_out:,} more"),) if left_out > 0 else ()


def notes(state: NoteCard, noun: str, mark: str) -> Node:
    """Return consecutive events as a fold: their number and names, and each payload below."""
    names = list(dict.fromkeys(title for title, _ in state.items))
    size = count_noun(len(state.items), f"{noun} event")
    left = (
        T(f"{mark} {size}", tone="muted"),
        T(f"  {clip_text(', '.join(names), 100)}", tone="muted"),
    )
    body = tuple(
        part for title, payload in state.items[:SHOWN] for part in (text_row(title), Json(payload))
    )
    return Fold((Row(left),), (*body, *_more(state)), title=f"{size}: {', '.join(names)}")
