"""Compares a result with the recorded one, strictly: for tests.

In ordinary replays (`record.normalize`) a difference costs a run of the model, so a doubtful one
does not count. A test must not overlook a change, nor report one where only the clock, the machine
or the order of a set differs.

First each text is masked without regard to the other (`masked_text`): tracebacks, addresses, the
order of sets, patterns of the project (`Rule`) and the like. Then the pieces that may differ
(times, durations, paths) are compared in pairs, each with the time and the folders of its own run;
the text between them must be equal.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import msgspec

from ...wire import encode_canonical
from . import folders
from .clock import Clock, find_clocks
from .durations import LINES, Measures, Quantity, find_quantities, read_quantity
from .folders import PathPiece
from .masked_text import Mask, MaskedText, mask_text
from .surroundings import Side

_LONGEST_SHOWN = 200  # characters of a text in `Verdict.masked`


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern of the notebook's project: its matches are replaced before results are compared."""

    NAME_PREFIX: ClassVar[str] = "pattern "  # of the rule's name in `Verdict.masked`

    pattern: str
    replace: str = "…"


class Difference(NamedTuple):
    """A difference that does not count: the rule that allows it, and both texts."""

    rule: str
    recorded: str
    fresh: str

    def shorten(self) -> Difference:
        """Return the difference with texts that fit into a report."""
        if max(len(self.recorded), len(self.fresh)) <= _LONGEST_SHOWN:
            return self
        pairs = enumerate(zip(self.recorded, self.fresh, strict=False))
        first = next((n for n, (a, b) in pairs if a != b), 0)  # where they begin to differ
        texts = (_cut_excerpt(text, max(first - 20, 0)) for text in (self.recorded, self.fresh))
        return Difference(self.rule, *texts)


class Verdict(msgspec.Struct, frozen=True):
    """Whether two results are the same.

    `masked`: the differences that did not count; empty if the results are not the same.
    """

    same: bool
    masked: tuple[Difference, ...] = ()


Piece = Clock | Quantity | PathPiece  # a part of a text that may differ, from `start` to `end`


def compare_results(
    recorded: Any,
    fresh: Any,
    recorded_side: Side,
    fresh_side: Side,
    *,
    rules: Sequence[Rule] = (),
    measures: Measures = LINES,
) -> Verdict:
    """Compare the contents of two results, texts or JSON values.

    `rules`: patterns of the notebook's project. `measures`: where durations and rates may differ.
    """
    comparison = _Comparison(recorded_side, fresh_side, rules, measures)
    if not comparison.same_values(recorded, fresh):
        return Verdict(False)
    return Verdict(True, tuple(each.shorten() for each in dict.fromkeys(comparison.masked)))


