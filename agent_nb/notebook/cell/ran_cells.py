"""The cells that ran in this kernel: their code, their text results and their tracebacks.

Why: a run can be given the cells above (`context_cells`) and the cell that failed (`failed_cell`).
The shell's own history knows no cell ids and no tags, and differs between versions of IPython.

Rules
- A result is the text that the shell has shown: formatting it again could run the user's code.
- A cell with an id counts once, as of its last run, until it is deleted. Cells without an id count
  once for each text, and agent cells not at all: conversations hold their prompts and answers.
"""

from __future__ import annotations

import re
import traceback
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...models import collect_secrets
from ...record import agent_cell, source_hash
from ...tools import type_name
from ...wire import cut_middle, redact_text, strip_ansi
from ..files.notebook_file import EXCLUDE
from ..identity import Cell
from . import executions
from .capture import is_capturing

MOST_CELLS = 200  # the newest, which are kept
LONGEST_TEXT = 20_000  # characters of a text
_EVENT = "post_run_cell"
# lines of `%agent` commands, which are not the user's code
_COMMANDS = re.compile(r"^[^\S\n]*%agent\b[^\n]*\n?", re.M)
_DASHES = re.compile(r"^-{20,}[^\S\n]*\n", re.M)  # the line of dashes above a traceback
# descriptors of BaseException: attributes that an exception's own class defines could run code
_TRACEBACK, _ARGUMENTS = (BaseException.__dict__[name] for name in ("__traceback__", "args"))
_STOPPING = (KeyboardInterrupt, SystemExit)  # a stopped cell has not failed


class RanCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell as it ran last."""

    count: int  # its number in the shell
    id: str = ""
    code: str = ""
    result: str = ""  # as text, "" without one
    traceback: str = ""  # "" if it did not fail
    excluded: bool = False  # it had the tag that keeps it from models
    text_hash: str = ""  # of the whole cell: `code` is cut, and lacks commands


class RanCells:
    """The cells that ran in one shell, oldest first."""

    def __init__(self, shell: Any) -> None:
        self._shell = weakref.ref(shell)
        self._cells: dict[str, RanCell] = {}

    def __iter__(self) -> Iterator[RanCell]:
        return iter(list(self._cells.values()))

    def add_cell(self, result: Any) -> None:
        """Add a cell that has run; `result` is IPython's ExecutionResult (`post_run_cell`)."""
        shell = self._shell()
        if shell is None or is_capturing():
            return
        info = getattr(result, "info", None)
        raw, stored = getattr(info, "raw_cell", None), getattr(info, "store_history", False)
        count = getattr(result, "execution_count", None)
        if not (stored and isinstance(raw, str) and isinstance(count, int)):
            return
        latest = executions.executions_of(shell).latest
        cell = latest.cell if latest is not None else Cell(key="")
        fault = result.error_before_exec or result.error_in_exec
        self.forget(cell.deleted)
        has_failed = fault is not None and not issubclass(type(fault), _STOPPING)
        ran = RanCell(
            count=count,
            id=cell.id,
            result=_read_result(shell, count) if result.result is not None else "",
            traceback=_read_traceback(shell, count, fault) if has_failed else "",
            excluded=EXCLUDE in cell.tags,
        )
        self._add(ran, raw)

    def forget(self, deleted: Iterable[str]) -> None:
        """Forget cells that were deleted, by their ids."""
        for name in deleted:
            self._cells.pop(name, None)

    def add_history(self, shell: Any) -> None:
        """Add the cells of the shell's history."""
        history = getattr(shell, "history_manager", None)
        for count, raw in enumerate(getattr(history, "input_hist_raw", ())):
            if count and isinstance(raw, str):  # IPython fills entry 0 itself
                result, fault = _read_result(shell, count), _history_traceback(history, count)
                self._add(RanCell(count=count, result=result, traceback=fault), raw)

    def _add(self, ran: RanCell, raw: str) -> None:
        """Put a cell with the text `raw` in place of its former run; an agent cell removes that."""
        code = "" if agent_cell(raw) is not None else _COMMANDS.sub("", raw).strip()
        code = _cut_text(code)
        key = ran.id or f"[{ran.count}]"
        for name, former in list(self._cells.items()):
            if name == key or (not former.id and former.code == code):
                del self._cells[name]
        if not code:
            return
        self._cells[key] = msgspec.structs.replace(
            ran,
            code=code,
            result=_cut_text(ran.result),
            traceback=_cut_text(ran.traceback),
            text_hash=source_hash(raw),
        )
        if len(self._cells) > MOST_CELLS:
            del self._cells[next(iter(self._cells))]


def _cut_text(text: str) -> str:
    """Return a text cut to `LONGEST_TEXT`, redacted first: half a key is not recognised."""
    if len(text) <= LONGEST_TEXT:
        return text
    return cut_middle(redact_text(text, collect_secrets()), LONGEST_TEXT)


def _read_result(shell: Any, count: int) -> str:
    """Return the text of a cell's result as the shell has shown it."""
    history = getattr(shell, "history_manager", None)
    outputs = getattr(history, "outputs", {}).get(count, ())
    texts = [
        output.bundle.get("text/plain")
        for output in outputs
        if output.output_type == "execute_result" and isinstance(output.bundle, dict)
    ]
    result = texts[-1] if texts else getattr(history, "output_hist_reprs", {}).get(count)
    text = "".join(result) if isinstance(result, list) else result
    return text if isinstance(text, str) else ""


def _read_traceback(shell: Any, count: int, fault: BaseException) -> str:
    """Return the traceback of the cell that has just failed, as the shell has shown it."""
    shown = _join_traceback(getattr(shell, "_last_traceback", None))  # only a kernel's shell has it
    return shown or _history_traceback(shell.history_manager, count) or _format_fault(fault)


def _format_fault(fault: BaseException) -> str:
    """Return a traceback where the shell keeps none, without calling `__str__` of the exception."""
    frames = _TRACEBACK.__get__(fault)
    arguments = _ARGUMENTS.__get__(fault)
    message = arguments[0] if len(arguments) == 1 and type(arguments[0]) is str else ""
    last = f"{type_name(type(fault))}: {message}".rstrip(": ")
    return "".join([*traceback.format_tb(frames), last])


def _history_traceback(history: Any, count: int) -> str:
    return _join_traceback(getattr(history, "exceptions", {}).get(count, {}).get("traceback"))


def _join_traceback(lines: Any) -> str:
    """Return the lines of a traceback without colours and lines of dashes; "" if they are none."""
    if not isinstance(lines, list):
        return ""
    return _DASHES.sub("", strip_ansi("\n".join(map(str, lines)))).strip()


_by_shell: weakref.WeakKeyDictionary[Any, RanCells] = weakref.WeakKeyDictionary()


def ran_cells_of(shell: Any) -> RanCells:
    """Return the cells of a shell; none where the extension is not loaded."""
    return _by_shell.get(shell) or RanCells(shell)


def install_history(shell: Any) -> None:
    """Note each cell that a shell has run or will run; installing twice changes nothing."""
    if shell in _by_shell:
        return
    cells = _by_shell[shell] = RanCells(shell)
    cells.add_history(shell)
    shell.events.register(_EVENT, cells.add_cell)


def uninstall_history(shell: Any) -> None:
    """Remove the hook of `install_history`, and forget the cells."""
    cells = _by_shell.pop(shell, None)
    if cells is not None and cells.add_cell in shell.events.callbacks.get(_EVENT, ()):
        shell.events.unregister(_EVENT, cells.add_cell)
