"""Compare a result with the recorded one, strictly: for tests.

Why not `record.normalize`, which ordinary replays use: in a replay a difference costs a run of the
model, so a doubtful difference does not count. A test must not overlook a change, nor report a
change where only the clock, the machine or the order of a set differs.

Rules
- Equal values count as the same before anything is masked; values in JSON are compared one by one.
- First each side is masked without regard to the other (`_mask`): tracebacks, addresses, cell
  numbers, the order of sets, patterns of the notebook's project (`Rule`) and the like.
- Then the pieces of both texts (times, durations, paths) are compared in pairs; the text between
  them must be equal.
- Two pieces may differ if both are times near their own run, the same folder of their own run,
  made-up names of temporary files, or alike durations where these are tolerated (`Measures`).
- `Verdict.masked` lists, once each, the differences that did not count, including what the
  first step masks (colours, blanks, overwritten text, …).
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar

import msgspec

from ...wire import Console, encode_canonical
from . import folders
from .clock import Clock, Span, find_clocks
from .durations import LINES, Measures, Quantity, find_quantities, read_quantity
from .folders import Folders, PathPiece

LONGEST_SET = 20_000  # characters
_LONGEST_SHOWN = 200  # characters of a text in `Verdict.masked`
_BLANKS = re.compile(r"(?<![ \t])[ \t]+(?=\n|\Z)")  # at the end of a line
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# {…} without braces inside; `_sort_set` decides whether it is a set
_SET = re.compile(rf"\{{[^{{}}]{{1,{LONGEST_SET}}}\}}")
# the heading of a traceback and, as `frames`, the indented, blank, "File …", "Cell …" lines below
_TRACEBACK = re.compile(
    r"(?m)^[^\n]*Traceback \(most recent call last\):?[^\n]*\n(?P<frames>(?:[ \t>-][^\n]*\n|\n|(?:File|Cell)[ <][^\n]*\n)*)"
)
_FRAME_START = re.compile(r"(?m)^ *(?=(?:File|Cell) )")
# frames of the cell and of code without a file: Cell In[3], File "<string>", ipykernel_12/34.py
_OWN_FRAME = re.compile(r" *(?:Cell In|File \"?<(?!frozen)|File [^\n]*ipykernel_)")
_MARK_LINE = re.compile(r"(?m)^[ \t]*[\^~]+[ \t]*\n?")  # ~~^~~ below a line of code
_NUMBERED_LINE = re.compile(r"(?m)^(?:-+> ?| +)\d+ (.*)$")  # "----> 3 f()"
# lines that %time and %timeit print only for slow code
_SLOW = (
    r"(?:The slowest run took \d+\.\d\d times longer than the fastest\.[^\n]*|Compiler time: \d+\.\d\d s"
    r"|(?:Compiler|Parser  ) : [\d.]+ ?(?:ns|µs|μs|us|ms|s|min|h)(?: \d+(?:min|s))*)(?=\n|\Z)"
)
# where a module comes from: <module 'math' (built-in)>, <module 're' from '/usr/lib/python3/re.py'>
_MODULE_ORIGIN = r"(?:\((?:built-in|frozen)\)|from '[^'\n]{0,500}?(?:[\\/]lib(?:64)?[\\/]python3[\d.]*|(?:site|dist)-packages)[\\/][^'\n]{0,500}')"
# what Python appends to the message of an error; it depends on the names that exist
_SUGGESTION = (
    r"(?:[.?!] (?:Did you mean:? '[^'\n]*'|Did you forget to import '[^'\n]*')"
    r"(?: ?[.?,]? Or did you forget to import '[^'\n]*')?[.?]?|[.,]? Or did you forget to import '[^'\n]*'\??)"
)
# Rules are (name in `Verdict.masked`, pattern, replacement). These apply to results of code that
# measures: the output of %time and %timeit.
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
# These apply to all results.
_GENERAL_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # In [3], <ipython-input-3-ab12>, ipykernel_12/34.py
    ("cell number", re.compile(r"\b(In|Out) ?\[\d+\]"), r"\1[…]"),
    ("cell number", re.compile(r"<(ipython-input|agent code)[- ]\d+(?:-\w+)?>"), r"<\1>"),
    ("cell number", re.compile(r"ipykernel_\d+[/\\]\d+\.py"), "ipykernel"),
    # <object at 0x7f…>, <Thread(Thread-3 (work), started 1402…)>, <Task … name='Task-7'
    ("address", re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=[>,\s])"), "0x…"),
    (
        "thread",
        re.compile(r"(?<=Thread\()((?:Thread-)?)\d*([^<>]*?,[^<>]*?) \d+(?=\)>)"),
        r"\1…\2 …",
    ),
    ("task", re.compile(r"(?<=<Task )(\w+ name='Task-)\d+"), r"\1…"),
    # (image/png, 12,345 bytes)
    ("picture", re.compile(r"\((image/[\w.+-]+), [\d,]+ bytes\)"), r"(\1)"),
    (folders.PYTHON, re.compile(rf"(?<=<module ')([\w.]+)' {_MODULE_ORIGIN}(?=>)"), r"\1'"),
    # the line number in "…/site-packages/pandas/core.py:12: FutureWarning"
    (
        folders.PYTHON,
        re.compile(
            r"(?m)((?:[\\/]lib(?:64)?[\\/]python3[\d.]*|(?:site|dist)-packages)[\\/][^\n:]{0,300}\.py:)\d+(?=: \w*Warning\b)"
        ),
        r"\1…",
    ),
    # "NameError: name 'x' is not defined. Did you mean: 'y'?"
    (
        "suggestion",
        re.compile(rf"(?m)(^(?:error: )?[\w.]*(?:Error|Exception): [^\n]*?){_SUGGESTION}$"),
        r"\1",
    ),
    # the meter of tqdm: [00:01<00:02, 3.4it/s]
    (
        "time",
        re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^\]\n]*|, [^\]\n]*/(?:s|it)[^\]\n]*)\]"),
        "[…]",
    ),
)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern of the notebook's project: its matches are replaced before results are compared."""

    NAME_PREFIX: ClassVar[str] = "pattern "  # of the rule's name in `Verdict.masked`

    pattern: str
    replace: str = "…"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the run that made a result: its time and its folders."""

    span: Span
    folders: Folders = Folders()


class Verdict(msgspec.Struct, frozen=True):
    """Whether two results are the same.

    `masked`: the differences that did not count, as (name of the rule, recorded text, new text);
    empty if the results are not the same.
    """

    same: bool
    masked: tuple[tuple[str, str, str], ...] = ()


Piece = Clock | Quantity | PathPiece  # a part of a text that may differ, from `start` to `end`
Masked = tuple[str, str]  # name of a rule, the text that it replaced


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

    `before`, `now`: time and folders of the recorded run and of this one. `rules`: patterns of the
    notebook's project. `measures`: where durations and rates may differ.
    """
    comparison = _Comparison(before, now, rules, measures)
    same = comparison.same_values(recorded, fresh)
    return Verdict(same, tuple(map(shorten_pair, dict.fromkeys(comparison.masked))) if same else ())


