"""From whatever a tool returned or raised to an Outcome: JSON or text for the model, a mime bundle
for people.

Why: tools return anything; the log keeps JSON, a model reads a few thousand words, and both should
be the same on every run.

Rules
- Nothing that a value, its repr or its rendering does while it is described escapes from here.
- The model's text is bounded and says where something was left out; a number or object that fits
  stays JSON.
- A display comes from foreign code: whoever shows it sanitises it.
"""

from __future__ import annotations

import base64
import math
import os
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Cancelled, ToolError
from ..wire.json_text import dumps
from ..wire.media import without_text
from ..wire.surrogates import encodable
from . import display
from .base import Outcome, Update, update
from .values import LIMIT, clip, message_of, plain, short_repr

NOTHING = "(no value)"
# the file that ipykernel makes up for a cell
_CELL = re.compile(r'"[^"\n]*ipykernel_\d+[/\\]\d+\.py"')
_LONGEST_TRACE = 8_000
_FRAMES = 8
_OURS = {
    str(Path(__file__).with_name(name))
    for name in (
        "execution.py",
        "threads.py",
        "decorator.py",
        "runner.py",
        "running_call.py",
        "python.py",
    )
}


def news(value: Any) -> Update:
    """Return what a tool reported or yielded as a clean Update; anything is accepted."""
    try:
        made = update(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        made = update(plain(value))
    data = None if made.data is None else plain(made.data)
    fraction = made.fraction if made.fraction is None or math.isfinite(made.fraction) else None
    return Update(
        text=encodable(made.text),
        fraction=fraction,
        data=data,
        message=encodable(made.message),
        printed=made.printed,
    )


def success(
    value: Any, limit: int = LIMIT, render: Callable[[Any], dict[str, Any]] | None = None
) -> Outcome:
    """Return the outcome of a call that returned `value`. Never raises."""
    if isinstance(value, Outcome):
        shown = display.bundle(value.display) or None
        return msgspec.structs.replace(value, content=_bounded(value.content, limit), display=shown)
    content, bundle = _described(value, limit)
    if render is not None:
        bundle = _rendered(render, value, content)
    return Outcome("ok", content, bundle)


def _rendered(render: Callable[[Any], dict[str, Any]], value: Any, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else dumps(content)
    try:
        return {"text/plain": text, **display.bundle(render(value))}
    except Exception as error:
        # the tool's own rendering is decoration: its fault must not cost the result
        return {"text/plain": f"{text}\n(the tool's render failed: {message_of(error)})"}


def _described(value: Any, limit: int) -> tuple[Any, dict[str, Any] | None]:
    if value is None:
        return NOTHING, None
    image = display.image_type(value)
    if image:
        text = f"({image}, {len(value):,} bytes)"
        return text, {"text/plain": text, image: base64.b64encode(without_text(value)).decode()}
    rich = display.rich(value)
    if rich is not None or display.tabular(value):
        text = clip(encodable(_compact(value)), limit)
        return text, {"text/plain": text, **(rich or {})}
    return _bounded(value, limit), None


def _compact(value: Any) -> str:
    try:
        return display.text(value) or short_repr(value)
    except Exception:  # attributes of a foreign object
        return short_repr(value)


def _bounded(value: Any, limit: int) -> Any:
    """Return `value` as text or JSON value that is at most `limit` characters long."""
    made = plain(value, limit)
    if isinstance(made, str):
        return clip(made, limit)
    text = dumps(made)
    return made if len(text) <= limit else clip(text, limit)


def failure(error: BaseException) -> Outcome:
    """Return the outcome of a call that raised: a concise message for the model, a short traceback
    for people.
    """
    if isinstance(error, KeyboardInterrupt | Cancelled) or type(error).__name__ == "CancelledError":
        return Outcome(
            "cancelled",
            f"Stopped: {message_of(error)}." if str(error) else "Stopped before it was done.",
        )
    if isinstance(error, SystemExit):
        return Outcome(
            "error", f"The tool tried to exit Python (SystemExit: {short_repr(error.code, 200)})."
        )
    if isinstance(error, ToolError):
        return Outcome("error", message_of(error))
    return Outcome("error", message_of(error), {"text/plain": trace(error)})


def trace(error: BaseException) -> str:
    """Return the last frames of the traceback from the tool's own code on, without paths of the
    home folder and of cells.
    """
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None and tb.tb_frame.f_code.co_filename in _OURS:
        tb = tb.tb_next
    try:
        told = traceback.TracebackException(type(error), error, tb, limit=-_FRAMES, compact=True)
        text = encodable("".join(told.format()))
    except Exception:  # an error whose own text cannot be made
        text = message_of(error)
    text = _CELL.sub('"<notebook cell>"', text)
    return clip(
        text.replace(os.path.expanduser("~") + os.sep, f"~{os.sep}"), _LONGEST_TRACE
    ).rstrip()
