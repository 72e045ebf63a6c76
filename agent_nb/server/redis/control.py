"""Stop runs of other processes and answer their questions, through Redis.

Each run has one stream of control messages, which only its kernel reads.

Why so strict: any program that writes to this Redis could otherwise approve a call in the kernel.

Rules
- A message can do no more than a local call of the channel's `cancel` or `approve`; the policy
  checks edited arguments again.
- An answer names the question that its sender saw, and counts only if this question is still open.
- A message that `messages` rejects changes nothing. Up to `MOST_LOGGED` rejections of a run are
  logged.
- A server that has readers of a run sends `listening` again and again. A run without readers in its
  own process waits for answers only while such messages arrive.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from ...errors import AgentError, HubAway, UsageError
from ..channel import Channel, call_control
from .link import LOG, Command, Link, Refusal
from .messages import Gate, Message, Refused, new_message, question_hash, seal_message
from .mirror import Mirror
from .reader import INBOX_LIFETIME, Reader

PATIENCE = 8.0  # seconds to wait for the reply of a kernel
HEARD = 25.0  # seconds for which a `listening` message counts
MOST_LOGGED = 20  # logged rejections for each run, and for replies
_UNREAD = 600  # seconds after which unread messages expire


class Control:
    """Both ends of control.

    `attend` obeys messages about runs of this process; `cancel`, `approve` and `listen` send
    messages about runs of other processes. `key` signs messages (b"": none is obeyed).
    """

    def __init__(self, link: Link, reader: Reader, key: bytes) -> None:
        self.key = key
        self._link, self._reader = link, reader
        self._replies = Gate(None, key)
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._attended: dict[str, tuple[Channel, Gate]] = {}
        self._refusals: dict[str, int] = {}
        # run -> inbox of each server with readers of the run -> monotonic s until which it counts
        self._heard: dict[str, dict[str, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        reader.deliver_inbox_to(self._take_replies)

    # The kernel's end.

    def listeners(self, run: str) -> int:
        """Return how many other servers have readers of a run of this process."""
        now = time.monotonic()
        return sum(end > now for end in list(self._heard.get(run, {}).values()))

    async def attend(self, channel: Channel) -> None:
        """Begin to read the control messages of a run of this process."""
        if not self.key or channel.run in self._attended:
            return
        self._attended[channel.run] = (channel, Gate(channel.run, self.key))

        def deliver(entries: list[Any]) -> None:
            for _, fields in entries:
                self._receive(channel.run, fields)

        await self._reader.follow(self._key(channel.run), "0-0", deliver)

    async def tend(self) -> None:
        """Stop reading messages of runs that have ended. Raises HubAway."""
        ended = [run for run, (channel, _) in self._attended.items() if channel.ended]
        for run in ended:
            self._reader.leave(self._key(run))
            for table in (self._attended, self._refusals, self._heard):
                table.pop(run, None)
            await self._link.ask("UNLINK", self._key(run))

    def _receive(self, run: str, fields: list[bytes]) -> None:
        """Check a message for a run of this process, and act on it."""
        if run not in self._attended:
            return
        channel, gate = self._attended[run]
        try:
            message = gate.open(fields or [])
            # the reply is written to the key `back`, which must not be any other key in Redis
            if not message.back.startswith(self._link.address.key("inbox", "")):
                raise Refused("it names no inbox for the reply")  # noqa: TRY301
        except Refused as why:
            self._refuse(run, str(why))
            return
        if message.kind in ("listening", "gone"):
            until = time.monotonic() + HEARD if message.kind == "listening" else 0.0
            self._heard.setdefault(run, {})[message.back] = until
            return
        task = asyncio.get_running_loop().create_task(self._obey(channel, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self, whose: str, why: str) -> None:
        """Log why a message for a run, or a reply to this server, was rejected."""
        count = self._refusals[whose] = self._refusals.get(whose, 0) + 1
        if count <= MOST_LOGGED:
            LOG.warning("a control message for %s does not count: %s", whose, why)

    async def _obey(self, channel: Channel, request: Message) -> None:
        """Execute a message and send a reply, also after a failure."""
        done, failure = True, ""
        try:
            done = await _execute(channel, request)
        except Refused as why:
            done, failure = False, str(why)
            self._refuse(channel.run, failure)
        except AgentError as fault:
            done, failure = False, str(fault)
        except Exception as fault:  # raised by the run's own function; the reply reports it
            done, failure = False, f"{type(fault).__name__} in the kernel of the run"
            LOG.exception("%s of run %s", request.kind, channel.run)
        reply = new_message(
            "said", channel.run, nonce=request.nonce, done=done, failure=failure[:2000]
        )
        fields = seal_message(reply, self.key)
        with suppress(HubAway):  # the sender stops waiting after `PATIENCE`
            added: Command = ("XADD", request.back, "MAXLEN", "~", 1000, "*", *fields)
            await self._link.pipe([added, ("EXPIRE", request.back, INBOX_LIFETIME)])

    # The server's end.

    async def cancel(self, mirror: Mirror) -> None:
        """Ask the kernel to stop the run. Raises UsageError if it refuses, HubAway."""
        await self._send_and_wait(new_message("cancel", mirror.run, back=self._reader.inbox))

    async def approve(
        self,
        mirror: Mirror,
        call_id: str,
        *,
        allow: bool,
        args: dict[str, Any] | None = None,
        scope: Any = "once",
        reason: str = "",
    ) -> bool:
        """Answer a question of the run; return whether one was open. Raises as `cancel` does."""
        answer = {"allow": allow, "args": args, "scope": scope, "reason": reason}
        question = question_hash(mirror.stored(), call_id)
        inbox = self._reader.inbox
        request = new_message(
            "approve", mirror.run, call=call_id, question=question, back=inbox, **answer
        )
        return await self._send_and_wait(request)

    async def listen(self, run: str, *, here: bool) -> None:
        """Notify a run's kernel whether this server has readers (`here`). Raises HubAway."""
        if self.key:
            kind = "listening" if here else "gone"
            await self._send(new_message(kind, run, back=self._reader.inbox))

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
        key = self._key(message.run)
        added: Command = ("XADD", key, "MAXLEN", "~", 1000, "*", *seal_message(message, self.key))
        reply, _ = await self._link.pipe([added, ("EXPIRE", key, _UNREAD)])
        if isinstance(reply, Refusal):
            raise UsageError(f"The hub's store refuses the message: {reply.text}")

    def _take_replies(self, entries: list[Any]) -> None:
        for _, fields in entries:
            if not fields or fields[0] != b"m":
                continue  # an entry that only wakes the reader (`Reader.follow`)
            try:
                reply = self._replies.open(fields)
                waiting = self._waiting.get(reply.nonce)
                if reply.kind == "said" and waiting is not None and not waiting.done():
                    waiting.set_result(reply)
            except Refused as why:
                self._refuse("this server", str(why))

    def _key(self, run: str) -> str:
        return self._link.address.key("run", run, "control")


async def _execute(channel: Channel, request: Message) -> bool:
    """Cancel the run or answer its question; return whether that had an effect.

    Raises UsageError if the run offers no such control, Refused if the sender saw another question.
    """
    if request.kind == "cancel" and channel.cancel is not None and not channel.ended:
        await call_control(channel.cancel)
        return True
    if request.kind == "approve" and channel.approve is not None:
        if request.question != question_hash(channel.stored(), request.call):
            raise Refused("what it answers is not the question that is open")
        answer = {"args": request.args, "scope": request.scope, "reason": request.reason}
        return bool(
            await call_control(channel.approve, request.call, allow=request.allow, **answer)
        )
    raise UsageError("This run is over, or it cannot be controlled from here.")
