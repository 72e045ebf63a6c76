"""Convert what a tool returned or raised to an Outcome: JSON or text, and a mime bundle.

Why: tools return anything, the log keeps JSON, and a model reads a few thousand words. A replay
compares results, so one value must give the same text on every run.

Rules
- No exception of a value, its repr or its rendering escapes.
- The model's text is bounded and marks omissions; captions and notes of pictures come on top. A
  number or object that fits stays JSON.
- A display comes from foreign code and must be sanitised before it is shown.
"""

from __future__ import annotations

import math
import os
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import Cancelled, ToolError
from ..wire import Shown, dumps, replace_surrogates
from . import display, pictures
from .base import Outcome, Pictured, Update, update
from .chart_notes import remove_chart_notes, write_chart_note
from .charts import chart_bundle
from .values import LIMIT, clip_text, convert_to_json, message_of, short_repr

# the file name that ipykernel invents for a cell
_CELL = re.compile(r'"[^"\n]*ipykernel_\d+[/\\]\d+\.py"')
_LONGEST_TRACE = 8_000  # characters
_MOST_FRAMES = 8  # the last frames of a traceback, which are shown
# files whose frames are left out of a traceback where they stand before the tool's
_MODULES = "execution threads call_displays decorator runner running_call python"
_OURS = {str(Path(__file__).with_name(f"{name}.py")) for name in _MODULES.split()}


