"""The size limit of a record: how a run that is too large is cut, and how each cut is marked.

Why: a notebook with a record of many megabytes opens, saves and merges slowly.

Rule: the events of start, prompts, answers and end of a run always stay, so that a record is valid
after any cut. Calls with cut arguments never run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from ..wire import encode_canonical
from .packing import Payloads, surely_fits

CAP = 4 << 20  # bytes of JSON of one record
HEAD = 1000  # characters that are kept of a cut text
LARGEST_UNCUT = 2 * HEAD  # bytes; values up to this size are not cut
_CUT_ORDER = """progress.data progress.text result.display result.attachments extension.payload
state.payload node.data result.content user.attachments think.opaque error.raw think.content
call.raw_args call.args approval.args respond.content user.content"""
# (event type, field) in the order in which they are cut
CUT_ORDER = tuple(tuple(name.split(".")) for name in _CUT_ORDER.split())
# fields whose type is an object, or a list: what replaces them must have this type too
_OBJECTS = frozenset(
    {("result", "display"), ("node", "data"), ("call", "args"), ("approval", "args")}
)
_LISTS = frozenset({("user", "attachments"), ("result", "attachments")})
_DROP_ORDER = """progress metric node state extension started approval think error execute result
call"""
# types of events that are removed whole, in this order, if cutting was not enough
DROPPED = tuple(_DROP_ORDER.split())


class Cut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One thing that was cut: the value of a `field`, or whole events of the type `kind`.

    seq, bytes: the number of the field's event, and the size of the value before the cut. events:
    how many whole events were removed.
    """

    kind: str
    seq: int = 0
    field: str = ""
    bytes: int = 0
    events: int = 0


def measure_json(value: Any) -> int:
    """Return the size of a value's canonical JSON in bytes."""
    return len(encode_canonical(value).encode("utf-8", "replace"))


def shorten_events(packed: list[dict[str, Any]], payloads: dict[str, Any], cap: int) -> list[Cut]:
    """Cut packed events in place until they and their payloads fit about `cap` bytes.

    Return what was cut. `payloads` is not changed: the caller removes payloads to which no event
    refers any longer.
    """
    if surely_fits((packed, payloads), cap):
        return []
    references = _References(packed, payloads)
    excess = measure_json(packed) + references.size - cap
    cuts: list[tuple[dict[str, Any], Cut]] = []  # the event, and what was cut from it
    for kind, field in CUT_ORDER:
        if excess <= 0:
            break
        for size, event in _find_large_values(packed, kind, field, references.sizes):
            if excess > 0:
                excess -= measure_json(event[field]) + references.release(event[field])
                excess += _replace_by_mark(event, kind, field, size, payloads)
                cuts.append((event, Cut(kind=kind, field=field, bytes=size)))
    # remove whole events if that was not enough; events that were cut may be among them
    dropped = list(_remove_events(packed, excess))
    # the positions after the removal
    seqs = {id(event): position for position, event in enumerate(packed, 1)}
    for event, cut in cuts:
        cut.seq = seqs.get(id(event), 0)
    remaining = sorted((cut for _, cut in cuts if cut.seq), key=lambda c: (c.seq, c.field))
    return remaining + dropped


class _References:
    """How often events refer to each payload. `sizes`: bytes by key; `size`: of all in use."""

    def __init__(self, packed: list[dict[str, Any]], payloads: dict[str, Any]) -> None:
        self.sizes = {key: measure_json(value) for key, value in payloads.items()}
        self._payloads = payloads
        needed = Payloads.find_needed_keys(packed, payloads)
        self.size = sum(self.sizes[key] for key in needed)
        values = [value for event in packed for value in event.values()]
        values += [payloads[key] for key in needed]  # a payload may refer to others
        self._counts = Counter(key for value in values for key in Payloads.find_keys(value))

    def release(self, value: Any) -> int:
        """Drop the references in a value; return the bytes of payloads that are not needed now."""
        released = 0
        for key in Payloads.find_keys(value):
            self._counts[key] -= 1
            if not self._counts[key]:
                released += self.sizes[key] + self.release(self._payloads[key])
        return released


def _find_large_values(
    packed: list[dict[str, Any]], kind: str, field: str, payload_sizes: dict[str, int]
) -> list[tuple[int, dict[str, Any]]]:
    """Return (bytes, event) of the large values of a field, the largest first.

    A payload counts in full for each value that refers to it.
    """
    large = []
    for event in packed:
        if event.get("type") == kind and field in event:
            keys = Payloads.find_keys(event[field])
            size = measure_json(event[field]) + sum(payload_sizes.get(k, 0) for k in keys)
            if size > LARGEST_UNCUT:
                large.append((size, event))
    return sorted(large, key=lambda pair: -pair[0])


def _replace_by_mark(
    event: dict[str, Any], kind: str, field: str, size: int, payloads: dict[str, Any]
) -> int:
    """Replace a value by a mark; a text keeps its beginning. Return the bytes of the new value."""
    value = event[field]
    # a long text is a payload: its beginning is kept
    if isinstance(value, dict) and isinstance(payloads.get(str(value.get("$payload"))), str):
        value = payloads[value["$payload"]]
    mark = f"[{size:,} bytes cut from the record]"
    if (kind, field) in _LISTS:
        event[field] = []
    elif (kind, field) in _OBJECTS:
        event[field] = {"text/plain": mark}
    else:
        event[field] = f"{value[:HEAD]}\n{mark}" if isinstance(value, str) else mark
    if field in ("content", "raw_args"):
        event.pop("chunks", None)
    # these arguments would be read from the text that was just cut
    if field == "raw_args" and event.get("args") == {"$raw": True}:
        event["args"] = {"text/plain": mark}
    return measure_json(event[field])


def _remove_events(packed: list[dict[str, Any]], excess: int) -> Iterator[Cut]:
    """Remove whole events, type after type in the order of `DROPPED`, the last events first.

    Stops when `excess` bytes are removed; yields a `Cut` for each type.
    """
    for kind in DROPPED:
        if excess <= 0:
            return
        removed = 0
        for index in range(len(packed) - 1, -1, -1):
            if packed[index].get("type") == kind and excess > 0:
                excess -= measure_json(packed.pop(index)) + 1  # 1 for its comma
                removed += 1
        if removed:
            yield Cut(kind=kind, events=removed)
