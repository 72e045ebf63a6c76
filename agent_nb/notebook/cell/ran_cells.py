"""The cells that ran in this kernel: their code, their text results and their tracebacks.

Why: a run can be given the cells above (`context_cells`) and the cell that failed (`failed_cell`).
The shell's own history knows no cell ids and no tags, and differs between versions of IPython.

Rules
- A result is the text that the shell has shown: formatting it again could run the user's code.
- A cell with an id counts once, as of its last run, until it is deleted.
- Cells without an id count once for each text.
- Agent cells do not count: conversations hold their prompts and answers.
- Cells that ran before the extension was loaded come from the shell's history.
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

MOST = 200  # cells
LONGEST = 20_000  # characters of a text
_EVENT = "post_run_cell"
# lines of `%agent` commands, which are not the user's code
_COMMANDS = re.compile(r"^[^\S\n]*%agent\b[^\n]*\n?", re.M)
_RULE = re.compile(r"^-{20,}[^\S\n]*\n", re.M)  # the line of dashes above a traceback
# descriptors of BaseException: attributes that an exception's own class defines could run code
_TRACEBACK, _ARGUMENTS = (BaseException.__dict__[name] for name in ("__traceback__", "args"))
_STOPS = (KeyboardInterrupt, SystemExit)  # a stopped cell has not failed


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

    def note_cell(self, result: Any) -> None:
        """Note a cell that has run; `result` is IPython's ExecutionResult (`post_run_cell`)."""
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
        stopped = fault is None or issubclass(type(fault), _STOPS)
        shown_traceback = "" if stopped else _read_traceback(shell, count, fault)
        text = _read_result(shell, count) if result.result is not None else ""
        self._add(count, raw, text, shown_traceback, cell.id, excluded=EXCLUDE in cell.tags)

    def forget(self, deleted: Iterable[str]) -> None:
        """Forget cells that were deleted, by their ids."""
        for name in deleted:
            self._cells.pop(name, None)

    def note_history(self, shell: Any) -> None:
        """Note the cells of the shell's history."""
        history = getattr(shell, "history_manager", None)
        for count, raw in enumerate(getattr(history, "input_hist_raw", ())):
            if count and isinstance(raw, str):
                self._add(
                    count, raw, _read_result(shell, count), _history_traceback(history, count)
                )

    def _add(
        self,
        count: int,
        raw: str,
        result: str,
        shown_traceback: str,
        cell_id: str = "",
        *,
        excluded: bool = False,
    ) -> None:
        """Note a cell as the latest and drop its former run; skip agent cells and empty cells."""
        code = "" if agent_cell(raw) is not None else _COMMANDS.sub("", raw).strip()
        code = _cut_text(code)
        key = cell_id or f"[{count}]"
        replaced = [k for k, c in self._cells.items() if k == key or (not c.id and c.code == code)]
        for former in replaced:
            del self._cells[former]
        if not code:
            return
        self._cells[key] = RanCell(
            count=count,
            id=cell_id,
            code=code,
            result=_cut_text(result),
            traceback=_cut_text(shown_traceback),
            excluded=excluded,
            text_hash=source_hash(raw),
        )
        if len(self._cells) > MOST:
            del self._cells[next(iter(self._cells))]


def _cut_text(text: str) -> str:
    """Return a text cut to `LONGEST`, redacted first: half a key is not recognised."""
    if len(text) <= LONGEST:
        return text
    return cut_middle(redact_text(text, collect_secrets()), LONGEST)


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
    lines = getattr(shell, "_last_traceback", None)  # only the shell of a kernel keeps it
    kernel_traceback = (
        _strip_traceback("\n".join(map(str, lines))) if isinstance(lines, list) else ""
    )
    return (
        kernel_traceback or _history_traceback(shell.history_manager, count) or _format_fault(fault)
    )


def _format_fault(fault: BaseException) -> str:
    """Return a traceback where the shell keeps none, without calling `__str__` of the exception."""
    frames = _TRACEBACK.__get__(fault)
    arguments = _ARGUMENTS.__get__(fault)
    message = arguments[0] if len(arguments) == 1 and type(arguments[0]) is str else ""
    return "".join(
        [*traceback.format_tb(frames), f"{type_name(type(fault))}: {message}".rstrip(": ")]
    )


def _history_traceback(history: Any, count: int) -> str:
    lines = getattr(history, "exceptions", {}).get(count, {}).get("traceback")
    return _strip_traceback("\n".join(map(str, lines))) if isinstance(lines, list) else ""


def _strip_traceback(shown: str) -> str:
    """Return a traceback without colours and lines of dashes."""
    return _RULE.sub("", strip_ansi(shown)).strip()


_by_shell: weakref.WeakKeyDictionary[Any, RanCells] = weakref.WeakKeyDictionary()


def ran_cells_of(shell: Any) -> RanCells:
    """Return the cells of a shell; none where the extension is not loaded."""
    return _by_shell.get(shell) or RanCells(shell)


def install_history(shell: Any) -> None:
    """Note each cell that a shell has run or will run; installing twice changes nothing."""
    if shell in _by_shell:
        return
    cells = _by_shell[shell] = RanCells(shell)
    cells.note_history(shell)
    shell.events.register(_EVENT, cells.note_cell)


def uninstall_history(shell: Any) -> None:
    """Remove the hook of `install_history`, and forget the cells."""
    cells = _by_shell.pop(shell, None)
    if cells is not None and cells.note_cell in shell.events.callbacks.get(_EVENT, ()):
        shell.events.unregister(_EVENT, cells.note_cell)
