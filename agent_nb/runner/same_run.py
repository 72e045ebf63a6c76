"""Compares two records: did their runs go the same way?

Why: a live rerun with the same answers writes a new record that says nothing new. If the older
record stays instead, the notebook has no diff in git.

Rules
- Times, generated names (of runs, calls, blocks, spans) and sealed thoughts do not count
  (`_DROPPED_FIELDS`, `_DROPPED_PARTS`, `_NAME_FIELDS`); everything else in the events does.
- Of the place of a run (folders, interpreter, time zone) it counts which values the record has, not
  the values: a replay compares more or less accordingly.
- Of a map, the rows (in any order) and the total use count, but not the snapshots of its progress.
  A new map that found all its rows asked nothing: neither its plan nor its use counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..events import State, to_builtins
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
    "node": {"data": ("digest", "run")},  # of a request with generated names, of a sub-run
}
_NAME_FIELDS = frozenset({"call_id", "block", "batch", "span", "parent"})
_SHORTEST_NAME = 4  # characters; shorter names are not looked for in texts
_SHORT_RUN = 4  # characters of the run's id in the command that inserts an offered cell


def same_run(one: Record, other: Record) -> bool:
    """Return whether `other`, the newer one, differs only in times and generated names."""
    try:
        counts = [e.payload for e in events_of(other) if isinstance(e, State) and e.kind == COUNTS]
        newest = as_dict(counts[-1] if counts else None)
        with_use = not newest or newest.get("found") != newest.get("total")
        return _canonical_text(one, with_use=with_use) == _canonical_text(other, with_use=with_use)
    except (ValueError, RecursionError):
        return False


def _canonical_text(record: Record, *, with_use: bool = True) -> str:
    """Return the parts of a record that count, as canonical text."""
    log = events_of(record)
    events = [to_builtins(event) for event in log]
    names = _GeneratedNames(str(record.get("id", "")), events)
    rows = InnerRecords.of_log(log)
    compared_events = _events_of_map(events, with_use=with_use) if rows else events
    return encode_canonical(
        [
            *(record.get(name) for name in RECORD_FIELDS),
            [_comparable_fields(event, names) for event in compared_events],
            {key: _canonical_text(row) for key, row in rows.items()},
        ]
    )


def _events_of_map(events: list[dict[str, Any]], *, with_use: bool) -> list[dict[str, Any]]:
    """Return the events of a map that count beside its rows. `with_use`: plan and use, too."""
    # of several metrics only the last counts: it has the total of the map
    last_metric = next((e for e in reversed(events) if e.get("type") == "metric"), None)
    return [
        event
        for event in events
        if event.get("kind") not in (COUNTS, InnerRecords.KIND)
        and (event.get("type") != "metric" or (with_use and event is last_metric))
        and (with_use or event.get("kind") != f"{COUNTS}.plan")
    ]


def _comparable_fields(event: Mapping[str, Any], names: _GeneratedNames) -> dict[str, Any]:
    """Return the fields of an event that count, with numbers in place of generated names."""
    fields: dict[str, Any] = {
        key: names.number(str(value)) if key in _NAME_FIELDS else value
        for key, value in event.items()
        if key not in _DROPPED_FIELDS
    }
    if "calls" in fields:
        fields["calls"] = [names.number(str(call)) for call in as_list(fields["calls"])]
    for key, dropped in _DROPPED_PARTS.get(str(event.get("type")), {}).items():
        parts = as_dict(fields.get(key))
        fields[key] = {
            part: sorted(as_dict(value)) if part == "place" else value
            for part, value in parts.items()
            if part not in dropped
        }
    return {key: names.replace_in(value) for key, value in fields.items()}


class _GeneratedNames:
    """The generated names of one run, numbered in the order of appearance."""

    def __init__(self, run: str, events: list[dict[str, Any]]) -> None:
        self._numbers: dict[str, str] = {}
        self._run = self.number(run)
        for event in events:
            for key in sorted(_NAME_FIELDS):
                self.number(str(event.get(key, "")))
            for call in as_list(event.get("calls")):
                self.number(str(call))
        long = sorted((n for n in self._numbers if len(n) >= _SHORTEST_NAME), key=len, reverse=True)
        # only there: any other text of these characters counts
        command = rf"(?P<command>%agent cell \d+ ){re.escape(run[:_SHORT_RUN])}"
        self._texts = re.compile(rf"(?<!\w)(?:{'|'.join([command, *map(re.escape, long)])})(?!\w)")

    def number(self, path: str) -> str:
        """Return the number of a name; a path of names, such as `a/b`, gets the numbers of both."""
        return "/".join(
            self._numbers.setdefault(part, f"\0{len(self._numbers)}") for part in path.split("/")
        )

    def replace_in(self, value: Any) -> Any:
        """Return a JSON value whose texts have numbers in place of the names."""
        if isinstance(value, str):
            return self._texts.sub(
                lambda m: m["command"] + self._run if m["command"] else self.number(m[0]), value
            )
        if isinstance(value, Mapping):
            return {self.replace_in(key): self.replace_in(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.replace_in(part) for part in value]
        return value
