"""Notes on charts and styled tables that have no picture: why not, and what makes one.

Why: a model sees a chart only as a picture, and these libraries need another package to make one.
Without a note, the model would take the text of the result for all of it.

Rules
- A chart is recognised by the module of its type, a display by its MIME types; nothing is imported.
- A note or caption is a line of its own. A replay compares results without them
  (`without_chart_words`): they depend on the installed packages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..host import find_library


class _Chart(msgspec.Struct, frozen=True):
    """A kind of chart.

    `types`: a regular expression for the modules of its types; `kinds`: one for the MIME types of
    its displays, "" for none. `module` and `package`: what must be installed for a picture. `then`:
    what the user's code must do to get one, "" if `charts` draws it.
    """

    name: str
    types: str
    kinds: str
    module: str
    package: str
    then: str = ""


_CHARTS = (
    _Chart("a Plotly chart", r"plotly\.", r"application/vnd\.plotly\..*", "kaleido", "kaleido"),
    _Chart(
        "an Altair chart",
        r"altair\.",
        r"application/vnd\.vega(?:lite)?\..*",
        "vl_convert",
        "vl-convert-python",
    ),
    _Chart(
        "a Bokeh chart",
        r"bokeh\.(?:models|plotting)\b",
        r"application/vnd\.bokehjs_.*",
        "selenium",
        "selenium",
        "the chart as the last line of the code",
    ),
    _Chart(
        "a styled table",
        r"pandas\.io\.formats\.style\b",
        r"",
        "dataframe_image",
        "dataframe-image",
        "dataframe_image.export(…)",
    ),
)
# the plain text of a styled table, whose display has no MIME type of its own
_STYLER = re.compile(r"<pandas\.io\.formats\.style\.Styler object at 0x[0-9a-f]+>")
_FAULT = " could not draw it]"  # the end of a note if the package is installed and drawing failed
# a whole line, with the line break before it: a note (`_words`), or a caption or refusal that
# `pictures` writes
_LINE = re.compile(
    r"\n?^\[(?:no picture of an? |figure \d+: an? \w+ chart\b|an? \w+ chart is not kept)[^\n]*\]$",
    re.MULTILINE,
)


def chart_words(value: Any) -> str:
    """Return the note for a value that is a chart or styled table; "" for any other value."""
    modules = [c.__module__ for c in type(value).__mro__ if isinstance(c.__module__, str)]
    charts = (c for c in _CHARTS if any(re.match(c.types, module) for module in modules))
    return _words(next(charts, None))


def display_words(bundle: Mapping[str, Any]) -> str:
    """Return the note for the display of a chart or styled table; "" for any other display."""
    styled = _STYLER.fullmatch(str(bundle.get("text/plain", "")))
    for chart in _CHARTS:
        if (not chart.kinds and styled) or any(re.fullmatch(chart.kinds, k) for k in bundle):
            return _words(chart)
    return ""


def without_chart_words(content: Any) -> Any:
    """Return a text without notes on charts and captions; any other content unchanged."""
    return _LINE.sub("", content) if isinstance(content, str) else content


def name_missing_picture(name: str) -> str:
    """Return the note for the kind of chart `name` (as in `_CHARTS`); "" for any other name."""
    return _words(next((chart for chart in _CHARTS if chart.name == name), None))


def says_undrawn(text: str) -> bool:
    """Return whether a note says that drawing failed, not that a package or step is missing."""
    return text.endswith(_FAULT)


def _words(chart: _Chart | None) -> str:
    if chart is None:
        return ""
    missing = not find_library(chart.module)
    steps = [*([f"pip install {chart.package}"] if missing else []), *filter(None, [chart.then])]
    if not steps:
        return f"[no picture of {chart.name}: {chart.package}{_FAULT}"
    return f"[no picture of {chart.name}: {', then '.join(steps)} makes one]"
