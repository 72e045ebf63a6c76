"""The text of a turn while it is read: the part that is not consumed yet, and the open block.

A block, such as that of a call, is read as a whole at its end and may arrive in thousands of
chunks. Its text is stored in pieces and joined once, so reading it takes linear time.
"""

from __future__ import annotations


class TurnBuffer:
    """Holds `text`, of which everything before `pos` is consumed.

    `offset` is where `text` begins in the turn. Positions are indices of `text`; they change when
    `discard_consumed` or `rewind` moves its start.
    """

    def __init__(self) -> None:
        self.text = ""
        self.pos = self.offset = 0
        # what of the open block has left `text`, in pieces, and its length; None: no block is open
        self._pieces: list[str] | None = None
        self._pieces_size = 0
        self._rest_start = 0  # where the rest of the block begins in `text`

    @property
    def in_block(self) -> bool:
        """Whether a block is open."""
        return self._pieces is not None

    @property
    def block_start(self) -> int:
        """Where the block begins; below 0 if some of it has left `text`."""
        return self._rest_start - self._pieces_size

    def begin_block(self, start: int) -> None:
        """Open a block at `start`."""
        self._pieces, self._pieces_size, self._rest_start = [], 0, start

    def read_block(self, end: int) -> str:
        """Return the text of the block up to `end`."""
        return "".join(self._pieces or ()) + self.text[self._rest_start : end]

    def take_block(self, end: int) -> str:
        """Return the text of the block up to `end`; consume it and close the block."""
        block = self.read_block(end)
        self._pieces, self.pos = None, end
        return block

    def rewind(self) -> None:
        """Go back to the start of the block, which stays open."""
        if self._pieces:  # `text` then begins with the pieces again
            self.offset += self.block_start
            self.text = self.read_block(len(self.text))
            self.begin_block(0)
        self.pos = self._rest_start

    def discard_consumed(self) -> None:
        """Shorten `text` to the part that is not consumed."""
        if self._pieces is not None:
            self._pieces.append(self.text[self._rest_start : self.pos])
            self._pieces_size += self.pos - self._rest_start
            self._rest_start = 0
        self.offset += self.pos
        self.text, self.pos = self.text[self.pos :], 0
