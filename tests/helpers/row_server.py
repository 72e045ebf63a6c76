"""A chat server on loopback that counts how often each prompt is asked: for maps of many rows.

The answer is a function of the prompt, so that every execution of a map must give the same frame.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from contextlib import suppress

from helpers.tcp_server import listen


def answer_of(prompt: str) -> str:
    """Return what the server answers."""
    return f"seen {sum(map(ord, prompt))}: {prompt[-20:]}"


class RowServer:
    """A server in a thread; `asked` counts the requests by prompt, before they are answered.

    latency: seconds before an answer begins.
    """

    def __init__(self, latency: float = 0.0) -> None:
        self.asked: Counter[str] = Counter()
        self.total = 0
        self._latency = latency
        self._changed = threading.Condition()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> RowServer:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def wait_for(self, total: int, seconds: float = 60) -> bool:
        """Wait until `total` requests have come; return whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: self.total >= total, seconds)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                while True:
                    await self._answer(reader, writer)

        async with listen(talk) as port:
            self.url = f"http://127.0.0.1:{port}/v1"
            self._ready.set()
            await self._stop.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
        request = json.loads(await reader.readexactly(length))
        content = request["messages"][-1]["content"]
        prompt = content if isinstance(content, str) else content[-1]["text"]
        with self._changed:
            self.asked[prompt] += 1
            self.total += 1
            self._changed.notify_all()
        await asyncio.sleep(self._latency)
        base = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "rows"}
        said = {"index": 0, "delta": {"role": "assistant", "content": answer_of(prompt)}}
        over = {"index": 0, "delta": {}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        chunks = [
            {**base, "choices": [said]},
            {**base, "choices": [over]},
            {**base, "choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
        )
        await writer.drain()
