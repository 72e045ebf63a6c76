"""Shows the progress of executed notebooks on stderr; stdout belongs to the results."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from bisect import bisect_right
from contextlib import suppress
from itertools import accumulate
from typing import TextIO
from unicodedata import east_asian_width

from ..models import collect_secrets
from ..notebook import make_printable

WIDTH = 20  # characters of the bar
LONGEST_TITLE = 50  # characters of a cell's first line
BEAT = 0.5  # seconds between two drawings


class Progress:
    """The progress of one notebook; a context manager.

    On a terminal one line is redrawn, with the seconds of the current cell. Elsewhere, and for
    several notebooks at a time (`lines`), each agent cell gets a line.
    """

    def __init__(self, name: str, stream: TextIO | None = None, *, lines: bool = False) -> None:
        self._secrets = collect_secrets()
        self._name = make_printable(name, self._secrets)
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty() and not lines
        self._line = ""
        self._done = 0.0  # the share of the cells that are over, 0 to 1
        self._since = time.monotonic()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self._live:
            self._thread = threading.Thread(
                target=self._redraw, name="agent_nb progress", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._write("\r\x1b[K")

    def show_cell(self, index: int, count: int, source: str) -> None:
        """Show that the cell at `index` (from 0) of `count` cells begins; `source` is its text."""
        first_line = next((line for line in source.splitlines() if line.strip()), "")
        title = make_printable(first_line, self._secrets).strip()[:LONGEST_TITLE]
        self._done = index / count
        self._line = f"{index + 1}/{count} {self._name}: {title}"
        self._since = time.monotonic()
        if self._live:
            self._draw()
        elif source.lstrip().startswith("%%agent"):
            self._write(f"{self._line}\n")

    def _redraw(self) -> None:
        while not self._over.wait(BEAT):
            self._draw()

    def _draw(self) -> None:
        full = int(WIDTH * self._done)
        bar = f"[{'#' * full}{'-' * (WIDTH - full)}] "
        seconds = f" {int(time.monotonic() - self._since)} s"
        # a line that wraps would leave a row behind whenever it is redrawn
        room = self._count_columns() - 1 - len(bar) - len(seconds)
        self._write(f"\r\x1b[K{bar}{_cut(self._line, room)}{seconds}")

    def _count_columns(self) -> int:
        with suppress(OSError, ValueError):
            if columns := os.get_terminal_size(self._stream.fileno()).columns:  # 0: unknown
                return columns
        return shutil.get_terminal_size().columns

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the reader of the stream has gone
            self._stream.write(text)
            self._stream.flush()


def _cut(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into `columns`; a wide character takes two."""
    ends = list(accumulate(2 if east_asian_width(c) in "WF" else 1 for c in text))
    return text[: bisect_right(ends, columns)]