def shorten_pair(pair: tuple[str, str, str]) -> tuple[str, str, str]:
    """Return an entry of `Verdict.masked` with texts that fit into a report."""
    rule, old, new = pair
    start = 0
    if max(len(old), len(new)) > _LONGEST_SHOWN:  # show where they begin to differ
        same = (a == b for a, b in zip(old, new, strict=False))
        start = max(next((n for n, equal in enumerate(same) if not equal), 0) - 20, 0)
    return rule, _cut_excerpt(old, start), _cut_excerpt(new, start)


class _Comparison:
    """Compares two values; collects in `masked` the differences that do not count."""

    def __init__(self, before: Side, now: Side, rules: Sequence[Rule], measures: Measures) -> None:
        self.masked: list[tuple[str, str, str]] = []
        self._before, self._now, self._measures = before, now, measures
        self._project_rules = [
            (f"{Rule.NAME_PREFIX}{r.pattern!r}", re.compile(r.pattern), r.replace) for r in rules
        ]
        timing = _TIMING_RULES if measures.clock or measures.commands else ()
        self._rules = (*timing, *_GENERAL_RULES)

    def same_values(self, old: Any, new: Any) -> bool:
        """Return whether two values are the same."""
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            return self._same_mappings(*({str(k): v for k, v in m.items()} for m in (old, new)))
        if isinstance(old, list | tuple) and isinstance(new, list | tuple):
            return len(old) == len(new) and all(map(self.same_values, old, new))
        if isinstance(old, str) and isinstance(new, str):
            return self._same_texts(old, new)
        if _canonical_text(old) == _canonical_text(new):
            return True
        return _is_number(old) and _is_number(new) and self._same_texts(str(old), str(new))

    def _same_mappings(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Compare members with equal keys, then the other members in their order.

        Keys that differ may still be the same to `_same_texts`: paths, say.
        """
        # the keys that only one side has
        left, right = ([k for k in a if k not in b] for a, b in ((old, new), (new, old)))
        pairs = [*((k, k) for k in old if k in new), *zip(left, right, strict=False)]
        return len(left) == len(right) and all(
            self._same_texts(old_key, new_key) and self.same_values(old[old_key], new[new_key])
            for old_key, new_key in pairs
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
        """Return a text masked without regard to the other side, and what the rules replaced."""
        masked: list[Masked] = []
        if "\r" in text:
            masked += [("overwritten text", line) for line in text.split("\n") if "\r" in line]
            text = Console.render_screen(text)
        text = _apply_rule("colour", _ANSI, "", text, masked)
        text = _apply_rule("blanks", _BLANKS, "", text, masked)
        for rule in self._project_rules:
            text = _apply_rule(*rule, text, masked)
        text = _TRACEBACK.sub(partial(_mask_traceback, masked), text)
        for rule in self._rules:
            text = _apply_rule(*rule, text, masked)
        text = _apply_rule("order of a set", _SET, _sort_set, text, masked)
        hidden = folders.hide_home(text)
        stripped = hidden.strip()
        masked += [("blanks", end) for end in hidden.split(stripped, 1) if stripped and end]
        return stripped, masked

    def _compare_pieces(self, old: str, new: str) -> bool:
        """Return whether two masked texts differ only in pieces that may differ."""
        # folders of either run in both texts: a path must not be a piece on one side only
        folder_roles = self._before.folders.roles(old)
        for path, roles in self._now.folders.roles(new).items():
            folder_roles[path] = folder_roles.get(path, set()) | roles
        old_pieces = _find_pieces(old, folder_roles, self._measures)
        new_pieces = _find_pieces(new, folder_roles, self._measures)
        if len(old_pieces) != len(new_pieces):
            return False
        if _text_between(old, old_pieces) != _text_between(new, new_pieces):
            return False
        for old_piece, new_piece in zip(old_pieces, new_pieces, strict=True):
            recorded = old[old_piece.start : old_piece.end]
            fresh = new[new_piece.start : new_piece.end]
            if recorded == fresh:
                continue
            rule = self._matching_rule(old_piece, new_piece, recorded, fresh)
            if not rule:
                return False
            self.masked.append((rule, recorded, fresh))
        return True

    def _matching_rule(self, old: Piece, new: Piece, recorded: str, fresh: str) -> str:
        """Return the name of the rule by which two pieces may differ, "" if none allows it.

        `recorded`, `fresh`: the texts of the pieces.
        """
        if isinstance(old, Clock) and isinstance(new, Clock):
            if self._same_clock(old, new):
                return "clock"
            # a timedelta (0:00:01.5) looks like a time of day
            old_time, new_time = (read_quantity(text, self._measures) for text in (recorded, fresh))
            return "duration" if old_time and new_time and old_time.is_like(new_time) else ""
        if isinstance(old, Quantity) and isinstance(new, Quantity):
            return "duration" if old.is_like(new) else ""
        if isinstance(old, PathPiece) and isinstance(new, PathPiece):
            if not old.roles and not new.roles:
                return folders.TEMPORARY if folders.differ_at_random(recorded, fresh) else ""
            shared = self._before.folders.roles_of(recorded) & self._now.folders.roles_of(fresh)
            return next(iter(sorted(shared)), "")
        return ""

    def _same_clock(self, old: Clock, new: Clock) -> bool:
        """Return whether each value is the time, or at least the day, of its own run."""
        before, after = self._before.span, self._now.span
        # `ls -l` writes the date of a file in another form once the file is old
        if old.shape != new.shape:
            return before.is_aged(old, new)
        if before.holds(old) and after.holds(new):
            return True
        return old.same_time(new) and before.holds_day(old) and after.holds_day(new)


def _find_pieces(text: str, known: Mapping[str, set[str]], measures: Measures) -> list[Piece]:
    """Return the pieces of a text in their order; of two that overlap, the one found first.

    `known`: path of a folder -> its roles (`Folders.roles`).
    """
    candidates: Iterable[Piece] = (
        *folders.find_folders(text, known),
        *find_clocks(text),
        *find_quantities(text, measures),
    )
    starts: list[int] = []
    pieces: list[Piece] = []
    for piece in candidates:
        index = bisect_right(starts, piece.start)
        overlaps_left = index > 0 and pieces[index - 1].end > piece.start
        if overlaps_left or (index < len(pieces) and starts[index] < piece.end):
            continue
        starts.insert(index, piece.start)
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


def _list_differing(old: Sequence[Masked], new: Sequence[Masked]) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, old text, new text) for what each rule replaced differently on both sides."""
    for name in dict.fromkeys(rule for rule, _ in (*old, *new)):
        sides = ([text for rule, text in side if rule == name] for side in (old, new))
        yield from (
            (name, then, now) for then, now in zip_longest(*sides, fillvalue="") if then != now
        )


def _cut_excerpt(text: str, start: int) -> str:
    if start == 0 and len(text) <= _LONGEST_SHOWN:
        return text
    part = text[start : start + _LONGEST_SHOWN]
    return f"{'…' * bool(start)}{part}{'…' * (start + _LONGEST_SHOWN < len(text))}"


def _apply_rule(
    name: str,
    pattern: re.Pattern[str],
    replacement: str | Callable[[re.Match[str]], str],
    text: str,
    masked: list[Masked],
) -> str:
    """Return a text after the rule `name` was applied; add what it replaced to `masked`."""

    def replace(match: re.Match[str]) -> str:
        new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
        if new != match[0]:
            masked.append((name, match[0]))
        return new

    return pattern.sub(replace, text)


def _sort_set(match: re.Match[str]) -> str:
    """Return the text of a set with its items sorted, any other text unchanged."""
    try:
        value = ast.literal_eval(match[0])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return match[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else match[0]


def _mask_traceback(masked: list[Masked], match: re.Match[str]) -> str:
    """Return a traceback with the cell's frames only, without marks and line numbers."""
    frames = _FRAME_START.split(match["frames"])
    masked += [("traceback", frame) for frame in frames if frame and not _OWN_FRAME.match(frame)]
    cell_frames = "".join(frame for frame in frames if _OWN_FRAME.match(frame))
    unmarked = _apply_rule("traceback", _MARK_LINE, "", cell_frames, masked)
    return "Traceback\n" + _apply_rule("traceback", _NUMBERED_LINE, r"  \1", unmarked, masked)
