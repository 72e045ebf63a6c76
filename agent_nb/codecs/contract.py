"""The protocols of a codec's parts: decoder, encoder, reader and writer (rules: `base`).

A decoder unframes bytes and passes the objects to the format's reader. An encoder frames the
objects that the format's writer returns. A codec of another package need not inherit from ours.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ..events import Event
from .framing import Framing, Item
from .losses import Losses


class Decoder(Protocol):
    """Reads one stream."""

    losses: Losses

    def feed(self, data: bytes | str) -> list[Event]:
        """Return the events that `data` completes."""

    def read(self, obj: Any) -> list[Event]:
        """Return the events of one parsed object, such as a dict from an async iterator."""

    def tick(self, now: float) -> list[Event]:
        """Return the events that were held back long enough; called while a live stream goes on.

        `now`: seconds of a monotonic clock.
        """

    def close(self) -> list[Event]:
        """End the stream: return the events held back; open blocks are closed as incomplete."""


class Encoder(Protocol):
    """Writes one stream."""

    losses: Losses
    framing: Framing

    def feed(self, event: Event) -> list[str]:
        """Return the lines or frames that `event` completes."""

    def close(self) -> list[str]:
        """Return the lines or frames that were held back."""

    def items(self, event: Event | None) -> list[Item]:
        """Return the items that `feed(event)`, or for None `close()`, would frame.

        A server that gives frames its own numbers needs the items before they are framed.
        """


class Reader(Protocol):
    """A format's half of a decoder: objects in, events out.

    A reader that holds events back for a time also has `tick`; see Decoder.
    """

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""

    def close(self) -> list[Event]:
        """Return the events that were held back."""


class Writer(Protocol):
    """A format's half of an encoder: events in, objects out."""

    def write(self, event: Event) -> list[Item]:
        """Return the objects of one event; the encoder has counted the fields it cannot carry."""

    def close(self) -> list[Item]:
        """Return the objects that were held back."""


class Options(msgspec.Struct, frozen=True):
    """How a stream is to be written.

    - `form`: the variant of the format, one of the codec's `forms`
    - `framing`: as JSON lines (`ndjson`) or as SSE frames (`sse`)
    - `conversation`: the id of the session or thread, in formats that have one
    - `earlier`: how many runs of this conversation other streams have sent before, for formats that
      number them
    - `asked`: the receiver sent the user's message itself, and needs no copy of it
    """

    form: str = ""
    framing: Framing = "ndjson"
    conversation: str = ""
    earlier: int = 0
    asked: bool = False
