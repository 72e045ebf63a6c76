"""The difference between a foreign object as it came and as we would write it, so that it comes out
unchanged.

Why: canonical fields do not determine all of a foreign object. The rest (unknown fields, an
envelope, null for absent) is kept in `extra[codec]`, the note, and nothing else is: the canonical
fields stay the only home of what they carry.

Form: `{"fields": {...}, "absent": [...]}`, both optional. Rules: pure functions;
`restore_object(drawn, note_difference(obj, drawn)) == obj` for all JSON objects; 1, 1.0 and true
are three different values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

# How a field counts on: (its value on a line, lines since, milliseconds since) -> value expected.
Shift = Callable[[Any, int, int], Any]

_encode = msgspec.json.Encoder().encode


def is_same_json(a: Any, b: Any) -> bool:
    """Return whether two JSON values are written alike."""
    if type(a) is not type(b) or a != b:
        return False
    return not isinstance(a, dict | list) or _encode(a) == _encode(b)


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
    for key in absent if isinstance(absent, list) else ():
        obj.pop(key, None)
    return {**obj, **fields} if isinstance(fields, dict) else obj


def shift_note(
    note: Mapping[str, Any], shifts: Mapping[str, Shift], lines: int, ms: int
) -> dict[str, Any]:
    """Return the note expected `lines` lines and `ms` milliseconds after a line with `note`.

    `shifts` are the fields that count on (a sequence number, a time); a value of another type stays
    as it is.
    """
    fields = note.get("fields")
    if not isinstance(fields, dict) or not lines:
        return dict(note)
    return {
        **note,
        "fields": {k: shifts[k](v, lines, ms) if k in shifts else v for k, v in fields.items()},
    }


def line_notes(
    note: Mapping[str, Any], shifts: Mapping[str, Shift], gaps: Iterable[int]
) -> Iterator[Mapping[str, Any]]:
    """Yield the note of each line of a block.

    `note["lines"]`: number of a line -> the note stored for it; the notes of the lines between
    follow from the stored one before (`shift_note`), that of the first line is `note` itself.
    `gaps`: the milliseconds before each line.
    """
    listed = note.get("lines")
    own = listed if isinstance(listed, dict) else {}
    base, lines, ms = note, 0, 0
    for number, gap in enumerate(gaps):
        lines, ms = lines + 1, ms + gap
        mark = own.get(str(number))
        if not number or isinstance(mark, dict):
            base, lines, ms = mark if isinstance(mark, dict) else note, 0, 0
        yield shift_note(base, shifts, lines, ms)


def count_on(value: Any, lines: int, _ms: int) -> Any:
    """Shift a field that counts lines."""
    return value + lines if type(value) is int else value
