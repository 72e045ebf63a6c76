"""Decide about each request that reaches the relay: send, answer from a record, or refuse it.

Why apart from the relay: a decision may take time, and its client may go away meanwhile. Even then
`Live.finish` is called for every request that is to be sent.

Rule: a request waits for room in the budget on the event loop: waiting in threads would occupy
those in which calls under way have to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from ..errors import UsageError
from .exchange import Refusal, Request, Response
from .live_exchange import Sent
from .spending import Charge, Spending


class Live(msgspec.Struct, frozen=True):
    """The decision to send a request to its provider, with functions that follow the exchange.

    `begin` is called while the request is on its way, on the event loop: in a thread it would keep
    the loop from the answer. Then `receive` gets each piece of the answer, with its status and
    headers, before the client does. `finish` gets the exchange, in a thread since reading it takes
    time, or None if no answer began or nothing was sent.
    """

    finish: Callable[[Sent | None], None]
    begin: Callable[[], None] = lambda: None
    receive: Callable[[int, Mapping[str, str], bytes], None] = lambda *_: None


Decision = Live | Response | Refusal
Answer = Callable[[Request, Mapping[str, str]], Decision]
_Judged = tuple[Decision, Charge]  # a decision, and what the request may cost if it is sent


class Decisions:
    """Decides about requests under the budget of `spending`; for the arguments see `Relay`."""

    def __init__(self, answer: Answer, is_quick: Callable[[], bool]) -> None:
        self.spending = Spending()
        self._answer, self._is_quick = answer, is_quick

    async def decide(self, request: Request, headers: Mapping[str, str]) -> Decision:
        """Return the decision about a request; wait until the budget has room to send it.

        If the task is cancelled because the client goes away, call `Live.finish` with None.
        """
        try:
            # with a budget, judging looks prices up, which is not quick
            if not self.spending.budget and self._is_quick():
                decision, charge = self._judge(request, headers)
            else:
                decision, charge = await self._judge_in_thread(request, headers)
        except Exception as fault:  # asyncio would print it below the user's cell
            return Refusal(f"The tape cannot answer: {fault}")
        if not isinstance(decision, Live):
            return decision
        try:
            refusal = await self.spending.begin(charge)
        except asyncio.CancelledError:
            _finish_apart(decision)
            raise
        if refusal is not None:
            await asyncio.shield(_finish_apart(decision))
            return refusal
        return self._count_cost(decision, charge)

    async def _judge_in_thread(self, request: Request, headers: Mapping[str, str]) -> _Judged:
        """Judge a request in a thread, which ends even if the client goes away."""
        judging = asyncio.ensure_future(asyncio.to_thread(self._judge, request, headers))
        try:
            return await asyncio.shield(judging)
        except asyncio.CancelledError:
            judging.add_done_callback(_give_up)
            raise

    def _judge(self, request: Request, headers: Mapping[str, str]) -> _Judged:
        """Return the decision about a request, and what it may cost."""
        decision = self._answer(request, headers)
        if not isinstance(decision, Live):
            return decision, Charge()
        try:
            return decision, self.spending.estimate(request)
        except BaseException as fault:
            decision.finish(None)
            if isinstance(fault, UsageError):
                return Refusal(str(fault)), Charge()
            raise

    def _count_cost(self, decision: Live, charge: Charge) -> Live:
        """Return a decision that also counts what the exchange has cost when it ends."""

        def finish(sent: Sent | None) -> None:
            try:
                decision.finish(sent)
            finally:
                self.spending.end(charge, sent.exchange if sent else None)

        return msgspec.structs.replace(decision, finish=finish)


def _give_up(judging: asyncio.Future[_Judged]) -> None:
    """Finish a request whose client went away while the request was judged."""
    if judging.cancelled() or judging.exception() is not None:
        return
    decision, _ = judging.result()
    if isinstance(decision, Live):
        _finish_apart(decision)


def _finish_apart(decision: Live) -> asyncio.Future[None]:
    """Finish a request that is not sent, in a thread, as other streams need the loop."""
    return asyncio.get_running_loop().run_in_executor(None, decision.finish, None)
