"""Explains why no recorded request is equal to a request: the first field that differs."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import msgspec

from ..wire import cut_end, encode_canonical
from .claude_code import read_version
from .exchange import Request
from .masks import Masks, TapeMasks, mask_text, read_target

_LONGEST_VALUE = 100  # characters of a value in a description of a difference
_SHOWN_BEFORE = 20  # characters of the value that are shown before the difference
_COMPARED = 4_000  # characters at the end of requests, by which the nearest one is chosen
_MOST_RIVALS = 200  # requests that are compared: each takes a millisecond
_MOST_TARGETS = 5  # places that are named, if nothing was sent to the request's own
_MISSING = "(missing)"


def describe_miss(
    request: Request, key: str, recorded: Sequence[tuple[str, Request]], masks: TapeMasks
) -> str:
    """Return how a request differs from the nearest recorded one to the same place.

    `key`: of the request (`TapeMasks.make_key`). `recorded`: (key, request) pairs; of pairs that
    are equally near the first one counts.
    """
    if not recorded:
        return "no model call of this notebook is recorded"
    target = read_target(request)
    rivals = [(known, each) for known, each in recorded if read_target(each) == target]
    if rivals:
        return _describe_difference(_choose_nearest(rivals, key), request, masks)
    known = sorted({" ".join(read_target(each)).strip() for _, each in recorded})
    return f"{' '.join(target).strip()} is not recorded, only {', '.join(known[:_MOST_TARGETS])}"


def _choose_nearest(rivals: Sequence[tuple[str, Request]], key: str) -> Request:
    """Return the recorded request whose key is most like `key` at its end."""
    matcher = SequenceMatcher(b=key[-_COMPARED:], autojunk=True)

    def measure_likeness(rival: tuple[str, Request]) -> float:
        matcher.set_seq1(rival[0][-_COMPARED:])
        return matcher.quick_ratio()

    return max(rivals[:_MOST_RIVALS], key=measure_likeness)[1]


def _describe_difference(recorded: Request, request: Request, masks: TapeMasks) -> str:
    before, now = recorded.body.value, request.body.value
    difference = _find_difference(
        before, now, masks.choose_masks(recorded), masks.choose_masks(request)
    )
    if difference is None:  # a mask fits a single field and not the whole text, or vice versa
        return "the recorded request differs in what `normalize` masks"
    shown_values = " → ".join(_show_both(difference.before, difference.now))
    text = f"{difference.path or 'the body'} differs from the recorded request: {shown_values}"
    version_before, version_now = read_version(before), read_version(now)
    if version_before == version_now:
        return text
    return f"{text} Claude Code was {version_before} and is {version_now}."


class _Difference(msgspec.Struct, frozen=True):
    """A value that differs, its `path`, what it was `before` (recorded) and is `now`."""

    path: str
    before: Any
    now: Any


def _find_difference(
    before: Any, now: Any, masks_before: Masks, masks_now: Masks
) -> _Difference | None:
    """Return the first of the innermost values that differ, each with its masks; None for none."""
    pending = [_Difference("", before, now)]
    while pending:
        each = pending.pop()
        path, before, now = each.path, each.before, each.now
        if mask_text(encode_canonical(before), masks_before) == mask_text(
            encode_canonical(now), masks_now
        ):
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            prefix = f"{path}." if path else ""
            inner = [
                _Difference(f"{prefix}{n}", before.get(n, _MISSING), now.get(n, _MISSING))
                for n in dict.fromkeys([*before, *now])
            ]
        elif isinstance(before, list) and isinstance(now, list):
            pairs = zip_longest(before, now, fillvalue=_MISSING)
            inner = [_Difference(f"{path}[{n}]", *pair) for n, pair in enumerate(pairs)]
        else:
            return each
        pending += reversed(inner)  # the first one is looked at next
    return None


def _show_both(before: Any, now: Any) -> tuple[str, str]:
    """Return two values as short texts of one line, from a little before they differ."""
    texts = [v if v is _MISSING else encode_canonical(v) for v in (before, now)]
    pairs = enumerate(zip(*texts, strict=False))
    differ_at = next((n for n, (a, b) in pairs if a != b), min(map(len, texts)))
    start = max(differ_at - _SHOWN_BEFORE, 0)
    shown = (f"…{text[start:]}" if start else text for text in texts)
    text_before, text_now = (cut_end(text, _LONGEST_VALUE) for text in shown)
    return text_before, text_now
