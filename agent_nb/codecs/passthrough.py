"""Notes the difference between a foreign object and ours, so that a run is written back unchanged.

"Drawn" is the object that we would write for an event. The difference is the event's note,
`extra[codec]`: the `fields` of the original that we would not write so, and the names of fields
that are `absent` there. Both are optional:

    original  {"type": "stream", "content": "High", "seq": 7}
    drawn     {"type": "stream", "content": "High"}             note  {"fields": {"seq": 7}}

Rules
- `restore_object(drawn, note_difference(obj, drawn)) == obj` for all JSON objects, in which 1, 1.0
  and true are three different values.
- A reader may add marks to an object, fields that begin with `#`; foreign names are guarded first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ..wire import as_dict, as_list

# how a field grows from line to line: (its value on a line, the lines and the milliseconds from
# there to another line) -> its expected value on that line
Shift = Callable[[Any, int, int], Any]

_encode = msgspec.json.Encoder().encode


def is_same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values have the same text; Python holds 1, 1.0 and True for equal."""
    if type(left) is not type(right) or left != right:
        return False
    return not isinstance(left, dict | list) or _encode(left) == _encode(right)


def note_difference(obj: Mapping[str, Any], drawn: Mapping[str, Any]) -> dict[str, Any]:
    """Return the note that, with `drawn`, restores `obj`; {} if they are equal."""
    note: dict[str, Any] = {}
    fields = {k: v for k, v in obj.items() if k not in drawn or not is_same_json(v, drawn[k])}
    absent = [k for k in drawn if k not in obj]
    if fields:
        note["fields"] = fields
    if absent:
        note["absent"] = absent
    return note


def restore_object(drawn: Mapping[str, Any], note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object whose difference from `drawn` is `note`. Malformed notes are ignored."""
    obj = dict(drawn)
    absent, fields = note.get("absent"), note.get("fields")
    for key in as_list(absent):
        obj.pop(key, None)
    return {**obj, **fields} if isinstance(fields, dict) else obj


def guard_names(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return a foreign object in which no name can be taken for a mark of ours: `#x` is `##x`."""
    return {f"#{k}" if k.startswith("#") else k: v for k, v in obj.items()}


def is_mark(name: str) -> bool:
    """Return whether a field is a mark: added by a reader of ours, and never written."""
    return name.startswith("#") and not name.startswith("##")


def strip_marks(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without its marks, and with the guarded names as they came."""
    return {k.removeprefix("#"): v for k, v in obj.items() if not is_mark(k)}


def shift_note(
    note: Mapping[str, Any], shifts: Mapping[str, Shift], lines: int, ms: int
) -> dict[str, Any]:
    """Return the note expected `lines` lines and `ms` milliseconds after a line with `note`.

    `shifts`: the fields that grow from line to line (a sequence number, a time). Other fields, and
    values that are no number or time, stay unchanged.
    """
    fields = note.get("fields")
    if not isinstance(fields, dict) or not lines:
        return dict(note)
    shifted = {k: shifts[k](v, lines, ms) if k in shifts else v for k, v in fields.items()}
    return {**note, "fields": shifted}


def line_notes(
    note: Mapping[str, Any], shifts: Mapping[str, Shift], gaps: Iterable[int]
) -> Iterator[Mapping[str, Any]]:
    """Yield the note of each line of a block, the first of which is `note` itself.

    `note["lines"]`: number of a line -> the note stored for it. Each other note follows from the
    last stored one (`shift_note`). `gaps`: the milliseconds before each line.
    """
    stored = as_dict(note.get("lines"))
    base, lines, ms = note, 0, 0
    for number, gap in enumerate(gaps):
        lines, ms = lines + 1, ms + gap
        line_note = stored.get(str(number))
        # the first line, and each line with a stored note, is where the next notes count from
        if not number or isinstance(line_note, dict):
            base, lines, ms = line_note if isinstance(line_note, dict) else note, 0, 0
        yield shift_note(base, shifts, lines, ms)


def count_on(value: Any, lines: int, _ms: int) -> Any:
    """Shift a field that counts lines."""
    return value + lines if type(value) is int else value
