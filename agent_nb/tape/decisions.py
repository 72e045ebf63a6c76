"""Decides about each request that reaches the relay: send, answer from a record, or refuse it.

Rules
- A request is judged in a thread, unless judging is quick: a change of threads delays a request.
- A request waits for room in the budget on the event loop. Waiting requests would occupy the
  threads in which calls under way have to end.
- `Live.finish` is called for every request that is to be sent, also if its client goes away first.
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


Answer = Callable[[Request, Mapping[str, str]], Live | Response | Refusal]


class Decisions:
    """Decides about requests under the budget of `spending`; for the arguments see `Relay`."""

    def __init__(self, answer: Answer, is_quick: Callable[[], bool]) -> None:
        self.spending = Spending()
        self._answer, self._is_quick = answer, is_quick

    async def decide(
        self, request: Request, headers: Mapping[str, str]
    ) -> Live | Response | Refusal:
        """Return the decision about a request; wait until the budget has room to send it.

        If the task is cancelled because the client goes away, call `Live.finish` with None.
        """
        try:
            # with a budget, judging looks prices up, which is not quick
            if not self.spending.budget and self._is_quick():
                decision, charge = self._judge(request, headers)
            else:
                asking = asyncio.ensure_future(asyncio.to_thread(self._judge, request, headers))
                try:
                    decision, charge = await asyncio.shield(asking)
                except asyncio.CancelledError:
                    asking.add_done_callback(_give_up)
                    raise
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

        def finish(sent: Sent | None) -> None:
            try:
                decision.finish(sent)
            finally:
                self.spending.end(charge, sent.exchange if sent else None)

        return msgspec.structs.replace(decision, finish=finish)

    def _judge(
        self, request: Request, headers: Mapping[str, str]
    ) -> tuple[Live | Response | Refusal, Charge]:
        """Return the decision about a request, and what it may cost if it is sent."""
        decision = self._answer(request, headers)
        if not isinstance(decision, Live):
            return decision, Charge()
        try:
            return decision, self.spending.charge(request)
        except UsageError as fault:
            decision.finish(None)
            return Refusal(str(fault)), Charge()
        except BaseException:
            decision.finish(None)
            raise


def _give_up(asking: asyncio.Future[tuple[Live | Response | Refusal, Charge]]) -> None:
    """Finish a request whose client went away while the request was judged."""
    if not asking.cancelled() and asking.exception() is None:
        decision, _ = asking.result()
        if isinstance(decision, Live):
            _finish_apart(decision)


def _finish_apart(decision: Live) -> asyncio.Future[None]:
    """Finish a request that is not sent, in a thread, as other streams need the loop."""
    return asyncio.get_running_loop().run_in_executor(None, decision.finish, None)
