"""The runs of this process, for whoever follows them: announced as they begin, with the ways to
stop and to answer them.

Why apart: neither an agent nor a cell has to know whether a server is there, and a server that
comes later finds the runs that were there before it.

Rules
- A run is kept by whoever holds its log, never by this: a run that nobody holds any more is not
  told to those who come later.
- The first announcement of a log counts: a cell knows better than its stream how it is stopped.
  Runs below another run are not announced.
- A follower that raises is dropped; the run never hears of it.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal

from ..errors import UsageError
from ..events.log import EventLog
from ..tools.base import Asker, Decision, Question

Scope = Literal["once", "tool", "run", "kernel"]
_below: ContextVar[bool] = ContextVar("agent_nb_below", default=False)


class Questions:
    """The open questions of a run that may be answered from elsewhere. `ask` waits on the agent's
    loop; `answer` is for any thread.

    `reachable` says whether there is anybody elsewhere just now; `near` is whom to ask where the
    agent itself has nobody, such as the cell that shows it.
    """

    def __init__(self) -> None:
        self._listening: list[Callable[[], bool]] = []
        self._near: Asker | None = None
        self._open: dict[str, asyncio.Future[Decision]] = {}

    @property
    def reachable(self) -> bool:
        """Whether someone can answer from elsewhere now."""
        return any(listens() for listens in self._listening)

    def reachable_while(self, listening: Callable[[], bool]) -> None:
        """Wait for answers from elsewhere while `listening()`, or another such condition, holds."""
        self._listening.append(listening)

    def fall_back_to(self, near: Asker, *, keep: bool = False) -> None:
        """Ask `near` where the agent has no asker of its own; `keep`: unless one is set already."""
        if self._near is None or not keep:
            self._near = near

    def beside(self, near: Asker | None) -> Asker:
        """Return an asker that takes the first answer, that of `near` (None: nobody is near) or one
        from elsewhere.
        """

        async def ask(question: Question) -> Decision | None:
            far: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
            self._open[question.call_id] = far
            try:
                return await self._first(far, near or self._near, question)
            finally:
                del self._open[question.call_id]

        return ask

    async def _first(
        self, far: asyncio.Future[Decision], near: Asker | None, question: Question
    ) -> Decision | None:
        if near is not None:
            asking = asyncio.ensure_future(near(question))
            try:
                both: set[asyncio.Future[Any]] = {asking, far}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not far.done() and (said := asking.result()) is not None:
                    return said
            finally:
                await _given_up(asking)
        return await far if far.done() or self.reachable else None

    def answer(
        self,
        call_id: str,
        *,
        allow: bool,
        args: dict[str, Any] | None = None,
        scope: Scope = "once",
        reason: str = "",
        by: str = "remote",
    ) -> bool:
        """Answer the question about a call; return whether one was open. `args`: what to use
        instead of those asked about.
        """
        far = self._open.get(call_id)
        if far is None or far.done():
            return False
        with suppress(RuntimeError):  # its loop is closed: the run is over
            far.get_loop().call_soon_threadsafe(
                _settle, far, Decision(allow, args=args, scope=scope, by=by, reason=reason)
            )
            return True
        return False


async def _given_up(asking: asyncio.Future[Decision | None]) -> None:
    """See a question to its end that is answered elsewhere or not wanted any more."""
    if not asking.done():
        asking.cancel()
        await asyncio.wait([asking])
    if not asking.cancelled():
        asking.exception()  # asyncio reports one that nobody has looked at


def _settle(answer: asyncio.Future[Decision], decision: Decision) -> None:
    if not answer.done():
        answer.set_result(decision)


class Announced:
    """How a run is reached: its `log`, the conversation it belongs to, its open questions, and
    `cancel`, for any thread.
    """

    def __init__(
        self,
        log: EventLog,
        conversation: str,
        questions: Questions,
        cancel: Callable[[], Any] | None,
    ) -> None:
        self.log = log
        self.conversation = conversation
        self.questions = questions
        self._cancel = cancel

    def cancel(self) -> None:
        """Ask the run to stop. Raises UsageError when it can no longer be stopped from here."""
        if self._cancel is None or self.log.ended:
            raise UsageError("This run is over, or it cannot be stopped from here.")
        self._cancel()


Follower = Callable[[Announced], None]


class Runs:
    """The runs that were announced, and who follows. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: weakref.WeakKeyDictionary[EventLog, tuple[str, weakref.ref[Announced]]] = (
            weakref.WeakKeyDictionary()
        )
        self._followers: list[Follower] = []

    def announce(
        self,
        log: EventLog,
        *,
        conversation: str = "",
        questions: Questions | None = None,
        cancel: Callable[[], Any] | None = None,
    ) -> Announced | None:
        """Say that a run begins; keep what is returned while the run goes on. None if it was
        announced before or is below another.
        """
        with self._lock:
            if log in self._logs or _below.get():
                return None
            found = Announced(log, conversation, questions or Questions(), cancel)
            self._logs[log] = (conversation, weakref.ref(found))
            followers = list(self._followers)
        for follower in followers:
            self._tell(follower, found)
        return found

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Tell `follower` of every run that is there, in order, and of each to come; return a
        function that ends it.
        """
        with self._lock:
            known = [(log, *kept) for log, kept in self._logs.items()]
            self._followers = [*self._followers, follower]
        for log, conversation, reached in known:
            self._tell(follower, reached() or Announced(log, conversation, Questions(), None))

        def stop() -> None:
            with self._lock:
                self._followers = [f for f in self._followers if f is not follower]

        return stop

    def reach(self, log: EventLog) -> Announced | None:
        """Return how the run of a log is reached, None when it is over or was never announced."""
        with self._lock:
            kept = self._logs.get(log)
        return kept[1]() if kept is not None else None

    def going_on(self) -> list[EventLog]:
        """Return the logs of the announced runs that have not ended, the newest last."""
        with self._lock:
            return [log for log in self._logs if not log.ended]

    def _tell(self, follower: Follower, found: Announced) -> None:
        try:
            follower(found)
        except Exception:  # whatever it is, it is the follower's own trouble
            with self._lock:
                self._followers = [f for f in self._followers if f is not follower]


@contextmanager
def below() -> Iterator[None]:
    """Runs that begin inside are part of another run and are not announced."""
    token = _below.set(True)
    try:
        yield
    finally:
        _below.reset(token)


RUNS = Runs()
announce = RUNS.announce
follow = RUNS.follow
reach = RUNS.reach
going_on = RUNS.going_on
