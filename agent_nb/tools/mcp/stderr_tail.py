"""What a server wrote to stderr last, for error messages.

Rules: only the end is kept; a server that writes without end is read all the same, so that it does
not block. Secrets are taken out before the text is shortened.
"""

from __future__ import annotations

import codecs
import os
import threading
from typing import IO

from ...wire import Redaction, strip_ansi

SHOWN = 1_500  # characters
_CHUNK = 65_536


class StderrTail:
    """The write end of a pipe for a process, and the last text that came through it."""

    def __init__(self, redaction: Redaction) -> None:
        self._clean = redaction.stream()
        self._text = ""
        read, write = os.pipe()
        self.pipe: IO[str] = os.fdopen(write, "w", encoding="utf-8")
        self._ended = threading.Event()
        threading.Thread(
            target=self._read, args=(read,), name="agent_nb mcp stderr", daemon=True
        ).start()

    def started(self) -> None:
        """Close our end, since the process has its own, or did not start."""
        self.pipe.close()

    def text(self, wait: float = 0.0) -> str:
        """Return the last lines; wait for the end of the stream for `wait` seconds at most."""
        self._ended.wait(wait)
        text = strip_ansi(self._text).strip()
        return text if len(text) <= SHOWN else f"…{text[-SHOWN:]}"

    def _read(self, read: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with os.fdopen(read, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                self._keep(self._clean.feed(decoder.decode(chunk)))
        self._keep(self._clean.feed(decoder.decode(b"", final=True)) + self._clean.close())
        self._ended.set()

    def _keep(self, text: str) -> None:
        self._text = (self._text + text)[-2 * SHOWN :]
