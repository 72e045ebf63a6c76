"""What the tape adds to the model calls of other libraries: delay to the first byte, chunks a
second, replay beside answers from a dict, bytes of a record.

    python tests/bench/tape.py [--rounds 40]

The server is a process of its own; the client speaks HTTP/1.1 over a plain socket, so that its own
work stays small beside what the relay adds. The first chunk comes at once, or after a pace, which
models take at the least: the relay begins its journal while it waits. Calls go in turns straight to
the server, through the relay, and through a relay of `h11` and `httpcore` that keeps nothing
(`pass_on`): what that one adds is the price of these libraries. The replay needs the package
`openai`: 100 recorded calls, against the same answers that a transport of httpx takes from a dict,
and against those of the server itself, which reads no request and so shows what the connection
alone costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from itertools import product
from typing import Any

import common  # noqa: F401  (makes helpers importable)

from agent_nb.host import Background

CONCURRENCY = {1: "1, 5", 10: "1, 5", 100: "30, none"}  # bars in ms: median, p95
CHUNKS = 20  # of a stream
PACE = 0.02  # seconds between its chunks: 50 a second
REPLAYED = 100
TOKENS = 20_000


def chunk_of(text: str) -> bytes:
    """Return a chunk of a chat completion."""
    delta = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    value = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return f"data: {json.dumps({**value, 'choices': [delta]})}\n\n".encode()


async def serve() -> None:
    """Answer requests with streams of as many chunks, and as fast, as their bodies say."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:-2])
            body = json.loads(await reader.readexactly(int(fields["content-length"])))
            kind = b"text/event-stream" if body.get("stream") else b"application/json"
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind
            )
            count, pace = body.get("chunks", 0), body.get("pace", 0)
            await asyncio.sleep(body.get("first", 0))
            pieces = (chunk_of(f" word{n}") for n in range(count))
            for piece in (*pieces, b"data: [DONE]\n\n") if body.get("stream") else (WHOLE,):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
                await asyncio.sleep(pace)
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer_all, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def pass_on(upstream: str) -> int:
    """Serve a relay that passes requests on and answers back, and does nothing else; return its
    port.
    """
    import h11
    import httpcore

    pool = httpcore.AsyncConnectionPool(max_connections=None)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER)
        while True:
            events: list[Any] = []
            while not events or not isinstance(events[-1], h11.EndOfMessage):
                while (event := http.next_event()) is h11.NEED_DATA:
                    http.receive_data(await reader.read(1 << 16))
                if isinstance(event, h11.ConnectionClosed):
                    writer.close()
                    return
                events.append(event)
            body = b"".join(bytes(e.data) for e in events if isinstance(e, h11.Data))
            url, headers = upstream + events[0].target.decode(), list(events[0].headers)
            async with pool.stream("POST", url, headers=headers, content=body) as answer:
                writer.write(
                    http.send(h11.Response(status_code=200, headers=answer.headers)) or b""
                )
                async for piece in answer.aiter_stream():
                    writer.write(http.send(h11.Data(piece)) or b"")
                writer.write(http.send(h11.EndOfMessage()) or b"")
            http.start_next_cycle()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    return int(server.sockets[0].getsockname()[1])


async def close_plain() -> None:
    """Close nothing: the sockets of the plain relay end with the process."""


WHOLE = json.dumps(
    {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "bench",
        "choices": [
            {"index": 0, "finish_reason": "stop",
             "message": {"role": "assistant", "content": "An answer of some words. " * 20}},
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 100, "total_tokens": 109},
    }
).encode()  # fmt: skip


