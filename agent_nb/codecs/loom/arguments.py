"""Which call of a Loom session a piece of arguments belongs to.

Rule: a piece with an id belongs to that call; one without to the newest open block of its tool, or
of any where it names none. Where that block is a whole JSON object already, another call begins.
"""

from __future__ import annotations

import msgspec

from ..run_builder import OpenBlock, Source

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
        """Return the block of a call that is told whole or goes on: that of its id, else the oldest
        without one of its tool or of none.
        """
        if call_id and self._source.block(call_id) is not None:
            return self._source.take_call(call_id)
        fits = [
            b
            for b in self._source.open_calls()
            if b.name in (name, "") and (not call_id or not id_of(b))
        ]
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
