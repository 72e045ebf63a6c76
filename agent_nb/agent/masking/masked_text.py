"""Masks one text: replaces what differs from run to run, whatever the other text says.

Masking comes before the comparison: a traceback or a set has no counterpart piece by piece in
another text. `masks` compares the masked texts, and reports what was replaced differently in them.
`mask_text` lists the steps; the masks that it applies are at the end of this file.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from ...record import Home
from ...tools import parse_quietly
from ...wire import Console
from . import folders


class Mask(msgspec.Struct, frozen=True):
    """Texts that are replaced. `name`: as users see it in `masks.Verdict.masked`."""

    name: str
    pattern: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str] = ""


class MaskedText:
    """A text that is masked step by step.

    `replaced`: name of a mask -> the texts that it has replaced so far, in their order.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.replaced: defaultdict[str, list[str]] = defaultdict(list)

    def apply(self, mask: Mask) -> None:
        """Replace what `mask` matches."""

        def replace(match: re.Match[str]) -> str:
            form = mask.replacement
            replacement = match.expand(form) if isinstance(form, str) else form(match)
            if replacement != match[0]:
                self.replaced[mask.name].append(match[0])
            return replacement

        self.text = mask.pattern.sub(replace, self.text)

    def overwrite(self) -> None:
        """Leave of each line what a screen shows after its carriage returns."""
        if "\r" in self.text:
            lines = self.text.split("\n")
            self.replaced["overwritten text"] += [line for line in lines if "\r" in line]
            self.text = Console.render_screen(self.text)

    def cut_tracebacks(self) -> None:
        """Leave of each traceback the cell's frames, without marks and line numbers."""
        self.text = _TRACEBACK.sub(self._cut_traceback, self.text)

    def _cut_traceback(self, match: re.Match[str]) -> str:
        """Return a heading and the cell's frames in place of a match of `_TRACEBACK`."""
        frames = [frame for frame in _FRAME_START.split(match["frames"]) if frame]
        cell_frames = MaskedText("".join(filter(_OWN_FRAME.match, frames)))
        for mask in _FRAME_MASKS:
            cell_frames.apply(mask)
        others = [frame for frame in frames if not _OWN_FRAME.match(frame)]
        self.replaced[_TRACEBACK_NAME] += others + cell_frames.replaced[_TRACEBACK_NAME]
        return f"Traceback\n{cell_frames.text}"

    def strip(self) -> None:
        """Remove the white space around the text."""
        stripped = self.text.strip()
        before, _, after = self.text.partition(stripped) if stripped else (self.text, "", "")
        self.replaced[_BLANKS.name] += filter(None, (before, after))
        self.text = stripped


def mask_text(text: str, project_masks: Iterable[Mask], *, timing: bool) -> MaskedText:
    """Return a masked text, with the user's home hidden.

    `project_masks`: those of the notebook's project. `timing`: mask the output of %time too.
    """
    masked = MaskedText(text)
    masked.overwrite()
    for mask in (_COLOURS, _BLANKS, *project_masks):
        masked.apply(mask)
    masked.cut_tracebacks()
    for mask in (*(_TIMING if timing else ()), *_GENERAL, _SETS):
        masked.apply(mask)
    masked.text = Home.of_user().hide(masked.text)
    masked.strip()
    return masked


