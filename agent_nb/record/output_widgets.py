"""Removes the widgets of runs from saved outputs.

Why: a widget needs the kernel that made it, so a reader of the file would see an empty output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..wire import Attachment
from .ipynb import Cell, Output
from .outputs import RunNumbers


def remove_widget(cell: Cell, output: Output, going_on: Callable[[str], bool]) -> bool:
    """Remove our widget from an output; return whether anything changed."""
    data, numbers = output.get("data"), RunNumbers.of(output)
    if not isinstance(data, dict):
        return False
    # a part of a divided page: its static forms stay
    if RunNumbers.PART in numbers and Attachment.WIDGET in data:
        del data[Attachment.WIDGET]
        return True
    live = numbers.get(RunNumbers.LIVE)
    has_ended = live is not None and not going_on(str(live))
    # an output that is a widget and nothing else: a button, or the view of an ended run
    if (RunNumbers.BUTTON in numbers or has_ended) and data.keys() <= {Attachment.WIDGET}:
        _replace_output(cell, output)
        return True
    if live is None or not {Attachment.WIDGET, "text/html"} <= data.keys():
        return False
    # a static form with its live view: the view gets an output of its own, or goes
    view = {**output, "data": {Attachment.WIDGET: data.pop(Attachment.WIDGET)}}
    _replace_output(cell, output, output, *([] if has_ended else [view]))
    return True


def _replace_output(cell: Cell, output: Any, *others: Any) -> None:
    """Replace one output of a cell by any number of others."""
    index = next(i for i, other in enumerate(cell["outputs"]) if other is output)
    cell["outputs"] = [*cell["outputs"][:index], *others, *cell["outputs"][index + 1 :]]
