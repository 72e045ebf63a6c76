"""Convert what a tool returned or raised to an Outcome: JSON or text, and a mime bundle.

Why: tools return anything, the log keeps JSON, and a model reads a few thousand words; all should
be the same on every run.

Rules
- No exception of a value, its repr or its rendering escapes.
- The model's text is bounded and marks omissions; a number or object that fits stays JSON.
- A display comes from foreign code and must be sanitised before it is shown.
"""

from __future__ import annotations

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
from ..wire.surrogates import encodable
from . import display, pictures
from .base import Outcome, Pictured, Update, update
from .chart_words import chart_words
from .values import LIMIT, clip, message_of, plain, short_repr

NOTHING = "(no value)"
# the file name that ipykernel invents for a cell
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
    """Return any value that a tool reported or yielded as a clean Update."""
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
        picture=_announced(made.picture),
    )


def _announced(picture: Any) -> tuple[int, dict[str, Any] | None] | None:
    """Return a picture of an update, None if it is not one."""
    try:
        return msgspec.convert(picture, tuple[int, dict[str, Any] | None])
    except msgspec.ValidationError:
        return None


def success(
    value: Any,
    limit: int = LIMIT,
    render: Callable[[Any], dict[str, Any]] | None = None,
    figures: pictures.Figures | None = None,
) -> Outcome:
    """Return the outcome of a call that returned `value`. Never raises.

    `figures`: the pictures that the call has shown; those of the value are added.
    """
    if isinstance(value, Outcome):
        shown = display.bundle(value.display) or None
        return msgspec.structs.replace(value, content=_bounded(value.content, limit), display=shown)
    if isinstance(value, Pictured):
        return _pictured(value, limit, render)
    figures = pictures.Figures() if figures is None else figures
    content, bundle = _described(value, limit, figures)
    if render is not None:
        bundle = _rendered(render, value, content)
    return Outcome("ok", content, bundle, attachments=figures.all)


def _pictured(
    value: Pictured, limit: int, render: Callable[[Any], dict[str, Any]] | None
) -> Outcome:
    made = success(value.content, limit, render)
    try:
        found, missing = pictures.pictures(value.pictures)
    except Exception:  # of a foreign iterable
        found, missing = (), 1
    text = made.content if isinstance(made.content, str) else dumps(made.content)
    content = "\n".join([text, *[pictures.NO_PICTURE] * missing]) if missing else made.content
    return msgspec.structs.replace(made, content=content, attachments=(*found, *made.attachments))


def _rendered(render: Callable[[Any], dict[str, Any]], value: Any, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else dumps(content)
    try:
        return {"text/plain": text, **display.bundle(render(value))}
    except Exception as error:
        # rendering is optional: its fault must not cost the result
        return {"text/plain": f"{text}\n(the tool's render failed: {message_of(error)})"}


def _described(
    value: Any, limit: int, figures: pictures.Figures
) -> tuple[Any, dict[str, Any] | None]:
    """Return the text or JSON and the mime bundle of a value; its pictures go to `figures`."""
    if value is None:
        return NOTHING, None
    if pictures.is_bundle(value) and (found := pictures.of_bundle(value)) is not None:
        said = value.get("text/plain")
        lines = [figures.add(found), *([said] if isinstance(said, str) and said else [])]
        return clip(encodable("\n".join(lines)), limit), None
    value = pictures.taken_out(value, figures)
    rich = display.rich(value)
    if rich and (found := pictures.of_bundle(rich)) is not None:
        return figures.add(found), None
    if rich is not None or display.tabular(value):
        words = chart_words(value)
        text = "\n".join(filter(None, [clip(encodable(_compact(value)), limit), words]))
        return text, {"text/plain": text, **(rich or {})}
    words, made = chart_words(value), _bounded(value, limit)
    return f"{made}\n{words}" if words else made, None


def _compact(value: Any) -> str:
    try:
        return display.text(value) or short_repr(value)
    except Exception:  # attributes of a foreign object
        return short_repr(value)


def _bounded(value: Any, limit: int) -> Any:
    """Return `value` as text or JSON of at most `limit` characters."""
    made = plain(value, limit)
    if isinstance(made, str):
        return clip(made, limit)
    text = dumps(made)
    return made if len(text) <= limit else clip(text, limit)


def failure(error: BaseException) -> Outcome:
    """Return the outcome of a call that raised: a message, and a short traceback for people."""
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
    """Return the last frames of the tool's own code, without paths of the home folder and cells."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None and tb.tb_frame.f_code.co_filename in _OURS:
        tb = tb.tb_next
    try:
        report = traceback.TracebackException(type(error), error, tb, limit=-_FRAMES, compact=True)
        text = encodable("".join(report.format()))
    except Exception:  # the text of the error itself raises
        text = message_of(error)
    text = _CELL.sub('"<notebook cell>"', text)
    return clip(
        text.replace(os.path.expanduser("~") + os.sep, f"~{os.sep}"), _LONGEST_TRACE
    ).rstrip()
