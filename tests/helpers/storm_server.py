"""A model's server that fails as servers do: refusals, errors, stalls, streams that are cut.

What happens to a request is drawn by the seed, the prompt, and how often it was asked before; so it
does not depend on the order in which requests arrive.
"""

import asyncio
import json
import random
from collections import Counter
from contextlib import asynccontextmanager

from helpers.tcp_server import listen

FAULTS = ("429", "429 and when", "503 and when", "500", "stall", "half", "cut before", "cut after")
_STATUS = "HTTP/1.1 {} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n{}\r\n{{}}"
_STREAM = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Storm:
    """What the server does and has seen; `share` of the requests fail.

    `wait` is what it asks refused clients to wait, in milliseconds; `refuse` decides on a refusal
    of its own, given the number of requests under way.
    """

    def __init__(self, *, seed=0, share=0.2, faults=FAULTS, wait=20, refuse=None, latency=0.0):
        self.seed, self.share, self.faults, self.wait = seed, share, faults, wait
        self.refuse, self.latency = refuse, latency
        self.arrived = []  # when each request arrived
        self.asked = Counter()  # prompts
        self.answered = Counter()  # prompts that were answered whole
        self.met = Counter()  # what happened
        self.inside, self.most = 0, 0

    def fate(self, prompt):
        """Return what happens to a request: a fault, or ""."""
        draw = random.Random(f"{self.seed}/{prompt}/{self.asked[prompt]}")
        return draw.choice(self.faults) if draw.random() < self.share else ""

    @asynccontextmanager
    async def serve(self):
        """Serve in the running event loop; give the base URL."""
        async with listen(self._talk) as port:
            yield f"http://127.0.0.1:{port}/v1"

    async def _talk(self, reader, writer):
        """Answer a connection until the client or the test ends it."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(size))
                self.arrived.append(asyncio.get_running_loop().time())
                self.inside += 1
                self.most = max(self.most, self.inside)
                try:
                    await self._answer(body["messages"][-1]["content"], reader, writer)
                finally:
                    self.inside -= 1
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, prompt, reader, writer):
        if self.latency:
            await asyncio.sleep(self.latency)
        refused = self.refuse is not None and self.refuse(self.inside)
        fault = "429 and when" if refused else self.fate(prompt)
        self.asked[prompt] += 1
        self.met[fault] += 1
        status, _, when = fault.partition(" and ")
        if status.isdigit():
            more = f"retry-after-ms: {self.wait}\r\n" if when else ""
            writer.write(_STATUS.format(status, more).encode())
            return
        if fault == "stall":
            await reader.read()  # until the client gives up
            return
        if fault != "cut before":
            texts = ["so ", prompt]
            writer.write(_STREAM.encode() + _chunk(texts[0]))
            if fault == "half":
                await writer.drain()
                await reader.read()
                return
            if not fault:
                writer.write(_chunk(texts[1]) + _chunk(None) + b"0\r\n\r\n")
                self.answered[prompt] += 1
                return
        await writer.drain()
        writer.transport.abort() if fault == "cut before" else writer.close()


def _chunk(text):
    """Return a frame of the stream as a chunk of the body; None: the last frames."""
    delta = {"content": text} if text is not None else {}
    choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
    data = f"data: {json.dumps({'choices': [choice]})}\n\n"
    data += "" if delta else "data: [DONE]\n\n"
    return f"{len(data):x}\r\n{data}\r\n".encode()
