"""Reduces printed text to what a terminal shows in the end.

Progress bars redraw one line a thousand times with carriage returns; a log and a model should read
only its last state: `copied 1\\rcopied 2\\n` becomes `copied 2\\n`. A bar of tqdm leaves nothing;
text printed after it is a line of its own.

Rule: the lines do not depend on how the text is cut into pieces.
"""

from __future__ import annotations

import re

import msgspec

from .hidden_characters import strip_ansi

LONGEST_LINE = 4_000  # characters of an open line that are held back, or kept once it is redrawn
_LONGEST_MESSAGE = 200  # characters of the text beside a bar
_PERCENT = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?) ?%")
# tqdm: [00:02<00:03, 1.9it/s, loss=0.3]; bounded, or many beginnings would take quadratic time
_METER = re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^,\]]{0,40})?(?:, ([^\]]{0,400}))?\]")
# the bar itself, in the styles of tqdm and others
_GLYPHS = re.compile(
    r"\|[█▏▎▍▌▋▊▉#\d ]*\||\[[=#>. -]{3,}\]|[^\w\s[\]()<>/,.:;%|-]{3,}|[=#.-]{4,}>?"
)
_PIECES = re.compile(r"([\n\r])")
_UP = re.compile(r"(?:\x1b\[A)+")
# text printed behind a complete bar, which begins a line of its own
_BEHIND = re.compile(_METER.pattern + r" *(?=[^ \x1b])")


def is_bar(line: str) -> bool:
    """Return whether a redrawn line is a tqdm bar."""
    return bool(_METER.search(line))


def read_progress(line: str) -> tuple[float | None, str]:
    """Return the progress of a bar (0 to 1, None if unknown) and the other text of its line."""
    line = strip_ansi(line)
    meter = _METER.search(line)
    figures = (meter[1] or "").split(", ") if meter else []
    rates = ", ".join(figure.strip() for figure in figures if not figure.startswith("?"))
    line = _METER.sub("", line)
    percent = _PERCENT.search(line)
    parts = [line[: percent.start()], line[percent.end() :]] if percent else [line]
    texts = [" ".join(_GLYPHS.sub(" ", part).split()).strip(" :") for part in parts]
    message = " · ".join(text for text in (*texts, rates) if text)[:_LONGEST_MESSAGE]
    return (min(1.0, float(percent[1]) / 100) if percent else None), message


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
        # in parts, since a redrawn line forgets all but its end
        starts = range(0, len(piece), LONGEST_LINE)
        return "".join(self._write(piece[at : at + LONGEST_LINE]) for at in starts)

    def _write(self, text: str) -> str:
        """Write on the open line; return text that is too long to hold back."""
        line = self._line
        line.text += text
        if not line.is_redrawn:
            opened = self.open() if len(line.text) - line.received > LONGEST_LINE else ""
            line.drop_received()
            return opened
        while not (behind := _BEHIND.search(line.text)):
            up = _UP.search(line.text)
            if up is None:
                line.text = line.text[-LONGEST_LINE:]
                return ""
            rest = line.text[up.end() :]
            self._move_up(up[0].count("A"))
            line.text += rest
        self._last = line.text[: behind.end()].strip()
        self._line = _Line()
        return self._write(line.text[behind.end() :])

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
    """The open line: the caller has `text[:received]`, and `text[length_before:]` is new.

    Once it is redrawn, `text` is drawn over `before`, and the caller receives only what stays.
    """

    text: str = ""  # since the line began or since the last carriage return
    before: str = ""  # the text that a bare carriage return still shows
    is_redrawn: bool = False  # whether a carriage return has come
    received: int = 0
    first_received: str = ""  # what the caller had received before the first carriage return
    length_before: int = 0  # characters of `text` at the last call of `Console.open`

    def drop_received(self) -> None:
        """Drop the beginning of a long line that the caller has received: pieces are added to it.

        What stays is longer than any text that redraws the line, and so differs from it.
        """
        size = self.received - LONGEST_LINE - 1
        if size > 0:
            self.text, self.received = self.text[size:], self.received - size
            self.length_before = max(0, self.length_before - size)

    @property
    def shown(self) -> str:
        """What the line shows: after a bare carriage return, still the text before it."""
        return self.text or self.before
