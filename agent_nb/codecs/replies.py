"""Finds what a reply adds to the streamed text.

A reply is the whole text that some formats send at the end of a turn or run. After a streamed
answer it is a copy, which must not become a second answer.
"""

from __future__ import annotations

import hashlib

from ..events import Answer, Event, Respond


class StreamedAnswer(Answer):
    """The answer of a run as it is streamed."""

    def __init__(self, span: str = "") -> None:
        super().__init__(span)
        self._all = hashlib.sha256()  # of all blocks; a hash does not grow with the run

    def add(self, event: Event) -> None:
        """Take the next event of the run."""
        super().add(event)
        if isinstance(event, Respond) and event.span == self._span:
            self._all.update(event.content.encode())

    def includes(self, reply: str) -> bool:
        """Return whether a reply adds nothing to the streamed text.

        That is so if it equals the last block, the answer so far (the text of the last turn that
        has text), or all blocks together.
        """
        streamed = {self.text.strip(), self.last.strip()}
        return (
            not reply
            or reply.strip() in streamed
            or hashlib.sha256(reply.encode()).digest() == self._all.digest()
        )

    def find_rest(self, reply: str) -> tuple[str, bool]:
        """Return what a reply adds to the answer so far, and whether it begins with that answer."""
        if self.text and reply.startswith(self.text):
            return reply.removeprefix(self.text), True
        return reply, False
