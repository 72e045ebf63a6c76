"""From a reply to batches of parts: how every HTTP provider reads an answer.

Why: all providers share one rule for when a request may be repeated, and it is easy to get wrong.

Rules
- Nothing is yielded before the answer begins: head, usage and extras wait for the first other part,
  or for the end of the body.
- A fault before the answer begins is a ModelError that may be retried. A later fault may not, and
  is raised after all parts that were read.
- After the end of the answer (`decoder.done`) the connection gets a moment to end by itself.
- A break or a silence after a complete answer (`decoder.complete`) is not a fault.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Protocol

import msgspec

from ...errors import ModelError
from ..base import Decoder
from ..parts import Extra, Fault, Head, Part, Usage
from . import overflow
from .client import Http
from .errors import Peer, make_refusal
from .patience import wait_within
from .reply import Reply

LINGER = 0.25  # seconds that a connection has to end after its answer
# parts that may come before the answer begins
_PRELUDE = (Head, Usage, Extra)


class StreamDecoder(Decoder, Protocol):
    """A provider's decoder, which also knows whether the answer has ended (`done`)."""

    done: bool

    @property
    def complete(self) -> bool:
        """Whether the whole answer has come; its usage may still follow."""


class Gate:
    """Holds parts back until the answer begins (`open`); a fault before that may be retried."""

    def __init__(self) -> None:
        self.open = False
        self._held: list[Part] = []

    def take(
        self, batch: Sequence[Part], *, last: bool = False
    ) -> tuple[list[Part], ModelError | None]:
        """Return the parts to yield now, and the error to raise after them.

        `last`: no batch follows, so the held parts are returned too.
        """
        fault = next((p for p in batch if isinstance(p, Fault)), None)
        parts = [p for p in batch if p is not fault]
        self._held += parts
        if not self.open and not last and all(isinstance(p, _PRELUDE) for p in parts):
            return [], None if fault is None else self.error(fault)
        if not self.open and fault is not None and all(isinstance(p, _PRELUDE) for p in self._held):
            return [], self.error(fault)
        self.open = True
        out, self._held = self._held, []
        return out, None if fault is None else self.error(fault)

    def error(self, fault: Fault) -> ModelError:
        """Return the error for a Fault part."""
        context = overflow.find_context_size(fault.message) if fault.code == overflow.CODE else 0
        return ModelError(
            fault.message,
            retryable=fault.retryable and not self.open,
            code=fault.code,
            raw=fault.raw,
            context=context,
        )


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """One POST: its path, body, headers and server, whether it offers tools and holds pictures."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    peer: Peer
    tools: bool = False
    images: bool = False


async def stream_answer(
    http: Http,
    post: Post,
    decoder_of: Callable[[int], StreamDecoder],
    on_status: Callable[[int], object] = int,  # `int` does nothing with the status
) -> AsyncGenerator[Sequence[Part], None]:
    """Send `post` and yield the parts of the answer; `on_status` gets its HTTP status first.

    Raises ModelError.
    """
    async with http.post(post.path, post.body, post.headers) as reply:
        on_status(reply.status)
        if not 200 <= reply.status < 300:
            raise make_refusal(
                reply.status,
                reply.headers,
                await reply.read(),
                post.peer,
                tools=post.tools,
                images=post.images,
            )
        async with aclosing(_read(reply, decoder_of(reply.status))) as batches:
            async for batch in batches:
                yield batch


async def _read(reply: Reply, decoder: StreamDecoder) -> AsyncGenerator[Sequence[Part], None]:
    """Yield the parts of a reply; raise its fault after them."""
    gate = Gate()
    broken: ModelError | None = None
    async with aclosing(reply.chunks()) as chunks:
        while broken is None and not decoder.done:
            try:
                data = await anext(chunks)
            except StopAsyncIteration:
                break
            except ModelError as fault:
                broken = None if decoder.complete else fault
                break
            out, broken = gate.take(decoder.feed(data))
            if out:
                yield out
        if broken is None:
            await _end(chunks)
    # after a break of the connection, the decoder's own fault would say the same again
    last_parts = [p for p in decoder.close() if broken is None or not isinstance(p, Fault)]
    out, last = gate.take(last_parts, last=broken is None)
    if out:
        yield out
    if error := broken or last:
        raise error.final() if gate.open else error


async def _end(chunks: AsyncGenerator[bytes, None]) -> None:
    """Let the connection end by itself, so that it can be reused."""
    # the answer is complete: how the connection ends no longer matters
    with suppress(ModelError, TimeoutError):
        await wait_within(LINGER, _drain(chunks))


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    async for _ in chunks:
        pass
