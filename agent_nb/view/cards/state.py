"""States (snapshots, updates, checkpoints) of an imported run: one quiet line that opens.

Each snapshot shows what changed since the one it replaces (the latest of its kind, else of any),
because states are large and change little.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...wire import as_dict
from ..format import clip_text, count_noun, format_json, join_parts, text_row
from ..nodes import Diff, Fold, Json, Node, Row, T
from ..state.cards import NoteCard
from ..state.json_diff import MISSING, Change, find_changes
from .base import Context

MOST_EVENTS = 50  # that are shown
MOST_OPEN_CHANGES = 6  # of an open snapshot in a group; one alone, or with more, is closed
MOST_CHANGES = 40  # that are listed
LONGEST_NOTE = 400  # characters
LONGEST_VALUE = 160  # characters of a value in a change
LONGEST_NAMES = 100  # characters of the names of snapshots or events
TELLING = ("step", "id", "checkpoint_id", "status", "state")  # fields that identify a snapshot


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive snapshots as one fold."""
    pairs = list(zip(state.items, state.before, strict=False))[:MOST_EVENTS]
    if len(pairs) == 1:
        ((title, payload), before) = pairs[0]
        return _snapshot(title, payload, before, alone=True)
    names = (_describe_snapshot(*item) for item, _ in pairs)
    body = (_snapshot(title, payload, before) for (title, payload), before in pairs)
    return draw_group(state, "⟳", "state event", names, body)


def draw_group(
    state: NoteCard, mark: str, noun: str, names: Iterable[str], body: Iterable[Node]
) -> Fold:
    """Return consecutive events as one fold: their number and `names`, and below them `body`.

    `body` has the first `MOST_EVENTS` of them; a last line says how many more there are.
    """
    size = count_noun(len(state.items), noun)
    listed = clip_text(", ".join(dict.fromkeys(names)), LONGEST_NAMES)
    left = tuple(T(text, tone="muted") for text in (f"{mark} {size}", f"  {listed}"))
    left_out = len(state.items) - MOST_EVENTS
    more = (text_row(f"… {left_out:,} more"),) if left_out > 0 else ()
    return Fold((Row(left),), (*body, *more), title=f"{size}: {listed}")


def _snapshot(title: str, payload: Any, before: Any, *, alone: bool = False) -> Node:
    """Return one snapshot: a line with the number of changes, which opens to them and the whole.

    `alone`: the snapshot is not in a group; if its state is only a note, it is one line.
    """
    payload_tree, name = Json(payload), _describe_snapshot(title, payload)
    note = payload.get("note") if isinstance(payload, dict) and len(payload) == 1 else None
    if alone and isinstance(note, str):
        return text_row(f"⟳ {name}  {clip_text(note, LONGEST_NOTE)}", wrap=True)
    left = (T(f"⟳ {name}", tone="muted"),) if alone else (T(name),)
    if before is MISSING:
        return Fold((Row(left),), (payload_tree,), title=name)
    changes = find_changes(inner(before), inner(payload))
    diff = (Diff("\n".join(_line(c) for c in changes[:MOST_CHANGES])),) if changes else ()
    more = len(changes) - MOST_CHANGES
    unlisted = (text_row(f"… {count_noun(more, 'more change')}"),) if more > 0 else ()
    row = Row(left, (T(_count_kinds(changes), tone="muted"),))
    full = Fold((text_row("whole"),), (payload_tree,), title="whole")
    return Fold(
        (row,),
        (*diff, *unlisted, full),
        open=not alone and 0 < len(changes) <= MOST_OPEN_CHANGES,
        title=name,
    )


def inner(payload: Any) -> Any:
    """Return the state inside a checkpoint, or the whole payload if it has none.

    The checkpoint's own ids and times change every time, so they are not compared.
    """
    state = payload.get("state") if isinstance(payload, dict) else None
    return state if isinstance(state, dict | list) else payload


def _describe_snapshot(title: str, payload: Any) -> str:
    """Return the kind of a snapshot with the fields that identify it."""
    fields = as_dict(payload)
    status = fields.get("status")
    if isinstance(status, dict) and isinstance(status.get("state"), str):
        return clip_text(join_parts(title, status["state"]), LONGEST_NAMES)
    identifying = [
        f"{k} {fields[k]}"
        for k in TELLING
        if isinstance(fields.get(k), str | int) and not isinstance(fields.get(k), bool)
    ]
    return clip_text(join_parts(title, *identifying), LONGEST_NAMES)


def _count_kinds(changes: list[Change]) -> str:
    """Return how many changes of each kind there are: `2 changed · 1 added`."""
    kinds = [change.kind for change in changes]
    numbers = {kind: kinds.count(kind) for kind in ("changed", "added", "removed")}
    return join_parts(*(f"{n} {kind}" for kind, n in numbers.items() if n)) or "unchanged"


def _line(change: Change) -> str:
    """Return a change as one or two lines of a diff."""
    sides = (("-", change.before), ("+", change.after))
    path = change.path or "(all)"
    return "\n".join(
        f"{sign} {path}: {format_json(value, LONGEST_VALUE)}"
        for sign, value in sides
        if value is not MISSING
    )
