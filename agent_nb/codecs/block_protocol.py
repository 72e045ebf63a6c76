"""Protocols whose blocks have a start, deltas and an end, each naming the block's id (AG-UI, the UI
message stream).

Why shared: the two differ in names only. A block's start is told live by an empty delta, so that a
stream that is translated as it comes keeps its lines in order; a stored block holds what its start
and end lines said in its note.

Rules
- A block that the stream leaves open is closed, as incomplete, by what ends the run. A delta
  without a start opens its block silently.
- Nothing of a line is drawn but its type and text; ids, names and roles are in the note of an
  imported line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..events import Call, Delta, Event, Respond, Think, User
from .passthrough import Shift, diff, restore
from .run_builder import OpenBlock, Source, text_of
from .writing import Live, line_texts

Obj = dict[str, Any]


class Form(msgspec.Struct, frozen=True):
    """One kind of block: the event it becomes, the types of its lines, and the keys of its id and
    of a delta's text.
    """

    of: str
    start: str
    delta: str
    end: str
    id: str
    text: str


CLASSES: dict[str, type[Event]] = {"respond": Respond, "think": Think, "user": User}


def opened(
    source: Source,
    form: Form,
    obj: Obj,
    *,
    of: str = "",
    name: str = "",
    ts: float = 0.0,
    where: Mapping[str, Any],
) -> list[Event]:
    """Read a start line. A block of that id that is open is closed before."""
    key = f"{form.start}:{text_of(obj, form.id)}"
    before = [ended_as_cut(source, block) for block in [source.take_call(key)] if block]
    note = {"start": diff(obj, {"type": form.start})}
    return [*before, source.open_block(of or form.of, key, note, name=name, ts=ts, where=where)]


def continued(
    source: Source, form: Form, obj: Obj, *, ts: float = 0.0, where: Mapping[str, Any]
) -> list[Event]:
    """Read a delta line; the block opens silently if it had no start."""
    text = obj[form.text]
    key = f"{form.start}:{text_of(obj, form.id)}"
    block = source.block(key)
    if block is None:
        source.open_block(form.of, key, {}, ts=ts, where=where)
        block = source.block(key)
    assert block is not None
    return [source.block_delta(block, text, obj, {"type": form.delta, form.text: text}, ts)]


def taken(source: Source, form: Form, obj: Obj) -> tuple[OpenBlock | None, Obj]:
    """Read an end line: return the block, if one was open, and the note."""
    return source.take_call(f"{form.start}:{text_of(obj, form.id)}"), {
        "end": diff(obj, {"type": form.end})
    }


def ended_as_cut(source: Source, block: OpenBlock) -> Event:
    """Close a block that never got its end."""
    return completed(source, block, {}, incomplete=True)


def completed(
    source: Source, block: OpenBlock, note: Obj, *, incomplete: bool = False, **fields: Any
) -> Event:
    """Return the event of a block."""
    if block.of == "call":
        args = parsed(block.text)
        sound = {
            "args": args if isinstance(args, dict) else {},
            "name": block.name,
            "incomplete": incomplete,
            "raw_args": block.text,
        }
        return source.complete(block, Call, note, **{**sound, **fields})
    extra = {} if block.of == "user" else {"incomplete": incomplete}
    return source.complete(block, CLASSES[block.of], note, content=block.text, **extra, **fields)


def parsed(text: str) -> Any:
    """Return the JSON value of a text, None if it is none."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


# Writing.


def imported_delta(event: Delta, form: Form, note: Obj, live: Live) -> list[Obj]:
    """Write a live delta as it came."""
    live.add(event)
    start = note.get("start")
    if isinstance(start, dict):
        return [restore({"type": form.start}, start)]
    return [restore({"type": form.delta, form.text: event.text}, note)]


def imported_block(
    event: Think | Respond | Call | User,
    form: Form,
    note: Obj,
    live: Live,
    shifts: Mapping[str, Shift],
) -> list[Obj]:
    """Write a stored block as it came, or just its end if its deltas have been written."""
    start, end = note.get("start"), note.get("end")
    out: list[Obj] = []
    if not live.take(event, str(note.get("block", ""))):
        out = [restore({"type": form.start}, start)] if isinstance(start, dict) else []
        out += [
            restore({"type": form.delta, form.text: text}, n)
            for text, n in line_texts(event, note, shifts)
        ]
    return [*out, restore({"type": form.end}, end)] if isinstance(end, dict) else out
