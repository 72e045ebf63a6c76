"""The contract of a model: a request in, batches of parts out.

The agent loop treats every provider alike, and other packages may add providers: a provider module
offers a factory `provider(name, **options) -> Model`.

Rules
- `stream` yields one batch of parts for each chunk that arrived, so nothing is awaited per token.
- A fault before the first part is raised as ModelError; the loop may retry it. A later fault is a
  Fault part or a ModelError with `retryable=False`, and the stream ends.
- Leaving the generator (aclose, cancel) closes the connection at once.
- A model object holds no state of a stream: two streams of one model may interleave.

Optional members of a model; "else" is what a run does if the member is missing:
- `start()`: the model for one run; else the model itself.
- `named()`, awaited: the full name, for which the server may have to be asked; else `name`.
- `identity`: a name that changes when the model changes, such as an edited script; else `name`.
- `vision`: whether it sees pictures; else they are sent until a ModelError says `no_images`.
- `takes_output(output)`: whether an answer's schema may be sent; else a tool takes the answer.
- `takes_tools`: whether a cell offers the model tools that the user did not choose; else only if
  the model's `dialect` is native.
- `tariff`: how requests are priced; else the price is unknown.
- `loading`: the progress of loading weights; else the model is ready at once.
- `limiter`: limits the requests to the model's endpoint (`http.limiter`); else only a map does.
- `check_dialect(native=…)`: raises UsageError for a dialect that the model cannot use.
- `withheld()`: the folder's offer (`host.Offer`) of a key that the user has not allowed, or None.
- `models()`, awaited: the models of the server. `address`, `access`: where it is, where its key
  comes from.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from .messages import Request
from .parts import Part


class Model(Protocol):
    """One model of one provider."""

    name: str  # as the user writes it: provider/name
    dialect: str  # the default dialect: "native" where tools can be sent, else "xml"
    grammar: bool  # takes a grammar in the request (llguidance), which limits what it may write
    shots: bool  # a small model that needs few-shot turns
    context: int  # tokens of context, 0: unknown

    def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Send the request and yield the parts of the answer as they arrive."""

    async def aclose(self) -> None:
        """Close connections. A closed model is not used again."""


class Decoder(Protocol):
    """Turns the bytes of one response body into parts, without I/O."""

    def feed(self, data: bytes) -> Sequence[Part]:
        """Return the parts that `data` completes."""

    def close(self) -> Sequence[Part]:
        """End the body: return open calls as incomplete, and a Fault if the protocol broke off."""
