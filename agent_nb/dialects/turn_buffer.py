"""The text of a turn while it is read: the part that is not consumed yet, and the kept text.

Why: a block that is read as a whole at its end may arrive in thousands of chunks. Its text is
stored in pieces and joined once, so reading it takes linear time.
"""

from __future__ import annotations


class TurnBuffer:
    """Holds `text`, of which everything before `pos` is consumed.

    `offset` is the place of `text` in the turn. Positions are indices of `text`; they change when
    `discard_consumed` or `rewind` moves its start.
    """

    def __init__(self) -> None:
        self.text = ""
        self.pos = self.offset = 0
        # the kept text that has left `text`, in pieces, and its length; None: nothing is kept
        self._pieces: list[str] | None = None
        self._pieces_size = 0
        self._kept_from = 0  # where the other kept text begins in `text`

    @property
    def is_keeping(self) -> bool:
        """Whether a block is kept."""
        return self._pieces is not None

    @property
    def kept_start(self) -> int:
        """Where the kept text begins; below 0 if some of it has left `text`."""
        return self._kept_from - self._pieces_size

    def start_keeping(self, start: int) -> None:
        """Keep the text from `start` on."""
        self._pieces, self._pieces_size, self._kept_from = [], 0, start

    def read_kept(self, end: int) -> str:
        """Return the kept text up to `end`."""
        return "".join(self._pieces or ()) + self.text[self._kept_from : end]

    def take_kept(self, end: int) -> str:
        """Return the kept text up to `end`; consume it, and keep no more."""
        kept = self.read_kept(end)
        self._pieces, self.pos = None, end
        return kept

    def rewind(self) -> None:
        """Go back to the start of the kept text, and go on keeping it."""
        if self._pieces:  # `text` then begins with the pieces again
            self.offset += self.kept_start
            self.text = self.read_kept(len(self.text))
            self.start_keeping(0)
        self.pos = self._kept_from

    def discard_consumed(self) -> None:
        """Shorten `text` to the part that is not consumed."""
        if self._pieces is not None:
            self._pieces.append(self.text[self._kept_from : self.pos])
            self._pieces_size += self.pos - self._kept_from
            self._kept_from = 0
        self.offset += self.pos
        self.text, self.pos = self.text[self.pos :], 0