class Client:
    """One kept connection to the server or to the relay, whose base URL is `url`."""

    def __init__(self, url: str) -> None:
        _, _, rest = url.partition("//")
        host, _, path = rest.partition("/")
        self._host, self._path = host, f"/{path}".rstrip("/") + "/chat/completions"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, prompt: str, chunks: int, pace: float, *, first: float = 0, wait: float = 0
    ) -> tuple[float, float]:
        """Ask for a stream after `wait` seconds; its first chunk comes after `first` seconds more.

        Return the ms to its first chunk, and the seconds to its end.
        """
        await asyncio.sleep(wait)
        if self._streams is None:
            name, _, port = self._host.partition(":")
            self._streams = await asyncio.open_connection(name, int(port), limit=1 << 26)
        reader, writer = self._streams
        message = {"role": "user", "content": prompt}
        body = {"model": "bench", "messages": [message], "stream": True}
        data = json.dumps({**body, "chunks": chunks, "pace": pace, "first": first}).encode()
        start = time.perf_counter()  # before the relay's thread may run
        writer.write(
            f"POST {self._path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json"
            f"\r\ncontent-length: {len(data)}\r\n\r\n".encode()
            + data
        )
        await reader.readuntil(b"data:")
        first = time.perf_counter() - start
        await reader.readuntil(b"[DONE]")
        end = time.perf_counter() - start
        await reader.readuntil(b"0\r\n\r\n")
        return 1000 * first, end

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()


async def measure_delay(
    urls: Mapping[str, str], concurrency: int, rounds: int, first: float
) -> None:
    """Print what the relay adds to the first chunk, with so many streams at once."""
    clients = {name: [Client(url) for _ in range(concurrency)] for name, url in urls.items()}
    delays: dict[str, list[float]] = {name: [] for name in urls}
    took = dict.fromkeys(urls, 0.0)
    for number in range(rounds + 1):  # the first opens the connections
        for name, several in clients.items():
            asked = (
                each.ask(
                    f"round {number}",
                    CHUNKS,
                    PACE,
                    first=first,
                    wait=PACE * CHUNKS * n / concurrency,
                )
                for n, each in enumerate(several)
            )
            found = await asyncio.gather(*asked)
            if number:
                delays[name] += [first for first, _ in found]
                took[name] += sum(end for _, end in found)
    bare, plain, taped = (sorted(delays[name]) for name in ("bare", "plain", "taped"))
    middle, least = (statistics.median(d) - statistics.median(bare) for d in (taped, plain))
    late = taped[int(0.95 * len(taped))] - bare[int(0.95 * len(bare))]
    print(
        f"{concurrency:4} at once, first byte at {1000 * first:2.0f} ms   {middle:+5.2f} ms median, {late:+5.2f} ms p95 "
        f"(bars {CONCURRENCY[concurrency]})   bare {statistics.median(bare):.2f} ms, plain "
        f"relay {least:+5.2f}   "
        f"chunks a second {took['bare'] / took['taped']:.2f} of bare (bar 0.7)",
        flush=True,
    )
    for several in clients.values():
        for each in several:
            each.close()


def measure_replay(shell: Any, urls: Mapping[str, str], chunks: int, rounds: int) -> None:
    """Print how long 100 recorded calls take, beside the same answers from a dict and a server.

    `chunks`: of each answer, 0: it is not streamed.
    """
    import httpx
    import openai

    prompts = [f"question {n} of {chunks}" for n in range(REPLAYED)]
    stream = b"".join(chunk_of(f" word{n}") for n in range(chunks)) + b"data: [DONE]\n\n"
    answers = dict.fromkeys(prompts, stream if chunks else WHOLE)
    kind = "text/event-stream" if chunks else "application/json"

    def look_up(request: httpx.Request) -> httpx.Response:
        prompt = json.loads(request.content)["messages"][0]["content"]
        return httpx.Response(200, headers={"content-type": kind}, content=answers[prompt])

    from_dict = httpx.Client(transport=httpx.MockTransport(look_up))
    clients = {
        "dict": openai.OpenAI(api_key="none", base_url=urls["taped"], http_client=from_dict),
        **{name: openai.OpenAI(api_key="none", base_url=url) for name, url in urls.items()},
    }

    def ask_all(client: openai.OpenAI) -> None:
        for prompt in prompts:
            fields: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]}
            if chunks:
                fields |= {"stream": True, "extra_body": {"chunks": chunks}}
            answer = client.chat.completions.create(model="bench", **fields)
            deque(answer if chunks else (), maxlen=0)

    shell.user_ns["ask"] = lambda: ask_all(clients["taped"])
    run_cell(shell, "ask()")  # records
    took: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name, client in clients.items():
            shell.user_ns["ask"] = lambda client=client: ask_all(client)
            start = time.perf_counter()
            run_cell(shell, "ask()")
            took[name].append(time.perf_counter() - start)
    best = {name: 1000 * min(seconds) for name, seconds in took.items()}
    print(
        f"replay of {REPLAYED} calls, {chunks:3} chunks each  {best['taped']:.0f} ms beside {best['dict']:.0f} ms from a "
        f"dict: {best['taped'] / best['dict']:.2f} (bar 1.5), and {best['bare']:.0f} ms of a server "
        f"that answers at once: {best['taped'] / best['bare']:.2f}",
        flush=True,
    )


