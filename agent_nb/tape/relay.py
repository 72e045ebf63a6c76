"""The relay: a server on loopback that stands between a library and its provider.

Why no web framework: it takes its time from each first byte. `tests/bench/tape.py` measures what
this relay takes.

Rules
- Requests go on as an agent's own do (`Http.forward`): with the same proxies and certificates, and
  redirects are not followed. Bodies pass unaltered, an answer chunk by chunk.
- What the relay itself writes names the address of the server. An SDK still has ours: in its
  `base_url`, in the `Location` of a redirect that stays on the tape (`headers`), and in the request
  of an error of its HTTP library, which `notebook.cell.hidden_texts` hides in outputs.
- It reaches the servers that it was started with and those that the notebook names (`address_of`),
  never one that a request or a record names.
- Once an answer has begun it cannot become an error: if the server breaks it off, the connection to
  the client is closed. If the client goes away, so does the request to the server.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import threading
import time
import types
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from ..errors import AgentError, ModelError, UsageError
from ..host import Background
from ..models import Http, Limiter
from .claude_code import QUIET
from .decisions import Answer, Decisions, Live
from .exchange import Body, Refusal, Request
from .framing import MOST_OF_HEAD, AnswerFraming, FramingError, RequestHead, read_body, read_head
from .headers import Redirect, join_headers, select_answered, select_sent
from .live_exchange import Received, Sent
from .providers import BY_NAME, PROVIDERS, Provider, make_error

_LARGEST_REQUEST = 1 << 28  # bytes of a request's body
_TOO_LARGE = (
    f"The tape passes requests of up to {_LARGEST_REQUEST >> 20} MB on, and this one is larger."
    " Nothing was sent. Send it from a client that is not on the tape."
)
_LONGEST_ENDING = 60.0  # seconds in which exchanges that have ended must be finished
_MOST_ENDINGS = 32  # exchanges that are finished while clients send further requests
_GONE = "the client went away"
_ROUNDS = 4  # of the event loop, in which it writes a request, or notices a client that went away


class Relay:
    """The relay of one kernel; `upstreams` are the base URLs of the providers by their names.

    `answer` is called for each request: in a thread, unless `is_quick` returns True and the tape
    has no budget, since a change of threads delays the request. `refuse` makes the relay also a
    proxy that refuses each request; it takes the target and returns the reason. `aliases`: further
    variable for a provider's address -> its value, "" if it is not set. Calls to such an address
    are recorded as the provider's, so that they match where the variable is not set.
    """

    # nothing is done at the end: connections end with the process
    _BACKGROUND: ClassVar = Background("agent_nb tape", partial(asyncio.sleep, 0), 1.0)
    RUNNING: ClassVar[Relay | None] = None  # the newest that was started and not stopped

    def __init__(
        self,
        upstreams: Mapping[str, str],
        answer: Answer,
        refuse: Callable[[str], str] | None = None,
        is_quick: Callable[[], bool] = lambda: False,
        aliases: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._aliases = {a: p for p in PROVIDERS for a in p.aliases if aliases.get(a, "")}
        # by the first part of a request's path
        self._servers = {name: (BY_NAME[name], Http(url)) for name, url in upstreams.items()}
        self._servers |= {alias: (p, Http(aliases[alias])) for alias, p in self._aliases.items()}
        self._lock = threading.Lock()
        self.decisions = Decisions(answer, is_quick)
        self.refuse = refuse
        self.limiter = Limiter("the tape")  # of all its requests; without limits at first
        self._secret = secrets.token_urlsafe(24)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.endings: set[asyncio.Task[None]] = set()  # of exchanges that are finished
        self._port = 0

    def start(self) -> None:
        """Listen, on a thread of its own. Raises OSError."""
        Relay._BACKGROUND.submit(self._listen()).result(10)
        Relay.RUNNING = self

    def stop(self) -> None:
        """Close the server and all its connections; wait as `wait_for_endings` does."""
        if Relay.RUNNING is self:
            Relay.RUNNING = None
        if self._server is not None:
            Relay._BACKGROUND.submit(self._close()).result(10)
        self.wait_for_endings()

    def wait_for_endings(self) -> None:
        """Wait until the exchanges that have ended are finished, at most `_LONGEST_ENDING`.

        An exchange has ended, too, if its client went away before this call, even if the busy loop
        has yet to notice it.
        """
        if self._tasks or self.endings:
            Relay._BACKGROUND.submit(self._await_endings()).result()

    async def _await_endings(self) -> None:
        for _ in range(_ROUNDS):  # the loop reads the sockets, and notices who went away
            await asyncio.sleep(0)
        leaving = {task for task in self._tasks if task.cancelling()}
        if leaving:
            await asyncio.wait(leaving, timeout=_LONGEST_ENDING)
        if self.endings:
            await asyncio.wait(self.endings, timeout=_LONGEST_ENDING)

    def address(self, provider: Provider) -> str:
        """Return the base URL for the clients of a provider."""
        return f"{self.base}/{provider.name}{provider.tail}"

    def list_variables(self) -> dict[str, str]:
        """Return the variables that point programs here, and keep them from asking others."""
        variables = {p.variable: self.address(p) for p in PROVIDERS}
        variables |= {name: f"{self.base}/{name}{p.tail}" for name, p in self._aliases.items()}
        return {**variables, **QUIET}

    def limit(
        self, rpm: float | None, concurrency: float | None, budget: float | None = None
    ) -> None:
        """Limit requests per minute, at once and in US dollars; 0: no limit, None: as it is."""
        queue = self.limiter.queue
        at_once = queue.concurrency if concurrency is None else int(concurrency)
        self.limiter.change(queue.rpm if rpm is None else int(rpm), at_once)
        if budget is not None:
            self.decisions.spending.change_budget(budget)

    def address_of(self, url: str) -> str:
        """Return the base URL for clients of the server at `url`. Raises UsageError."""
        url = str(url)  # a client's `base_url` is an object of its HTTP library
        if url.startswith(f"{self.base}/"):
            return url
        provider = Provider.at(url)
        with self._lock:
            known = {each: name for name, (each, _) in self._servers.items()}
            name = known.get(provider, f"server{len(known)}")
            self._servers.setdefault(name, (provider, Http(provider.official)))
        return f"{self.base}/{name}{provider.tail}"

    def list_addresses(self) -> dict[str, str]:
        """Return the base URLs for clients, and those of the servers behind them."""
        with self._lock:
            servers = list(self._servers.items())
        return {f"{self.base}/{name}{p.tail}": upstream.address for name, (p, upstream) in servers}

    @property
    def base(self) -> str:
        """Where all addresses of the relay begin; it holds the secret."""
        return f"{self.proxy}/{self._secret}"

    @property
    def proxy(self) -> str:
        """The address for clients that take the relay for their proxy."""
        return f"http://127.0.0.1:{self._port}"

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: asyncio.StreamReaderProtocol(_ClientReader(), self._serve), "127.0.0.1", 0
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, upstream in list(self._servers.values()):
            await upstream.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection of one client, which also ends if the client goes away."""
        task = asyncio.current_task()
        assert task is not None
        assert isinstance(reader, _ClientReader)
        self._tasks.add(task)
        try:
            while (head := await read_head(reader)) is not None:
                call = _Call(self, writer, head, await _read_whole(reader, writer, head))
                with reader.cancel_if_gone(task):
                    await call.answer()
                if call.closes:
                    break
                if len(self.endings) >= _MOST_ENDINGS:
                    await asyncio.wait(self.endings, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, FramingError, AgentError, asyncio.CancelledError):
            pass  # the connection is closed, as it would be without the relay
        finally:
            self._tasks.discard(task)
            writer.close()

    def find_route(self, target: str) -> _Route | None:
        """Return where a request's target leads, None for a foreign one."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        secret, _, rest = parts.path.removeprefix("/").partition("/")
        name, slash, path = rest.partition("/")
        known = self._servers.get(name)
        if not hmac.compare_digest(secret.encode(), self._secret.encode()) or known is None:
            return None
        (provider, upstream), path = known, f"{slash}{path}"
        if "/../" in f"{path}/" or not path.startswith(f"{provider.tail}/"):
            return None
        address = f"{self.base}/{name}{provider.tail}"
        return _Route(provider, address, upstream, path.removeprefix(provider.tail), parts.query)


class _Route(msgspec.Struct, frozen=True):
    """Where a request leads: a provider's server, and path and query below its base URL.

    `address`: the base URL of that server for clients, which redirects lead to.
    """

    provider: Provider
    address: str
    upstream: Http
    path: str
    query: str


class _ClientReader(asyncio.StreamReader):
    """Reads what a client sends, and notes when it goes away.

    That goes unnoticed while more than twice `MOST_OF_HEAD` bytes of further requests wait.
    """

    def __init__(self) -> None:
        super().__init__(limit=MOST_OF_HEAD)
        self._is_gone = False
        self._task: asyncio.Task[None] | None = None

    def feed_eof(self) -> None:
        """Note that nothing more comes; the connection calls this."""
        super().feed_eof()
        self._is_gone = True
        if self._task is not None:
            self._task.cancel(_GONE)

    def set_exception(self, exc: Exception) -> None:
        """Note that the connection broke; the connection calls this."""
        super().set_exception(exc)
        self.feed_eof()

    @contextmanager
    def cancel_if_gone(self, task: asyncio.Task[None]) -> Iterator[None]:
        """Cancel `task` if the client goes away before the block ends, or has gone."""
        self._task = task
        if self._is_gone:
            task.cancel(_GONE)
        try:
            yield
        finally:
            self._task = None


async def _read_whole(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: RequestHead
) -> bytes | None:
    """Return the body of a request, None if it is too large.

    Such a body is not read if the client waits for a "100 Continue" before it sends it.
    """
    if head.waits:
        if (head.length or 0) > _LARGEST_REQUEST:
            return None
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await read_body(reader, head, _LARGEST_REQUEST)


class _Call:
    """One request of a client; `body` None: it is too large. `closes`: no other may follow."""

    def __init__(
        self, relay: Relay, writer: asyncio.StreamWriter, head: RequestHead, body: bytes | None
    ) -> None:
        self._relay, self._writer, self._head = relay, writer, head
        self._body = body or b""
        self._is_too_large = body is None
        self.closes = head.is_last or body is None
        self._sent: Sent | None = None  # the exchange with the server
        self._unwritten = bytearray()

    async def answer(self) -> None:
        """Answer the request. Raises FramingError and OSError once the answer has begun."""
        try:
            await _call_at_waits(self._flush, self._answer())
        finally:
            self._flush()  # also what came before an answer breaks off

    async def _answer(self) -> None:
        target = self._head.target
        if self._relay.refuse is not None and (self._head.method == "CONNECT" or "://" in target):
            why = self._relay.refuse(target)
            await self._reply(403, {"content-type": "text/plain"}, why.encode(), reason=why)
            return
        route = self._relay.find_route(target)
        if route is None:
            await self._reply(404, {"content-type": "text/plain"}, b"not found\n")
            return
        if self._is_too_large:
            await self._refuse(route, Refusal(_TOO_LARGE, 413))
            return
        headers = self._head.headers
        request = Request(
            method=self._head.method,
            provider=route.provider.name,
            path=route.path,
            query=route.query,
            body=Body.read(self._body, headers.get("content-type", "")),
        )
        decision = await self._relay.decisions.decide(request, headers)
        if isinstance(decision, Live):
            refusal = await self._go_live(decision, route, request)
            if refusal is not None:
                await self._refuse(route, refusal)
        elif isinstance(decision, Refusal):
            await self._refuse(route, decision)
        else:
            answered = dict(decision.headers)
            if "location" in answered:
                answered["location"] = f"{route.address}{answered['location']}"
            await self._reply(decision.status, answered, *decision.body.pieces())

    async def _write(self, data: bytes) -> None:
        """Write to the client, in one piece with what else is written before this call waits.

        A head and a first chunk that come together would wake the client twice, and its thread
        would take its turn between them. And when the client has all that came at once, the
        exchange must have ended, since the client's cell may end then.
        """
        self._unwritten += data
        await self._writer.drain()

    def _flush(self) -> None:
        if self._unwritten:
            self._writer.write(bytes(self._unwritten))
            self._unwritten.clear()

    async def _go_live(self, decision: Live, route: _Route, request: Request) -> Refusal | None:
        """Send a request on and its answer back; return why no answer came, None if one did."""
        begun = asyncio.create_task(_begin(decision))
        try:
            await self._forward(decision, route, request, begun)
        except UsageError as fault:  # nothing runs live here
            return Refusal(str(fault))
        except ModelError as fault:  # no answer has begun
            why = f"The tape has no answer of {route.upstream.address}{route.path}: {fault}"
            return Refusal(why, 502, passing=fault.retryable)
        finally:
            # also if the client goes away; beside the next request
            ending = asyncio.ensure_future(_end(begun, decision, self._sent))
            self._relay.endings.add(ending)
            ending.add_done_callback(self._relay.endings.discard)
        return None

    async def _refuse(self, route: _Route, refusal: Refusal) -> None:
        error = make_error(route.provider.name, route.path, refusal.status, refusal.message)
        again = str(refusal.passing).lower()
        headers = {"content-type": "application/json", "x-should-retry": again}
        await self._reply(refusal.status, headers, json.dumps(error).encode())

    async def _reply(
        self, status: int, headers: Mapping[str, str], *pieces: bytes, reason: str = ""
    ) -> None:
        encode = partial(str.encode, encoding="latin-1", errors="replace")  # records hold any text
        pairs = [(encode(name), encode(value)) for name, value in headers.items()]
        # in one piece: a client in Python spends more on each chunk than on what is in it
        body = b"".join(pieces)
        framing = AnswerFraming(self._head, status, pairs, reason, size=len(body))
        await self._write(framing.head + framing.frame(body) + framing.end())

    async def _forward(
        self, decision: Live, route: _Route, request: Request, begun: asyncio.Future[None]
    ) -> None:
        """Send a request on and its answer back; set `_sent` if an answer began."""
        upstream, receive = route.upstream, decision.receive
        passed = select_sent(self._head.headers)
        target = request.path + (f"?{request.query}" if request.query else "")
        began, received = time.time(), Received()
        async with (
            self._relay.limiter.admit() as slot,
            upstream.forward(request.method, target, passed, self._body) as (answer, raw),
        ):
            answered_at = time.time()
            slot.note_answer(answer.status_code)
            answered = join_headers(raw)
            redirect = Redirect(upstream.address, target, answered.pop("location", ""))
            if redirect.path:
                answered["location"] = redirect.path
            passed_on = select_answered(raw, redirect.lead(route.address))
            try:
                if not begun.done():
                    await asyncio.shield(begun)
                framing = AnswerFraming(self._head, answer.status_code, passed_on)
                await self._write(framing.head)
                async for piece in answer.stream:
                    received.add(piece)
                    receive(answer.status_code, answered, piece)
                    await self._write(framing.frame(piece))
                received.complete = True
                await self._write(framing.end())
            except asyncio.CancelledError as stop:
                received.left = _GONE in stop.args  # else the relay ends
                raise
            except Exception as fault:
                # not as a ModelError, which `_go_live` would answer with a second head
                raise ConnectionError(str(fault)) from None
            finally:
                self._sent = Sent(
                    request=request,
                    headers=self._head.headers,
                    status=answer.status_code,
                    answer_headers=answered,
                    received=received,
                    began=began,
                    answered=answered_at,
                    ended=time.time(),
                )


@types.coroutine
def _call_at_waits(
    function: Callable[[], None], work: Awaitable[None]
) -> Generator[Any, Any, None]:
    """Await `work`; call `function` each time that it waits, before the event loop goes on."""
    steps = work.__await__()
    step: Callable[[], Any] = partial(next, steps)
    while True:
        try:
            waits_for = step()
        except StopIteration:
            return
        function()
        try:
            step = partial(steps.send, (yield waits_for))
        except BaseException as fault:
            step = partial(steps.throw, fault)


async def _begin(decision: Live) -> None:
    """Begin an exchange once its request is on its way."""
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
    decision.begin()


async def _end(begun: asyncio.Future[None], decision: Live, sent: Sent | None) -> None:
    """Finish an exchange after its beginning, in a thread, as other streams need the loop."""
    await asyncio.wait({begun})
    await asyncio.to_thread(decision.finish, sent)
