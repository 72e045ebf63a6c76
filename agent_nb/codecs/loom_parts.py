"""Two matters of a Loom session that need their own bookkeeping: which call a piece of arguments belongs to, and what a reply adds.

Rules
- A piece with an id belongs to that call; one without to the newest open block of its tool, or of any where it names none. Where that
  block is a whole JSON object already, another call begins.
- A reply is no second answer where its text had been streamed: in the last turn, its last block, or all turns together.
"""

from __future__ import annotations

import hashlib

import msgspec

from ..events import Respond
from .reading import OpenBlock, Source
from .writing import Answer

_NAMELESS = "name:"  # what the key of a block without a call id begins with


class Pieces:
    """The open blocks of arguments of one session."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._nameless = 0

    def key(self, name: str, call_id: str, text: str) -> str:
        """Return the key of the block that a piece continues or begins."""
        if call_id:
            return call_id
        blocks = [b for b in self._source.open_calls() if not name or b.name in ("", name)]
        if blocks and not (text.lstrip().startswith("{") and _is_object(blocks[-1].text)):
            return blocks[-1].key
        self._nameless += 1
        return f"{_NAMELESS}{name}:{self._nameless}"

    def take(self, name: str, call_id: str) -> OpenBlock | None:
        """Return the block of a call that is told whole or goes on: that of its id, else the oldest without one of its tool or of none."""
        if call_id and self._source.block(call_id) is not None:
            return self._source.take_call(call_id)
        fits = [b for b in self._source.open_calls() if b.name in (name, "") and (not call_id or not id_of(b))]
        fits.sort(key=lambda b: b.name != name)
        return self._source.take_call(fits[0].key) if fits else None


def id_of(block: OpenBlock) -> str:
    """Return the call id that the pieces of a block named ("" for none)."""
    return "" if block.key.startswith(_NAMELESS) else block.key


def _is_object(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True


class Told(Answer):
    """The answer of a run as it is streamed."""

    def __init__(self) -> None:
        super().__init__()
        self._all = hashlib.sha256()  # of every block: memory does not grow with the run

    def hear(self, event: Respond) -> None:
        """Take a block that was streamed."""
        if not event.span:
            self.take(event)
            self._all.update(event.content.encode())

    def knows(self, reply: str) -> bool:
        """True if a reply says nothing that was not streamed."""
        known = {self.text.strip(), self.last.strip()}
        return not reply or reply.strip() in known or hashlib.sha256(reply.encode()).digest() == self._all.digest()

    def missing(self, reply: str) -> tuple[str, bool]:
        """Return what of a reply was not streamed: (the rest, True) of an answer streamed in part, else (the whole, False)."""
        rest = bool(self.text) and reply.startswith(self.text)
        return (reply[len(self.text) :] if rest else reply), rest
