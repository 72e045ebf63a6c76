"""What becomes of the requests that reach the relay: sent, answered from a record, or refused.

Rules
- A request is judged in a thread, unless that is quick: a change of threads delays it.
- It waits for room in the budget on the event loop. In threads, those that wait would keep the
  calls under way from ending.
- What is decided to be sent is finished in any case, also if its client goes away before.
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
    """A request is sent to its provider.

    `begin` is called while the request is on its way, on the event loop: in a thread it would keep
    the loop from the answer. Then `receive` gets each piece of the answer, with its status and
    headers, before the client does. `finish` gets the exchange, None if no answer began, also where
    nothing was sent; it is called in a thread.
    """

    finish: Callable[[Sent | None], None]
    begin: Callable[[], None] = lambda: None
    receive: Callable[[int, Mapping[str, str], bytes], None] = lambda *_: None


Answer = Callable[[Request, Mapping[str, str]], Live | Response | Refusal]


class Decisions:
    """Decides about requests; `answer` and `is_quick` are those of `Relay`."""

    def __init__(self, answer: Answer, is_quick: Callable[[], bool]) -> None:
        self.spending = Spending()
        self._answer, self._is_quick = answer, is_quick

    async def decide(
        self, request: Request, headers: Mapping[str, str]
    ) -> Live | Response | Refusal:
        """Return what becomes of a request, which is sent only if the budget has room for it; if
        its client goes away meanwhile, it is finished.
        """
        try:
            # a budget looks prices up
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
        """Return what becomes of a request, and what it may cost if it is sent."""
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
    if not asking.cancelled() and asking.exception() is None:
        decision, _ = asking.result()
        if isinstance(decision, Live):
            decision.finish(None)


def _finish_apart(decision: Live) -> asyncio.Future[None]:
    """Finish a request that is not sent, in a thread, as other streams need the loop."""
    return asyncio.get_running_loop().run_in_executor(None, decision.finish, None)
