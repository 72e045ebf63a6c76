"""A chat server on loopback that sends more than it is asked for, or less.

It answers each prompt with `so PROMPT`, so an answer that belongs to another request is seen.
"""

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager

from helpers.tcp_server import listen


def reply_of(text, status="200 OK", kind="text/event-stream"):
    """Return a whole answer of one chunk, as bytes."""
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


STRAY = reply_of("the answer to another request")
REFUSAL = b"HTTP/1.1 %d Unasked\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


class Meddler:
    """What the server does and has seen; `behave(peer, prompt, answer)` answers one request.

    It returns whether the connection goes on.
    """

    def __init__(self, behave):
        self.behave = behave
        self.asked = Counter()
        self.connections = 0
        self.quiet = asyncio.Event()  # nothing more is sent until the next request

    @asynccontextmanager
    async def serve(self, **options):
        """Serve in the running event loop; give the port."""
        async with listen(self._talk, **options) as port:
            yield port

    async def _talk(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                body = await reader.readexactly(size)
                prompt = json.loads(body)["messages"][-1]["content"] if body else ""
                self.asked[prompt] += 1
                goes_on = await self.behave(writer, prompt, reply_of(f"so {prompt}"))
                if not goes_on:
                    writer.close()
                self.quiet.set()
                if not goes_on:
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


async def one_too_many(peer, prompt, answer):
    """Send another answer in the same packet."""
    peer.write(answer + STRAY)
    return True


async def one_too_many_and_close(peer, prompt, answer):
    """Send another answer in the same packet, and close."""
    peer.write(answer + STRAY)
    return False


def later(data, *, goes_on=False):
    """Send `data` on the idle connection, then close it unless it goes on."""

    async def behave(peer, prompt, answer):
        peer.write(answer)
        await peer.drain()
        await asyncio.sleep(0.01)
        peer.write(data)
        return goes_on

    return behave
