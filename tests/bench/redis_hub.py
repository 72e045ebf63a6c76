"""Runs over Redis beside the hub of one process: events per second, the delay of a delta, and what
publishing costs the run.

    python tests/bench/redis_hub.py [--events 20000] [--readers 1 10]

A `redis-server` is started. The kernel's hub and the server's hub are in processes of their own;
readers are threads of the server that take until the end. The delay is from the publishing of a
delta to a reader having it, at 200 deltas a second, on the clock of this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.redis_server import KEY, RedisServer

from agent_nb import events as ev
from agent_nb.events.log import EventLog
from agent_nb.server.filters import Filter
from agent_nb.server.hub import Hub
from agent_nb.server.redis.address import parse_address
from agent_nb.server.redis.hub import RedisHub

TEXT = "The quick brown fox jumps over the lazy dog, again and again."
PACED = 400  # deltas


def read(hub: Hub, out: list[Any]) -> None:
    """Take a run to its end; note (time of arrival, time of the event) of each delta."""
    ready = threading.Event()
    subscription = hub.subscribe("r", Filter(internal=True))
    subscription.wake_with(ready.set)
    while not subscription.closed:
        taken = subscription.take()
        now = time.time()
        out += [(now, e.event.text) for e in taken if e.n and e.event.of == "respond"]
        if not taken:
            ready.wait(30)
            ready.clear()


def kernel(url: str, events: int) -> None:
    """Publish: first paced deltas, then `events` as fast as it goes; print what it cost."""
    hub = RedisHub(parse_address(url), key=KEY) if url else Hub()
    log = EventLog("r")
    hub.attach(log)
    print("ready", flush=True)
    if not url:
        raise SystemExit
    sys.stdin.readline()
    for _ in range(PACED):
        log.append(ev.Delta(of="respond", block="b", text=str(time.time())))
        time.sleep(0.005)
    print(json.dumps({"took": burst(log, events)}), flush=True)
    hub.stop()


def burst(log: EventLog, events: int) -> float:
    """Append events and the end; return the seconds that the run spent."""
    begin = time.perf_counter()
    for _ in range(events):
        log.append(ev.Think(content=TEXT))
    took = time.perf_counter() - begin
    log.append(ev.End())
    return took


def together(events: int, readers: int) -> tuple[float, float]:
    """Return (seconds until all have it, seconds of the run) of the hub of one process."""
    hub, log = Hub(), EventLog("r")
    hub.attach(log)
    threads = [threading.Thread(target=read, args=(hub, [])) for _ in range(readers)]
    for thread in threads:
        thread.start()
    begin = time.perf_counter()
    took = burst(log, events)
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin, took


def apart(url: str, events: int, readers: int) -> tuple[float, float, list[float]]:
    """Return the same over Redis, and the delays of the deltas in s."""
    command = [sys.executable, __file__, "--kernel", url, "--events", str(events)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        server = RedisHub(parse_address(url), key=KEY)
        while not asyncio.run(server.listed()):
            time.sleep(0.01)
        asyncio.run(server.find("r"))
        seen: list[list[Any]] = [[] for _ in range(readers)]
        threads = [threading.Thread(target=read, args=(server, out)) for out in seen]
        for thread in threads:
            thread.start()
        process.stdin.write("go\n")
        process.stdin.flush()
        while len(seen[0]) < PACED:
            time.sleep(0.001)
        begin = time.perf_counter()
        took = json.loads(process.stdout.readline())["took"]
        for thread in threads:
            thread.join()
        whole = time.perf_counter() - begin
        server.stop()
    return whole, took, [now - float(text) for now, text in seen[0]]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--readers", type=int, nargs="*", default=[1, 10])
    parser.add_argument("--kernel", default="")
    arguments = parser.parse_args()
    if arguments.kernel:
        kernel(arguments.kernel, arguments.events)
        return
    folder = Path(tempfile.mkdtemp())
    redis = RedisServer(folder)
    try:
        for readers in arguments.readers:
            near, spent = together(arguments.events, readers)
            far, taken, delays = apart(redis.url, arguments.events, readers)
            late = statistics.quantiles(delays, n=100)
            n = arguments.events
            print(
                f"{readers:4} readers: one process {n / near:9,.0f} events/s, {spent / n * 1e6:5.1f} µs of the run each; "
                f"over Redis {n / far:9,.0f} events/s, {taken / n * 1e6:5.1f} µs each; "
                f"a delta after {late[49] * 1e3:.1f} ms (median), {late[94] * 1e3:.1f} ms (95 %)"
            )
    finally:
        redis.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
