"""Events per second to 1, 10 and 100 subscribers, beside a bare sse-starlette broadcast of the same
bytes in the same run.

    python tests/bench/serve.py [--events 20000] [--subscribers 1 10 100]

Each server is a process of its own; the clients are plain sockets that count bytes until the last
event is there. Bar: at least 0.7 of the bare broadcast. Then the memory of a server with one
subscriber that never reads, which must be bounded.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent_nb import events as ev
from agent_nb.codecs.base import Options
from agent_nb.codecs.canonical import CanonicalEncoder

TOKEN = "bench-token-1"
BAR = 0.7
LAST = b'"type":"end"'


def sample(count: int) -> list[ev.Event]:
    """Return the events that are sent."""
    text = "The quick brown fox jumps over the lazy dog, again and again."
    some: list[ev.Event] = [
        ev.Think(seq=i, ts=1767225600.5, run="r", turn=1, content=text) for i in range(1, count)
    ]
    return [*some, ev.End(seq=count, ts=1767225600.5, run="r")]


# The servers, each in a process.


def ours(count: int) -> None:
    """Serve a hub; publish from a thread when asked on stdin."""
    from agent_nb.server.app import Server, Settings
    from agent_nb.server.hub import Hub

    hub = Hub()
    channel = hub.open("r")
    server = Server(hub, token=TOKEN, settings=Settings(keepalive=0)).start()
    print(server.port, flush=True)
    events = sample(count)
    sys.stdin.readline()
    for event in events:
        channel.publish(event)
    sys.stdin.readline()
    server.stop()


def bare(count: int) -> None:
    """Serve what the documentation of sse-starlette shows: a queue per client, every frame into
    every queue.
    """
    import socket

    import uvicorn
    from sse_starlette import EventSourceResponse
    from starlette.applications import Starlette
    from starlette.routing import Route

    encoder = CanonicalEncoder(options=Options(framing="sse"))
    frames = [encoder.feed(event)[0].encode() for event in sample(count)]
    queues: list[asyncio.Queue[bytes]] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def stream(_request: Any) -> Any:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.append(queue)
        loops.append(asyncio.get_running_loop())

        async def body() -> Any:
            while True:
                data = await queue.get()
                yield data
                if LAST in data:
                    return

        return EventSourceResponse(body(), sep="\n", ping=3600)

    async def broadcast() -> None:
        for number, data in enumerate(frames):
            for queue in queues:
                queue.put_nowait(data)
            if number % 50 == 0:
                await asyncio.sleep(0)

    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    server = uvicorn.Server(
        uvicorn.Config(
            Starlette(routes=[Route("/runs/r/events", stream)]), log_config=None, access_log=False
        )
    )
    threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True).start()
    print(listening.getsockname()[1], flush=True)
    sys.stdin.readline()
    asyncio.run_coroutine_threadsafe(broadcast(), loops[0])
    sys.stdin.readline()


# The clients.


class Child:
    """A server process."""

    def __init__(self, kind: str, count: int) -> None:
        command = [sys.executable, __file__, "--child", kind, "--events", str(count)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def go(self) -> None:
        """Publish, or stop the second time."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    @property
    def rss(self) -> float:
        """Its memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return (
            int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
            / 1024
        )


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the stream and return when its headers are there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    head = f"GET /runs/r/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    writer.write(head.encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def drain(reader: asyncio.StreamReader) -> int:
    """Read until the last event; return the bytes."""
    size, tail = 0, b""
    while LAST not in tail:
        data = await reader.read(1 << 18)
        if not data:
            raise RuntimeError("the stream ended early")
        size, tail = size + len(data), (tail + data)[-4096:]
    return size


async def measure(kind: str, count: int, subscribers: int) -> float:
    """Return events per second delivered to all subscribers together."""
    child = Child(kind, count)
    try:
        streams = [await connect(child.port) for _ in range(subscribers)]
        await asyncio.sleep(0.3)
        start = time.perf_counter()
        child.go()
        await asyncio.gather(*(drain(reader) for reader, _ in streams))
        took = time.perf_counter() - start
        for _, writer in streams:
            writer.close()
        return count * subscribers / took
    finally:
        child.close()


async def never_reads(count: int, readers: int) -> float:
    """Return how much memory (MB) a server has after `count` events with so many subscribers that
    never read.
    """
    child = Child("ours", count)
    try:
        streams = [await connect(child.port) for _ in range(readers)]
        await asyncio.sleep(0.3)
        child.go()
        seen = -1.0
        while abs(child.rss - seen) > 0.5:
            seen = child.rss
            await asyncio.sleep(1.5)
        del streams
        return child.rss
    finally:
        child.close()


def main() -> int:
    """Print the figures; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--subscribers", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", choices=["ours", "bare"])
    options = parser.parse_args()
    if options.child:
        (ours if options.child == "ours" else bare)(options.events)
        return 0
    worst = float("inf")
    for subscribers in options.subscribers:
        count = max(options.events // max(subscribers // 10, 1), 1000)
        rates: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(options.rounds):
            for kind, found in rates.items():
                found.append(asyncio.run(measure(kind, count, subscribers)))
        mine, theirs = (statistics.median(rates[kind]) for kind in ("ours", "bare"))
        worst = min(worst, mine / theirs)
        print(
            f"{subscribers:>4} subscribers: {mine:>12,.0f} events/s, bare sse-starlette {theirs:>12,.0f}",
            end=", ",
        )
        print(f"ratio {mine / theirs:.2f} (bar {BAR})")
    alone = asyncio.run(never_reads(200_000, 0))
    for readers in (1, 20):
        held = asyncio.run(never_reads(200_000, readers))
        print(
            f"memory after 200,000 events: {alone:.0f} MB alone, {held:.0f} MB with {readers} subscriber(s) that never read"
        )
    return 0 if worst >= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
