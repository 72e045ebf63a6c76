"""Finds out whether code reads a clock or runs a shell, itself or through functions of the project.

If the code measures time, a duration in its results may differ in a replay; else the duration is
the result itself, and must be equal. In doubt the answer is yes: any method `now` counts, and so
does a shell, because what its commands measure cannot be known. No code is run.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...tools import ProjectSearch
from .durations import LINES, Measures

# functions of `time`; each has a variant in nanoseconds (`time_ns`)
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time", "clock_gettime")
_CLOCK_FUNCTIONS = {f"time.{name}{unit}" for name in _CLOCKS for unit in ("", "_ns")} | {
    "timeit.default_timer",
    "timeit.timeit",
    "timeit.repeat",
    "timeit.Timer",
    "os.times",
    "resource.getrusage",
}
_CLOCK_METHODS = ("now", "utcnow", "today")  # methods of the classes of `datetime` and of pandas
_DATE_PARSERS = ("datetime64", "to_datetime", "Timestamp")  # they accept "now" and "today"
# %time, %%timeit, `x = %timeit …`, get_ipython().run_line_magic('time', …)
_TIMING_MAGIC = r"(?:time|timeit|prun)\b"
_CLOCK_LINE = re.compile(
    rf"^[^\S\n]*(?:\w+[^\S\n]*=[^\S\n]*)?%%?{_TIMING_MAGIC}|run_(?:line|cell)_magic\(['\"]{_TIMING_MAGIC}",
    re.M,
)
# !ls, `x = !ls`, %%bash, %sx; subprocess, os.system and their like anywhere, even in a comment
_SHELL_LINE = re.compile(
    r"^[^\S\n]*(?:\w+[^\S\n]*=[^\S\n]*)?(?:!|%%?(?:bash|sh|script|sx|system)\b)|\bsubprocess\b"
    r"|\bcreate_subprocess_|\bos\.(?:system|popen)\b|\bget_ipython\(\)\.(?:system|getoutput)\b",
    re.M,
)
# any line of IPython's own: its indentation, and the line from % or ! on (an assignment is dropped)
_IPYTHON_LINE = re.compile(r"^([^\S\n]*)(?:\w+[^\S\n]*=[^\S\n]*)?([%!].*)$", re.M)
_NAME = re.compile(r"[^\W\d]\w*")


def read_code_measures(text: str, folder: str | Path) -> Measures:
    """Return what the code `text` measures when it runs in the notebook of the project `folder`."""
    search = ProjectSearch(folder)
    module = sys.modules.get("__main__")
    search.add_code(_without_magics(text), dict(vars(module)) if module is not None else {})
    return _find_measures([text, *search.texts], search.unseen)


def read_function_measures(function: Any, folder: str | Path) -> Measures:
    """Return what a function measures, such as a tool of the project `folder`."""
    search = ProjectSearch(folder)
    search.add(function, "")
    return _find_measures(search.texts, search.unseen)


def _find_measures(texts: Iterable[str], names: Iterable[str]) -> Measures:
    """Return what source texts measure; `names`: what they use from outside the project."""
    listed = list(texts)
    clock = any(
        name in _CLOCK_FUNCTIONS or name.rpartition(".")[2] in _CLOCK_METHODS for name in names
    )
    return Measures(
        lines=LINES.lines,
        commands=any(map(_SHELL_LINE.search, listed)),
        clock=clock or any(_CLOCK_LINE.search(text) or _names_clock(text) for text in listed),
    )


def _names_clock(text: str) -> bool:
    """Return whether a source text itself reads a clock."""
    tree = ProjectSearch.parse(_without_magics(text))
    imported: dict[str, str] = {}  # name in this text -> full name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            imported |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return any(_reads_clock(node, imported) for node in ast.walk(tree))


def _reads_clock(node: ast.AST, imported: dict[str, str]) -> bool:
    """Return whether a node reads a clock, or names a function that does."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        base, name = node.func.value, node.func.attr
        if name in _CLOCK_METHODS or (name == "time" and _is_loop(base)):
            return True
        arguments = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if name in _DATE_PARSERS and ("now" in arguments or "today" in arguments):
            return True
    full = _full_name(node, imported)
    # `x.perf_counter` counts whatever x is; `time` is too common a name for that
    return full in _CLOCK_FUNCTIONS or full.rpartition(".")[2].removesuffix("_ns") in _CLOCKS[1:]


def _is_loop(base: ast.expr) -> bool:
    """Return whether an expression is called like an event loop: `loop`, `get_running_loop()`."""
    return ast.unparse(base).removesuffix("()").endswith("loop")


def _full_name(node: ast.AST, imported: dict[str, str]) -> str:
    """Return the full name of a name or attribute, "" for other nodes."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{imported.get(node.value.id, node.value.id)}.{node.attr}"
    return ""


def _without_magics(text: str) -> str:
    """Return code that Python can parse: each line of IPython becomes a tuple of its names."""
    return text if ProjectSearch.parse(text).body else _IPYTHON_LINE.sub(_name_tuple, text)


def _name_tuple(line: re.Match[str]) -> str:
    names = (name for name in _NAME.findall(line[2]) if not keyword.iskeyword(name))
    return f"{line[1]}({', '.join(names)})"
