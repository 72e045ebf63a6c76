"""The cells that ran in this kernel: their code, their text results and their tracebacks.

Why a record of our own: the shell's history knows no cell ids and no tags, and versions of IPython
differ in what they keep. With it a run can be given the cells above (`context_cells`) and the cell
that failed (`failed_cell`).

Rules
- Texts are those that the shell has shown; no object is asked again.
- A cell with an id counts once, as it ran last, until it is deleted; one without an id, once for
  its text. Cells of agents do not count: conversations have them. Cells that ran before the
  extension was loaded come from the shell's history.
- Everything is bounded: `MOST` cells, `LONGEST` characters of each text.
"""

from __future__ import annotations

import re
import traceback
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...models import collect_secrets
from ...record import agent_cell
from ...tools import type_name
from ...wire import cut_middle, redact_text, strip_ansi
from ..files.library import EXCLUDE
from ..identity import Cell
from . import executions
from .capture import is_capturing

MOST = 200
LONGEST = 20_000
_EVENT = "post_run_cell"
_OURS = re.compile(r"^[^\S\n]*%agent\b[^\n]*\n?", re.M)
_RULE = re.compile(r"^-{20,}[^\S\n]*\n", re.M)
_TRACEBACK, _ARGUMENTS = (BaseException.__dict__[name] for name in ("__traceback__", "args"))
_STOPS = (KeyboardInterrupt, SystemExit)  # a stopped cell has not failed


class RanCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell as it ran last. `count`: its number in the shell; `failed`: its traceback, "" if it
    ended; `excluded`: it had the tag that keeps it from models.
    """

    count: int
    id: str = ""
    code: str = ""
    result: str = ""
    failed: str = ""
    excluded: bool = False


class RanCells:
    """The cells of one shell, oldest first."""

    def __init__(self, shell: Any) -> None:
        self._shell = weakref.ref(shell)
        self._cells: dict[str, RanCell] = {}

    def __iter__(self) -> Iterator[RanCell]:
        return iter(list(self._cells.values()))

    def ended(self, result: Any) -> None:
        """Note a cell that has run."""
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
        failed = "" if stopped else _traceback(shell, count, fault)
        shown = _result(shell, count) if result.result is not None else ""
        self._add(count, raw, shown, failed, cell.id, excluded=EXCLUDE in cell.tags)

    def forget(self, deleted: Iterable[str]) -> None:
        """Forget cells that were deleted, by their ids."""
        for name in deleted:
            self._cells.pop(name, None)

    def recall(self, shell: Any) -> None:
        """Note the cells of the shell's history."""
        history = getattr(shell, "history_manager", None)
        for count, raw in enumerate(getattr(history, "input_hist_raw", ())):
            if count and isinstance(raw, str):
                self._add(count, raw, _result(shell, count), _kept_traceback(history, count))

    def _add(
        self,
        count: int,
        raw: str,
        shown: str,
        failed: str,
        cell_id: str = "",
        *,
        excluded: bool = False,
    ) -> None:
        code = "" if agent_cell(raw) is not None else _OURS.sub("", raw).strip()
        if not code:
            return
        code = _bounded(code)
        key = cell_id or f"[{count}]"
        same = [k for k, c in self._cells.items() if k == key or (not c.id and c.code == code)]
        for known in same:
            del self._cells[known]
        self._cells[key] = RanCell(
            count=count,
            id=cell_id,
            code=code,
            result=_bounded(shown),
            failed=_bounded(failed),
            excluded=excluded,
        )
        if len(self._cells) > MOST:
            del self._cells[next(iter(self._cells))]


def _bounded(text: str) -> str:
    """Return a text cut to `LONGEST`, without keys if it is cut: half a key would not be found."""
    if len(text) <= LONGEST:
        return text
    return cut_middle(redact_text(text, collect_secrets()), LONGEST)


def _result(shell: Any, count: int) -> str:
    """Return the text of a cell's result as the shell has shown it."""
    history = getattr(shell, "history_manager", None)
    shown = getattr(history, "outputs", {}).get(count, ())
    texts = [
        output.bundle.get("text/plain")
        for output in shown
        if output.output_type == "execute_result" and isinstance(output.bundle, dict)
    ]
    result = texts[-1] if texts else getattr(history, "output_hist_reprs", {}).get(count)
    text = "".join(result) if isinstance(result, list) else result
    return text if isinstance(text, str) else ""


def _traceback(shell: Any, count: int, fault: BaseException) -> str:
    """Return the traceback of the cell that has just failed, as the shell has shown it."""
    lines = getattr(shell, "_last_traceback", None)  # of a kernel
    shown = _plain("\n".join(map(str, lines))) if isinstance(lines, list) else ""
    return shown or _kept_traceback(shell.history_manager, count) or _written(fault)


def _written(fault: BaseException) -> str:
    """Return a traceback that no version of the shell has kept; no `__str__` of it is asked."""
    frames = _TRACEBACK.__get__(fault)
    arguments = _ARGUMENTS.__get__(fault)
    message = arguments[0] if len(arguments) == 1 and type(arguments[0]) is str else ""
    return "".join(
        [*traceback.format_tb(frames), f"{type_name(type(fault))}: {message}".rstrip(": ")]
    )


def _kept_traceback(history: Any, count: int) -> str:
    lines = getattr(history, "exceptions", {}).get(count, {}).get("traceback")
    return _plain("\n".join(map(str, lines))) if isinstance(lines, list) else ""


def _plain(shown: str) -> str:
    """Return a traceback without colours and rules."""
    return _RULE.sub("", strip_ansi(shown)).strip()


_known: weakref.WeakKeyDictionary[Any, RanCells] = weakref.WeakKeyDictionary()


def ran_cells_of(shell: Any) -> RanCells:
    """Return the cells of a shell; none where the extension is not loaded."""
    return _known.get(shell) or RanCells(shell)


def install_history(shell: Any) -> None:
    """Note every cell of a shell that has run; installing twice changes nothing."""
    if shell in _known:
        return
    cells = _known[shell] = RanCells(shell)
    cells.recall(shell)
    shell.events.register(_EVENT, cells.ended)


def uninstall_history(shell: Any) -> None:
    """Remove the hook of `install`, and forget."""
    cells = _known.pop(shell, None)
    if cells is not None and cells.ended in shell.events.callbacks.get(_EVENT, ()):
        shell.events.unregister(_EVENT, cells.ended)
