"""Notebooks with records in git: a readable diff, and a merge that keeps the runs of both sides.

Why: a record is long lines of JSON. Without these drivers a diff shows them, and two people who ran
different cells get a conflict.

Rules
- The diff shows each cell with its newest execution, then the newest ones of deleted cells. It has
  no ids of runs, times, tokens and outputs, and its control characters are escaped for a pager.
- The merge leaves a notebook even where it leaves a conflict.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...events import Call, Event, Result
from ...record import (
    CellRecords,
    Notebook,
    NotebookRuns,
    Record,
    cell_id,
    events_of,
    list_cells,
    load_notebook,
    save_notebook,
    source_of,
    with_ids,
)
from ..notices import make_printable
from .cell_merge import add_ids, merge_notebooks, remove_ids
from .run_diff import list_comparable_parts
from .three_way_merge import merge_results

DEEPEST = 20  # levels of nested agents whose events are put in order
_MOST_CONFLICTS = 127  # the highest exit code of `git merge-file`, unless it fails
# the address in a repr, such as <A object at 0x7f…>
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")


def diff_text(nb: Notebook) -> str:
    """Return the text that git's diff compares: `=== code cell a1`, source, `--- run, ok`, …"""
    return make_printable("\n".join(_diff_lines(nb))) + "\n"


def _diff_lines(nb: Notebook) -> Iterator[str]:
    nb = with_ids(nb)
    runs, used = NotebookRuns(nb).all_by_cell(), NotebookRuns(nb).used_calls()
    for number, cell in enumerate(list_cells(nb), 1):
        name = cell_id(cell)
        yield f"=== {cell.get('cell_type', '?')} cell {name or number}"
        yield from source_of(cell).splitlines()
        for record in CellRecords(runs.pop(name, ())).newest_execution(used.newest(name)):
            yield from _run_lines(record)
    for name, records in runs.items():
        if records:
            yield f"=== of a cell that is gone: {name}"
            for record in CellRecords(records).newest_execution():
                yield from _run_lines(record)


def _run_lines(record: Record) -> Iterator[str]:
    yield f"--- run, {record.get('status', '?')}"
    for part in list_comparable_parts(_order_by_call(events_of(record))):
        yield f"{part.head}:"
        yield from (f"    {_ADDRESS.sub('0x…', line)}" for line in part.body.splitlines())


def _order_by_call(log: Sequence[Event], span: str = "") -> Iterator[Event]:
    """Yield the events of the run at `span`, those of a sub-agent before the result of its call.

    The events of calls that ran at the same time thus stay apart.
    """
    calls = {e.call_id for e in log if isinstance(e, Call)}
    inner: dict[str, list[Event]] = {}  # call -> the events of its sub-agent so far
    for event in log:
        # a sub-agent's span is the id of its call, which begins with the span around the call: at
        # the span `a`, an event of the span `a/b/c` belongs to the call `a/b`
        call_id = event.span.removeprefix(span).lstrip("/").partition("/")[0]
        call = f"{span}/{call_id}" if span else call_id
        if event.span != span and call in calls:
            inner.setdefault(call, []).append(event)
            continue
        if isinstance(event, Result) and event.span == span:
            events = inner.pop(event.call_id, [])
            is_deep = event.call_id.count("/") >= DEEPEST
            yield from events if is_deep else _order_by_call(events, event.call_id)
        yield event
    for events in inner.values():  # of calls without a result
        yield from events


def merge_files(
    base: Path, ours: Path, theirs: Path, report: Callable[[str], object] = lambda conflict: None
) -> bool:
    """Merge notebook files as a git merge driver; return whether there was no conflict.

    The result replaces `ours`; `report` receives a sentence for each conflict of a notebook. The
    files are merged as text if ours or theirs is not a notebook, or has records of a newer format.
    Such a base counts as an empty notebook. Raises UsageError if git is not installed or fails,
    OSError if a file cannot be written; `ours` is then as before.
    """
    base_nb, our_nb, their_nb = (_read_notebook(path) for path in (base, ours, theirs))
    if our_nb is None or their_nb is None:
        return _merge_files_as_text(base, ours, theirs)
    versions = (base_nb or {"cells": []}, our_nb, their_nb)
    add_ids(versions)
    merge_results(*versions)
    merged, conflicts = merge_notebooks(versions, _merge_text)
    remove_ids(merged)
    NotebookRuns(merged).lift()
    save_notebook(merged, ours, sort_keys=True)
    for conflict in conflicts:
        report(conflict)
    return not conflicts


def _merge_text(base: str, ours: str, theirs: str) -> tuple[str, bool]:
    """Return the lines of three texts merged by git, and whether there was no conflict."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            clean = _merge_as_text(paths)
        except UsageError:
            if not any("\0" in text for text in (base, ours, theirs)):
                raise
            return ours, False  # git merges no text that looks binary
        return paths[0].read_bytes().decode("utf-8", "surrogatepass"), clean


def _merge_files_as_text(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge files into `ours`, which a failure leaves as it was; see `_merge_as_text`."""
    before = ours.read_bytes()
    try:
        return _merge_as_text([ours, base, theirs])
    except UsageError:
        if ours.read_bytes() != before:  # git has emptied it, which made room on a full disk
            ours.write_bytes(before)
        raise


def _merge_as_text(paths: Sequence[Path]) -> bool:
    """Merge the files ours, base, theirs into the first; return whether there was no conflict.

    Raises UsageError if git fails; the first file may then be broken.
    """
    labels = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    merged = run_git(["git", "merge-file", *labels, *map(str, paths)])
    if not 0 <= merged.returncode <= _MOST_CONFLICTS:
        reason = merged.stderr.strip() or f"it ended with {merged.returncode}"
        raise UsageError(f"git merge-file failed: {reason}")
    return merged.returncode == 0


def run_git(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run git. Raises UsageError if it is not installed."""
    # git prints paths in UTF-8 on Windows, elsewhere as their bytes
    try:
        return subprocess.run(  # noqa: S603  (git, with paths)
            command, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, or not on the PATH.") from None


def _read_notebook(path: Path) -> dict[str, Any] | None:
    """Return a notebook; None if the file is not one, or its records have a newer format."""
    try:
        nb = load_notebook(path)
    except UsageError:
        return None
    return None if NotebookRuns(nb).newer_format_notice else nb
