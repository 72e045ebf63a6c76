"""Shows the progress of executed notebooks on stderr.

Why: a cell may run for minutes, and stdout belongs to the results.

Rules: a terminal shows one line, redrawn with the seconds of the current cell; other streams get
one line for each agent cell. Nothing goes to stdout. Source text is shown without control
characters and secrets.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

from ..models import collect_secrets
from ..notebook import make_printable

WIDTH = 20  # characters of the bar
LONGEST_TITLE = 50  # characters of a cell's first line
BEAT = 0.5  # seconds between two drawings


class Progress:
    """The progress of one notebook; a context manager.

    With `lines`, for several notebooks at a time, no line is redrawn.
    """

    def __init__(self, name: str, stream: TextIO | None = None, *, lines: bool = False) -> None:
        self._hidden = collect_secrets()
        self._name = make_printable(name, self._hidden)
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

    def cell(self, index: int, count: int, source: str) -> None:
        """Show that the cell at `index` (from 0) of `count` cells begins; `source` is its text."""
        first_line = next((line for line in source.splitlines() if line.strip()), "")
        title = make_printable(first_line, self._hidden).strip()[:LONGEST_TITLE]
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
        seconds = int(time.monotonic() - self._since)
        self._write(f"\r\x1b[K[{'#' * full}{'-' * (WIDTH - full)}] {self._line} {seconds} s")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
