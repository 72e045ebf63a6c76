"""A server of chat completions that counts what it is asked, and may hold its answers back."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from helpers.model_server import Server


class CountingServer(Server):
    """Answers each prompt with what `say` makes of it; `counts` has the requests by prompt.

    While `open_` is cleared, requests are counted and wait for their answers.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()  # requests by the key that they carry
        self.open_ = threading.Event()
        self.open_.set()
        self.say: Callable[[str], str] = str.upper
        self.broken = 0  # connections that their client left before the answer
        self._counting = threading.Condition()
        super().__init__(self._answer)

    @property
    def total(self) -> int:
        """How many requests came."""
        return self.counts.total()

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many requests came in all."""
        with self._counting:
            assert self._counting.wait_for(lambda: self.total >= count, seconds), self.total

    def _answer(self, peer: Any) -> None:
        asked = peer.body
        prompt = asked["messages"][-1]["content"]
        with self._counting:
            self.counts[prompt] += 1
            self.keys[peer.headers.get("authorization", "")] += 1
            self._counting.notify_all()
        if not self.open_.is_set():
            self._hold(peer)
        said = {"choices": [{"index": 0, "delta": {"content": self.say(prompt)}}], "model": "m"}
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        peer.stream(said, end, "data: [DONE]\n\n")

    def _hold(self, peer: Any) -> None:
        """Wait until answers are given, or the client has left."""
        peer.connection.setblocking(False)
        while not self.open_.wait(0.02):
            with suppress(BlockingIOError):
                peer.connection.recv(1)
                with self._counting:
                    self.broken += 1
                    self._counting.notify_all()
                raise ConnectionError
        peer.connection.settimeout(10)

    def wait_for_gone(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many clients left before their answers."""
        with self._counting:
            assert self._counting.wait_for(lambda: self.broken >= count, seconds), self.broken

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Self]:
        """Serve while the block runs."""
        made = cls()
        try:
            yield made
        finally:
            made.close()

    def close(self) -> None:
        """Answer what waits, and end."""
        self.open_.set()
        super().close()


def stopped_under_way(
    server: CountingServer, make: Callable[[], Any], count: int, seconds: float = 20.0
) -> Any:
    """Stop the map that `make` makes when `count` requests wait for their answers; return it."""
    server.open_.clear()

    async def main() -> Any:
        stream = make()
        stream.start()
        await asyncio.to_thread(server.wait_for, count)
        stream.cancel()
        await asyncio.wait([stream._task], timeout=seconds)
        await asyncio.to_thread(server.wait_for_gone, count)
        return stream

    return asyncio.run(main())
