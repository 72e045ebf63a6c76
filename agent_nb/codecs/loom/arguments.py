"""Match `tool_call_chunk` frames to calls: each carries a piece of a call's arguments, often
without the call's id.

Rule: a piece with an id belongs to that call. One without an id belongs to the newest open block of
its tool, or of any tool if it names none; where that block already is a whole JSON object and the
piece begins with `{`, another call begins.
"""

from __future__ import annotations

from ..blocks import Blocks, OpenBlock
from ..foreign_values import parse_json

_NO_ID = "name:"  # prefix of the key of a block whose pieces named no call id


class ArgumentBlocks:
    """The blocks of one session whose arguments are not complete."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._count = 0

    def key(self, name: str, call_id: str, text: str) -> str:
        """Return the key of the block that a piece continues or begins."""
        if call_id:
            return call_id
        blocks = [b for b in self._blocks.open() if not name or b.name in ("", name)]
        if blocks and not (
            text.lstrip().startswith("{") and isinstance(parse_json(blocks[-1].text), dict)
        ):
            return blocks[-1].key
        self._count += 1
        return f"{_NO_ID}{name}:{self._count}"

    def take(self, name: str, call_id: str) -> OpenBlock | None:
        """Return the block of a call that another frame is about and forget it, or None.

        A block with the call's id wins; then the oldest block of its tool whose pieces named no id,
        then the oldest that named neither id nor tool.
        """
        if call_id and self._blocks.get(call_id) is not None:
            return self._blocks.take(call_id)
        fits = [
            b
            for b in self._blocks.open()
            if b.name in (name, "") and (not call_id or not call_id_of(b))
        ]
        fits.sort(key=lambda b: b.name != name)
        return self._blocks.take(fits[0].key) if fits else None


def call_id_of(block: OpenBlock) -> str:
    """Return the call id in the pieces of a block ("" for none)."""
    return "" if block.key.startswith(_NO_ID) else block.key
