"""Rows per second and CPU time a row of `agent.map`, beside peers in the same run.

    python tests/bench/map.py [--concurrency 1 10 100 1000] [--rounds 3]
    python tests/bench/map.py --memory 100000      memory over many rows (minutes)
    python tests/bench/map.py --store              what keeping the rows costs

Peers: httpx with a semaphore (the same requests, the bytes read and nothing else), `openai` with
`asyncio.gather` and a semaphore, and `parallel_chat` of chatlas. One that is not installed is named
and skipped. All ask one server, a process of its own that answers each request after the same time
(100 ms), streamed or not as asked. The figures are the best of several rounds, in turn. Bars: at
least 0.8 of httpx, and behind none of the other peers (by more than 3 %: at one row at once all of
them only wait). Under `--memory`: less than 400 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

LATENCY = 0.1
BAR = 0.8
LEVEL = 0.97
MOST = 400  # MB
ROWS = {1: 30, 10: 300, 100: 1000, 1000: 3000}
KEY = "sk-bench-0123456789abcdef0123456789"
WORDS = ("The ", "label ", "is ", "positive", ".")
USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}
BASE = {"id": "chatcmpl-1", "created": 1767225600, "model": "m"}


# The server, in a process of its own.


def streamed() -> bytes:
    """Return an answer as OpenAI streams it."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in WORDS]
    choices: list[Any] = [[{"index": 0, "delta": d, "finish_reason": None}] for d in deltas]
    choices += [[{"index": 0, "delta": {}, "finish_reason": "stop"}]]
    event = {**BASE, "object": "chat.completion.chunk"}
    frames = [json.dumps({**event, "choices": each}) for each in choices]
    frames += [json.dumps({**event, "choices": [], "usage": USAGE}), "[DONE]"]
    chunks = [f"data: {frame}\n\n".encode() for frame in frames]
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    return head.encode() + body


def whole() -> bytes:
    """Return the same answer as one object."""
    message = {"role": "assistant", "content": "".join(WORDS)}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {**BASE, "object": "chat.completion", "choices": choices, "usage": USAGE}
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


STREAMED, WHOLE = streamed(), whole()


class Answers(asyncio.Protocol):
    """One connection: every request is answered after `latency`."""

    latency = LATENCY

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport, self._data = transport, b""
        self._later = asyncio.get_running_loop().call_later

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n") + 4) > 3:
            head = self._data[:end].lower()
            _, _, size = head.partition(b"content-length:")
            over = end + int(size.split(b"\r\n", 1)[0] or 0)
            if len(self._data) < over:
                return
            body, self._data = self._data[end:over], self._data[over:]
            answer = STREAMED if b'"stream":true' in body.replace(b": ", b":") else WHOLE
            self._later(self.latency, self._transport.write, answer)


def serve(latency: float) -> None:
    """Serve until the process is ended."""
    try:
        import uvloop as loops
    except ImportError:
        loops = asyncio  # type: ignore[assignment]  # both have new_event_loop
    Answers.latency = latency
    loop = loops.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Answers, "127.0.0.1", 0, backlog=4096))
    print(server.sockets[0].getsockname()[1], flush=True)
    loop.run_forever()


class Server:
    """The server process; its URL is that of OpenAI for this process."""

    def __init__(self, latency: float = LATENCY) -> None:
        command = [sys.executable, __file__, "--serve", str(latency)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"
        os.environ |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": self.url}

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


# Those that ask.


async def ours(url: str, rows: list[str], most: int, **options: Any) -> None:
    """Ask as users of this package do."""
    from agent_nb import Agent

    options = {"store": False, "view": None, **options}
    agent = Agent("openai/m")
    results = await agent.map(rows, "Label: {{ text }}", concurrency=most, **options)
    done = sum(row["_status"] == "ok" for row in results)
    assert done == len(rows), f"{done} of {len(rows)} rows: {results[0]}"
    await agent.aclose()


async def bare(url: str, rows: list[str], most: int) -> None:
    """Ask with httpx and a semaphore; read the bytes."""
    import httpx

    places = asyncio.Semaphore(most)
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
    async with httpx.AsyncClient(timeout=None, limits=limits, trust_env=False) as client:

        async def one(row: str) -> None:
            messages = [{"role": "user", "content": f"Label: {row}"}]
            body = {"model": "m", "messages": messages, "stream": True}
            async with (
                places,
                client.stream(
                    "POST",
                    f"{url}/chat/completions",
                    json=body,
                    headers={"authorization": f"Bearer {KEY}"},
                ) as reply,
            ):
                data = await reply.aread()
                assert b"positive" in data

        await asyncio.gather(*map(one, rows))


async def openai(url: str, rows: list[str], most: int) -> None:
    """Ask with the client of OpenAI, `asyncio.gather` and a semaphore."""
    from openai import AsyncOpenAI

    places = asyncio.Semaphore(most)
    async with AsyncOpenAI(api_key=KEY, base_url=url) as client:

        async def one(row: str) -> None:
            async with places:
                answer = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": f"Label: {row}"}]
                )
                assert answer.choices[0].message.content == "".join(WORDS)

        await asyncio.gather(*map(one, rows))


