"""Read the progress bars that tqdm and others print.

Why: a bar is shown as a bar, and the rest of its line as a message beside it.
"""

from __future__ import annotations

import re

from .hidden_characters import strip_ansi

LONGEST_MESSAGE = 200  # characters of the text beside a bar
_PERCENT = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d+)?) ?%")
# tqdm: [00:02<00:03, 1.9it/s, loss=0.3]
METER = re.compile(r"\[\d+:\d\d(?::\d\d)?(?:<[^,\]]*)?(?:, ([^\]]*))?\]")
# the bar itself, in the styles of tqdm and others
_GLYPHS = re.compile(
    r"\|[█▏▎▍▌▋▊▉#\d ]*\||\[[=#>. -]{3,}\]|[^\w\s[\]()<>/,.:;%|-]{3,}|[=#.-]{4,}>?"
)


def is_bar(line: str) -> bool:
    """Return whether a redrawn line is a tqdm bar."""
    return bool(METER.search(line))


def read_progress(line: str) -> tuple[float | None, str]:
    """Return the progress of a bar (0 to 1, None if unknown) and the other text of its line."""
    line = strip_ansi(line)
    meter = METER.search(line)
    figures = (meter[1] or "").split(", ") if meter else []
    rates = ", ".join(figure.strip() for figure in figures if not figure.startswith("?"))
    line = METER.sub("", line)
    percent = _PERCENT.search(line)
    parts = [line[: percent.start()], line[percent.end() :]] if percent else [line]
    texts = [" ".join(_GLYPHS.sub(" ", part).split()).strip(" :") for part in parts]
    message = " · ".join(text for text in (*texts, rates) if text)[:LONGEST_MESSAGE]
    return (min(1.0, float(percent[1]) / 100) if percent else None), message
