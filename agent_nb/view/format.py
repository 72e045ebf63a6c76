"""How all cards write statuses, durations, counts, prices, tools, values and long texts.

Why: one figure must read the same in header, card, footer and terminal. No number makes a function
raise: one from a record may be huge, infinite or NaN.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .nodes import Row, T, Tone

MINUTE = 60
LARGEST = 1e15  # larger counts, durations and prices are written as this one

# status of a call or a node -> (mark, tone, word); `left`: open when its run ended
STATUS: dict[str, tuple[str, Tone, str]] = {
    "writing": ("○", "muted", "writing"),
    "queued": ("○", "muted", "queued"),
    "waiting": ("?", "wait", "waiting for you"),
    "running": ("●", "run", "running"),
    "finished": ("✓", "ok", "finished"),
    "ok": ("✓", "ok", "ok"),
    "error": ("✕", "bad", "error"),
    "denied": ("⊘", "bad", "denied"),
    "cancelled": ("■", "muted", "cancelled"),
    "timeout": ("✕", "bad", "timed out"),
    "unfinished": ("○", "muted", "no result"),
    "left": ("○", "muted", "not finished"),
}
# error code -> words that follow a number (`describe_failure`); other codes are plain English
FAILURES = {
    "provider": "failed at the provider",
    "connect": "without connection",
    "cut": "broken off",
    "timeout": "without answer in time",
    "garbage": "not readable",
    "context": "too long for the model",
    "no_key": "without key",
    "scoring": "failed in scoring",
}
# statuses that end with the kernel: the live view hides them when the kernel is gone
MOVING = frozenset({"writing", "queued", "waiting", "running"})
# name of a tool, or a word in it -> glyph
ICONS = {
    "python": "»",
    "shell": "$",
    "read": "≡",
    **dict.fromkeys(("write", "edit"), "✎"),
    "list": "☰",
    **dict.fromkeys(("search", "find", "grep"), "⌕"),
    **dict.fromkeys(("fetch", "web", "download"), "⇣"),
    "variables": "=",
    "add_cell": "+",
    **dict.fromkeys(("subagent", "agent", "task"), "◇"),
}
TOOL = "ƒ"  # the glyph of other tools


def find_icon(name: str) -> str:
    """Return the glyph of a tool, found by its name, else by the first known word in it."""
    words = [name, *re.split(r"[_\-./]", name.lower())]
    return next((ICONS[w] for w in words if w in ICONS), TOOL)


def draw_status(status: str, extra: str = "") -> tuple[T, ...]:
    """Return a status as mark, word and `extra`; `ok` with an `extra` needs no word."""
    mark, tone, word = STATUS.get(status, ("○", "muted", status))
    now = status in MOVING
    if status == "ok" and extra:
        return (T(mark, tone=tone, bold=True, label=word), T(f" {extra}", tone="muted"))
    tail = (T(f" · {extra}", tone="muted", now=now),) if extra else ()
    return (
        T(f"{mark} {word}", tone=tone, bold=status not in {"queued", "writing"}, now=now),
        *tail,
    )


def text_row(text: str, tone: Tone = "muted", *, wrap: bool = False) -> Row:
    """Return a row with one text; `wrap`: a long text breaks instead of being cut."""
    return Row((T(text, tone=tone),), wrap=wrap)


def format_duration(seconds: float) -> str:
    """Return a duration in words: `12 ms`, `1.8 s`, `14 s`, `2 min 5 s`."""
    seconds = _clamp(seconds)
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if round(seconds) < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, odd_seconds = divmod(round(seconds), MINUTE)
    return f"{minutes} min {odd_seconds} s" if odd_seconds else f"{minutes} min"


def format_clock(seconds: float) -> str:
    """Return whole seconds as `0:14` or `1:02:03`: a running clock that keeps its width."""
    minutes, odd_seconds = divmod(max(0, int(_clamp(seconds))), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02}:{odd_seconds:02}" if hours else f"{minutes}:{odd_seconds:02}"


def _clamp(number: float) -> float:
    """Return a number that can be rounded: a record may hold a huge one, infinity or nan."""
    return max(-LARGEST, min(LARGEST, number))  # `LARGEST` for nan


def format_count(n: float) -> str:
    """Return a short count: `212`, `1.9k`, `18k`, `1.2M`."""
    n = _clamp(n)
    # each limit is the smallest number that the unit before it would round to 1000
    for limit, size, unit in ((999_500, 1e6, "M"), (999.5, 1e3, "k")):
        if n >= limit:
            value = n / size
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return f"{n:.0f}"


def format_money(dollars: float) -> str:
    """Return a price in US dollars: two decimals from 10 cents on, else two significant digits."""
    dollars = _clamp(dollars)
    if dollars >= 0.1 or dollars == 0:
        return f"${dollars:.2f}"
    digits = f"{dollars:.2g}"  # may be like 1e-05
    return f"${float(digits):.12f}".rstrip("0") if "e" in digits else f"${digits}"


def describe_failure(kind: str) -> str:
    """Return a code of an error, or an HTTP status, as in `4 broken off`, `2 with HTTP 429`."""
    if kind.isdecimal():  # a status of HTTP
        return f"with HTTP {clip_text(kind, 3)}"
    return FAILURES.get(kind, clip_text(kind.replace("_", " "), 40))


def clip_text(text: str, limit: int) -> str:
    """Return `text` on one line, at most `limit` characters long."""
    line = " ".join(text[: limit * 4].split())  # the cut bounds the work for a very long text
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def extract_gist(text: str, limit: int = 90) -> str:
    """Return the first sentence of a markdown text in plain words, at most `limit` characters."""
    # without marks of code, emphasis, headings, quotations and lists
    plain = re.sub(
        r"```.*|[*`]+|(?<!\w)_+|_+(?!\w)|^\s*(?:#+|>|[-+])\s+", "", text[:2000], flags=re.MULTILINE
    )
    lines = [line for line in plain.splitlines() if line.strip()]
    first = re.split(r"(?<=[.!?:])\s", lines[0].strip(), maxsplit=1)[0] if lines else ""
    return clip_text(first.rstrip(":."), limit)


def format_json(value: Any, limit: int) -> str:
    """Return a JSON value on one line, at most `limit` characters long; "…" if it is too deep."""
    cut = value[: limit * 2] if isinstance(value, str) else value
    try:
        return clip_text(json.dumps(cut, ensure_ascii=False, default=str), limit)
    except (ValueError, RecursionError):
        return "…"


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number, at most `LARGEST` on either side of zero."""
    is_bool = isinstance(value, bool)  # which is an int, too
    return isinstance(value, int | float) and not is_bool and abs(value) <= LARGEST


def count_noun(n: int, word: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`, `3 tries`."""
    plural = f"{word[:-1]}ies" if word.endswith("try") else f"{word}s"
    return f"{n:,} {word if n == 1 else plural}"


def join_parts(*parts: str) -> str:
    """Return the non-empty parts, with dots between."""
    return " · ".join(p for p in parts if p)
