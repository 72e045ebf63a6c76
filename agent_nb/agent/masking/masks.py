"""Whether a result is the same as recorded, strictly: for tests.

Why beside `normalize`: there a drift costs a run of the model, so doubtful differences do not
count. A test must not overlook a change, nor report one where only the clock, the machine or the
order of a set differs.

Rules
- Equal values are equal before anything is masked.
- Masked on each side, alike for both: tracebacks (the last line and the cell's own frames count,
  without the marks below a line), suggestions behind an error, addresses, threads and tasks in
  reprs, cell numbers, places of modules, the order of sets, the patterns of the notebook's project
  (`Rule`); where code measures, the output of `%time` and `%timeit`; the meter of tqdm.
- What is left is compared in pairs: a piece of the record and the piece in its place. It may differ
  if both are times near their own run, or the same folder of their own run, or made-up names of
  temporary files, or alike durations where these are tolerated (`Measures`). One more piece is a
  difference.
- Values in JSON are compared one by one; 1 and 1.0 are the same.
- `Verdict.masked` lists the pairs that differed and did not count.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import msgspec

from ...wire import Console, encode_canonical
from . import folders
from .clock import Clock, Span, find_clocks
from .durations import LINES, Measures, Quantity, find_quantities, read_quantity
from .folders import Folders, Named

LONGEST_SET = 20_000  # characters
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SET = re.compile(rf"\{{[^{{}}]{{1,{LONGEST_SET}}}\}}")
_TRACEBACK = re.compile(
    r"(?m)^[^\n]*Traceback \(most recent call last\):?[^\n]*\n(?P<frames>(?:[ \t>-][^\n]*\n|\n|(?:File|Cell)[ <][^\n]*\n)*)"
)
_FRAME = re.compile(r"(?m)^ *(?=(?:File|Cell) )")
_OWN_FRAME = re.compile(r" *(?:Cell In|File \"?<(?!frozen)|File [^\n]*ipykernel_)")
_MARK_LINE = re.compile(r"(?m)^[ \t]*[\^~]+[ \t]*\n?")
_ARROW, _LINE = re.compile(r"(?m)^(?:-+> ?| +)\d+ (.*)$"), r"  \1"
# lines that %time and %timeit print only for slow code
_SLOW = (
    r"(?:The slowest run took \d+\.\d\d times longer than the fastest\.[^\n]*|Compiler time: \d+\.\d\d s"
    r"|(?:Compiler|Parser  ) : [\d.]+ ?(?:ns|µs|μs|us|ms|s|min|h)(?: \d+(?:min|s))*)(?=\n|\Z)"
)
_MODULE = r"(?:\((?:built-in|frozen)\)|from '[^'\n]{0,500}?(?:[\\/]lib(?:64)?[\\/]python3[\d.]*|(?:site|dist)-packages)[\\/][^'\n]{0,500}')"
_SUGGESTION = (
    r"(?:[.?!] (?:Did you mean:? '[^'\n]*'|Did you forget to import '[^'\n]*')"
    r"(?: ?[.?,]? Or did you forget to import '[^'\n]*')?[.?]?|[.,]? Or did you forget to import '[^'\n]*'\??)"
)
# (name among the masked differences, pattern, replacement), for results of code that measures
_TIMING_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("time", re.compile(r"(?m)^(CPU times: |Wall time: )[^\n]*$"), r"\1…"),
    (
        "time",
        re.compile(
            r"(?<![\d.])[\d.]+ (?:ns|µs|μs|us|ms|s|min) ± [^\n(]* per loop \(mean ± std\. dev\. of [^\n)]*\)"
        ),
        "… per loop",
    ),
    ("time", re.compile(rf"\n{_SLOW}|^{_SLOW}\n?"), ""),
)
# the same, for all results
_GENERAL_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("cell number", re.compile(r"\b(In|Out) ?\[\d+\]"), r"\1[…]"),
    ("cell number", re.compile(r"<(ipython-input|agent code)[- ]\d+(?:-\w+)?>"), r"<\1>"),
    ("cell number", re.compile(r"ipykernel_\d+[/\\]\d+\.py"), "ipykernel"),
    ("address", re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=[>,\s])"), "0x…"),
    (
        "thread",
        re.compile(r"(?<=Thread\()((?:Thread-)?)\d*([^<>]*?,[^<>]*?) \d+(?=\)>)"),
        r"\1…\2 …",
    ),
    ("task", re.compile(r"(?<=<Task )(\w+ name='Task-)\d+"), r"\1…"),
    ("picture", re.compile(r"\((image/[\w.+-]+), [\d,]+ bytes\)"), r"(\1)"),
    (folders.PYTHON, re.compile(rf"(?<=<module ')([\w.]+)' {_MODULE}(?=>)"), r"\1'"),
    (
        folders.PYTHON,
        re.compile(
            r"(?m)((?:[\\/]lib(?:64)?[\\/]python3[\d.]*|(?:site|dist)-packages)[\\/][^\n:]{0,300}\.py:)\d+(?=: \w*Warning\b)"
        ),
        r"\1…",
    ),
    (
        "suggestion",
        re.compile(rf"(?m)(^(?:error: )?[\w.]*(?:Error|Exception): [^\n]*?){_SUGGESTION}$"),
        r"\1",
    ),
    (
        "time",
        re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^\]\n]*|, [^\]\n]*/(?:s|it)[^\]\n]*)\]"),
        "[…]",
    ),
)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern that the notebook's project excludes from comparison, and its replacement."""

    NAME_PREFIX: ClassVar[str] = "pattern "  # of its name among the masked differences

    pattern: str
    replace: str = "…"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of two runs: its time and its folders."""

    span: Span
    folders: Folders = Folders()


class Verdict(msgspec.Struct, frozen=True):
    """Whether two values are the same, and the masked differences as (rule, recorded, now)."""

    same: bool
    masked: tuple[tuple[str, str, str], ...] = ()


Piece = Clock | Quantity | Named
Masked = tuple[str, str]  # rule, text


def compare_results(
    recorded: Any,
    fresh: Any,
    before: Side,
    now: Side,
    *,
    rules: Sequence[Rule] = (),
    measures: Measures = LINES,
) -> Verdict:
    """Compare the contents of two results, texts or JSON values.

    `before`, `now`: the recorded run and this one. `rules`: patterns of the notebook's project.
    `measures`: where durations and rates may differ.
    """
    comparison = _Comparison(before, now, rules, measures)
    same = comparison.same_values(recorded, fresh)
    return Verdict(same, tuple(comparison.masked) if same else ())


class _Comparison:
    """Compares two values, and keeps what differed and did not count."""

    def __init__(self, before: Side, now: Side, rules: Sequence[Rule], measures: Measures) -> None:
        self.masked: list[tuple[str, str, str]] = []
        self._before, self._now, self._measures = before, now, measures
        patterns = (
            (f"{Rule.NAME_PREFIX}{r.pattern!r}", re.compile(r.pattern), r.replace) for r in rules
        )
        self._patterns = tuple(patterns)
        self._rules = (
            *(_TIMING_RULES if measures.clock or measures.commands else ()),
            *_GENERAL_RULES,
        )

    def same_values(self, old: Any, new: Any) -> bool:
        """Return whether two values are the same."""
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            return self._same_mappings(
                {str(k): v for k, v in old.items()}, {str(k): v for k, v in new.items()}
            )
        if isinstance(old, list | tuple) and isinstance(new, list | tuple):
            return len(old) == len(new) and all(map(self.same_values, old, new))
        if isinstance(old, str) and isinstance(new, str):
            return self._same_texts(old, new)
        if _canonical(old) == _canonical(new):
            return True
        return _is_number(old) and _is_number(new) and self._same_texts(str(old), str(new))

    def _same_mappings(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Compare by equal keys, and the rest of the keys in their order."""
        left, right = ([k for k in a if k not in b] for a, b in ((old, new), (new, old)))
        pairs = [*((k, k) for k in old if k in new), *zip(left, right, strict=False)]
        return len(left) == len(right) and all(
            self._same_texts(one, other) and self.same_values(old[one], new[other])
            for one, other in pairs
        )

    def _same_texts(self, old: str, new: str) -> bool:
        if old == new:
            return True
        old_masked, old_masks = self._mask(old)
        new_masked, new_masks = self._mask(new)
        if old_masked != new_masked and not self._compare_pieces(old_masked, new_masked):
            return False
        self.masked += _list_differing(old_masks, new_masks)
        return True

    def _mask(self, text: str) -> tuple[str, list[Masked]]:
        """Return a text masked without regard to the other side, and what was masked."""
        masked: list[Masked] = []
        text = Console.render_screen(text) if "\r" in text else text
        text = re.sub(r"[ \t]+(?=\n|\Z)", "", _ANSI.sub("", text))
        for name, pattern, plain in self._patterns:
            text = _replace_listed(text, name, pattern, plain, masked)
        text = _TRACEBACK.sub(_mask_traceback, text)
        for name, pattern, plain in self._rules:
            text = _replace_listed(text, name, pattern, plain, masked)
        return folders.hide_home(_SET.sub(_sort_set, text)).strip(), masked

    def _compare_pieces(self, old: str, new: str) -> bool:
        """Compare two masked texts piece by piece; return whether only pieces may differ."""
        known = self._before.folders.roles(old)
        for path, roles in self._now.folders.roles(new).items():
            known[path] = known.get(path, set()) | roles
        old_pieces, new_pieces = (list(_pieces(text, known, self._measures)) for text in (old, new))
        if len(old_pieces) != len(new_pieces):
            return False
        if _text_between(old, old_pieces) != _text_between(new, new_pieces):
            return False
        for one, other in zip(old_pieces, new_pieces, strict=True):
            recorded, fresh = old[one.start : one.end], new[other.start : other.end]
            if recorded == fresh:
                continue
            rule = self._matching_rule(one, other, recorded, fresh)
            if not rule:
                return False
            self.masked.append((rule, recorded, fresh))
        return True

    def _matching_rule(self, old: Piece, new: Piece, recorded: str, fresh: str) -> str:
        """Return the name of the rule by which two pieces may differ, "" if there is none."""
        if isinstance(old, Clock) and isinstance(new, Clock):
            if self._same_clock(old, new):
                return "clock"
            # a timedelta looks like a time of day
            old_time, new_time = (read_quantity(text, self._measures) for text in (recorded, fresh))
            return (
                self._matching_rule(old_time, new_time, recorded, fresh)
                if old_time and new_time
                else ""
            )
        if isinstance(old, Quantity) and isinstance(new, Quantity):
            return "duration" if old.is_like(new) else ""
        if isinstance(old, Named) and isinstance(new, Named):
            if not old.roles and not new.roles:
                return folders.TEMPORARY if folders.differ_at_random(recorded, fresh) else ""
            shared = self._before.folders.roles_of(recorded) & self._now.folders.roles_of(fresh)
            return next(iter(sorted(shared)), "")
        return ""

    def _same_clock(self, old: Clock, new: Clock) -> bool:
        before, after = self._before.span, self._now.span
        if old.shape != new.shape:
            return before.is_aged(old, new)
        if before.holds(old) and after.holds(new):
            return True
        return old.same_time(new) and before.holds_day(old) and after.holds_day(new)


