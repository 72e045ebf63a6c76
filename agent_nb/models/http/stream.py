"""From a reply to batches of parts: how every HTTP provider reads an answer.

Rules
- Nothing is yielded before the answer begins: head, usage and extras wait for the first other part,
  or for the end of the body.
- A fault before the answer begins is a ModelError that may be retried. A later fault may not, and
  is raised after all parts that were read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Protocol

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
    """Holds parts back until the answer begins; a fault before that may be retried.

    `is_open`: the answer has begun. `error`: a fault to raise after the parts so far.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.error: ModelError | None = None
        self._prelude: list[Part] = []  # parts that are held back

    def pass_parts(self, batch: Sequence[Part]) -> list[Part]:
        """Return the parts of a batch to yield now; a Fault among them becomes `error`."""
        fault = next((p for p in batch if isinstance(p, Fault)), None)
        parts = [p for p in batch if p is not fault]
        if not self.is_open:
            self._prelude += parts
            begins = not all(isinstance(p, _PRELUDE) for p in parts)
            parts = self.release() if begins else []
        if fault is not None:
            self.error = self._make_error(fault)
        return parts

    def release(self) -> list[Part]:
        """Open the gate: return the parts that are held back."""
        self.is_open = True
        parts, self._prelude = self._prelude, []
        return parts

    def _make_error(self, fault: Fault) -> ModelError:
        context = overflow.find_context_size(fault.message) if fault.code == overflow.CODE else 0
        return ModelError(
            fault.message,
            retryable=fault.retryable and not self.is_open,
            code=fault.code,
            raw=fault.raw,
            context=context,
        )


@dataclass(frozen=True, kw_only=True)
class Post:
    """One POST. `tools`: the request offers some. `images`: its messages hold some."""

    path: str
    body: bytes
    headers: Mapping[str, str] = field(repr=False)  # one may be a key
    peer: Peer
    tools: bool = False
    images: bool = False


async def stream_answer(
    http: Http,
    post: Post,
    make_decoder: Callable[[int], StreamDecoder],
    on_status: Callable[[int], object] = lambda _: None,
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
                await reply.read_beginning(),
                post.peer,
                tools=post.tools,
                images=post.images,
            )
        async with aclosing(_read(reply, make_decoder(reply.status))) as batches:
            async for batch in batches:
                yield batch


async def _read(reply: Reply, decoder: StreamDecoder) -> AsyncGenerator[Sequence[Part], None]:
    """Yield the parts of a reply; raise its fault after them."""
    gate = Gate()
    async with aclosing(reply.chunks()) as chunks:
        while gate.error is None and not decoder.done:
            try:
                data = await anext(chunks)
            except StopAsyncIteration:
                break
            except ModelError as error:
                if not decoder.complete:
                    gate.error = error
                break
            parts = gate.pass_parts(decoder.feed(data))
            if parts:
                yield parts
        if gate.error is None:
            # the connection may end by itself and be reused; how it ends no longer matters
            with suppress(ModelError, TimeoutError):
                await wait_within(LINGER, _drain(chunks))
    last_parts = decoder.close()
    if gate.error is not None:  # the decoder's own fault would say the same again
        last_parts = [p for p in last_parts if not isinstance(p, Fault)]
    parts = gate.pass_parts(last_parts)
    if gate.error is None:
        parts += gate.release()
    if parts:
        yield parts
    if gate.error is not None:
        raise gate.error.final() if gate.is_open else gate.error


async def _drain(chunks: AsyncGenerator[bytes, None]) -> None:
    async for _ in chunks:
        pass
