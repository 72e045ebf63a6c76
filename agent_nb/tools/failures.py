"""Convert what a tool raised to an Outcome: a message for the model, a traceback for people.

An error that tells the model what to do (`ToolError`) has no traceback. Others have a short one,
which begins in the tool's code and does not name the user's home folder.
"""

from __future__ import annotations

import os
import re
import traceback
from pathlib import Path

from ..errors import Cancelled, ToolError
from ..wire import replace_surrogates
from .base import Outcome
from .values import clip_text, message_of, short_repr

# the file name that ipykernel invents for a cell
_CELL = re.compile(r'"[^"\n]*ipykernel_\d+[/\\]\d+\.py"')
_LONGEST_TRACE = 8_000  # characters
_MOST_FRAMES = 8  # the last frames of a traceback, which are shown
# files that call tools, so that a traceback begins after their frames; built-in tools are shown
_CALLERS = "execution threads call_displays decorator runner running_call python"
_CALLER_FILES = {str(Path(__file__).with_name(f"{name}.py")) for name in _CALLERS.split()}


def convert_error(error: BaseException) -> Outcome:
    """Convert what a call raised to its outcome: a message, and a short traceback for people."""
    if isinstance(error, KeyboardInterrupt | Cancelled) or type(error).__name__ == "CancelledError":
        # without a detail or text, what stopped the run is unknown
        why = message_of(error) if str(error) else ""
        why = error.detail if isinstance(error, Cancelled) else why
        return Outcome("cancelled", f"Stopped: {why}." if why else Outcome.STOPPED)
    if isinstance(error, SystemExit):
        why = f"The tool tried to exit Python (SystemExit: {short_repr(error.code, 200)})."
        return Outcome("error", why)
    shown = None if isinstance(error, ToolError) else {"text/plain": format_trace(error)}
    return Outcome("error", message_of(error), shown)


def format_trace(error: BaseException) -> str:
    """Return the traceback of an error as text: the last `_MOST_FRAMES` frames from the tool on.

    The path of the home folder becomes `~`, the file of a cell `<notebook cell>`.
    """
    tb = error.__traceback__
    while (
        tb is not None
        and tb.tb_next is not None
        and tb.tb_frame.f_code.co_filename in _CALLER_FILES
    ):
        tb = tb.tb_next
    try:
        report = traceback.TracebackException(
            type(error), error, tb, limit=-_MOST_FRAMES, compact=True
        )
        text = replace_surrogates("".join(report.format()))
    except Exception:  # the text of the error itself raises
        text = message_of(error)
    text = text.replace(os.path.expanduser("~") + os.sep, f"~{os.sep}")
    return clip_text(_CELL.sub('"<notebook cell>"', text), _LONGEST_TRACE).rstrip()