def print_size() -> None:
    """Print the bytes that a stream of 20,000 tokens needs in a record."""
    from agent_nb.notebook.cell.taped_calls import TapedCall
    from agent_nb.record import Home, Provenance, run_record
    from agent_nb.tape import Exchange, ExchangePacker, Request, Response, make_logs
    from agent_nb.tape.exchange import Body

    data = b"".join(chunk_of(f" word{n}") for n in range(TOKENS)) + b"data: [DONE]\n\n"
    deltas = sum(len(f" word{n}") for n in range(TOKENS))
    message = {"role": "user", "content": "Write much."}
    asked = Body("json", {"model": "bench", "messages": [message], "stream": True})
    exchange = Exchange(
        request=Request(provider="openai", path="/chat/completions", body=asked),
        response=Response(body=Body.read(data, "text/event-stream")),
    )
    (log,) = make_logs([TapedCall(exchange, 0.0, 1.0)])
    packed = ExchangePacker(Home.of_user()).pack(exchange, log)
    record = run_record(log, Provenance(cell="c1"), exchange=packed)
    size = len(json.dumps(record))
    print(
        f"{TOKENS:,} tokens in a record  {size:,} bytes for {deltas:,} of deltas: {size / deltas:.2f} (bar 2)"
    )


def run_cell(shell: Any, code: str) -> None:
    """Run a cell, without its output. Raises what it raises."""
    shell.run_cell(code, silent=False).raise_error()


def make_shell() -> Any:
    """Return a shell with the extension, which shows nothing."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from agent_nb.notebook import magic

    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    shell.display_pub.publish = lambda *_, **__: None
    magic.load_magics(shell)
    return shell


def main(arguments: Iterable[str] | None = None) -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args(arguments)
    if asked.serve:
        asyncio.run(serve())
        return
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        origin = f"http://127.0.0.1:{int(server.stdout.readline())}"
        bare = f"{origin}/v1"
        os.environ["OPENAI_BASE_URL"] = bare
        shell = make_shell()
        try:
            run_cell(shell, "%agent tape")
            plain = Background("plain relay", close_plain, 1.0).submit(pass_on(origin)).result(10)
            taped = os.environ["OPENAI_BASE_URL"]
            urls = {"bare": bare, "plain": f"http://127.0.0.1:{plain}/v1", "taped": taped}
            run_cell(shell, "%config AgentMagics.rerun = 'live'")
            for concurrency, first in product(CONCURRENCY, (0, PACE)):
                rounds = asked.rounds if concurrency < 100 else max(3, asked.rounds // 8)
                asyncio.run(measure_delay(urls, concurrency, rounds, first))
            run_cell(shell, "%config AgentMagics.rerun = 'auto'")
            if find_spec("openai"):
                for chunks in (0, CHUNKS, 10 * CHUNKS):
                    measure_replay(shell, {"bare": bare, "taped": taped}, chunks, 5)
            run_cell(shell, "%agent tape off")
        finally:
            server.kill()
    print_size()


if __name__ == "__main__":
    main()