def _sort_items(match: re.Match[str]) -> str:
    """Return the text of a set with its items sorted, any other text unchanged."""
    try:
        value = ast.literal_eval(parse_quietly(match[0], "eval"))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return match[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else match[0]


_COLOURS = Mask("colour", re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]"))
_BLANKS = Mask("blanks", re.compile(r"(?<![ \t])[ \t]+(?=\n|\Z)"))  # at the end of a line
_LONGEST_SET = 20_000  # characters
# {…} without braces inside; `_sort_items` decides whether it is a set
_SETS = Mask(
    "order of a set", re.compile(rf"\{{[^{{}}]{{1,{_LONGEST_SET}}}\}}"), replacement=_sort_items
)
_TRACEBACK_NAME = "traceback"  # of the masks in a traceback
# the heading of a traceback and, as `frames`, the indented, blank, "File …", "Cell …" lines below
_TRACEBACK = re.compile(
    r"(?m)^[^\n]*Traceback \(most recent call last\):?[^\n]*\n(?P<frames>(?:[ \t>-][^\n]*\n|\n|(?:File|Cell)[ <][^\n]*\n)*)"
)
_FRAME_START = re.compile(r"(?m)^ *(?=(?:File|Cell) )")
# frames of the cell and of code without a file: Cell In[3], File "<string>", ipykernel_12/34.py
_OWN_FRAME = re.compile(r" *(?:Cell In|File \"?<(?!frozen)|File [^\n]*ipykernel_)")
_FRAME_MASKS = (
    Mask(_TRACEBACK_NAME, re.compile(r"(?m)^[ \t]*[\^~]+[ \t]*\n?")),  # ~~^~~ below a line of code
    Mask(_TRACEBACK_NAME, re.compile(r"(?m)^(?:-+> ?| +)\d+ (.*)$"), r"  \1"),  # "----> 3 f()"
)
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
# in the output of %time and %timeit
_TIMING = tuple(
    Mask("time", re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?m)^(CPU times: |Wall time: )[^\n]*$", r"\1…"),
        (
            r"(?<![\d.])[\d.]+ (?:ns|µs|μs|us|ms|s|min) ± [^\n(±]* per loop \(mean ± std\. dev\. of [^\n)]*\)",
            "… per loop",
        ),
        (rf"\n{_SLOW}|^{_SLOW}\n?", ""),
    )
)
# In all results. Repetitions are bounded: else many beginnings would take quadratic time.
_GENERAL = tuple(
    Mask(name, re.compile(pattern), replacement)
    for name, pattern, replacement in (
        # In [3], <ipython-input-3-ab12>, ipykernel_12/34.py
        ("cell number", r"\b(In|Out) ?\[\d+\]", r"\1[…]"),
        ("cell number", r"<(ipython-input|agent code)[- ]\d+(?:-\w+)?>", r"<\1>"),
        ("cell number", r"ipykernel_\d+[/\\]\d+\.py", "ipykernel"),
        # <object at 0x7f…>, <Thread(Thread-3 (work), started 1402…)>, <Task … name='Task-7'
        ("address", r"(?<= at )0x[0-9a-fA-F]+(?=[>,\s])", "0x…"),
        (
            "thread",
            r"(?<=Thread\()((?:Thread-)?)\d*+([^<>,]{0,200},[^<>]{0,200}?) \d{1,20}(?=\)>)",
            r"\1…\2 …",
        ),
        ("task", r"(?<=<Task )(\w+ name='Task-)\d+", r"\1…"),
        # (image/png, 12,345 bytes)
        ("picture", r"\((image/[\w.+-]+), [\d,]+ bytes\)", r"(\1)"),
        (folders.PYTHON, rf"(?<=<module ')([\w.]+)' {_MODULE_ORIGIN}(?=>)", r"\1'"),
        # the line number in "…/site-packages/pandas/core.py:12: FutureWarning"
        (
            folders.PYTHON,
            r"(?m)((?:[\\/]lib(?:64)?[\\/]python3[\d.]*|(?:site|dist)-packages)[\\/][^\n:]{0,300}\.py:)\d+(?=: \w*Warning\b)",
            r"\1…",
        ),
        # "NameError: name 'x' is not defined. Did you mean: 'y'?"
        (
            "suggestion",
            rf"(?m)(^(?:error: )?[\w.]*(?:Error|Exception): [^\n]*?){_SUGGESTION}$",
            r"\1",
        ),
        # the meter of tqdm: [00:01<00:02, 3.4it/s]
        (
            "time",
            r"\[\d+:\d\d(?::\d\d)?(?:<|, (?=[^\]\n]{0,400}/(?:s|it)))[^\]\n]{0,400}\]",
            "[…]",
        ),
    )
)
