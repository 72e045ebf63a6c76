"""Match pieces of arguments to the calls of a Loom session.

Rule: a piece with an id belongs to that call; one without to the newest open block of its tool, or
of any tool if it names none. If that block is a whole JSON object already, another call begins.
"""

from __future__ import annotations

from ..blocks import Blocks, OpenBlock
from ..foreign_values import parse_json

_NAMELESS = "name:"  # what the key of a block without a call id begins with


class Pieces:
    """The open blocks of arguments of one session."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._nameless = 0

    def key(self, name: str, call_id: str, text: str) -> str:
        """Return the key of the block that a piece continues or begins."""
        if call_id:
            return call_id
        blocks = [b for b in self._blocks.open() if not name or b.name in ("", name)]
        if blocks and not (
            text.lstrip().startswith("{") and isinstance(parse_json(blocks[-1].text), dict)
        ):
            return blocks[-1].key
        self._nameless += 1
        return f"{_NAMELESS}{name}:{self._nameless}"

    def take(self, name: str, call_id: str) -> OpenBlock | None:
        """Return the block of a call that comes whole or goes on, and forget it.

        It is that of the call's id, else the oldest without an id, of its tool before one of none.
        """
        if call_id and self._blocks.get(call_id) is not None:
            return self._blocks.take(call_id)
        fits = [
            b for b in self._blocks.open() if b.name in (name, "") and (not call_id or not id_of(b))
        ]
        fits.sort(key=lambda b: b.name != name)
        return self._blocks.take(fits[0].key) if fits else None


def id_of(block: OpenBlock) -> str:
    """Return the call id that the pieces of a block named ("" for none)."""
    return "" if block.key.startswith(_NAMELESS) else block.key