def convert_update(value: Any) -> Update:
    """Convert a value that a tool reported or yielded to a clean Update."""
    try:
        report = update(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        report = update(convert_to_json(value))
    data = None if report.data is None else convert_to_json(report.data)
    has_fraction = report.fraction is not None and math.isfinite(report.fraction)
    return Update(
        text=replace_surrogates(report.text),
        fraction=report.fraction if has_fraction else None,
        data=data,
        message=replace_surrogates(report.message),
        printed=report.printed,
        picture=_check_picture(report.picture),
    )


def _check_picture(picture: Any) -> tuple[int, dict[str, Any] | None] | None:
    """Return the picture of an update, None if it has another form."""
    try:
        return msgspec.convert(picture, tuple[int, dict[str, Any] | None])
    except msgspec.ValidationError:
        return None


def convert_result(
    value: Any,
    limit: int = LIMIT,
    render: Callable[[Any], dict[str, Any]] | None = None,
    figures: pictures.Figures | None = None,
) -> Outcome:
    """Convert what a call returned to its outcome. Never raises.

    `limit`: characters that the model reads. `render`: makes the bundle that people see (None: the
    value's own). `figures`: the pictures that the call has shown; those of the value are added.
    `render` and `figures` are ignored if the value is an Outcome.
    """
    if isinstance(value, Outcome):
        shown = display.clean_bundle(value.display) or None
        content = _bound_content(value.content, limit)
        return msgspec.structs.replace(value, content=content, display=shown)
    if isinstance(value, Pictured):
        return _convert_pictured(value, limit, render, figures)
    figures = pictures.Figures() if figures is None else figures
    content, bundle = _convert_value(value, limit, figures)
    if chart := chart_bundle(value):
        content = _join_lines(remove_chart_notes(content), _keep_chart(figures, chart))
        bundle = None
    content = _join_lines(content, figures.draw_charts())
    if render is not None:
        bundle = _render(render, value, content)
    return Outcome("ok", content, bundle, attachments=figures.all)


def _keep_chart(figures: pictures.Figures, bundle: Mapping[str, Any]) -> str:
    """Add a chart or widget that a call returned to `figures`; return its caption."""
    _, text = figures.add_display(bundle, below=False)
    # its plain text, which may stand above the caption, is in the result already
    return text.removeprefix(f"{bundle.get('text/plain', pictures.IN_CELL)}\n")


def _join_lines(content: Any, more: str) -> Any:
    """Return a content with more lines; unchanged if there are none."""
    if not more.strip():
        return content
    text = content if isinstance(content, str) else dumps(content)
    return f"{text}\n{more.rstrip()}"


def convert_formatted(value: Any, bundle: Mapping[str, Any], figures: pictures.Figures) -> Outcome:
    """Return the outcome of a cell from its last value, which the shell has formatted as `bundle`.

    All `figures` become attachments of the outcome, unless `value` is an Outcome.
    """
    if isinstance(value, Outcome | Pictured):
        return convert_result(value, figures=figures)
    if Shown.find_chart(bundle)[0] or Shown.WIDGET in bundle:
        content = remove_chart_notes(_convert_value(value, LIMIT, figures)[0])
        outcome = Outcome("ok", _join_lines(content, _keep_chart(figures, bundle)))
    elif (picture := figures.find_picture(bundle)) is not None:
        outcome = Outcome("ok", figures.add(picture))
    else:
        content, rich = _convert_value(value, LIMIT, figures)
        if figures.has_chart:  # a chart that has displayed itself is kept already
            content, rich = remove_chart_notes(content), None
        shown = display.clean_bundle(bundle)
        outcome = Outcome("ok", content, shown if shown.keys() - {"text/plain"} else rich)
    content = _join_lines(outcome.content, figures.draw_charts())
    return msgspec.structs.replace(outcome, content=content, attachments=figures.all)


def _convert_pictured(
    value: Pictured,
    limit: int,
    render: Callable[[Any], dict[str, Any]] | None,
    figures: pictures.Figures | None,
) -> Outcome:
    """Convert a Pictured: its content as any value, its pictures to attachments."""
    outcome = convert_result(value.content, limit, render, figures)
    try:
        attachments, missing = pictures.collect_pictures(value.pictures)
    except Exception:  # of a foreign iterable
        attachments, missing = (), 1
    content = _join_lines(outcome.content, "\n".join([pictures.NO_PICTURE] * missing))
    return msgspec.structs.replace(
        outcome, content=content, attachments=(*attachments, *outcome.attachments)
    )


def _render(render: Callable[[Any], dict[str, Any]], value: Any, content: Any) -> dict[str, Any]:
    """Return the MIME bundle that the tool's `render` makes, always with the result's text."""
    text = content if isinstance(content, str) else dumps(content)
    try:
        return {"text/plain": text, **display.clean_bundle(render(value))}
    except Exception as error:
        # rendering is optional: its fault must not cost the result
        return {"text/plain": f"{text}\n(the tool's render failed: {message_of(error)})"}


def _convert_value(
    value: Any, limit: int, figures: pictures.Figures
) -> tuple[Any, dict[str, Any] | None]:
    """Return the text or JSON and the mime bundle of a value; its pictures go to `figures`."""
    if value is None:
        return Outcome.NOTHING, None
    if pictures.is_bundle(value) and (picture := pictures.picture_of_bundle(value)) is not None:
        plain = value.get("text/plain")
        lines = [figures.add(picture), *([plain] if isinstance(plain, str) and plain else [])]
        return clip_text(replace_surrogates("\n".join(lines)), limit), None
    value = pictures.replace_pictures(value, figures)
    rich = display.read_rich_bundle(value)
    if rich and (picture := pictures.picture_of_bundle(rich)) is not None:
        return figures.add(picture), None
    chart_note = write_chart_note(value)
    if rich is not None or display.is_tabular(value):
        compact = clip_text(replace_surrogates(_write_compact(value)), limit)
        text = _join_lines(compact, chart_note)
        return text, {"text/plain": text, **(rich or {})}
    return _join_lines(_bound_content(value, limit), chart_note), None


def _write_compact(value: Any) -> str:
    try:
        return display.write_compact_text(value) or short_repr(value)
    except Exception:  # attributes of a foreign object
        return short_repr(value)


def _bound_content(value: Any, limit: int) -> Any:
    """Return `value` as text or JSON of at most `limit` characters."""
    content = convert_to_json(value, limit)
    if isinstance(content, str):
        return clip_text(content, limit)
    text = dumps(content)
    return content if len(text) <= limit else clip_text(text, limit)


def convert_error(error: BaseException) -> Outcome:
    """Convert what a call raised to its outcome: a message, and a short traceback for people."""
    if isinstance(error, KeyboardInterrupt | Cancelled) or type(error).__name__ == "CancelledError":
        # a `Cancelled` without a detail does not know what stopped the run
        why = error.detail if isinstance(error, Cancelled) else str(error) and message_of(error)
        return Outcome("cancelled", f"Stopped: {why}." if why else Outcome.STOPPED)
    if isinstance(error, SystemExit):
        message = f"The tool tried to exit Python (SystemExit: {short_repr(error.code, 200)})."
        return Outcome("error", message)
    if isinstance(error, ToolError):
        return Outcome("error", message_of(error))
    return Outcome("error", message_of(error), {"text/plain": format_trace(error)})


def format_trace(error: BaseException) -> str:
    """Return the traceback of an error as text: its last `_MOST_FRAMES` from the tool on.

    The path of the home folder becomes `~`, the file of a cell `<notebook cell>`.
    """
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None and tb.tb_frame.f_code.co_filename in _OURS:
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
