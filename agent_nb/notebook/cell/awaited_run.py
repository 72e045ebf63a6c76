"""The cards of `await agent(…)` in the cell that awaits it.

Why: a run begun by Python code should be as easy to read, stop and answer as a `%%agent` cell.

Rules
- Only a run that the cell itself awaits is shown. Runs inside a tool, on another thread or event
  loop, or in code whose output is captured for a model have no cards.
- Stopping such a cell stops the run, with cards or without; a second stop abandons it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from ...agent import Run
from ...errors import Cancelled, UsageError
from ...events import ABANDONED, EventLog, complete_log
from ...models import collect_secrets
from ...tools import ApprovalSource
from ...wire import redact_value
from ..option_table import VIEWS
from ..options import Options
from ..session import find_session
from . import executions
from .approvals import ButtonApprovals, ask_by_click_or_input, ask_by_input, run_actions
from .capture import is_capturing, show_in_cards
from .cell_screen import CellScreen, screen_without_cards
from .display import Display, show_unrecorded, warn_of_faults
from .event_file import write_events
from .frontend import can_click_now, can_ever_click
from .interrupts import Interrupts
from .main_thread import MainThread, self_driven_host
from .map_inputs import publish_map
from .offered_cells import ChosenCell
from .publish import guard_displays
from .recording import Recorder
from .summary import summarize_run
from .unseen import UnseenQuestions

if TYPE_CHECKING:
    from ...agent import Screen, Stream


def make_cell_screen(stream: Stream, view: str | None) -> CellScreen | None:
    """Return the `agent.display.Screen` of the cell that awaits a run, None where no cell does.

    With the view None, or "auto" in a terminal, it has no cards and handles interrupts only. If the
    run is a map, leave it in the namespace. Raises UsageError on an unknown view.
    """
    shell = _find_shell()
    if shell is None:
        return None
    publish_map(stream, shell.user_ns)
    in_terminal = getattr(shell, "kernel", None) is None
    if view is None or (in_terminal and view == "auto"):
        return screen_without_cards(shell)
    guard_displays(shell)
    return AwaitedRun(stream, shell, view_options(view))


def find_cell_host(screen: Screen | None) -> MainThread | None:
    """Return the `agent.display.CellHost` of the running cell, None where none runs.

    The run shares the cell's event loop, so its jobs are tasks beside the cell. They are stopped by
    the interrupts of `screen`, if the cell awaits the run.
    """
    shell = _find_shell()
    if shell is None or screen_without_cards(shell) is None:
        return None
    secrets = collect_secrets()
    if isinstance(screen, CellScreen):
        interrupts = screen.interrupts
    else:
        interrupts = Interrupts(shell.user_ns, shell.user_global_ns)
    return self_driven_host(shell, interrupts, partial(redact_value, secrets=secrets))


def _find_shell() -> Any:
    """Return the shell, None on another thread or where the output is captured for a tool."""
    from IPython.core.getipython import get_ipython

    is_main = threading.current_thread() is threading.main_thread()
    return get_ipython() if is_main and not is_capturing() else None


def view_options(view: str) -> Options:
    """Return the options of a run that is shown as `view`. Raises UsageError on an unknown view."""
    if view not in VIEWS:
        raise UsageError(
            f"There is no view {view!r}. Known: {', '.join(VIEWS)}, and None for no view."
        )
    return Options(view=view)


class AwaitedRun(CellScreen):
    """The cards of one awaited run, shown from the constructor on until `close`."""

    shown = True

    def __init__(self, stream: Stream, shell: Any, options: Options) -> None:
        super().__init__(shell)
        self._stream, self._shell = stream, shell
        self._session = find_session(shell)
        self._cell = executions.executions_of(shell).current().cell
        self._can_click = partial(can_click_now, shell, self._cell)
        self._chosen = ChosenCell()
        actions = run_actions(stream.questions, self.stop)
        if not stream.is_replay:  # each replay would insert the cell again
            actions["insert"] = self._chosen.choose
        self._display = Display(self._cell, options, actions=actions, can_click=self._can_click)
        self._unseen = UnseenQuestions(lambda: self._display.views)
        self._until_close = ExitStack()
        self._unseen.cancel_after_denial(stream)
        stream.questions.fall_back_to(self._approval_source())
        write_events(self._cell, stream.log)
        self._display.open(stream.log)
        self._until_close.enter_context(show_in_cards(self._shell))  # progress bars, too

    def _approval_source(self) -> ApprovalSource:
        """Return the source for questions to the user, by buttons where clicks arrive."""
        typed = ask_by_input(
            self._call_on_thread, self._cell.stdin, lambda: self._display.caught_up
        )
        if self._display.kind != "widgets" or not can_ever_click(self._cell):
            return typed
        # the buttons answer `stream.questions` (`run_actions`); this source only waits meanwhile
        return ask_by_click_or_input(ButtonApprovals(), typed, self._can_click, self._unseen)

    async def _call_on_thread(self, function: Callable[[], Any]) -> Any:
        """Call a function on the cell's thread. Raises Cancelled if a press of stop ends it."""
        value, fault = self.interrupts.guard(self, function)
        if isinstance(fault, KeyboardInterrupt):
            raise Cancelled("user", "kernel interrupt")
        if fault is not None:
            raise fault
        return value

    def close(self) -> None:
        """Put the static page and the record into the output, and the run into the namespace."""
        try:
            self._until_close.close()
            self._show_end()
        finally:
            super().close()

    def _show_end(self) -> None:
        """Show the ended run and its record, and leave the run in the namespace."""
        log, run = self._stream.log, self._stream.run
        if not log.ended:  # a second stop abandoned it
            log = EventLog.of_events(complete_log(list(log), ABANDONED))
            run = Run(log, output=run.type)
        recorder = self._stream.recorder
        if isinstance(recorder, Recorder):
            record, numbers = recorder.finish(log)
        else:
            record, numbers = {}, summarize_run(run, recorded=False)
        self._display.close(log, record, numbers)
        show_unrecorded(self._stream.played)
        self._keep_run(run)
        if run.status == "ok":
            self._chosen.insert(self._shell)
        warn_of_faults(log)

    def _keep_run(self, run: Run) -> None:
        """Leave the run in the namespace; until the cell ends it displays itself as one line."""
        shell, count = self._shell, self._shell.execution_count
        run.cell = self._cell.id
        run.seen = lambda: bool(shell.execution_count == count)
        if self._session is not None:
            self._session.keep_run(self._cell, run, "_agent")
        else:
            shell.user_ns["_agent"] = run
