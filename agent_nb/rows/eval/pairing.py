"""Pairs each row of one evaluation with the same row of another.

Rows differ more than prompts, so only differences within a row show a small improvement. Two rows
are the same if their columns (those of `on`, else all) have the same names, order and values. Both
sides must have the same rows: a mean over different rows compares the rows, not the prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...errors import UsageError
from ...record import digest_value
from ...wire import cut_end, nearest_json
from .evaluated import Evaluated
from .scores import ScoredRow

_SAME = 1e-12  # a smaller difference is rounding: scores are means of floats


class Pair(msgspec.Struct, frozen=True):
    """The same row in two evaluations: `a` comes from the first, `b` from the second."""

    a: ScoredRow
    b: ScoredRow

    @property
    def difference(self) -> float | None:
        """How much higher b scores; None if a side has no score."""
        a, b = self.a.score, self.b.score
        if a is None or b is None:
            return None
        return b - a if abs(b - a) > _SAME else 0.0

    @property
    def change(self) -> str:
        """`improved`, `worse`, `same`, or `missing` if a side has no score."""
        if (difference := self.difference) is None:
            return "missing"
        if difference == 0:
            return "same"
        return "improved" if difference > 0 else "worse"


def row_key(values: Mapping[Any, Any], columns: Sequence[str] | None = None) -> str:
    """Return a digest of the names and values of a row's `columns`, in this order (None: all)."""
    names = [*values] if columns is None else columns
    return digest_value([[str(name), _plain(values[name])] for name in names], 32)


def pair_rows(a: Evaluated, b: Evaluated, on: Sequence[str] | None) -> list[Pair]:
    """Return each row of a with the same row of b. Raises UsageError if the rows differ."""
    _check_columns(a, on, "a")
    _check_columns(b, on, "b")
    rows_a, rows_b = _index_rows(a, on), _index_rows(b, on)
    if rows_a.keys() != rows_b.keys():
        raise UsageError(_describe_mismatch(a, b, rows_a, rows_b, on))
    return [Pair(row, rows_b[key]) for key, row in rows_a.items()]


def _index_rows(
    evaluation: Evaluated, on: Sequence[str] | None
) -> dict[tuple[str, int], ScoredRow]:
    """Return (key, n) -> the n-th row with this key, from 1; equal rows have the same key."""
    seen: Counter[str] = Counter()
    indexed = {}
    for row in evaluation.scored:
        key = row.key if on is None else row_key(row.values, on)
        seen[key] += 1
        indexed[key, seen[key]] = row
    return indexed


def _check_columns(evaluation: Evaluated, on: Sequence[str] | None, side: str) -> None:
    for name in on or ():
        if problem := evaluation.data.ambiguity(name):
            raise UsageError(f"on={name!r} is not one column of {side}: {problem}.")
    unknown = [name for name in on or () if name not in evaluation.data]
    if unknown:
        raise UsageError(
            f"on={unknown[0]!r} names no column of {side}. {evaluation.data.hint(unknown[0])}"
        )


def _describe_mismatch(
    a: Evaluated,
    b: Evaluated,
    rows_a: Mapping[Any, ScoredRow],
    rows_b: Mapping[Any, ScoredRow],
    on: Sequence[str] | None,
) -> str:
    """Return why the rows of a and of b are not the same, and what to do."""
    if on is None and [*a.data.unique] != [*b.data.unique]:
        return (
            f"The two evaluations have other columns: {', '.join(a.data.names)}, and {', '.join(b.data.names)}."
            ' Say which columns name a row, such as on="id".'
        )
    only_a = [row for key, row in rows_a.items() if key not in rows_b]
    only_b = [row for key, row in rows_b.items() if key not in rows_a]
    first, side = (only_a[0], "a") if only_a else (only_b[0], "b")
    return (
        f"The two evaluations are not of the same rows: {len(only_a)} of {a.rows} rows of a are not in b, {len(only_b)} of {b.rows} of b not in a."
        f" The first is row {first.position} of {side}: {cut_end(repr(dict(first.values)), 200)}."
        f" Evaluate both on the same data{'' if on else ', or say which columns name a row (on=…)'}."
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON; one that JSON cannot hold is named with its type."""
    plain, changed = nearest_json(value)
    return {type(value).__qualname__: plain} if changed else plain
