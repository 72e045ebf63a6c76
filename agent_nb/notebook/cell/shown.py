"""The cards of `await agent(…)` in a cell, and of `run.show()`.

Why: an agent in Python code is as good to look at as a `%%agent` cell, and as easy to stop and to
answer.

Rules
- Only a cell's own await is shown: not a run inside a tool, not one on a thread or a loop of its
  own, not what code prints for a model.
- Somebody who stops such a cell, whether the run is shown or not, stops the run; a second stop
  leaves it behind.
- At the end of the awaited run its cards become the static view with the record, once; the run then
  shows itself as one line in that cell, in later ones as cards again.
- `show` records nothing. Its widgets have the static view beside them, which alone is saved, and
  are swapped for it when the run ends; a run that is over is static at once: no saved notebook is
  left with widgets that nobody can draw.
- Questions that the agent has nobody to ask are asked by buttons, where clicks arrive, else on the
  keyboard.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from ...agent import registry
from ...agent.display import VIEWS
from ...agent.run import Run
from ...errors import Cancelled, UsageError
from ...events import Event
from ...events.log import EventLog
from ...record.record import ABANDONED, KEY, MIME, closed
from ...view.bundle import bundle
from ...view.live import LiveView, open_view
from ..execute.event_relay import send
from ..notices import warn
from . import executions
from .approvals import Clicks, either_asker, scope_of, stdin_asker
from .capture import active, bars
from .frontend import can_click, headless, may_click, view_kind
from .identity import Cell, Cells
from .interrupts import Interrupts
from .kernel_interrupts import Waiting, waiting
from .publish import guard, publish
from .recording import Recorder
from .summary import summary

if TYPE_CHECKING:
    from ...agent.stream import Stream


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()


def _kind(view: str, cell: Cell) -> str:
    if view not in VIEWS:
        raise UsageError(
            f"There is no view {view!r}. Known: {', '.join(VIEWS)}, and None for no view."
        )
    return view_kind(view, cell)


def screen(stream: Stream, view: str | None) -> Waiting | None:
    """Return the cards of a run that the running cell awaits; without cards where nobody would see
    them, None where no cell runs.

    Raises UsageError on an unknown view.
    """
    shell = _shell()
    if shell is None or active() or threading.current_thread() is not threading.main_thread():
        return None
    if view is None or (getattr(shell, "kernel", None) is None and view == "auto"):
        return waiting(shell)
    guard(shell)
    return Awaited(stream, shell, view)


class Awaited(Waiting):
    """The cards of one awaited run."""

    shown = True

    def __init__(self, stream: Stream, shell: Any, view: str) -> None:
        super().__init__(shell)
        self._stream, self._shell = stream, shell
        ours = shell.magics_manager.registry.get("AgentMagics")
        self._session = ours.session if ours is not None else None
        self._cell = executions.of(shell).current().cell
        self._kind = _kind(view, self._cell)
        stream.questions.fall_back_to(self._asker())
        send(self._cell, stream.log)
        self._view: LiveView = open_view(
            stream.log,
            kind=self._kind,
            actions=actions(self.stop, stream.questions),
            publish=publish,
            can_click=lambda: can_click(shell, self._cell),
            seen=not headless(self._cell),
        )
        self._held = ExitStack()
        self._held.enter_context(bars(shell))

    def _asker(self) -> Any:
        host: Any = _Here(self.interrupts)  # only its `call` is needed
        typed = stdin_asker(host, self._cell.stdin, lambda: self._view.caught_up)
        if self._kind != "widgets" or not may_click(self._cell):
            return typed
        return either_asker(Clicks(), typed, lambda: can_click(self._shell, self._cell))

    def close(self) -> None:
        """Leave the static view and the record, and the run in the namespace."""
        try:
            self._held.close()
            self._leave()
        finally:
            super().close()

    def _leave(self) -> None:
        log = _ended(self._stream.log)
        run = Run(log, cell=self._cell.id)
        kept = self._stream.kept
        record, said = (
            kept.leave(log) if isinstance(kept, Recorder) else ({}, summary(run, recorded=False))
        )
        left, numbers = ({MIME: record} if record else {}), {KEY: said}
        self._view.close({**bundle(log), **left}, numbers)
        if self._kind == "text" and self._cell.kernel and left:
            # the text is there already; alone the record shows nothing
            publish(left, numbers, {}, False)
        self._keep(self._stream.run if log is self._stream.log else run)
        for _, fault in log.faults:
            warn(f"something that followed the run was detached: {type(fault).__name__}: {fault}")

    def _keep(self, run: Run) -> None:
        shell, count = self._shell, self._shell.execution_count
        run.cell = self._cell.id
        run.seen = lambda: bool(shell.execution_count == count)
        if self._session is None:
            shell.user_ns["_agent"] = run
            return
        self._session.keep(self._cell, run, "_agent")


class _Here:
    """The main thread, for the keyboard: the run is on it already."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function that the user's interrupt may end. Raises Cancelled then."""
        value, fault = self._interrupts.guard(self, function)
        if isinstance(fault, KeyboardInterrupt):
            raise Cancelled("user", "kernel interrupt")
        if fault is not None:
            raise fault
        return value


