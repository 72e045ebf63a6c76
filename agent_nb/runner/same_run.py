"""Compares two records: did their runs go the same way?

Why: a live rerun with the same answers writes a new record that says nothing new. If the older
record is kept instead, the notebook has no diff in git.

Rules
- Times, generated names (of runs, calls, blocks, spans), sealed thoughts and the rest of
  `_DROPPED_FIELDS` and `_DROPPED_PARTS` do not count.
- Everything else in the events counts: each text, argument, result and picture, tokens, cost, the
  order. Of the other fields of the record, `RECORD_FIELDS` count.
- Of a map, the rows (in any order) and the total use count, but not the snapshots of its progress.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..events import to_builtins
from ..record import InnerRecords, Record, events_of
from ..rows import COUNTS
from ..wire import as_dict, as_list, encode_canonical

#: The fields of a record that count beside its events.
RECORD_FIELDS = ("cell", "source", "conversation", "fresh", "ordinal", "row", "status", "cut")
_DROPPED_FIELDS = frozenset({"ts", "seq", "run", "chunks", "duration", "opaque"})
# type of event -> field -> parts of its value that do not count
_DROPPED_PARTS: dict[str, dict[str, Sequence[str]]] = {
    "metric": {"step": ("duration", "ttft"), "total": ("duration", "ttft")},
    "run_start": {"settings": ("hash",)},  # follows from the other settings
    "node": {"data": ("digest",)},  # of a request; includes the generated names of calls
}
_NAME_FIELDS = frozenset({"call_id", "block", "batch", "span", "parent"})
_SHORTEST_NAME = 4  # characters; shorter names are not looked for in texts


def same_run(one: Record, other: Record) -> bool:
    """Return whether two whole records differ only in times and generated names."""
    try:
        return _canonical_text(one) == _canonical_text(other)
    except (ValueError, RecursionError):
        return False


def _canonical_text(record: Record) -> str:
    """Return the parts of a record that count, as canonical text."""
    log = events_of(record)
    events = [to_builtins(event) for event in log]
    names = _GeneratedNames(str(record.get("id", "")), events)
    rows = InnerRecords.of_log(log)
    compared_events = _events_of_map(events) if rows else events
    return encode_canonical(
        [
            *(record.get(name) for name in RECORD_FIELDS),
            [_comparable_fields(event, names) for event in compared_events],
            {key: _canonical_text(row) for key, row in rows.items()},
        ]
    )


def _events_of_map(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a map that count beside its rows."""
    # of several metrics only the last counts: it has the total of the map
    last_metric = next((e for e in reversed(events) if e.get("type") == "metric"), None)
    return [
        event
        for event in events
        if event.get("kind") not in (COUNTS, InnerRecords.KIND)
        and (event.get("type") != "metric" or event is last_metric)
    ]


def _comparable_fields(event: Mapping[str, Any], names: _GeneratedNames) -> dict[str, Any]:
    """Return the fields of an event that count, with numbers in place of generated names."""
    fields: dict[str, Any] = {}
    for key, value in event.items():
        if key in _NAME_FIELDS:
            fields[key] = names.number(str(value))
        elif key not in _DROPPED_FIELDS:
            fields[key] = value
    for key, dropped in _DROPPED_PARTS.get(str(event.get("type")), {}).items():
        parts = as_dict(fields.get(key))
        fields[key] = {part: value for part, value in parts.items() if part not in dropped}
    return {key: names.replace_in(value) for key, value in fields.items()}


class _GeneratedNames:
    """The generated names of one run, numbered in the order of appearance."""

    def __init__(self, run: str, events: list[dict[str, Any]]) -> None:
        self._numbers: dict[str, str] = {}
        self.number(run)
        for event in events:
            for key in sorted(_NAME_FIELDS):
                self.number(str(event.get(key, "")))
            for call in as_list(event.get("calls")):
                self.number(str(call))
        long = sorted((n for n in self._numbers if len(n) >= _SHORTEST_NAME), key=len, reverse=True)
        # a text may also name a run by the first characters of its id
        short = [re.escape(run[:_SHORTEST_NAME])] if len(run) > _SHORTEST_NAME else []
        # `(?!)` matches nothing
        self._texts = re.compile(
            rf"(?<!\w)(?:{'|'.join([*map(re.escape, long), *short])})(?!\w)" if long else r"(?!)"
        )
        self._run = run

    def number(self, path: str) -> str:
        """Return the numbers for a name, or for a path of names."""
        return "/".join(
            self._numbers.setdefault(part, f"\0{len(self._numbers)}") for part in path.split("/")
        )

    def replace_in(self, value: Any) -> Any:
        """Return a JSON value whose texts have numbers in place of the names."""
        if isinstance(value, str):
            number = self._numbers
            # a match that is not a name is the short id of the run
            return self._texts.sub(lambda text: number.get(text[0], number[self._run]), value)
        if isinstance(value, Mapping):
            return {self.replace_in(key): self.replace_in(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.replace_in(part) for part in value]
        return value
