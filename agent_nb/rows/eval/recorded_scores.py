"""Records the scores of an evaluation with its map, and compares them with the scores of a replay.

A replay takes the answers from the record and scores them anew. Without recorded scores, a changed
score function or expected value would change the figures unnoticed.

Rule: of more than `MOST_SCORES` scores only the number, the mean and a digest are recorded. In a
digest a difference by rounding counts too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ...agent import Change, Checked
from ...record import digest_value
from ...view import count_noun
from ...wire import as_list
from .intervals import exact_mean
from .scores import Candidate, Score
from .scoring import LARGEST_SCORE

KIND = "map.scores"  # the kind of the state that holds the scores
MOST_SCORES = 5_000  # the most that are recorded one by one
UNSEEN = "the scores of an evaluation are not compared: its record has none"


def scores_payload(
    scored_by: str,
    candidates: Sequence[Candidate],
    scores: Sequence[Score],
    inputs: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the payload of the state that records the scores, one for each candidate.

    `inputs`: `code` -> the digest of the score function, or `expected` -> the digests of values.
    """
    values = [score.value for score in scores]
    scored_values = [value for value in values if value is not None]
    payload: dict[str, Any] = {"by": scored_by, **inputs}
    if len(values) <= MOST_SCORES:
        rows = [[c.position, c.repeat] for c in candidates]
        return {**payload, "rows": rows, "scores": values}
    # a list of digests is as long as the scores: one digest stands for it
    short = {k: digest_value(v) if isinstance(v, list) else v for k, v in payload.items()}
    mean = exact_mean(scored_values) if scored_values else None
    return {**short, "count": len(values), "mean": mean, "digest": digest_value(values)}


def compare_scores(recorded: Any, new: Mapping[str, Any]) -> Checked:
    """Return how the scores of a replay differ from the recorded ones (None: none are recorded).

    Both arguments are payloads of `scores_payload`. A different score, scorer or expected value is
    a change; changed code that still gives the same scores is a warning.
    """
    if recorded is None:
        return Checked(unseen=(UNSEEN,))
    old = recorded if isinstance(recorded, Mapping) else {}
    return Checked(changes=tuple(_list_changes(old, new)))


def _list_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes of scores or code, and of the scorer or the expected values."""
    change = f"the evaluation ({new['by']}) changed since the recording"
    if difference := _describe_scores(old, new):
        yield Change(text=f"{change}: {difference}")
    elif old.get("code", "") != new.get("code", ""):
        yield Change(text=f"{change}: its code, but no score", warning=True)
    if old.get("by") != new["by"]:
        yield Change(text=f"{change}: it was scored by {str(old.get('by'))[:80]}")
    elif old.get("expected") != new.get("expected"):
        unequal = _find_unequal(as_list(old.get("expected")), as_list(new.get("expected")))
        # a digest of many values does not say which of them differ
        answer = "" if isinstance(old.get("expected"), str) else _name_answer(new, unequal)
        yield Change(text=f"{change}: the expected value{answer}")


def _describe_scores(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return how the scores differ in words, "" if they do not."""
    old_count, new_count = _count_scores(old), _count_scores(new)
    if old_count != new_count:
        return f"it has {count_noun(new_count, 'score')}, not {old_count:,}"
    if "scores" not in new:
        return "" if old.get("digest") == new["digest"] else f"some of its {new_count:,} scores"
    old_scores, new_scores = as_list(old.get("scores")), new["scores"]
    unequal = _find_unequal(old_scores, new_scores)
    if not unequal:
        return ""
    number = f"{count_noun(len(unequal), 'score')} of {len(new_scores)}{_name_answer(new, unequal)}"
    first = unequal[0]
    return f"{number} ({_format_value(old_scores[first])} → {_format_value(new_scores[first])})"


def _count_scores(payload: Mapping[str, Any]) -> int:
    """Return the number of scores in a payload of `scores_payload`."""
    count: Any = payload.get("count")
    is_digest = isinstance(count, int) and MOST_SCORES < count <= LARGEST_SCORE
    return int(count) if is_digest else len(as_list(payload.get("scores")))


def _find_unequal(old: Sequence[Any], new: Sequence[Any]) -> list[int]:
    """Return the positions of values that differ by more than rounding."""
    pairs = enumerate(zip_longest(old, new))
    return [position for position, (a, b) in pairs if a != b and not _are_close(a, b)]


def _name_answer(new: Mapping[str, Any], positions: Sequence[int]) -> str:
    """Return words that name the answer at the first of `positions`, "" if it is unknown."""
    rows = new.get("rows") or []
    if not positions or positions[0] >= len(rows):
        return ""
    position, repeat = rows[positions[0]]
    return f", first of row {position}" + (f", repeat {repeat}" if repeat else "")


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a score can be."""
    return isinstance(value, int | float) and abs(value) <= LARGEST_SCORE


def _are_close(old: Any, new: Any) -> bool:
    are_numbers = _is_number(old) and _is_number(new)
    return are_numbers and math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12)


def _format_value(value: Any) -> str:
    if value is None:
        return "no score"
    return f"{value:.6g}" if _is_number(value) else str(value)[:40]
