"""`agent_nb.serve()`: let other programs follow, stop and answer this process's runs over HTTP.

    server = agent_nb.serve()          # in a notebook cell
    %agent attach http://127.0.0.1:…   # in another notebook of the same user

Rules
- Every announced run is published: `%%agent` cells and `await agent(…)`, also ended runs whose logs
  are still in memory.
- No output contains the token, not even the display of the handle. `attach` finds it in a private
  file.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from ..agent import REGISTRY, Announced, Run
from ..external import write_server_note
from ..host import shorten_path
from ..models import hide_secret
from ..rows import Agent
from .hub import Hub
from .redis.address import configured_address
from .redis.hub import open_hub

if TYPE_CHECKING:
    from .app import Server

# s for which a question waits for a client to connect again; longer than the waits of `attach`
RETURN = 15.0


class Serving:
    """The handle of a running server: `url`, `token`, `runs`, `stop()`.

    Creating it writes address and token to a file for `attach`, and publishes all announced runs.
    """

    def __init__(self, server: Server, hub: Hub) -> None:
        self._server = server
        self._hub = hub
        self._note = write_server_note(server.url, server.token)
        self._process = os.getpid()  # a forked child has no server
        self._running = True
        self._unfollow = REGISTRY.follow(self._publish)

    @property
    def url(self) -> str:
        """The address of the server, without the token."""
        return self._server.url

    @property
    def token(self) -> str:
        """The token. Do not display it: the output of a cell is saved with the notebook."""
        return self._server.token

    @property
    def running(self) -> bool:
        """Whether the server is running, in this process."""
        return self._running and self._process == os.getpid()

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that are published, the newest last."""
        return [info.run for info in self._hub.runs()]

    def add(self, runs: Iterable[Run]) -> None:
        """Publish recorded runs too. Raises UsageError if another run has the same id."""
        for run in runs:
            self._hub.attach(run.log)

    def stop(self) -> None:
        """End the runs that clients started, then every stream; the other runs continue."""
        if self.running:
            self._running = False
            self._unfollow()
            if self._note is not None:
                self._note.close()
            self._server.stop()
            self._hub.stop()

    def _publish(self, announced: Announced) -> None:
        """Publish an announced run; its controls too, unless it has ended."""
        if not self.running:
            return
        log, hub = announced.log, self._hub
        published = next((channel for channel in hub.channels() if channel.run == log.run), None)
        if published is not None and published.log is not log:
            return  # a replay, from a record, of a run that is published already
        announced.questions.reachable_while(
            lambda: self.running and hub.listeners(log.run) > 0,
            lambda: self.running and hub.had_reader(log.run, RETURN),
        )
        ended = log.ended
        hub.attach(
            log,
            conversation=announced.conversation,
            cancel=None if ended else announced.cancel,
            approve=None if ended else announced.questions.answer,
        )

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        count = len(self.runs)
        state = f"{count} run{'' if count == 1 else 's'}" if self.running else "stopped"
        shared = f", shared over {self._hub.where}" if self._hub.where else ""
        return f"<agent_nb server at {self.url}: {state}{shared}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = [repr(self), *(f"  {client}: {command}" for client, command in self._access_ways())]
        return {"text/plain": "\n".join(lines), "text/html": self._html()}

    def _access_ways(self) -> list[tuple[str, str]]:
        """Return, for each kind of client, its name and the command that follows runs from there.

        The commands contain no secrets.
        """
        if not self.running:
            return []
        ways = [
            ("in another notebook of yours", f"%agent attach {self.url}"),
            ("in Python", f'await agent_nb.attach("{self.url}")'),
        ]
        if self._note is None:
            return [*ways, ("token", "server.token (it could not be left in a file)")]
        path = shorten_path(self._note.path)
        curl = (
            f'curl -N -H "Authorization: Bearer $(jq -r .token {path})" {self.url}/runs/ID/events'
        )
        token = ("token", f"in {path}, for you alone; here: server.token")
        return [*ways, ("elsewhere", curl), token]

    def _html(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left">{escape(client)}</td><td style="text-align:left"><code>{escape(command)}</code></td></tr>'
            for client, command in self._access_ways()
        )
        return f"<div><b>{escape(repr(self)[1:-1])}</b><table>{rows}</table></div>"


class _Current(msgspec.Struct):
    """The newest server of this process, and the arguments of `serve` that made it."""

    serving: Serving | None = None
    arguments: object = None


_current = _Current()


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    *,
    agent: Agent | None = None,
    origins: Sequence[str] = (),
    keepalive: float = 30.0,
    runs: Iterable[Run] = (),
    store: str | None = None,
) -> Serving:
    """Serve the runs of this process and return the server's handle.

    `port`: 0 takes a free one. `token`: None generates one. `agent` answers `POST /runs` (None:
    runs cannot be started). `origins`: pages that may use the server from a browser. `keepalive`:
    seconds between comments on an idle stream (0: none). `runs`: recorded runs to publish too.
    `store`: the address of a Redis that shares runs: other servers serve the runs of this kernel,
    and this server those of other kernels (None: AGENT_NB_HUB, if set; "": no sharing). Raises
    UsageError if the port is taken, the token too short or Redis does not answer, MissingExtra
    without the extra `serve` or `redis`.
    """
    from .agents import Agents
    from .app import Server, Settings

    store = configured_address(store)
    pages = tuple(origins)
    arguments = (host, port, token, agent, pages, keepalive, store)
    serving = _current.serving
    if serving is None or not serving.running or _current.arguments != arguments:
        if serving is not None:
            serving.stop()
        agents = None if agent is None else Agents(agent)
        hub = open_hub(store)
        try:
            server = Server(
                hub,
                agents,
                host=host,
                port=port,
                token=token,
                origins=pages,
                settings=Settings(keepalive=keepalive),
                closing=None if agents is None else agents.stop_runs,  # its caller owns the agent
            )
            hide_secret(server.token)
            serving = Serving(server.start(), hub)
        except BaseException:
            hub.stop()  # a shared hub has connections, and publishes until it is stopped
            raise
        _current.serving, _current.arguments = serving, arguments
        atexit.register(serving.stop)
    serving.add(runs)
    return serving