class _Comparison:
    """Compares two values; collects in `masked` the differences that do not count."""

    def __init__(
        self, recorded_side: Side, fresh_side: Side, rules: Sequence[Rule], measures: Measures
    ) -> None:
        self.masked: list[Difference] = []
        self._recorded_side, self._fresh_side, self._measures = recorded_side, fresh_side, measures
        self._project_masks = [
            Mask(f"{Rule.NAME_PREFIX}{r.pattern!r}", re.compile(r.pattern), r.replace)
            for r in rules
        ]

    def same_values(self, recorded: Any, fresh: Any) -> bool:
        """Return whether two values are the same."""
        if isinstance(recorded, Mapping) and isinstance(fresh, Mapping):
            return self._same_mappings(
                {str(k): v for k, v in recorded.items()}, {str(k): v for k, v in fresh.items()}
            )
        if isinstance(recorded, list | tuple) and isinstance(fresh, list | tuple):
            return len(recorded) == len(fresh) and all(map(self.same_values, recorded, fresh))
        if isinstance(recorded, str) and isinstance(fresh, str):
            return self._same_texts(recorded, fresh)
        if _canonical_text(recorded) == _canonical_text(fresh):
            return True
        # numbers may be times of their runs (epoch seconds): compared as texts
        both_numbers = _is_number(recorded) and _is_number(fresh)
        return both_numbers and self._same_texts(str(recorded), str(fresh))

    def _same_mappings(self, recorded: dict[str, Any], fresh: dict[str, Any]) -> bool:
        """Compare members with equal keys, then the other members in the order of their keys.

        Keys that differ may still be the same to `_same_texts`, such as paths. Their order in the
        object does not count: Jupyter sorts the keys when it saves a notebook.
        """
        recorded_only = sorted(recorded.keys() - fresh.keys())
        fresh_only = sorted(fresh.keys() - recorded.keys())
        if len(recorded_only) != len(fresh_only):
            return False
        shared = ((key, key) for key in recorded if key in fresh)
        return all(
            self._same_texts(recorded_key, fresh_key)
            and self.same_values(recorded[recorded_key], fresh[fresh_key])
            for recorded_key, fresh_key in (*shared, *zip(recorded_only, fresh_only, strict=True))
        )

    def _same_texts(self, recorded: str, fresh: str) -> bool:
        if recorded == fresh:
            return True
        timing = self._measures.clock or self._measures.commands
        recorded_text = mask_text(recorded, self._project_masks, timing=timing)
        fresh_text = mask_text(fresh, self._project_masks, timing=timing)
        same = recorded_text.text == fresh_text.text
        if not same and not self._same_but_for_pieces(recorded_text.text, fresh_text.text):
            return False
        self.masked += _list_differences(recorded_text, fresh_text)
        return True

    def _same_but_for_pieces(self, recorded: str, fresh: str) -> bool:
        """Return whether two masked texts differ only in pieces that may differ."""
        # folders of either run in both texts: a path must not be a piece on one side only
        folder_roles = self._recorded_side.folders.find_roles(recorded)
        for path, roles in self._fresh_side.folders.find_roles(fresh).items():
            folder_roles[path] = folder_roles.get(path, set()) | roles
        recorded_pieces = _find_pieces(recorded, folder_roles, self._measures)
        fresh_pieces = _find_pieces(fresh, folder_roles, self._measures)
        if _text_between(recorded, recorded_pieces) != _text_between(fresh, fresh_pieces):
            return False
        for recorded_piece, fresh_piece in zip(recorded_pieces, fresh_pieces, strict=True):
            recorded_text = recorded[recorded_piece.start : recorded_piece.end]
            fresh_text = fresh[fresh_piece.start : fresh_piece.end]
            if recorded_text == fresh_text:
                continue
            rule = self._find_rule(recorded_piece, fresh_piece, recorded_text, fresh_text)
            if not rule:
                return False
            self.masked.append(Difference(rule, recorded_text, fresh_text))
        return True

    def _find_rule(self, recorded: Piece, fresh: Piece, recorded_text: str, fresh_text: str) -> str:
        """Return the name of the rule by which two pieces may differ, "" if none allows it."""
        if isinstance(recorded, Clock) and isinstance(fresh, Clock):
            if self._same_clock(recorded, fresh):
                return "clock"
            # a timedelta (0:00:01.5) looks like a time of day
            recorded_time = read_quantity(recorded_text, self._measures)
            fresh_time = read_quantity(fresh_text, self._measures)
            alike = recorded_time and fresh_time and recorded_time.is_like(fresh_time)
            return "duration" if alike else ""
        if isinstance(recorded, Quantity) and isinstance(fresh, Quantity):
            return "duration" if recorded.is_like(fresh) else ""
        if isinstance(recorded, PathPiece) and isinstance(fresh, PathPiece):
            if not recorded.roles and not fresh.roles:
                at_random = folders.differ_at_random(recorded_text, fresh_text)
                return folders.TEMPORARY if at_random else ""
            recorded_roles = self._recorded_side.folders.roles_of(recorded_text)
            shared = recorded_roles & self._fresh_side.folders.roles_of(fresh_text)
            return min(shared, default="")
        return ""

    def _same_clock(self, recorded: Clock, fresh: Clock) -> bool:
        """Return whether each value is the time, or at least the day, of its own run."""
        recorded_span, fresh_span = self._recorded_side.span, self._fresh_side.span
        # `ls -l` writes the date of a file in another form once the file is old
        if recorded.shape != fresh.shape:
            return recorded_span.may_have_aged(recorded, fresh)
        if recorded_span.holds(recorded) and fresh_span.holds(fresh):
            return True
        same_days = recorded_span.holds_day(recorded) and fresh_span.holds_day(fresh)
        return same_days and recorded.same_time(fresh)


def _find_pieces(text: str, known: Mapping[str, set[str]], measures: Measures) -> list[Piece]:
    """Return the pieces of a text in their order; of two that overlap, the one found first.

    `known`: path of a folder -> its roles (`Folders.find_roles`).
    """
    candidates: Iterable[Piece] = (
        *folders.find_folders(text, known),
        *find_clocks(text),
        *find_quantities(text, measures),
    )
    pieces: list[Piece] = []
    for piece in candidates:
        index = bisect_right(pieces, piece.start, key=attrgetter("start"))
        overlaps_left = index > 0 and pieces[index - 1].end > piece.start
        overlaps_right = index < len(pieces) and pieces[index].start < piece.end
        if not (overlaps_left or overlaps_right):
            pieces.insert(index, piece)
    return pieces


def _text_between(text: str, pieces: Sequence[Piece]) -> list[str]:
    """Return the text before, between and after the pieces."""
    ends = [0, *(piece.end for piece in pieces)]
    return [text[a:b] for a, b in zip(ends, [*(p.start for p in pieces), len(text)], strict=True)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _canonical_text(value: Any) -> str:
    try:
        return encode_canonical(value)
    except (ValueError, RecursionError):
        return str(value)


def _list_differences(recorded: MaskedText, fresh: MaskedText) -> Iterator[Difference]:
    """Yield what each mask replaced differently in the two texts."""
    for name in dict.fromkeys((*recorded.replaced, *fresh.replaced)):
        pairs = zip_longest(recorded.replaced[name], fresh.replaced[name], fillvalue="")
        yield from (Difference(name, *pair) for pair in pairs if len(set(pair)) > 1)


def _cut_excerpt(text: str, start: int) -> str:
    end = start + _LONGEST_SHOWN
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
