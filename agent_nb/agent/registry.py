"""The registry of this process's runs: others learn of a run, stop it or answer its questions.

Agents and cells need not know whether a server runs; one that starts later finds earlier runs.

Rules
- The registry holds announced runs weakly, so that finished ones take no memory.
- The first announcement of a log counts: a cell announces before its stream, because it knows
  better how to stop the run.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from ..events import EventLog
from ..tools import ApprovalSource, Decision, Question

Scope = Literal["once", "args", "tool", "run", "kernel"]
_INTERVAL = 0.25  # s between two looks for a client that may connect again
# whether this context is part of the run of a sub-agent, which is not announced
_nested: ContextVar[bool] = ContextVar("agent_nb_below", default=False)


class Questions:
    """The open questions of a run, which a local source (a cell) or a remote client answers.

    Questions wait on the agent's event loop; `answer` may be called from any thread.
    """

    def __init__(self) -> None:
        self._conditions: list[Callable[[], bool]] = []
        self._returns: list[Callable[[], bool]] = []
        self._local_source: ApprovalSource | None = None
        # call id -> where a remote answer arrives, and the question
        self._open: dict[str, tuple[asyncio.Future[Decision], Question]] = {}

    @property
    def reachable(self) -> bool:
        """Whether a remote answer is possible now, or once a client has connected again."""
        return any(holds() for holds in [*self._conditions, *self._returns])

    def reachable_while(
        self, listening: Callable[[], bool], returning: Callable[[], bool] = lambda: False
    ) -> None:
        """Let a question without a local answer wait, if `listening` or an earlier one is true.

        `returning`: whether a client has just left; a question waits that long for one to listen.
        """
        self._conditions.append(listening)
        self._returns.append(returning)

    def fall_back_to(self, local: ApprovalSource, *, keep: bool = False) -> None:
        """Ask `local`, such as a cell, if the agent has no source; `keep`: an earlier one stays."""
        if self._local_source is None or not keep:
            self._local_source = local

    def combine_with(self, local: ApprovalSource | None) -> ApprovalSource:
        """Return a source that asks `local` and remote clients, and takes the first answer.

        `local`: a source in this process (None: the one given to `fall_back_to`). A question is
        open from the call of the source on, before its result is awaited, if a loop runs there.
        """

        async def ask_later(question: Question) -> Decision | None:
            return await ask(question)

        def ask(question: Question) -> Awaitable[Decision | None]:
            try:
                remote: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
            except RuntimeError:  # on the thread of a tool, which runs a loop for the result
                return ask_later(question)
            self._open[question.call_id] = (remote, question)
            source = local or self._local_source
            try:
                # of a sub-agent: this opens the question of the parent
                return self._wait(question, remote, source(question) if source else None)
            except BaseException:
                del self._open[question.call_id]
                raise

        return ask

    async def _wait(
        self,
        question: Question,
        remote: asyncio.Future[Decision],
        local: Awaitable[Decision | None] | None,
    ) -> Decision | None:
        """Return the first answer to an open question, and close it."""
        try:
            return await self._choose_first(question, remote, local)
        finally:
            self._open.pop(question.call_id, None)  # `answer` has removed an answered one

    async def _choose_first(
        self,
        question: Question,
        remote: asyncio.Future[Decision],
        local: Awaitable[Decision | None] | None,
    ) -> Decision | None:
        """Return the first answer; None if the local source has none and no client listens."""

        def is_open() -> bool:  # `answer` closes a question before `remote` is done
            return self.find_open(question.call_id) is question

        if local is not None:
            asking = asyncio.ensure_future(local)
            try:
                sources: set[asyncio.Future[Any]] = {asking, remote}
                await asyncio.wait(sources, return_when=asyncio.FIRST_COMPLETED)
                if is_open() and (decision := asking.result()) is not None:
                    return decision
            finally:
                await _cancel_question(asking)
        while is_open() and not any(listens() for listens in self._conditions):
            if not self.reachable:
                return None
            await asyncio.wait([remote], timeout=_INTERVAL)
        return await remote

    def find_open(self, call_id: str) -> Question | None:
        """Return the open question about a call, or None."""
        _, question = self._open.get(call_id, (None, None))
        return question

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
        """Answer the question about a call; return whether one was open: the first answer counts.

        `args`: edited arguments to run with. The other fields are those of the `Decision`.
        """
        remote, _ = self._open.pop(call_id, (None, None))
        if remote is None or remote.done():
            return False
        with suppress(RuntimeError):  # its loop is closed: the run is over
            remote.get_loop().call_soon_threadsafe(
                _set_answer, remote, Decision(allow, args=args, scope=scope, by=by, reason=reason)
            )
            return True
        return False


async def _cancel_question(asking: asyncio.Future[Decision | None]) -> None:
    """Cancel a question that was answered elsewhere or is obsolete, and wait for its end."""
    if not asking.done():
        asking.cancel()
        await asyncio.wait([asking])
    if not asking.cancelled():
        asking.exception()  # asyncio reports an exception that is never retrieved


def _set_answer(answer: asyncio.Future[Decision], decision: Decision) -> None:
    if not answer.done():
        answer.set_result(decision)


class Announced(msgspec.Struct, eq=False, weakref=True):
    """An announced run: its log, the name of its conversation, and its open questions.

    `stop` asks the run to stop (None: it cannot be stopped from here). Methods are thread-safe.
    """

    log: EventLog
    conversation: str
    questions: Questions
    stop: Callable[[], Any] | None

    def cancel(self) -> None:
        """Ask the run to stop. Raises UsageError if it has ended or cannot be stopped from here."""
        if self.stop is None or self.log.ended:
            raise UsageError("This run is over, or it cannot be stopped from here.")
        self.stop()


Follower = Callable[[Announced], None]


class RunRegistry:
    """The announced runs and their followers. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # log -> name of the conversation, announced run
        self._announced: weakref.WeakKeyDictionary[EventLog, tuple[str, weakref.ref[Announced]]] = (
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
        """Announce that a run begins; None if it is already announced or a sub-agent's.

        The registry holds the result weakly: keep it while the run goes on.
        """
        with self._lock:
            if log in self._announced or _nested.get():
                return None
            announced = Announced(log, conversation, questions or Questions(), cancel)
            self._announced[log] = (conversation, weakref.ref(announced))
            followers = list(self._followers)
        for follower in followers:
            self._notify(follower, announced)
        return announced

    def follow(self, follower: Follower) -> Callable[[], None]:
        """Call `follower` with every announced run, in order, and with each later one.

        A follower that raises is dropped; the run is not affected. Returns what ends the calls.
        """
        with self._lock:
            earlier = [(log, *entry) for log, entry in self._announced.items()]
            self._followers = [*self._followers, follower]
        # an announced run that is gone is over: its stand-in cannot be stopped or answered
        for log, conversation, reference in earlier:
            if follower not in self._followers:  # it has raised
                break
            self._notify(follower, reference() or Announced(log, conversation, Questions(), None))
        return partial(self._drop, follower)

    def reach(self, log: EventLog) -> Announced | None:
        """Return the announced run of a log, or None if it is over or was never announced."""
        with self._lock:
            entry = self._announced.get(log)
        return entry[1]() if entry is not None else None

    def list_open_runs(self) -> list[EventLog]:
        """Return the logs of the announced runs that have not ended, the newest last."""
        with self._lock:
            return [log for log in self._announced if not log.ended]

    def _notify(self, follower: Follower, announced: Announced) -> None:
        try:
            follower(announced)
        except Exception:  # a fault of the follower must not stop the run
            self._drop(follower)

    def _drop(self, follower: Follower) -> None:
        with self._lock:
            self._followers = [f for f in self._followers if f is not follower]


@contextmanager
def hide_nested_runs() -> Iterator[None]:
    """Within this context, do not announce runs: they are part of another run."""
    token = _nested.set(True)
    try:
        yield
    finally:
        _nested.reset(token)


REGISTRY = RunRegistry()
