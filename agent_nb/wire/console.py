"""Reduce printed text to what a terminal shows in the end.

Why: progress bars redraw one line a thousand times with carriage returns; a log and a model should
read only its last state.

Rules
- A redrawn line leaves its last text. A bar of tqdm leaves nothing; text printed after it is a line
  of its own.
- Of nested bars, the topmost that is not full is the `status`.
- The lines do not depend on how the text is cut into pieces.
"""

from __future__ import annotations

import re

import msgspec

from .progress_bar import METER, is_bar, read_progress

LONGEST_LINE = 4_000  # characters of an open line that are held back, or kept once it is redrawn
_PIECES = re.compile(r"([\n\r])")
_UP = re.compile(r"(?:\x1b\[A)+")
# text printed behind a complete bar, which begins a line of its own
_BEHIND = re.compile(METER.pattern + r" *(?=[^ \x1b])")


class Console:
    """Takes text and returns finished lines; `status` is the bar or line to show meanwhile."""

    def __init__(self) -> None:
        self._bars: list[str] = []  # bars above the open line, the topmost first
        self._last = ""  # the last redrawn line that showed progress
        self._line = _Line()

    def feed(self, text: str) -> str:
        """Return the finished lines, and an open line that is too long to hold back."""
        if "\r" in text or self._line.is_redrawn or self._bars:
            return "".join(map(self._feed_piece, _PIECES.split(text)))
        end = text.rfind("\n") + 1
        lines = text[:end]
        if end and self._line.text:
            lines = self._line.text[self._line.received :] + lines
            self._line = _Line()
        return lines + self._write(text[end:]) if end < len(text) else lines

    def open(self, *, whole: bool = True) -> str:
        """Return text of the open line that the caller has not received; "" for a redrawn line.

        `whole` false: only what was there at the previous call, as the rest may still be redrawn.
        """
        line = self._line
        start, end = line.received, len(line.text) if whole else line.length_before
        line.length_before = len(line.text)
        if line.is_redrawn or end <= start:
            return ""
        line.received = end
        return line.text[start:end]

    @property
    def rest(self) -> str:
        """The text that the open line would leave if it ended now, without a line end."""
        return self._final_text().removesuffix("\n")

    def close(self) -> str:
        """End the open line and return the text it leaves, without a line end."""
        return self._end().removesuffix("\n")

    @property
    def status(self) -> str:
        """The topmost bar above that is not full, or the redrawn line, or the last bar, or ""."""
        for bar in self._bars:
            if read_progress(bar)[0] not in (None, 1.0):
                return bar
        redrawn = self._line.shown.strip() if self._line.is_redrawn else ""
        return redrawn or self._last

    def _feed_piece(self, piece: str) -> str:
        """Process a line end, a carriage return, or text between them; return what is finished."""
        if piece == "\n":
            return self._end()
        if piece == "\r":
            return self._return()
        return self._write(piece)

    def _write(self, text: str) -> str:
        """Write on the open line; return text that is too long to hold back."""
        line = self._line
        line.text += text
        if not line.is_redrawn:
            return self.open() if len(line.text) - line.received > LONGEST_LINE else ""
        while True:
            line.text = line.text[-LONGEST_LINE:]
            if behind := _BEHIND.search(line.text):
                self._last = line.text[: behind.end()].strip()
                self._line = _Line()
                return self._write(line.text[behind.end() :])
            up = _UP.search(line.text)
            if up is None:
                return ""
            rest = line.text[up.end() :]
            self._move_up(up[0].count("A"))
            line.text += rest

    def _return(self) -> str:
        """Go to the start of the line: the next text redraws it.

        Return the rest of a line of which the caller has received the beginning.
        """
        line = self._line
        rest = self.open() if line.received else ""
        if line.is_redrawn and line.text.strip():
            # redrawn without moving up: the bars above are finished
            self._bars.clear()
        if not line.is_redrawn:
            line.first_received = line.text[: line.received]
        line.is_redrawn, line.before, line.text = True, line.shown, ""
        return rest

    def _move_up(self, lines: int) -> None:
        """Move up `lines` lines, to an earlier bar, which becomes the open line."""
        for _ in range(lines):
            self._line.text = self._bars.pop() if self._bars else ""
        self._line.before = ""

    def _end(self) -> str:
        """End the open line; return the text it leaves, and remember a bar."""
        text, shown = self._final_text(), self._line.shown.strip()
        if self._is_in_bars:
            self._bars.append(shown)
        else:
            self._bars.clear()
        if self._line.is_redrawn and read_progress(shown)[0] is not None:
            self._last = shown
        self._line = _Line()
        return text

    @property
    def _is_in_bars(self) -> bool:
        """Whether the open line is a bar, or empty below one."""
        shown = self._line.shown
        if not shown:
            return bool(self._bars)
        return self._line.is_redrawn and is_bar(shown)

    def _final_text(self) -> str:
        """Return the text that the open line leaves and that the caller has not received."""
        line, shown = self._line, self._line.shown
        if self._is_in_bars:
            return "\n" if line.first_received else ""
        if not line.is_redrawn:
            return f"{shown[line.received :]}\n"
        if line.first_received:  # a new text cannot replace it, and follows on a line of its own
            return "\n" if shown == line.first_received else f"\n{shown.rstrip()}\n"
        is_erased = bool(shown) and not shown.strip()
        return "" if is_erased else f"{shown.rstrip()}\n"

    @staticmethod
    def render_screen(text: str) -> str:
        """Return the lines that printed text leaves on the screen."""
        console = Console()
        return console.feed(text) + console.rest

    # an attribute, because other rooms know this class alone
    read_progress = staticmethod(read_progress)


class _Line(msgspec.Struct):
    """The open line."""

    text: str = ""  # since the line began or since the last carriage return
    before: str = ""  # the text that a bare carriage return still shows
    is_redrawn: bool = False  # whether a carriage return has come
    received: int = 0  # characters of `text` that the caller has received
    first_received: str = ""  # what the caller had received before the first carriage return
    length_before: int = 0  # characters of `text` at the last call of `Console.open`

    @property
    def shown(self) -> str:
        """What the line shows: after a bare carriage return, still the text before it."""
        return self.text or self.before
