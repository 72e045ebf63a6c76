"""The open figures of Matplotlib where no display shows them: in a terminal, with any backend.

Why: in a kernel the inline backend displays a figure at the end of a cell and closes it. In a
terminal a figure stays open, unseen, and the next plot would be drawn into it. So the figures that
a call opens become part of its result, and those without a window are closed after it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ...tools import CallDisplays

# backends of Matplotlib that open no window, in lower case
WITHOUT_WINDOWS = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")


def find_open_figures() -> list[Any]:
    """Return the figures that pyplot has open, [] without pyplot."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    figures: list[Any] = []
    with suppress(Exception):  # foreign code
        if pyplot is not None and (numbers := list(pyplot.get_fignums())):
            # `pyplot.figure` returns a figure by number, and makes it the current one
            current = pyplot.gcf().number
            figures = [pyplot.figure(number) for number in numbers]
            pyplot.figure(current)
    return figures


def add_open_figures(displays: CallDisplays, known: Sequence[Any]) -> None:
    """Add the open figures to the displays of a call, without those `known` before it."""
    for figure in find_open_figures():
        if any(figure is other for other in known):
            continue
        displays.add_figure(figure)
        with suppress(Exception):  # foreign code
            pyplot = sys.modules["matplotlib.pyplot"]
            if str(pyplot.get_backend()).lower() in WITHOUT_WINDOWS:
                pyplot.close(figure)
