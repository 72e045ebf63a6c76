"""`run.show()`: the cards of any run in the cell that runs now; it records nothing."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...agent import REGISTRY, Run
from ...errors import UsageError
from ...events import Event, EventLog
from ...view import make_bundle
from ..identity import Cells
from .approvals import ButtonApprovals, run_actions
from .awaited_run import view_options
from .display import Actions, Display
from .frontend import can_ever_click, choose_view_kind


def display_run(run: Run, view: str = "auto") -> None:
    """Show a run in the cell that runs now, live. Raises UsageError on a view not in `VIEWS`."""
    from IPython.core.getipython import get_ipython

    cell = Cells().current(get_ipython(), "", run.id)
    options, ended = view_options(view), run.log.ended
    static = ended or choose_view_kind(view, cell) == "text"
    actions = None if static else _make_actions(run.log)
    display = Display(
        cell, options, actions=actions, can_click=actions is not None and can_ever_click(cell)
    )
    if not ended:
        display.open(run.log)
        context = contextvars.copy_context()
        _call_at_end(run.log, lambda: context.run(display.close, run.log))
    elif display.kind == "text":
        sys.stdout.write(make_bundle(run.log)["text/plain"] + "\n")
    else:
        display.close(run.log)


def _make_actions(log: EventLog) -> Actions | None:
    """Return the functions that a run's buttons call, None for a run of another process."""
    reachable = REGISTRY.reach(log)
    if reachable is None:
        return None
    reachable.questions.fall_back_to(ButtonApprovals().ask, keep=True)

    def stop() -> None:
        with suppress(UsageError):  # the run has ended
            reachable.cancel()

    return run_actions(reachable.questions, stop)


def _call_at_end(log: EventLog, close: Callable[[], Any]) -> None:
    """Call `close` when the run has ended, on a thread: drawing would hold up the run's own."""

    def close_at_end(event: Event) -> None:
        if event.type == "end" and not event.span:
            threading.Thread(target=close, name="agent_nb end of a view", daemon=True).start()

    log.subscribe(close_at_end)
