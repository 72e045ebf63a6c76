"""A server on loopback with runs that a test drives by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from helpers.ports import take_port
from helpers.redis_server import HUBS, Apart

from agent_nb import events as ev
from agent_nb.events.log import EventLog
from agent_nb.server.app import Server, Settings
from agent_nb.server.hub import Hub

TOKEN = "test-token-123"


class Driven:
    """A run that somebody else drives: `feed` appends to its log."""

    def __init__(self, run: str = "") -> None:
        self.log = EventLog(run)
        self.cancelled = threading.Event()
        self.answers: list[tuple[str, dict[str, Any]]] = []

    def feed(self, *events: ev.Event) -> None:
        for event in events:
            self.log.append(event)

    def cancel(self) -> None:
        self.cancelled.set()
        self.feed(ev.Interrupt(), ev.End(status="interrupted"))

    def approve(self, call_id: str, **answer: Any) -> bool:
        self.answers.append((call_id, answer))
        return call_id == "c/1"


class Rig:
    """A server, its hub, and the runs that were started over HTTP.

    `url`: of a Redis, over which another hub publishes what this one serves.
    """

    def __init__(self, url: str = "", **options: Any) -> None:
        self.started: list[tuple[str, str, Driven]] = []
        given = {"keep": options.pop("keep", 20_000), "epoch": 7}
        #: where runs are published (`kernel`) and served from (`hub`)
        self._apart = Apart(url, **given) if url else None
        self.kernel: Hub = self._apart.kernel if self._apart else Hub(**given)
        self.hub: Hub = self._apart.server if self._apart else self.kernel
        settings = options.pop("settings", Settings(keepalive=0))
        starts = options.pop("starts", True)
        self.server = Server(
            self.hub, self._start if starts else None, token=TOKEN, settings=settings, **options
        ).start()
        self.client = httpx.Client(
            base_url=self.server.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
            trust_env=False,
        )

    def _start(self, message: str, conversation: str) -> Driven:
        run = Driven(message[3:] if message.startswith("as ") else "")
        self.started.append((message, conversation, run))
        run.feed(ev.RunStart(agent="test"), ev.User(content=message))
        if message.startswith("say "):
            run.feed(ev.Respond(content=message[4:]), ev.End())
        return run

    def publish(self, run: str = "r", *events: ev.Event) -> Driven:
        driven = Driven(run)
        self.kernel.attach(
            driven.log, conversation="main", cancel=driven.cancel, approve=driven.approve
        )
        driven.feed(*events)
        self.settle()
        return driven

    def settle(self) -> None:
        """Wait until what was published can be read."""
        if self._apart is not None:
            self._apart.settle()

    def lines(self, url: str, **params: str) -> list[Any]:
        """Return the objects of a finished run as JSON lines."""
        answer = self.client.get(url, params=params, headers={"Accept": "application/x-ndjson"})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def close(self) -> None:
        self.client.close()
        self.server.stop()
        if self._apart is not None:
            self._apart.stop()


@pytest.fixture(params=HUBS)
def rig(request: pytest.FixtureRequest) -> Iterator[Callable[..., Rig]]:
    """A function that starts a server; all are stopped at the end."""
    made: list[Rig] = []

    def make(**options: Any) -> Rig:
        over = request.param == "redis"
        url = request.getfixturevalue("redis_server").url if over else ""
        made.append(Rig(url, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def token() -> str:
    """The token of every server here."""
    return TOKEN


@pytest.fixture
def free_port() -> int:
    """A port of loopback where nobody listens."""
    return take_port()
