"""Notes on charts and styled tables that have no picture: why not, and what makes one.

Why: without a note, a model would take the text of the result for all of it.

Rule: a note or caption is a line of its own. A replay compares results without them
(`remove_chart_notes`): they depend on the installed packages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..host import find_library


class _Chart(msgspec.Struct, frozen=True):
    """A kind of chart.

    `type_modules`: a regular expression for the modules of its types; `mime_types`: one for those
    of its displays, "" for none. `library`: what must be installed for a picture, by the package
    `package`. `step`: what the user's code must do to get one, "" if `charts` draws it.
    """

    name: str
    type_modules: str
    mime_types: str
    library: str
    package: str
    step: str = ""


_CHARTS = (
    _Chart("a Plotly chart", r"plotly\.", r"application/vnd\.plotly\..*", "kaleido", "kaleido"),
    _Chart("an Altair chart", r"altair\.", r"application/vnd\.vega(?:lite)?\..*", "vl_convert", "vl-convert-python"),
    _Chart("a Bokeh chart", r"bokeh\.(?:models|plotting)\b", r"application/vnd\.bokehjs_.*", "selenium", "selenium", "the chart as the last line of the code"),
    _Chart("a styled table", r"pandas\.io\.formats\.style\b", "", "dataframe_image", "dataframe-image", "dataframe_image.export(…)"),
)  # fmt: skip
# the plain text of a styled table, whose display has no MIME type of its own
_STYLER = re.compile(r"<pandas\.io\.formats\.style\.Styler object at 0x[0-9a-f]+>")
_DRAWING_FAILED = " could not draw it]"  # the end of a note if the package is installed
# a whole line, with the line break before it: a note (`_write_note`), or a caption or refusal that
# `pictures` writes
_LINE = re.compile(
    r"\n?^\[(?:no picture of an? |figure \d+: an? \w+ chart\b|an? \w+ chart is not kept)[^\n]*\]$",
    re.MULTILINE,
)
# notes of a call that printed and returned nothing: without them `Outcome.NOTHING` is not written
_BELOW_NOTHING = re.compile(r"(?<=\n)\(no value\)\n(?:\[no picture of an? [^\n]*\]\n?)+\Z")


def write_chart_note(value: Any) -> str:
    """Return the note for a value that is a chart or styled table; "" for any other value."""
    modules = [c.__module__ for c in type(value).__mro__ if isinstance(c.__module__, str)]
    charts = (c for c in _CHARTS if any(re.match(c.type_modules, module) for module in modules))
    return next(map(_write_note, charts), "")


def write_display_note(bundle: Mapping[str, Any]) -> str:
    """Return the note for the display of a chart or styled table; "" for any other display."""
    is_styled = _STYLER.fullmatch(str(bundle.get("text/plain", ""))) is not None
    for chart in _CHARTS:
        is_shown = any(re.fullmatch(chart.mime_types, str(key)) for key in bundle)
        if is_shown or (is_styled and not chart.mime_types):
            return _write_note(chart)
    return ""


def write_missing_note(name: str) -> str:
    """Return the note for the kind of chart `name` (as in `_CHARTS`); "" for any other name."""
    return next((_write_note(chart) for chart in _CHARTS if chart.name == name), "")


def remove_chart_notes(content: Any) -> Any:
    """Return a text without notes on charts and captions; any other content unchanged."""
    return _LINE.sub("", _BELOW_NOTHING.sub("", content)) if isinstance(content, str) else content


def is_about_failure(note: str) -> bool:
    """Return whether a note says that drawing failed, not that a package or step is missing."""
    return note.endswith(_DRAWING_FAILED)


def _write_note(chart: _Chart) -> str:
    steps = [] if find_library(chart.library) else [f"pip install {chart.package}"]
    if chart.step:
        steps.append(chart.step)
    if not steps:
        return f"[no picture of {chart.name}: {chart.package}{_DRAWING_FAILED}"
    return f"[no picture of {chart.name}: {', then '.join(steps)} makes one]"