def _pieces(text: str, known: Mapping[str, set[str]], measures: Measures) -> Iterator[Piece]:
    """Yield the pieces of a text in their order; of two that overlap, the one found first.

    `known`: folders and what they are; see `Folders.roles`.
    """
    candidates: Iterable[Piece] = (
        *folders.find_folders(text, known),
        *find_clocks(text),
        *find_quantities(text, measures),
    )
    starts: list[int] = []
    pieces: list[Piece] = []
    for piece in candidates:
        at = bisect_right(starts, piece.start)
        if (at and pieces[at - 1].end > piece.start) or (
            at < len(pieces) and starts[at] < piece.end
        ):
            continue
        starts.insert(at, piece.start)
        pieces.insert(at, piece)
    return iter(pieces)


def _text_between(text: str, pieces: Sequence[Piece]) -> list[str]:
    """Return what stands before, between and after the pieces of a text."""
    ends = [0, *(piece.end for piece in pieces)]
    return [text[a:b] for a, b in zip(ends, [*(p.start for p in pieces), len(text)], strict=True)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _canonical(value: Any) -> str:
    try:
        return encode_canonical(value)
    except (ValueError, RecursionError):
        return str(value)


def _list_differing(old: Sequence[Masked], new: Sequence[Masked]) -> Iterator[tuple[str, str, str]]:
    """Yield the masked values that differ."""
    for name in dict.fromkeys(rule for rule, _ in (*old, *new)):
        sides = ([text for rule, text in side if rule == name] for side in (old, new))
        yield from (
            (name, one, other) for one, other in zip_longest(*sides, fillvalue="") if one != other
        )


def _replace_listed(
    text: str, name: str, pattern: re.Pattern[str], plain: str, masked: list[Masked]
) -> str:
    def put(match: re.Match[str]) -> str:
        masked.append((name, match[0]))
        return match.expand(plain)

    return pattern.sub(put, text)


def _sort_set(match: re.Match[str]) -> str:
    """Return the text of a set with its items sorted, other text unchanged."""
    try:
        value = ast.literal_eval(match[0])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return match[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else match[0]


def _mask_traceback(match: re.Match[str]) -> str:
    """Return a traceback with the cell's frames only, without marks and line numbers."""
    own = "".join(frame for frame in _FRAME.split(match["frames"]) if _OWN_FRAME.match(frame))
    return f"Traceback\n{_ARROW.sub(_LINE, _MARK_LINE.sub('', own))}"
