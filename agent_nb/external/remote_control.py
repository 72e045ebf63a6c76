"""Control a remote run through its server: stop it, answer its questions about calls.

Why: a viewer stops and answers a run that another process drives, and must learn if that failed.

Rules
- A refusal, or a server that does not answer, is a UsageError.
- If no answer came, the error advises to look at the run before trying again: the request may have
  had its effect.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import anyio
import httpx

from ..errors import AgentError, UsageError
from ..events import EventLog
from .connect import Target, connect, describe_fault, find_newest_run, send_request


class RemoteControl:
    """The controls of one remote run; once the run has been followed, `log` holds its id."""

    def __init__(self, where: Target, log: EventLog) -> None:
        self._where, self._log = where, log
        self._answers: set[asyncio.Task[None]] = set()

    async def may_cancel(self) -> bool:
        """Return whether the remote run goes on and may be stopped from here."""
        with anyio.move_on_after(2):
            try:
                async with connect(self._where) as client:
                    url = f"{self._where.server}/runs/{quote(self._log.run)}"
                    _, answer = await send_request(client, "GET", url)
                info = json.loads(answer)
                return info.get("status") == "running" and "cancel" in info.get("controls", ())
            except (httpx.HTTPError, OSError, ValueError, AttributeError):
                return False
        return False

    async def cancel(self) -> None:
        """Ask the server to stop the run. Raises UsageError when it refuses."""
        await self._post("cancel", {})

    async def approve(
        self, call_id: str, *, allow: bool, args: dict[str, Any] | None, scope: str, reason: str
    ) -> None:
        """Answer the question about a call. Raises UsageError when the server refuses."""
        decision = {
            "decision": "allow" if allow else "deny",
            "args": args,
            "scope": scope,
            "reason": reason,
        }
        await self._post(f"approvals/{quote(call_id)}", decision)

    def answer(self, payload: Mapping[str, Any], allow: bool) -> None:
        """Send the answer of a button, on the event loop's thread; print a refusal on stderr."""
        task = asyncio.get_running_loop().create_task(self._answer(payload, allow))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, payload: Mapping[str, Any], allow: bool) -> None:
        call_id, args = str(payload.get("call_id", "")), payload.get("args")
        scope, reason = str(payload.get("scope", "once")), str(payload.get("reason", ""))
        try:
            await self.approve(call_id, allow=allow, args=args, scope=scope, reason=reason)
        except AgentError as fault:
            sys.stderr.write(f"agent_nb: {str(fault)!a}\n")

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        """Send a request about the followed run, or the newest one. Raises UsageError."""
        server = self._where.server
        async with connect(self._where) as client:
            try:
                has_id = self._where.run or len(self._log)
                run = self._log.run if has_id else await find_newest_run(client, server)
                status, answer = await send_request(
                    client, "POST", f"{server}/runs/{quote(run)}/{what}", body
                )
            except (httpx.HTTPError, OSError) as fault:
                raise UsageError(
                    f"{server} does not answer ({describe_fault(fault)}). Whether it took this in is not known: look at the run, then try again."
                ) from fault
        if status >= 300:
            reason = answer[:300].decode("utf-8", "replace")
            advice = " Attach again with ?token=TOKEN in the address." if status == 401 else ""
            raise UsageError(f"{server} refuses ({status}): {reason}{advice}")
