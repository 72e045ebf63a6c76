"""Presses of the stop button (SIGINT) before an agent cell's first line and after its last.

Why: during a request ipykernel sets Python's own handler. A press while the kernel prepares a cell
or sends the reply raises KeyboardInterrupt in the kernel's code, and the reply is lost: after a
double click on the front end's stop button a cell would never end.

Rules
- In a request with an agent cell, presses before the cell are saved for it. A press after its end
  is swallowed, but aborts queued requests where the kernel can. In a plain cell a press does what
  the kernel's handlers do, until the code awaits a run.
- Our handler is set only during a request: in an idle kernel KeyboardInterrupt would end the
  kernel.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from ...record import agent_cell
from .interrupts import Interrupts

# code that may await a run: `await`, `async`, or `%agent attach`, which is rewritten to an await
_MAY_AWAIT = re.compile(r"\b(?:await|async)\b|%agent\b")
_HOOKS = ("pre_handler_hook", "post_handler_hook")  # methods of an ipykernel


class Request:
    """A request that the kernel handles, and the presses during that time; `code` is its text.

    is_agent_cell: the code is an agent cell. may_await: the code is an agent cell, or plain code
    that may await a run. over: the agent cell has ended, or plain code awaits a run.
    early_presses, late_presses: the number of presses before our code ran, and after it.
    interrupts: those of the request's first agent cell, None before it begins; nested and
    concurrent agent cells change nothing.
    """

    def __init__(self, code: str = "") -> None:
        self.is_agent_cell = agent_cell(code) is not None
        self.may_await = self.is_agent_cell or _MAY_AWAIT.search(code) is not None
        self.over = False
        self.early_presses = self.late_presses = 0
        self.interrupts: Interrupts | None = None
        self._below: Any = None  # the kernel's handler for the cell's code, which ours replaced

    def cell_begins(self) -> None:
        """Put our handler above the one that the kernel has set for the cell's code."""
        if not self.may_await or self._below is not None:
            return
        if signal.getsignal(signal.SIGINT) != self.handle_outside:
            self._below = signal.signal(signal.SIGINT, self._handle_inside)

    def enter(self, interrupts: Interrupts) -> None:
        """Begin the first agent cell: it receives the presses that came before it."""
        self.interrupts, presses, self.early_presses = interrupts, self.early_presses, 0
        for _ in range(presses if self.is_agent_cell else 0):
            interrupts.press()

    def leave(self) -> None:
        """End the first agent cell; presses from now on are late."""
        self.over = True
        if self.is_agent_cell:
            signal.signal(signal.SIGINT, self.handle_outside)

    def begin_wait(self) -> int:
        """Note that plain code begins to await a run; return the number of early presses."""
        self.over = True
        return self.early_presses

    def handle_outside(self, signum: int, frame: FrameType | None) -> None:
        """Handle a press outside the cell's code."""
        if self.over:
            self.late_presses += 1
        elif self.is_agent_cell:
            self.early_presses += 1
        else:
            signal.default_int_handler(signum, frame)

    def _handle_inside(self, signum: int, frame: FrameType | None) -> None:
        """Handle a press in the cell's code, as long as our code has set no handler above."""
        self.early_presses += 1
        if not self.is_agent_cell and callable(self._below):
            self._below(signum, frame)


class KernelHooks:
    """Our hooks on a shell's kernel, called from their construction on.

    In order: `before_request`, `cell_begins`, `Request.enter` and `leave`, `after_request`.
    """

    def __init__(self, shell: Any) -> None:
        self.request = Request()
        self._shell, self._kernel = shell, shell.kernel
        # hooks set on the kernel object itself, None where its class has them
        self._own = {name: vars(self._kernel).get(name) for name in _HOOKS}
        self._pre, self._post = (getattr(self._kernel, name) for name in _HOOKS)
        self._kernel.pre_handler_hook = self.before_request
        self._kernel.post_handler_hook = self.after_request
        shell.events.register("pre_run_cell", self.cell_begins)

    def before_request(self) -> None:
        """Begin a request: set the kernel's handler, or ours instead."""
        if not _on_main_thread():  # a subshell: no handler can be set
            self._pre()
            return
        self.request = Request(self._read_code())
        try:
            self._pre()
            if self.request.may_await:
                signal.signal(signal.SIGINT, self.request.handle_outside)
        except KeyboardInterrupt:  # raised from a hook it would end the kernel
            if not self.request.may_await:
                raise
            self.request.early_presses = 1
            signal.signal(signal.SIGINT, self.request.handle_outside)

    def cell_begins(self, *_: Any) -> None:
        """Note that a cell's code is about to run."""
        if _on_main_thread():
            self.request.cell_begins()

    def after_request(self) -> None:
        """End a request: restore the idle kernel's handler.

        Abort the queue if a press came that stopped no run: before the cell or after its end.
        """
        self._post()
        if not _on_main_thread():
            return
        done, self.request = self.request, Request()
        if done.late_presses or (done.is_agent_cell and done.early_presses):
            abort_queue(self._kernel)

    def restore(self) -> None:
        """Restore the kernel's own hooks, unless other code has wrapped ours meanwhile."""
        self._shell.events.unregister("pre_run_cell", self.cell_begins)
        for name, hook in zip(_HOOKS, (self.before_request, self.after_request), strict=True):
            if vars(self._kernel).get(name) != hook:
                continue
            if self._own[name] is None:
                delattr(self._kernel, name)
            else:
                setattr(self._kernel, name, self._own[name])

    def _read_code(self) -> str:
        """Return the code of the current request, "" if it has none."""
        with suppress(Exception):  # kernels differ; an unreadable request counts as a plain one
            request = self._kernel.get_parent()
            if request["header"]["msg_type"] == "execute_request":
                return str(request["content"]["code"])
        return ""


@contextmanager
def cell_interrupts(shell: Any, *, by_button: bool = False) -> Iterator[Interrupts]:
    """Handle the interrupts of an agent cell, and presses before it; `by_button`: no cell runs."""
    hooks = None if by_button else find_hooks(shell)
    request = hooks.request if hooks is not None else Request()
    with Interrupts(shell.user_ns, shell.user_global_ns) as interrupts:
        first = request.interrupts is None
        try:
            if first:
                request.enter(interrupts)
            yield interrupts
        finally:
            if first:
                request.leave()


def abort_queue(kernel: Any) -> None:
    """Abort the requests queued in a kernel, as an error reply does, if the kernel supports it."""
    abort = getattr(kernel, "_abort_queues", None)
    if callable(abort):
        abort()


def install_interrupts(shell: Any) -> None:
    """Wrap the hooks of a shell's kernel; installing twice changes nothing."""
    kernel = getattr(shell, "kernel", None)
    if find_hooks(shell) is None and all(callable(getattr(kernel, name, None)) for name in _HOOKS):
        KernelHooks(shell)


def uninstall_interrupts(shell: Any) -> None:
    """Restore the hooks of a shell's kernel."""
    if (hooks := find_hooks(shell)) is not None:
        hooks.restore()


def find_hooks(shell: Any) -> KernelHooks | None:
    """Return our hooks of a shell's kernel, None if they are not installed."""
    owner = getattr(getattr(getattr(shell, "kernel", None), _HOOKS[0], None), "__self__", None)
    return owner if isinstance(owner, KernelHooks) else None


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
