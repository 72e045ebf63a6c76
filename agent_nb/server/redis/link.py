"""The connection of a hub to Redis, through which processes share their runs.

Why one file, the only one that imports the package `redis` (extra `redis`): all users of Redis must
see an outage in the same way, and none may reveal user or password.

Rules
- An outage raises `HubAway`. A refused command returns a `Refusal` in place of the reply; only
  `read_streams` raises `HubAway` for it.
- Replies are raw (protocol 2, no callbacks), so that they are the same in every version of `redis`.
- The beginning and the end of an outage are logged once, a new beginning only after `_QUIET`
  seconds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import msgspec

from ...errors import HubAway, MissingExtra
from .address import RedisAddress

LOG = logging.getLogger("agent_nb.hub")
FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0  # seconds between attempts
MOST_MESSAGES = 1000  # unread messages that a stream holds, about
_ANSWER = 10.0  # seconds to wait for the answer to a command
_QUIET = 60.0  # seconds between warnings
# how the texts of errors begin that Redis sends while it cannot serve: they count as an outage
_NOT_NOW = ("OOM", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "LOADING", "CLUSTERDOWN")

Command = Sequence[str | bytes | int]


class Refusal(msgspec.Struct, frozen=True):
    """Stands for the reply to a command that Redis refuses; `text`: its reason."""

    text: str


class Link:
    """The connections to one Redis, for one event loop.

    `away`: why Redis does not answer; "" while it answers.
    """

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.away = ""
        self._quiet_until = 0.0
        self._was_reached = False  # an outage before the first answer is raised, but not logged
        self._redis = _import_redis()
        self._commands = self._make_client(_ANSWER)
        self._reading: Any = None

    async def send_all(
        self, commands: Sequence[Command], *, transaction: bool = False
    ) -> list[Any]:
        """Send commands in one pipeline; return a reply or a Refusal for each. Raises HubAway.

        `transaction`: Redis executes all of them without other commands between.
        """
        if not commands:
            return []
        try:
            pipeline = self._commands.pipeline(transaction=transaction)
            for command in commands:
                pipeline.execute_command(*command)
            replies = await pipeline.execute(raise_on_error=False)
        except (self._redis.RedisError, OSError, TimeoutError) as fault:
            raise self._note_outage(fault) from None
        answers = [self._check_reply(reply) for reply in replies]
        self._was_reached = True
        if self.away:
            self.away = ""
            LOG.info("%s answers again", self.address.shown)
        return answers

    async def send(self, *command: str | bytes | int) -> Any:
        """Send one command; return its reply or Refusal. Raises HubAway."""
        return (await self.send_all([command]))[0]

    async def add_message(self, key: str, fields: Sequence[bytes], lifetime: int) -> Any:
        """Add an entry to a stream that expires `lifetime` seconds after the newest.

        Return the reply or Refusal. Raises HubAway.
        """
        added: Command = ("XADD", key, "MAXLEN", "~", MOST_MESSAGES, "*", *fields)
        return (await self.send_all([added, ("EXPIRE", key, lifetime)]))[0]

    def control_key(self, run: str) -> str:
        """Return the key of the stream of a run's control messages."""
        return self.address.key("run", run, "control")

    async def read_streams(
        self, cursors: Mapping[str, str], *, count: int, block: float
    ) -> list[tuple[str, list[Any]]]:
        """Return new entries of streams, up to `count` of each; wait up to `block` seconds for one.

        `cursors`: key of a stream -> the id after which it is read. Raises HubAway.
        """
        if self._reading is None:
            self._reading = self._make_client(block + _ANSWER)
        command = ["XREAD", "COUNT", count, "BLOCK", round(block * 1000), "STREAMS"]
        try:
            streams = await self._reading.execute_command(*command, *cursors, *cursors.values())
        except (self._redis.RedisError, OSError, TimeoutError) as fault:
            raise self._note_outage(fault) from None
        return [(key.decode("utf-8", "replace"), entries) for key, entries in streams or ()]

    async def wait_until_back(self) -> None:
        """Wait until Redis answers again."""
        wait = FIRST_WAIT
        while True:
            with suppress(HubAway):
                if not isinstance(await self.send("PING"), Refusal):
                    return
            await asyncio.sleep(wait * (0.5 + random.random() / 2))  # noqa: S311  (spreads clients)
            wait = min(wait * 2, LONGEST_WAIT)

    async def aclose(self) -> None:
        """Close the connections."""
        for client in (self._commands, self._reading):
            if client is not None:
                await client.aclose()

    def _make_client(self, answer: float) -> Any:
        """Return a client that waits `answer` seconds for a reply and never retries by itself."""
        address, library = self.address, self._redis
        options: dict[str, Any] = {
            "db": address.db,
            "username": address.user or None,
            "password": address.password or None,
            "protocol": 2,
            "socket_connect_timeout": 5.0,
            "socket_timeout": answer,
            "health_check_interval": 30,
            "retry": library.Retry(library.NoBackoff(), 0),
        }
        if address.scheme == "unix":
            client = library.Redis(unix_socket_path=address.path, **options)
        else:
            secure = address.scheme == "rediss"
            tls = {"ssl_cert_reqs": "required", "ssl_check_hostname": True, **address.files}
            options |= tls if secure else {}
            client = library.Redis(host=address.host, port=address.port, ssl=secure, **options)
        client.response_callbacks.clear()
        return client

    def _check_reply(self, reply: Any) -> Any:
        """Return a reply, or a Refusal for an error. Raises HubAway for a temporary error."""
        if not isinstance(reply, Exception):
            return reply
        if isinstance(reply, self._redis.busy) or str(reply).startswith(_NOT_NOW):
            raise self._note_outage(reply)
        return Refusal(self.address.scrub(str(reply)))

    def _note_outage(self, fault: BaseException) -> HubAway:
        """Record an outage, log it if it is new, and return the HubAway to raise."""
        reason = self.address.scrub(str(fault)) or type(fault).__name__
        now = time.monotonic()
        if self._was_reached and not self.away and now > self._quiet_until:
            self._quiet_until = now + _QUIET
            LOG.warning(
                "The hub's store %s does not answer (%s). Runs go on, and are published when it is back.",
                self.address.shown,
                reason,
            )
        self.away = reason
        return HubAway(f"The hub's store {self.address.shown} does not answer: {reason}")


def _import_redis() -> Any:
    """Return the names of the package `redis` that this file uses. Raises MissingExtra."""
    try:
        from redis import exceptions
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ModuleNotFoundError as fault:
        if fault.name != "redis":  # installed, but broken
            raise
        raise MissingExtra(
            "The client of Redis (redis)", "pip install 'jupyter-agent-nb[redis]'"
        ) from None
    busy = (
        exceptions.ConnectionError,
        exceptions.OutOfMemoryError,
        exceptions.ReadOnlyError,
        exceptions.MasterDownError,
    )
    return SimpleNamespace(
        Redis=Redis, Retry=Retry, NoBackoff=NoBackoff, RedisError=exceptions.RedisError, busy=busy
    )
