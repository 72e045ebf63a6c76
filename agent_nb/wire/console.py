"""Printed text as a screen leaves it: lines that stay, and the line that is drawn over with
carriage returns, as progress bars are.

Why: tqdm and its like draw one line a thousand times. Neither a log nor a model should read it a
thousand times; what counts is how far it is.

Rules
- A line that was drawn over leaves what stood there last; a bar of tqdm leaves nothing, and what is
  printed behind it is a line.
- Of bars below one another (a loop in a loop) the topmost that is not full counts.
- What stays does not depend on how the text was cut into pieces.
- No I/O and no clock.
"""

from __future__ import annotations

import re

LONGEST = 4_000  # characters of an open line that are held back
MESSAGE = 200  # characters of what stands beside a bar
_PIECES = re.compile(r"([\n\r])")
_UP = re.compile(r"(?:\x1b\[A)+")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PERCENT = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?) ?%")
# tqdm: [00:02<00:03, 1.9it/s, loss=0.3]
_METER = re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^,\]]*)?(?:, ([^\]]*))?\]")
_BEHIND = re.compile(_METER.pattern + r" *(?=[^ \x1b])")
# the bar itself
_GLYPHS = re.compile(
    r"\|[█▏▎▍▌▋▊▉#\d ]*\||\[[=#>. -]{3,}\]|[^\w\s[\]()<>/,.:;%|-]{3,}|[=#.-]{4,}>?"
)


class Console:
    """Text in, the text of lines that stay out; `status` is what is being drawn over."""

    def __init__(self) -> None:
        self._bars: list[str] = []  # that stand above the open line
        self._last = ""  # the last line that was drawn over and said how far it was
        self._begin()

    def _begin(self) -> None:
        self._line = ""  # what was written since the line began, or since the last carriage return
        self._before = ""  # what stood on it before that
        self._drawn = False
        self._given = ""  # what of it was given out before it was drawn over
        self._taken = 0  # characters of it that were given out
        self._stood = 0  # characters of it at the last `open`

    def feed(self, text: str) -> str:
        """Return the lines that ended."""
        if "\r" in text or self._drawn or self._bars:
            return "".join(map(self._piece, _PIECES.split(text)))
        end = text.rfind("\n") + 1
        lines = text[:end]
        if end and self._line:
            lines = self._line[self._taken :] + lines
            self._begin()
        return lines + self._put(text[end:]) if end < len(text) else lines

    def open(self, *, whole: bool = True) -> str:
        """Return what is new of the line that has not ended, unless it is drawn over; not `whole`:
        what stood there at the last call.
        """
        end = len(self._line) if whole else self._stood
        self._stood = len(self._line)
        if self._drawn or end <= self._taken:
            return ""
        new, self._taken = self._line[self._taken : end], end
        return new

    @property
    def rest(self) -> str:
        """What the open line leaves if nothing more comes."""
        return self._leaves().removesuffix("\n")

    def close(self) -> str:
        """Return what the open line leaves, and end it."""
        return self._end().removesuffix("\n")

    @property
    def status(self) -> str:
        """The line that is being drawn over, else the last bar, "" where there was none."""
        unfinished = next((bar for bar in self._bars if report(bar)[0] not in (None, 1.0)), "")
        return unfinished or (self._shown.strip() if self._drawn else "") or self._last

    @property
    def _shown(self) -> str:
        return self._line or self._before

    def _piece(self, piece: str) -> str:
        if piece == "\n":
            return self._end()
        if piece == "\r":
            return self._return()
        return self._put(piece)

    def _put(self, text: str) -> str:
        """Write on the open line; return what is too long to be held back."""
        self._line += text
        if not self._drawn:
            return self.open() if len(self._line) - self._taken > LONGEST else ""
        self._line = self._line[-LONGEST:]
        if behind := _BEHIND.search(self._line):
            self._last, text = self._line[: behind.end()].strip(), self._line[behind.end() :]
            self._begin()
            return self._put(text)
        if up := _UP.search(self._line):
            text = self._line[up.end() :]
            self._rise(up[0].count("A"))
            return self._put(text)
        return ""

    def _return(self) -> str:
        """Go to the beginning of the line: what comes now is drawn over it."""
        if self._drawn and self._line.strip():
            # drawn a second time, and the cursor did not go up: nothing above moves any more
            self._bars.clear()
        if not self._drawn:
            self._given = self._line[: self._taken]
        self._drawn, self._before, self._line = True, self._shown, ""
        return ""

    def _rise(self, lines: int) -> None:
        """Go back up to a bar; the one below was drawn beside it."""
        for _ in range(lines):
            self._line = self._bars.pop() if self._bars else ""
        self._before = ""

    def _end(self) -> str:
        left, line = self._leaves(), self._shown.strip()
        if self._is_over_bars:
            self._bars.append(line)
        else:
            self._bars.clear()
        if self._drawn and report(line)[0] is not None:
            self._last = line
        self._begin()
        return left

    @property
    def _is_over_bars(self) -> bool:
        """True for a bar, and for an empty line below one."""
        return (self._drawn and is_bar(self._shown)) or (bool(self._bars) and not self._shown)

    def _leaves(self) -> str:
        """Return the line as it stays, as far as it was not given out."""
        line = self._shown
        if self._is_over_bars:
            return "\n" if self._given else ""
        if not self._drawn:
            return f"{line[self._taken :]}\n"
        if self._given:
            return "\n" if line == self._given else f"\n{line.rstrip()}\n"
        return f"{line.rstrip()}\n" if line.strip() or not line else ""


def settled(text: str) -> str:
    """Return what a printed text leaves on the screen."""
    console = Console()
    return console.feed(text) + console.rest


def is_bar(line: str) -> bool:
    """Return whether a line that is drawn over is a bar of tqdm."""
    return bool(_METER.search(line))


def report(line: str) -> tuple[float | None, str]:
    """Return how far the bar of a line is (0 to 1, None: it does not say), and what else the line
    says.
    """
    line = _ANSI.sub("", line)
    meter = _METER.search(line)
    rates = (
        [part.strip() for part in (meter[1] or "").split(", ") if not part.startswith("?")]
        if meter
        else []
    )
    line = _METER.sub("", line)
    percent = _PERCENT.search(line)
    parts = [line[: percent.start()], line[percent.end() :]] if percent else [line]
    said = [" ".join(_GLYPHS.sub(" ", part).split()).strip(" :") for part in parts]
    message = " · ".join(part for part in (*said, ", ".join(rates)) if part)
    return (min(1.0, float(percent[1]) / 100) if percent else None), message[:MESSAGE]
