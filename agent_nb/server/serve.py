"""`agent_nb.serve()`: the runs of this kernel (or script) for other programs to follow, stop and
answer, over HTTP.

    server = agent_nb.serve()          # in a notebook cell
    %agent attach http://127.0.0.1:…   # in another notebook of the same user

Rules
- Every run that is announced is published: `%%agent` cells and `await agent(…)`, those that are
  over included while somebody holds them.
- A run does not notice: publishing appends to a buffer, and a fault of the server is the server's.
- The token is in no output: the handle does not show it. It lies in a file that only the user can
  read, where `attach` finds it.
- One server a process: asked again for the same it is the same one, asked for another the first is
  stopped.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..agent import registry
from ..agent.registry import Announced
from ..agent.run import Run
from ..external import tokens
from ..host.paths import tilde
from ..models import keys
from .hub import Hub

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from .app import Server


class Serving:
    """A running server of this process's runs: `url`, `token`, `runs`, `stop()`."""

    def __init__(self, server: Server, hub: Hub) -> None:
        self._server = server
        self._hub = hub
        self._left = tokens.leave(server.url, server.token)
        self._unfollow = registry.follow(self._publish)
        self._running = True

    @property
    def url(self) -> str:
        """The address."""
        return self._server.url

    @property
    def token(self) -> str:
        """The token. Whatever a cell shows is saved with the notebook: hand it on another way."""
        return self._server.token

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self._running

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that are published, the newest last."""
        return [info.run for info in self._hub.runs()]

    def add(self, runs: Iterable[Run]) -> None:
        """Publish recorded runs too. Raises UsageError when an id is taken by another run."""
        for run in runs:
            self._hub.attach(run.log)

    def stop(self) -> None:
        """End every stream properly and stop serving; the runs go on."""
        if self._running:
            self._running = False
            self._unfollow()
            if self._left is not None:
                self._left.close()
            self._server.stop()

    def _publish(self, found: Announced) -> None:
        log, hub = found.log, self._hub
        known = next((channel for channel in hub.channels() if channel.run == log.run), None)
        if known is not None and known.log is not log:
            return  # the same run again, played from its record
        found.questions.reachable_while(lambda: self._running and hub.listeners(log.run) > 0)
        over = log.ended
        hub.attach(
            log,
            conversation=found.conversation,
            cancel=None if over else found.cancel,
            approve=None if over else found.questions.answer,
        )

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        count = len(self.runs)
        state = f"{count} run{'' if count == 1 else 's'}" if self._running else "stopped"
        return f"<agent_nb server at {self.url}: {state}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/plain": "\n".join(
                [repr(self), *(f"  {what}: {how}" for what, how in self._ways())]
            ),
            "text/html": self._html(),
        }

    def _ways(self) -> list[tuple[str, str]]:
        """Return how others get at the runs; nothing in it is secret."""
        if not self._running:
            return []
        ways = [
            ("in another notebook of yours", f"%agent attach {self.url}"),
            ("in Python", f'await agent_nb.attach("{self.url}")'),
        ]
        if self._left is None:
            return [*ways, ("token", "server.token (it could not be left in a file)")]
        path = tilde(self._left.path)
        curl = (
            f'curl -N -H "Authorization: Bearer $(jq -r .token {path})" {self.url}/runs/ID/events'
        )
        return [
            *ways,
            ("elsewhere", curl),
            ("token", f"in {path}, for you alone; here: server.token"),
        ]

    def _html(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left">{escape(what)}</td><td style="text-align:left"><code>{escape(how)}</code></td></tr>'
            for what, how in self._ways()
        )
        return f"<div><b>{escape(repr(self)[1:-1])}</b><table>{rows}</table></div>"


class _Current:
    """The server of this process."""

    serving: Serving | None = None
    asked: object = None


def serve(
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    *,
    agent: Agent | None = None,
    origins: Sequence[str] = (),
    keepalive: float = 30.0,
    runs: Iterable[Run] = (),
) -> Serving:
    """Serve the runs of this process and return the handle of the server.

    `port` 0 takes a free one; `token` None makes one; `agent` answers `POST /runs` (None: it only
    shows); `origins` are pages that may use it from a browser; `keepalive` seconds between comments
    on a quiet stream (0: none); `runs` are recorded runs to publish too. Raises UsageError when the
    port is taken or the token too short, MissingExtra without the extra `serve`.
    """
    from .agents import Agents
    from .app import Server, Settings

    asked = (host, port, token, agent, tuple(origins), keepalive)
    found = _Current.serving
    if found is None or not found.running or _Current.asked != asked:
        if found is not None:
            found.stop()
        start: Callable[..., Any] | None = Agents(agent) if agent is not None else None
        settings, hub = Settings(keepalive=keepalive), Hub()
        server = Server(
            hub, start, host=host, port=port, token=token, origins=tuple(origins), settings=settings
        )
        keys.hide(server.token)
        found = _Current.serving = Serving(server.start(), hub)
        _Current.asked = asked
        atexit.register(found.stop)
    found.add(runs)
    return found
