"""Convert what a tool returned to an Outcome: JSON or text, and a MIME bundle.

Why: tools return anything, the log keeps JSON, and a model reads a few thousand words. A replay
compares results, so one value must give the same text on every run.

Rule: no exception of a value, its repr or its rendering escapes. A display comes from foreign code
and must be sanitised before it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ..wire import Attachment, dumps, replace_surrogates
from . import display, pictures
from .base import Outcome, Pictured
from .chart_notes import remove_chart_notes, write_chart_note
from .charts import chart_bundle
from .figures import IN_CELL, Figures
from .values import LIMIT, clip_text, convert_to_json, message_of, short_repr

# the text or JSON that the model reads, and the MIME bundle that people see
_Converted = tuple[Any, dict[str, Any] | None]


def convert_result(
    value: Any,
    limit: int = LIMIT,
    render: Callable[[Any], dict[str, Any]] | None = None,
    figures: Figures | None = None,
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
    figures = Figures() if figures is None else figures
    if chart := chart_bundle(value):
        content, bundle = _convert_chart(value, limit, chart, figures)
    else:
        content, bundle = _convert_value(value, limit, figures)
    content = _join_lines(content, figures.draw_charts())
    if render is not None:
        bundle = _render(render, value, content)
    return Outcome("ok", content, bundle, attachments=figures.all)


def convert_formatted(value: Any, bundle: Mapping[str, Any], figures: Figures) -> Outcome:
    """Return the outcome of a cell from its last value, which the shell has formatted as `bundle`.

    All `figures` become attachments of the outcome, unless `value` is an Outcome.
    """
    if isinstance(value, Outcome | Pictured):
        return convert_result(value, figures=figures)
    if Attachment.find_chart(bundle)[0] or Attachment.WIDGET in bundle:
        content, shown = _convert_chart(value, LIMIT, bundle, figures)
    elif (picture := figures.find_picture(bundle)) is not None:
        content, shown = figures.add(picture), None
    else:
        content, shown = _convert_value(value, LIMIT, figures)
        if figures.has_chart:  # a chart that has displayed itself is kept already
            content, shown = remove_chart_notes(content), None
        clean = display.clean_bundle(bundle)
        shown = clean if clean.keys() - {"text/plain"} else shown
    content = _join_lines(content, figures.draw_charts())
    return Outcome("ok", content, shown, attachments=figures.all)


def _convert_chart(
    value: Any, limit: int, bundle: Mapping[str, Any], figures: Figures
) -> _Converted:
    """Convert a chart or widget: its `bundle` goes to `figures`, its caption into the text."""
    content, _ = _convert_value(value, limit, figures)
    _, text = figures.add_display(bundle, below=False)
    # its plain text, which may stand above the caption, is in the result already
    caption = text.removeprefix(f"{bundle.get('text/plain', IN_CELL)}\n")
    return _join_lines(remove_chart_notes(content), caption), None


def _convert_pictured(
    value: Pictured,
    limit: int,
    render: Callable[[Any], dict[str, Any]] | None,
    figures: Figures | None,
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


def _convert_value(value: Any, limit: int, figures: Figures) -> _Converted:
    """Convert a value and move its pictures to `figures`; a value that raises becomes its repr."""
    if value is None:
        return Outcome.NOTHING, None
    try:
        if pictures.is_bundle(value) and (picture := pictures.picture_of_bundle(value)):
            plain = value.get("text/plain")
            lines = [figures.add(picture), *([plain] if isinstance(plain, str) and plain else [])]
            return clip_text(replace_surrogates("\n".join(lines)), limit), None
        value = pictures.replace_pictures(value, figures.add)
        rich = display.read_rich_bundle(value)
        if rich and (picture := pictures.picture_of_bundle(rich)):
            return figures.add(picture), None
        chart_note = write_chart_note(value)
        if rich is None and not display.is_tabular(value):
            return _join_lines(_bound_content(value, limit), chart_note), None
    except Exception:  # of a metaclass, or of a released memoryview
        return short_repr(value, limit), None
    text = clip_text(replace_surrogates(_write_compact(value)), limit)
    text = _join_lines(text, chart_note)
    return text, {"text/plain": text, **(rich or {})}


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


def _join_lines(content: Any, more: str) -> Any:
    """Return a content with more lines; unchanged if there are none."""
    if not more.strip():
        return content
    text = content if isinstance(content, str) else dumps(content)
    return f"{text}\n{more.rstrip()}"
