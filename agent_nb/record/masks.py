"""Whether a result is the same as recorded, strictly: for tests.

Why beside `normalize`: there a drift costs a run of the model, so doubtful differences do not
count. A test must not overlook a change, nor report one where only the clock, the machine or the
order of a set differs.

Rules
- Each side is read with the facts of its own run (`Side`): its time, its working folder and its
  folder for temporary files.
- Masked: clock values of the run, these folders, addresses, threads and tasks in reprs, cell
  numbers, the output of `%time`, `%timeit` and tqdm, and the patterns of the notebook's project
  (`Rule`). Other durations and rates are equal within a factor of ten.
- Sets compare sorted; a traceback counts by its last line and the cell's own frames, without the
  marks below a line.
- Numbers and texts in JSON values are compared one by one; 1 and 1.0 are the same.
- `Verdict.masked` lists the pairs that differed and did not count.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from ..wire.console import settled
from ..wire.json_text import canonical
from .clock import Span
from .packing import SIGN, Home, digest

PATTERN = "pattern "  # prefix of the names of the project's rules
FACTOR = 10.0
LEAST = 1e-6  # shorter durations (s) count as this
LONGEST_SET = 20_000  # characters
_DURATION = "‹duration›"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}
_NUMBER = r"(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_DECIMAL = r"(?P<number>\d+\.\d+(?:e[+-]?\d+)?)"
_QUANTITIES = tuple(
    re.compile(rf"(?<![\w.]){form}(?![\w])")
    for form in (
        # a timedelta; a clock has two digits
        r"(?P<hours>\d):(?P<minutes>\d\d):(?P<number>\d\d\.\d+)",
        rf"{_NUMBER} ?(?P<rate>(?:it|[kKMG]?i?B|rows?|tokens?|tok|requests?|req)/s)",
        rf"{_DECIMAL} ?(?P<rate>\w+/s)",
        rf"{_NUMBER} ?(?P<unit>ns|µs|μs|us|ms)",
        rf"{_DECIMAL} ?(?P<unit>s|sec|secs|seconds?|min|mins|minutes?|h|hours?)",
    )
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SET = re.compile(rf"\{{[^{{}}]{{1,{LONGEST_SET}}}\}}")
_TRACE = re.compile(
    r"(?m)^[^\n]*Traceback \(most recent call last\):?[^\n]*\n(?P<frames>(?:[ \t>-][^\n]*\n|\n|(?:File|Cell)[ <][^\n]*\n)*)"
)
_FRAME = re.compile(r"(?m)^ *(?=(?:File|Cell) )")
_OWN = re.compile(r" *(?:Cell In|File \"?<(?!frozen)|File [^\n]*ipykernel_)")
_MARKS = re.compile(r"(?m)^[ \t]*[\^~]+[ \t]*\n?")
_ARROW, _LINE = re.compile(r"(?m)^(?:-+> ?| +)\d+ (.*)$"), r"  \1"
# lines that %time and %timeit print only for slow code
_SLOW = (
    r"(?:The slowest run took \d+\.\d\d times longer than the fastest\.[^\n]*|Compiler time: \d+\.\d\d s"
    r"|(?:Compiler|Parser  ) : [\d.]+ ?(?:ns|µs|μs|us|ms|s|min|h)(?: \d+(?:min|s))*)(?=\n|\Z)"
)
_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = (
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
    ("time", re.compile(r"(?m)^(CPU times: |Wall time: )[^\n]*$"), r"\1…"),
    (
        "time",
        re.compile(
            r"[\d.]+ (?:ns|µs|μs|us|ms|s|min) ± [^\n(]* per loop \(mean ± std\. dev\. of [^\n)]*\)"
        ),
        "… per loop",
    ),
    ("time", re.compile(rf"\n{_SLOW}|^{_SLOW}\n?"), ""),
    ("time", re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^\]\n]*|, [^\]\n]*/(?:s|it)[^\]\n]*)\]"), "[…]"),
)
_PATH = re.compile(rf"[/{SIGN}]|[A-Za-z]:[\\/]")
_TEMPORARY = re.compile(r"‹temporary›([\\/])tmp[\w]{6,}")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern that the notebook's project excludes from comparison, and its replacement."""

    pattern: str
    replace: str = "…"


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of two runs: its time, its working folder and its folder for temporary files.

    Folders are `unnamed`; None is unknown.
    """

    span: Span
    work: Any = None
    temporary: Any = None


def unnamed(folder: str) -> list[int | str]:
    """Return length and digest of a folder's path, home hidden: enough to find it in a text."""
    hidden = _home().hide(folder)
    return [len(hidden), digest(hidden)]


def _home() -> Home:
    return Home(os.path.expanduser("~"))


def _found(folder: Any, text: str) -> str:
    """Return the path in a text (home hidden) that matches an unnamed folder, else ""."""
    if not (
        isinstance(folder, list)
        and len(folder) == 2
        and isinstance(folder[0], int)
        and folder[0] > 1
    ):
        return ""
    parts = (text[m.start() : m.start() + folder[0]] for m in _PATH.finditer(text))
    return next(
        (
            part
            for part in dict.fromkeys(parts)
            if len(part) == folder[0] and digest(part) == folder[1]
        ),
        "",
    )


