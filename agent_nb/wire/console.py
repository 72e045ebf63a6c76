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

LONGEST = 4_000  # characters of an open line that are held back, or kept once it is redrawn
MESSAGE = 200  # characters of the text beside a bar
_PIECES = re.compile(r"([\n\r])")
_UP = re.compile(r"(?:\x1b\[A)+")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PERCENT = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?) ?%")
# tqdm: [00:02<00:03, 1.9it/s, loss=0.3]
_METER = re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^,\]]*)?(?:, ([^\]]*))?\]")
# text printed behind a complete bar, which begins a line of its own
_BEHIND = re.compile(_METER.pattern + r" *(?=[^ \x1b])")
# the bar itself, in the styles of tqdm and others
_GLYPHS = re.compile(
    r"\|[█▏▎▍▌▋▊▉#\d ]*\||\[[=#>. -]{3,}\]|[^\w\s[\]()<>/,.:;%|-]{3,}|[=#.-]{4,}>?"
)


class Console:
    """Takes text and returns finished lines; `status` is the bar or line to show meanwhile."""

    def __init__(self) -> None:
        self._bars: list[str] = []  # bars above the open line, the topmost first
        self._last = ""  # the last redrawn line that showed progress
        self._begin_line()

    def _begin_line(self) -> None:
        self._line = ""  # text since the line began or since the last carriage return
        self._before = ""  # the text that a bare carriage return still shows
        self._redrawn = False  # whether a carriage return has come
        self._returned = ""  # what the caller had received before the first carriage return
        self._received = 0  # characters of `_line` that the caller has received
        self._length_before = 0  # characters of `_line` at the last call of `open`

    def feed(self, text: str) -> str:
        """Return the finished lines."""
        if "\r" in text or self._redrawn or self._bars:
            return "".join(map(self._feed_piece, _PIECES.split(text)))
        end = text.rfind("\n") + 1
        lines = text[:end]
        if end and self._line:
            lines = self._line[self._received :] + lines
            self._begin_line()
        return lines + self._write(text[end:]) if end < len(text) else lines

    def open(self, *, whole: bool = True) -> str:
        """Return text of the open line that the caller has not received; "" for a redrawn line.

        `whole` false: only what was there at the previous call, as the rest may still be redrawn.
        """
        end = len(self._line) if whole else self._length_before
        self._length_before = len(self._line)
        if self._redrawn or end <= self._received:
            return ""
        new, self._received = self._line[self._received : end], end
        return new

    @property
    def rest(self) -> str:
        """The text that the open line would leave if it ended now."""
        return self._final_text().removesuffix("\n")

    def close(self) -> str:
        """End the open line and return the text it leaves."""
        return self._end().removesuffix("\n")

    @property
    def status(self) -> str:
        """The topmost bar above that is not full, or the redrawn line, or the last bar, or ""."""
        unfinished = next(
            (bar for bar in self._bars if Console.read_progress(bar)[0] not in (None, 1.0)), ""
        )
        return unfinished or (self._shown.strip() if self._redrawn else "") or self._last

    @property
    def _shown(self) -> str:
        """What the open line shows: after a bare carriage return, still the text before it."""
        return self._line or self._before

    def _feed_piece(self, piece: str) -> str:
        """Process a line end, a carriage return, or text between them; return what is finished."""
        if piece == "\n":
            return self._end()
        if piece == "\r":
            return self._return()
        return self._write(piece)

    def _write(self, text: str) -> str:
        """Write on the open line; return text that is too long to hold back."""
        self._line += text
        if not self._redrawn:
            return self.open() if len(self._line) - self._received > LONGEST else ""
        self._line = self._line[-LONGEST:]
        if behind := _BEHIND.search(self._line):
            self._last, text = self._line[: behind.end()].strip(), self._line[behind.end() :]
            self._begin_line()
            return self._write(text)
        if up := _UP.search(self._line):
            text = self._line[up.end() :]
            self._move_up(up[0].count("A"))
            return self._write(text)
        return ""

    def _return(self) -> str:
        """Go to the start of the line: the next text redraws it."""
        if self._redrawn and self._line.strip():
            # redrawn without moving up: the bars above are finished
            self._bars.clear()
        if not self._redrawn:
            self._returned = self._line[: self._received]
        self._redrawn, self._before, self._line = True, self._shown, ""
        return ""

    def _move_up(self, lines: int) -> None:
        """Move up `lines` lines, to an earlier bar, which becomes the open line."""
        for _ in range(lines):
            self._line = self._bars.pop() if self._bars else ""
        self._before = ""

    def _end(self) -> str:
        """End the open line; return the text it leaves, and remember a bar."""
        text, line = self._final_text(), self._shown.strip()
        if self._is_over_bars:
            self._bars.append(line)
        else:
            self._bars.clear()
        if self._redrawn and Console.read_progress(line)[0] is not None:
            self._last = line
        self._begin_line()
        return text

    @property
    def _is_over_bars(self) -> bool:
        """Whether the line is a bar, or empty below one."""
        return (self._redrawn and is_bar(self._shown)) or (bool(self._bars) and not self._shown)

    def _final_text(self) -> str:
        """Return the text that the open line leaves and that the caller has not received."""
        line = self._shown
        if self._is_over_bars:
            return "\n" if self._returned else ""
        if not self._redrawn:
            return f"{line[self._received :]}\n"
        if self._returned:
            return "\n" if line == self._returned else f"\n{line.rstrip()}\n"
        return f"{line.rstrip()}\n" if line.strip() or not line else ""

    @staticmethod
    def render_screen(text: str) -> str:
        """Return the lines that printed text leaves on the screen."""
        console = Console()
        return console.feed(text) + console.rest

    @staticmethod
    def read_progress(line: str) -> tuple[float | None, str]:
        """Return the progress of a bar (0 to 1, None if unknown) and the other text of its line."""
        line = strip_ansi(line)
        meter = _METER.search(line)
        rates = (
            [part.strip() for part in (meter[1] or "").split(", ") if not part.startswith("?")]
            if meter
            else []
        )
        line = _METER.sub("", line)
        percent = _PERCENT.search(line)
        parts = [line[: percent.start()], line[percent.end() :]] if percent else [line]
        texts = [" ".join(_GLYPHS.sub(" ", part).split()).strip(" :") for part in parts]
        message = " · ".join(part for part in (*texts, ", ".join(rates)) if part)
        return (min(1.0, float(percent[1]) / 100) if percent else None), message[:MESSAGE]


def is_bar(line: str) -> bool:
    """Return whether a redrawn line is a tqdm bar."""
    return bool(_METER.search(line))


def strip_ansi(text: str) -> str:
    """Return `text` without terminal sequences, such as those for colours."""
    return _ANSI.sub("", text)


def escape_unprintable(text: str) -> str:
    """Return `text` with every unprintable character but line ends and tabs escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
