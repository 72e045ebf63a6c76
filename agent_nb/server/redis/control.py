"""Obey other servers that stop runs of this process, or answer their questions, through Redis.

Each run has a stream of control messages for its kernel, to which `remote_control` adds them. Any
program that writes to this Redis could otherwise approve a call in the kernel. So an answer counts
only if the question that its sender saw is still open, and a message can do no more than a local
call of the channel's `cancel` or `approve`.

Rule: a run without readers in its own process waits for answers only while some server has readers.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from ...errors import AgentError, HubAway, UsageError
from ..channel import Channel, call_control
from .link import LOG, Link
from .messages import Gate, Message, Refused, new_message, question_hash, seal_message
from .reader import INBOX_LIFETIME, Reader

HEARD = 25.0  # seconds for which a `listening` message counts


class Control:
    """The control of this process's runs. `key` checks messages (b"": none is obeyed)."""

    def __init__(self, link: Link, reader: Reader, key: bytes) -> None:
        self._link, self._reader, self._key = link, reader, key
        self._followed: dict[str, tuple[Channel, Gate]] = {}  # by run
        # run -> inbox of each server with readers of the run -> monotonic s until which it counts
        self._heard: dict[str, dict[str, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # that obey; asyncio's references are weak

    def listeners(self, run: str, seconds: float = 0.0) -> int:
        """Return how many other servers have readers of a run of this process.

        `seconds`: also count those whose readers left in these last seconds.
        """
        since = time.monotonic() - seconds
        return sum(end > since for end in list(self._heard.get(run, {}).values()))

    async def follow_messages(self, channel: Channel) -> None:
        """Begin to read the control messages of a run of this process."""
        if not self._key or channel.run in self._followed:
            return
        self._followed[channel.run] = (channel, Gate(channel.run, self._key))

        def deliver(entries: list[Any]) -> None:
            for _, fields in entries:
                self._receive(channel.run, fields)

        await self._reader.follow(self._link.control_key(channel.run), "0-0", deliver)

    async def forget_ended_runs(self) -> None:
        """Stop reading messages of runs that have ended. Raises HubAway."""
        ended = [run for run, (channel, _) in self._followed.items() if channel.ended]
        for run in ended:
            self._reader.leave(self._link.control_key(run))
            self._followed.pop(run, None)
            self._heard.pop(run, None)
            await self._link.send("UNLINK", self._link.control_key(run))

    def _receive(self, run: str, fields: list[bytes]) -> None:
        """Check a message for a run of this process, and act on it."""
        if run not in self._followed:
            return
        channel, gate = self._followed[run]
        try:
            message = gate.open(fields or [])
            # the reply is written to the key `back`, which must not be any other key in Redis
            if not message.back.startswith(self._link.address.key("inbox", "")):
                raise Refused("it names no inbox for the reply")  # noqa: TRY301
        except Refused as why:
            gate.log_rejection(why)
            return
        if message.kind in ("listening", "gone"):
            until = time.monotonic() + (HEARD if message.kind == "listening" else 0.0)
            self._heard.setdefault(run, {})[message.back] = until
            return
        task = asyncio.get_running_loop().create_task(self._obey(channel, gate, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey(self, channel: Channel, gate: Gate, request: Message) -> None:
        """Execute a message and send a reply, also after a failure."""
        done, failure = False, ""
        try:
            done = await _execute(channel, request)
        except Refused as why:
            failure = str(why)
            gate.log_rejection(why)
        except AgentError as fault:
            failure = str(fault)
        except Exception as fault:  # raised by the run's own function; the reply reports it
            failure = f"{type(fault).__name__} in the kernel of the run"
            LOG.exception("%s of run %s", request.kind, channel.run)
        reply = new_message(
            "said", channel.run, nonce=request.nonce, done=done, failure=failure[:2000]
        )
        with suppress(HubAway):  # the sender stops waiting after a while
            fields = seal_message(reply, self._key)
            await self._link.add_message(request.back, fields, INBOX_LIFETIME)


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
