"""Matches `tool_call_chunk` frames to calls; each holds a piece of a call's arguments.

    {"type": "tool_call_chunk", "call_id": "c1", "name": "search", "arguments_delta": "{\\"query"}

Senders of this format may leave out the call's id, the tool's name, or both.
"""

from __future__ import annotations

from ..blocks import Blocks, OpenBlock
from ..foreign_values import parse_json

_NO_ID = "name:"  # prefix of the key of a block whose pieces named no call id


class ArgumentBlocks:
    """The open argument blocks of one session."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._count = 0

    def find_key(self, name: str, call_id: str, text: str) -> str:
        """Return the key of the block that a piece continues or begins.

        A piece with an id belongs to that call, any other to the newest open block of its tool or
        of an unnamed tool (without a name: to the newest of all). If that block is already a whole
        JSON object and the piece begins with `{`, the piece begins another call.
        """
        if call_id:
            return call_id
        blocks = [b for b in self._blocks.list_open() if not name or b.name in ("", name)]
        if blocks:
            newest = blocks[-1]
            is_whole = text.lstrip().startswith("{") and isinstance(parse_json(newest.text), dict)
            if not is_whole:
                return newest.key
        self._count += 1
        return f"{_NO_ID}{name}:{self._count}"

    def take(self, name: str, call_id: str) -> OpenBlock | None:
        """Remove and return the block of a call that another frame names; None if none fits.

        First comes the block with `call_id`, then the oldest block of the tool `name`, then the
        oldest of an unnamed tool. A block with another id never fits a `call_id`.
        """
        if call_id and self._blocks.find_block(call_id) is not None:
            return self._blocks.take_block(call_id)
        of_tool = [b for b in self._blocks.list_open() if b.name in (name, "")]
        candidates = [b for b in of_tool if not call_id or not call_id_of(b)]
        candidates.sort(key=lambda b: b.name != name)  # those of its tool first; the sort is stable
        return self._blocks.take_block(candidates[0].key) if candidates else None


def call_id_of(block: OpenBlock) -> str:
    """Return the call id in the pieces of a block ("" for none)."""
    return "" if block.key.startswith(_NO_ID) else block.key