async def chatlas(url: str, rows: list[str], most: int) -> None:
    """Ask with `parallel_chat` of chatlas."""
    from chatlas import ChatOpenAICompletions, parallel_chat

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # its client is never closed
    chat = ChatOpenAICompletions(base_url=url, model="m", api_key=KEY)
    chats = await parallel_chat(chat, [f"Label: {row}" for row in rows], max_active=most, rpm=10**9)
    assert len(chats) == len(rows)
    assert not any(chat is None or isinstance(chat, Exception) for chat in chats)


Asker = Callable[[str, list[str], int], Awaitable[None]]
PEERS: dict[str, Asker] = {"ours": ours, "httpx": bare, "openai": openai, "chatlas": chatlas}


def measure(ask: Asker, url: str, rows: int, most: int) -> tuple[float, float]:
    """Return rows per second, and milliseconds of CPU time a row."""
    texts = [f"visit {number} was pleasant" for number in range(rows)]
    began, used = time.perf_counter(), time.process_time()
    with redirect_stdout(io.StringIO()):  # a peer shows its progress
        asyncio.run(ask(url, texts, most))  # type: ignore[arg-type]  # an awaitable function is one
    took, used = time.perf_counter() - began, time.process_time() - used
    return rows / took, used / rows * 1000


def rates(numbers: list[int], rounds: int) -> bool:
    """Print rates and CPU time; return whether the bars are met."""
    good = True
    with Server() as server:
        for name, ask in list(PEERS.items()):
            try:
                measure(ask, server.url, 4, 4)
            except ImportError as error:
                print(f"{name} is skipped: {error}")
                del PEERS[name]
        for most in numbers:
            rows = ROWS.get(most, max(20, 5 * most))
            best = dict.fromkeys(PEERS, (0.0, 0.0))
            for _ in range(rounds):
                for name, ask in PEERS.items():
                    best[name] = max(best[name], measure(ask, server.url, rows, most))
            ratio = best["ours"][0] / best["httpx"][0]
            others = {n: rate for n, (rate, _) in best.items() if n not in ("ours", "httpx")}
            fastest = max(others, key=others.__getitem__, default="")
            lead = best["ours"][0] / others[fastest] if fastest else 1.0
            good = good and ratio >= BAR and lead >= LEVEL
            figures = ", ".join(
                f"{n} {rate:.1f} rows/s ({cpu:.2f} ms CPU a row)" for n, (rate, cpu) in best.items()
            )
            print(f"{most:>5} at once, {rows} rows: {figures}")
            print(f"      {ratio:.2f} of httpx (bar {BAR}), {lead:.2f} of the next best, {fastest}")
    return good


def store(rounds: int) -> None:
    """Print what keeping the rows costs."""
    rows, most = 2000, 100
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        best = {"without": (0.0, 0.0), "with": (0.0, 0.0)}
        for number in range(rounds):
            path = Path(folder) / f"{number}.db"

            async def kept(url: str, rows: list[str], most: int, path: Path = path) -> None:
                await ours(url, rows, most, store=path)

            for name, ask in (("without", ours), ("with", kept)):
                best[name] = max(best[name], measure(ask, server.url, rows, most))
            size = sum(file.stat().st_size for file in Path(folder).glob(f"{number}.db*"))
    for name, (rate, cpu) in best.items():
        print(f"{name} a store: {rate:.1f} rows/s, {cpu:.2f} ms CPU a row")
    print(f"its file: {size / rows / 1024:.1f} KB a row")


def memory(rows: int) -> bool:
    """Print the memory of this process as rows finish; return whether the bar is met."""
    from agent_nb import Agent

    async def run() -> None:
        agent, done, step = Agent("openai/m"), 0, max(1, rows // 10)
        texts = [f"visit {number} was pleasant" for number in range(rows)]
        stream = agent.map(texts, "Label: {{ text }}", concurrency=100, view=None, store=kept)
        async for row in stream:
            assert row.status == "ok", row
            done += 1
            if done % step == 0:
                print(f"{done:>8,} rows: {held():.0f} MB", flush=True)
        await agent.aclose()

    with Server(0.02) as _, tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "rows.db"
        print(f"       0 rows: {held():.0f} MB")
        asyncio.run(run())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak: {peak:.0f} MB (bar {MOST})")
    return peak < MOST


def held() -> float:
    """Return the memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(next(x.split()[1] for x in status.splitlines() if x.startswith("VmRSS"))) / 1024


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--concurrency", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--serve", type=float)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
    if options.memory:
        return 0 if memory(options.memory) else 1
    if options.store:
        store(options.rounds)
        return 0
    return 0 if rates(options.concurrency, options.rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
