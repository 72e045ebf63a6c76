"""Turns blocks into deltas again, and imported events into their lines, for the writers of codecs.

An imported event becomes its original line: what `draw` makes of it, changed by its `note`, which
holds how the original differed (`passthrough`).

Rule: an event comes whole from a record, but as deltas and then whole from a live run; both must
give the same lines, each once (`LiveBlocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..events import Call, Delta, Event, Respond, Think, User, block_text, decode_chunks
from ..wire import dumps
from .foreign_values import parse_json
from .passthrough import Shift, line_notes, restore_object

Block = Think | Respond | Call


def as_text(value: Any) -> str:
    """Return a result's content as text: a string as it is, other values as JSON."""
    return value if isinstance(value, str) else dumps(value)


def split_block(event: Block) -> list[tuple[str, int]]:
    """Return (text, milliseconds before it) of each delta; one item if they are unknown.

    They are unknown without `chunks`, and if an edited text has another length.
    """
    text = block_text(event)
    try:
        lengths = list(decode_chunks(event.chunks))
    except ValueError:
        lengths = []
    if not lengths or sum(length for length, _ in lengths) != len(text):
        return [(text, 0)]
    out, start = [], 0
    for length, gap in lengths:
        out.append((text[start : start + length], gap))
        start += length
    return out


def split_arguments(call: Call) -> list[str]:
    """Return the JSON text of a call's arguments, in the pieces in which the model wrote it.

    Arguments edited since then are one piece.
    """
    is_unedited = not call.args or parse_json(call.raw_args) == call.args
    if call.raw_args and is_unedited:
        return [text for text, _ in split_block(call)]
    return [dumps(call.args)]


def split_with_notes(
    event: Block, note: Mapping[str, Any], shifts: Mapping[str, Shift]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return (text, note of its line) for each delta of an imported block.

    `note`: the first line's. `shifts`: how its fields grow from line to line (`passthrough`).
    """
    pieces = split_block(event)
    notes = line_notes(note, shifts, (gap for _, gap in pieces))
    return zip((text for text, _ in pieces), notes, strict=True)


def split_delta_lines(
    event: Block | User, note: Mapping[str, Any], shifts: Mapping[str, Shift]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Split as `split_with_notes` does, and a block without `chunks` into nothing.

    For formats with start and end lines, in which a block may have no delta lines.
    """
    if isinstance(event, User):  # it has no field for `chunks`: they are in its note
        event = Respond(content=event.content, chunks=str(note.get("chunks") or ""))
    return split_with_notes(event, note, shifts) if event.chunks else iter(())


def restore_line(
    event: Event, note: Mapping[str, Any], draw: Mapping[type[Event], Callable[[Any], Any]]
) -> list[dict[str, Any]]:
    """Return the original line of an imported event; [] if it had none."""
    to_line = draw.get(type(event))
    if to_line is not None and not note.get("derived"):
        return [restore_object(to_line(event), note)]
    return []


def restore_block(
    event: Block,
    note: Mapping[str, Any],
    shifts: Mapping[str, Shift],
    live: LiveBlocks,
    draw: Callable[[str], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the original delta lines of an imported block; [] if they were written live.

    `draw` returns the line that we would write for a piece of text.
    """
    if live.end_block(event):
        return []
    return [restore_object(draw(text), n) for text, n in split_with_notes(event, note, shifts)]


class LiveBlocks:
    """The open blocks whose deltas have been written live."""

    def __init__(self) -> None:
        self._blocks: set[tuple[str, str]] = set()

    def add_delta(self, delta: Delta) -> bool:
        """Record a written delta; return whether it is the first of its block."""
        key = (delta.run, delta.block)
        is_first = key not in self._blocks
        self._blocks.add(key)
        return is_first

    def end_block(self, event: Event, block: str = "") -> bool:
        """Close a block; return whether its deltas have been written.

        `block`: the block's id, for an event without a field `block`.
        """
        key = (event.run, block or getattr(event, "block", ""))
        was_written = key in self._blocks
        self._blocks.discard(key)
        return was_written