def actions(
    stop: Callable[[], Any], questions: registry.Questions
) -> dict[str, Callable[..., Any]]:
    """Return what the buttons of a run do, from any thread."""

    def answer(payload: Mapping[str, Any], *, allow: bool) -> None:
        reason = "" if allow else "the user said no"
        call_id, scope = str(payload.get("call_id", "")), scope_of(payload)
        questions.answer(
            call_id, allow=allow, args=payload.get("args"), scope=scope, reason=reason, by="click"
        )

    return {
        "stop": lambda: stop(),  # noqa: PLW0108  (called with nothing, whatever it takes)
        "approve": lambda payload: answer(payload, allow=True),
        "approve_lasting": lambda payload: answer(payload, allow=True),
        "deny": lambda payload: answer(payload, allow=False),
    }


def show(run: Run, view: str = "auto") -> None:
    """Show a run in the cell that runs now: live until it ends, if it goes on. Raises UsageError on
    an unknown view.
    """
    shell = _shell()
    cell = Cells().current(shell, "", run.id)
    kind = _kind(view, cell)
    over = run.log.ended
    if kind == "text":
        _text(run, over)
    elif over:
        publish(dict(bundle(run.log)), {}, {}, False)
    else:
        live = _open(run, cell, kind)
        close = contextvars.copy_context().run
        _at_end(run.log, lambda: close(live.close, dict(bundle(run.log))))


def _text(run: Run, over: bool) -> None:
    if over:
        sys.stdout.write(bundle(run.log)["text/plain"] + "\n")
        return
    live = open_view(run.log, kind="text")
    _at_end(run.log, lambda: live.close({}))


def _open(run: Run, cell: Cell, kind: str) -> LiveView:
    """Open a view whose buttons reach the run as far as it can be reached."""
    found = registry.reach(run.log)
    if found is None:
        return open_view(run.log, kind=kind, publish=publish)
    found.questions.fall_back_to(Clicks().ask, keep=True)

    def stop() -> None:
        with suppress(UsageError):  # it is over
            found.cancel()

    return open_view(
        run.log,
        kind=kind,
        actions=actions(stop, found.questions),
        can_click=may_click(cell),
        publish=publish,
    )


def _at_end(log: EventLog, close: Callable[[], Any]) -> None:
    """Call `close` on a thread of its own when the run has ended."""

    def told(event: Event) -> None:
        if event.type == "end" and not event.span:
            threading.Thread(target=close, name="agent_nb end of a view", daemon=True).start()

    log.subscribe(told)


def _ended(log: EventLog) -> EventLog:
    """Return the log, closed if its run was left behind."""
    return log if log.ended else EventLog.of_events(closed(list(log), ABANDONED))
