"""Find each `@name` in a prompt: its position, and the variables, files or cells that it may mean.

Why: a prompt is prose, and may contain addresses, decorators and code, whose `@` mentions nothing.
`cell.mentioned` decides what a name means; completion asks here where a name may begin.

Rule: punctuation at the end of a name, and what follows a dot in it, may belong to the sentence, so
a name may have several readings: `@sales.csv` this file, or else the variable `sales`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

import msgspec

from ..tools import parse_quietly

MOST_MENTIONS = 50  # of a prompt
CELL = "cell:"
_AT = re.compile(r"(?<![^\s(])@")  # an `@` that may begin a name
_CELL = re.compile(rf"{CELL}(\d{{1,9}})\b")
_UNFINISHED_CELL = re.compile(rf"{CELL}\d*")
_QUOTED = re.compile(r'"([^"\n]+)"')
_PATH = re.compile(r"""[^\s"'`()\[\]{}<>|,;:!?*@]+""")
_VARIABLE = re.compile(r"[^\W\d]\w*")
_FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})([^\n]*)")  # opens or closes a block of code
_TICKS = re.compile(r"(?<!\\)`+")  # open or close code within a line
_INDENTED = re.compile(r" {4}| {0,3}\t")
_LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
# the line below decorators
_DEFINITION = re.compile(r"\s*(?:(?:async\s+)?def\s+\w+\s*[(\[]|class\s+\w+\s*[:(\[])")
_LONGEST_DECORATORS = 40  # lines


class AtName(msgspec.Struct, frozen=True):
    """An `@name`, with `text` as it is written.

    cell: the number of `@cell:N`. paths: the files that it may name, the longest first.
    variable: the variable that it may name. exact: at most punctuation follows the variable.
    """

    text: str
    cell: int | None = None
    paths: tuple[str, ...] = ()
    variable: str = ""
    exact: bool = False


def find_at_names(prompt: str) -> list[AtName]:
    """Return the `@name`s of a prompt in order, at most `MOST_MENTIONS`."""
    starts = [at.start() for at in _AT.finditer(prompt)]
    if not starts:
        return []
    code = deque(sorted(find_code(prompt)))
    end = 0  # of the code that begins before `start`
    mentions: list[AtName] = []
    for start in starts:
        while code and code[0][0] <= start:
            end = max(end, code.popleft()[1])
        if start < end:
            continue
        if (written := _read_name(prompt, start)) is not None:
            mentions.append(written)
        if len(mentions) == MOST_MENTIONS:
            break
    return mentions


def find_unfinished_name(prompt: str) -> str | None:
    """Return the unfinished name at the end of `prompt`, without its `@`; None without one."""
    start = max((at.start() for at in _AT.finditer(prompt)), default=-1)
    begun = prompt[start + 1 :]
    if start < 0 or "\n" in begun or not _is_unfinished_name(begun):
        return None
    return None if any(begin <= start < end for begin, end in find_code(prompt)) else begun


def is_path(name: str) -> bool:
    """Return whether a path can be written after `@` without quotes."""
    return _PATH.fullmatch(name) is not None


def _is_unfinished_name(name: str) -> bool:
    if name.startswith('"'):
        return '"' not in name[1:]
    is_cell = CELL.startswith(name) or _UNFINISHED_CELL.fullmatch(name) is not None
    return not name or is_path(name) or is_cell


def _read_name(prompt: str, start: int) -> AtName | None:
    """Return the `@name` that begins at `start`, None if no name follows the `@`."""
    if (cell := _CELL.match(prompt, start + 1)) is not None:
        return AtName(f"@{cell[0]}", cell=int(cell[1]))
    if (quoted := _QUOTED.match(prompt, start + 1)) is not None:
        return AtName(f"@{quoted[0]}", paths=(quoted[1],))
    path = _PATH.match(prompt, start + 1)
    if path is None:
        return None
    path_text = path[0]
    unpunctuated = path_text.rstrip("./\\-…")
    variable = _VARIABLE.match(path_text)
    name = variable[0] if variable is not None else ""
    after_name = path_text[len(name) :]
    # only a dot, an ellipsis or a dash may follow a variable: `@data/x` can only be a path
    return AtName(
        f"@{unpunctuated or path_text}",
        paths=tuple(dict.fromkeys(filter(None, (path_text, unpunctuated)))),
        variable=name if not after_name or after_name[0] in ".…-" else "",
        exact=unpunctuated == name,
    )


def find_code(text: str) -> list[tuple[int, int]]:
    """Return (begin, end) of the code in a text: blocks, spans in backticks, decorators.

    The positions are offsets in `text`; the pairs are in no order.
    """
    lines = text.splitlines(keepends=True)
    ranges = list(_find_decorators(lines))
    start = end = 0  # of the fenced block or paragraph of prose so far
    fence = ""  # the mark that opened the block, "" in prose
    after_blank, in_list = True, False
    # one pass: a fence lasts until it is closed; an indented line is code only at the start, after
    # a blank line or such code, and not in a list, whose items may continue indented
    for line in lines:
        begin, end = end, end + len(line)
        mark = _FENCE.match(line)
        if fence:
            if mark is not None and mark[1].startswith(fence) and not mark[2].strip():
                ranges.append((start, end))
                start, fence, after_blank = end, "", False
        # another backtick in the line makes it a span of code within prose, which opens no block
        elif mark is not None and not (mark[1][0] == "`" and "`" in mark[2]):
            ranges += _find_spans(text, start, begin)
            start, fence = begin, mark[1]
        elif not line.strip():
            ranges += _find_spans(text, start, begin)
            start, after_blank = end, True
        elif _INDENTED.match(line) and after_blank and not in_list:
            ranges.append((begin, end))
            start = end
        else:
            after_blank = False
            if not line[0].isspace():
                in_list = _LIST_ITEM.match(line) is not None
    return [*ranges, *([(start, end)] if fence else _find_spans(text, start, end))]


def _find_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans in backticks of a paragraph; as many backticks close a span as open it."""
    runs = [(run.start(), run.end()) for run in _TICKS.finditer(text, start, end)]
    after = start
    for number, (begin, opened) in enumerate(runs):
        if begin < after:  # inside the span before
            continue
        later = (runs[n] for n in range(number + 1, len(runs)))
        closed = next((e for b, e in later if e - b == opened - begin), 0)
        if closed:
            yield begin, closed
            after = closed


def _find_decorators(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the decorators right above a `def` or `class`, if Python can parse them as such."""
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for number, line in enumerate(lines):
        if not _DEFINITION.match(line):
            continue
        first = number
        while first and lines[first - 1].strip() and number - first < _LONGEST_DECORATORS:
            first -= 1
        for begin in range(first, number):
            if lines[begin].lstrip().startswith("@") and _are_decorators(lines[begin:number]):
                yield starts[begin], starts[number]
                break


def _are_decorators(lines: list[str]) -> bool:
    try:
        parse_quietly("".join([*(line.lstrip() for line in lines), "\ndef f(): ..."]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
