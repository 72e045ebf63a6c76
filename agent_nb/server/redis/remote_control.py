"""Stop runs of other processes and answer their questions: messages to their kernels through Redis.

Why: a server may show runs of kernels that it did not start; `control` is the other end. A kernel
that does not reply in time counts as gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ...errors import UsageError
from .link import Link, Refusal
from .messages import Gate, Message, Refused, new_message, question_hash, seal_message
from .mirror import Mirror
from .reader import Reader

PATIENCE = 8.0  # seconds to wait for the reply of a kernel
_UNREAD = 600  # seconds after which unread messages expire


class RemoteControl:
    """Controls runs of other processes. `key` signs messages (b"": no kernel obeys)."""

    def __init__(self, link: Link, reader: Reader, key: bytes) -> None:
        self.key = key
        self._link, self._inbox = link, reader.inbox
        self._replies = Gate(None, key)
        self._waiting: dict[str, asyncio.Future[Message]] = {}  # nonce of a message -> its reply
        self._announcing = asyncio.Lock()
        reader.deliver_inbox_to(self._receive_replies)

    async def cancel(self, mirror: Mirror) -> None:
        """Ask the kernel to stop the run. Raises UsageError if it refuses, HubAway."""
        await self._send_and_wait(new_message("cancel", mirror.run, back=self._inbox))

    async def approve(self, mirror: Mirror, call_id: str, **answer: Any) -> bool:
        """Answer a question of the run; return whether one was open. Raises as `cancel` does.

        `answer`: `allow`, `args`, `scope` and `reason` of the message.
        """
        question = question_hash(mirror.stored(), call_id)
        request = new_message(
            "approve", mirror.run, call=call_id, question=question, back=self._inbox, **answer
        )
        return await self._send_and_wait(request)

    async def announce_readers(self, run: str, count_readers: Callable[[str], int]) -> None:
        """Notify a run's kernel whether this server has readers. Raises UsageError, HubAway."""
        if not self.key:
            return
        # one at a time: on two connections, `gone` could overtake the newer `listening`
        async with self._announcing:
            kind = "listening" if count_readers(run) else "gone"
            await self._send(new_message(kind, run, back=self._inbox))

    async def _send_and_wait(self, request: Message) -> bool:
        """Send a message and return whether it had an effect. Raises UsageError, HubAway."""
        waiting = self._waiting[request.nonce] = asyncio.get_running_loop().create_future()
        try:
            await self._send(request)
            async with asyncio.timeout(PATIENCE):
                reply = await waiting
        except TimeoutError:
            raise UsageError(
                "The kernel of this run does not answer. It has ended, or its AGENT_NB_HUB_KEY is another one."
            ) from None
        finally:
            self._waiting.pop(request.nonce, None)
        if reply.failure:
            raise UsageError(reply.failure)
        return bool(reply.done)

    async def _send(self, message: Message) -> None:
        key, fields = self._link.control_key(message.run), seal_message(message, self.key)
        reply = await self._link.add_message(key, fields, _UNREAD)
        if isinstance(reply, Refusal):
            raise UsageError(f"The hub's store refuses the message: {reply.text}")

    def _receive_replies(self, entries: list[Any]) -> None:
        for _, fields in entries:
            if not fields or fields[0] != b"m":
                continue  # an entry that only wakes the reader (`Reader.follow`)
            try:
                reply = self._replies.open(fields)
                waiting = self._waiting.get(reply.nonce)
                if reply.kind == "said" and waiting is not None and not waiting.done():
                    waiting.set_result(reply)
            except Refused as why:
                self._replies.log_rejection(why)