class Verdict(msgspec.Struct, frozen=True):
    """Whether two values are the same, and the masked differences as (rule, recorded, now)."""

    same: bool
    masked: tuple[tuple[str, str, str], ...] = ()


class _Found(msgspec.Struct):
    """What was taken out of a value: its quantities, and what was masked as (rule, text)."""

    quantities: list[float] = []
    masked: list[tuple[str, str]] = []


def compare(
    recorded: Any, fresh: Any, before: Side, now: Side, rules: Sequence[Rule] = ()
) -> Verdict:
    """Compare the contents of two results, texts or JSON values."""
    patterns = tuple((f"{PATTERN}{r.pattern!r}", re.compile(r.pattern), r.replace) for r in rules)
    old_form, old = _read(recorded, before, patterns)
    new_form, new = _read(fresh, now, patterns)
    near = len(old.quantities) == len(new.quantities) and all(
        map(_near, old.quantities, new.quantities)
    )
    return Verdict(
        near and _text(old_form) == _text(new_form), tuple(_pairs(old.masked, new.masked))
    )


def _text(form: Any) -> str:
    try:
        return canonical(form)
    except (ValueError, RecursionError):
        return str(form)


def _near(one: float, other: float) -> bool:
    small, large = sorted((max(one, LEAST), max(other, LEAST)))
    return large <= small * FACTOR


def _pairs(
    old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield the masked values that differ."""
    for name in dict.fromkeys(rule for rule, _ in (*old, *new)):
        sides = ([text for rule, text in side if rule == name] for side in (old, new))
        yield from (
            (name, one, other) for one, other in zip_longest(*sides, fillvalue="") if one != other
        )


def _read(
    value: Any, side: Side, patterns: Sequence[tuple[str, re.Pattern[str], str]]
) -> tuple[Any, _Found]:
    """Return the masked form of a value, and what was taken out of it."""
    found = _Found()
    return _walk(value, lambda text: _masked(text, side, patterns, found)), found


def _walk(value: Any, read: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return read(value)
    if isinstance(value, Mapping):
        return {str(k): _walk(v, read) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(v, read) for v in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = read(str(value))
        return value if text == str(value) else text
    return value


def _masked(
    text: str, side: Side, patterns: Sequence[tuple[str, re.Pattern[str], str]], found: _Found
) -> str:
    text = settled(text) if "\r" in text else text
    text = re.sub(r"[ \t]+(?=\n|\Z)", "", _ANSI.sub("", text))
    for name, pattern, plain in patterns:
        text = _replaced(text, name, pattern, plain, found)
    text = _TRACE.sub(_frames, text)
    text = _folders(text, side, found)
    for name, pattern, plain in _RULES:
        text = _replaced(text, name, pattern, plain, found)
    text = _SET.sub(_sorted, text)
    text, times = side.span.masked(text)
    found.masked += [("clock", time) for time in times]
    for pattern in _QUANTITIES:
        text = pattern.sub(lambda match: _quantity(match, found), text)
    return text.strip()


def _replaced(text: str, name: str, pattern: re.Pattern[str], plain: str, found: _Found) -> str:
    def put(match: re.Match[str]) -> str:
        found.masked.append((name, match[0]))
        return match.expand(plain)

    return pattern.sub(put, text)


def _folders(text: str, side: Side, found: _Found) -> str:
    text = _home().hide(text)
    for name, sought in (("working folder", side.work), ("temporary folder", side.temporary)):
        if folder := _found(sought, text):
            text = re.sub(rf"{re.escape(folder)}(?![\w-])", f"‹{name.split()[0]}›", text)
            found.masked.append((name, folder))
    return _replaced(text, "temporary folder", _TEMPORARY, r"‹temporary›\1tmp…", found)


def _sorted(match: re.Match[str]) -> str:
    """Return the text of a set with its items sorted, other text unchanged."""
    try:
        value = ast.literal_eval(match[0])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return match[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else match[0]


def _frames(match: re.Match[str]) -> str:
    """Return a traceback with the cell's frames only, without marks and line numbers."""
    own = "".join(frame for frame in _FRAME.split(match["frames"]) if _OWN.match(frame))
    return f"Traceback\n{_ARROW.sub(_LINE, _MARKS.sub('', own))}"


def _quantity(match: re.Match[str], found: _Found) -> str:
    parts = match.groupdict()
    number = float(parts["number"])
    if rate := parts.get("rate"):
        found.quantities.append(number)
        return f"{_DURATION} {rate}"
    if parts.get("hours") is not None:
        number += int(parts["hours"]) * 3600 + int(parts["minutes"]) * 60
    unit = parts.get("unit") or "s"
    factor = next((seconds for name, seconds in _SECONDS.items() if unit.startswith(name)), 1.0)
    found.quantities.append(number * factor)
    return _DURATION
