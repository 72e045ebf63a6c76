"""The last text that an MCP server wrote to stderr, for error messages.

Only the end of the text is kept, but all of it is read: a server blocks when its pipe is full.
Secrets are replaced before the text is cut, since half a key would not be recognised.
"""

from __future__ import annotations

import codecs
import os
import re
import threading
import time
import unicodedata
from contextlib import suppress
from select import select
from typing import IO

from ...wire import Redaction, strip_ansi

LONGEST_TAIL = 1_500  # characters of stderr in a message
_CHUNK = 65_536  # bytes of one read
_LATEST_READ = 2.0  # seconds that a text waits for a late thread; one process may write without end
_JOINER = "\u200d"  # joins two emoji to one
# a string for the terminal whose end has not come; its beginning is group 1
_OPEN_STRING = re.compile(r"(\x1b[]PX^_k])[^\x07\x1b\x9c]*+\x1b?\Z")


class StderrTail:
    """A pipe for the stderr of a process, and the last text that came through it.

    `pipe` is the write end, for the process. A daemon thread reads the other end until it closes.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._filter = redaction.stream()
        self._text = ""
        self._is_cut = False  # the beginning of the text was dropped
        self._read_end, write_end = os.pipe()
        self.pipe: IO[str] = os.fdopen(write_end, "w", encoding="utf-8")
        self._ended = threading.Event()  # every process has closed its write end
        threading.Thread(target=self._read, name="agent_nb mcp stderr", daemon=True).start()

    def close_write_end(self) -> None:
        """Close our copy of the write end, which would hide the end of the stream from the reader.

        Call it once the process has its own copy or has failed to start.
        """
        self.pipe.close()

    def text(self, wait: float = 0.0) -> str:
        """Wait at most `wait` seconds for the end of the stream, then return the end of the text.

        Where the reading thread is late, wait for it longer: what a process wrote before it died
        must not be lost. A `…` precedes a text that is cut.
        """
        self._ended.wait(wait)
        until = time.monotonic() + _LATEST_READ
        while self._is_late() and time.monotonic() < until:
            self._ended.wait(0.01)
        text = self._text.strip()
        shown = _cut_beginning(text, LONGEST_TAIL)
        return f"…{shown}" if self._is_cut or shown != text else text

    def _is_late(self) -> bool:
        """Return whether text, or the end of the stream, waits to be read (on Windows: False)."""
        with suppress(OSError, ValueError):  # it has just been closed; Windows knows sockets alone
            return not self._ended.is_set() and bool(select([self._read_end], [], [], 0)[0])
        return False

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with os.fdopen(self._read_end, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                self._keep(self._filter.feed(decoder.decode(chunk)))
            self._keep(self._filter.feed(decoder.decode(b"", final=True)) + self._filter.close())
            self._ended.set()  # before the file is closed, whose number another may get

    def _keep(self, text: str) -> None:
        # filtered again: a key with colours inside is whole only without them
        whole = self._redaction.value(strip_ansi(self._text + text))
        limit = 2 * LONGEST_TAIL  # the final filter removes text, and enough must be left to show
        rest, opening = "", _OPEN_STRING.search(whole) if len(whole) > limit else None
        if opening is not None:  # its end may come, and goes with its beginning only
            whole, rest = whole[: opening.end(1)], whole[opening.end(1) :][-limit:]
        shortened = _cut_beginning(whole, limit)
        self._is_cut = self._is_cut or shortened != whole
        self._text = shortened + rest


def _cut_beginning(text: str, size: int) -> str:
    """Return at most the last `size` characters of a text; no mark stands without its letter."""
    if len(text) <= size:
        return text
    at = len(text) - size
    while at < len(text) and (text[at] == _JOINER or unicodedata.category(text[at])[0] == "M"):
        at += 1
    return text[at:]
