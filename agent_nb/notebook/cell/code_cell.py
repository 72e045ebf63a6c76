"""Code of a model, run as a cell of the user's namespace, and its traceback for the model."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...tools import CallDisplays, Outcome
from .capture import capture_job
from .open_figures import add_open_figures, find_open_figures

LONGEST_TRACEBACK = 6000  # characters of a traceback that a model reads


async def run_code(
    shell: Any,
    code: str,
    on_text: Callable[[str], None],
    after: Callable[[], None],
    displays: CallDisplays,
) -> Outcome:
    """Run code as a cell with its output captured (`capture_job`). Raises what the code raises."""
    with capture_job(shell, on_text, after, displays) as capture:
        in_terminal = getattr(shell, "kernel", None) is None
        already_open = find_open_figures() if in_terminal else []
        transformed = shell.transform_cell(code)
        result = None
        try:
            result = await shell.run_cell_async(
                code, store_history=False, transformed_cell=transformed
            )
        finally:
            # run_cell_async leaves these two events to its caller; the first one shows figures.
            shell.events.trigger("post_execute")
            shell.events.trigger("post_run_cell", result)
            if in_terminal:
                add_open_figures(displays, already_open)
        fault = result.error_before_exec or result.error_in_exec
        if fault is not None:
            raise fault
        return capture.outcome(transformed)


def format_traceback(fault: BaseException, namespace: Mapping[str, Any]) -> str:
    """Return a short traceback from the first frame of the user's `namespace` on.

    The names of cell files become `<cell>`, the home folder `~`; there are no colours.
    """
    start = fault.__traceback__
    files = {fault.filename or ""} if isinstance(fault, SyntaxError) else set[str]()
    while start is not None and start.tb_frame.f_globals is not namespace:
        start = start.tb_next
    frame = start
    while frame is not None:
        if frame.tb_frame.f_globals is namespace:
            files.add(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next
    text = "".join(traceback.format_exception(type(fault), fault, start, chain=False))
    for name in files - {""}:
        text = text.replace(name, "<cell>")
    home = str(Path.home())
    return (text.replace(home, "~") if len(home) > 1 else text)[-LONGEST_TRACEBACK:].rstrip()
