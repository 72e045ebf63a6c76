"""What a result says of a chart or a styled table that has no picture.

Why: a model sees a chart only as a picture, and these libraries make one only with the help of
another package. Without a word it takes the text of the result for all there is.

Rules
- A value counts by the module of its type, a display by its kinds; nothing is imported.
- The words stand on a line of their own, and so does the name of a chart (`[figure 1: a Plotly
  chart]`). A replay compares results without them: they depend on what is installed, and older
  records do not name charts (`without_chart_words`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..host import find_library


class _Chart(msgspec.Struct, frozen=True):
    """A kind of chart.

    `name`: in words. `types`: a regular expression of the modules of its types. `kinds`: one of the
    MIME types of its displays, "" for none. `module` and `package`: what must be installed for a
    picture. `then`: the code that makes one, "" if `charts` does.
    """

    name: str
    types: str
    kinds: str
    module: str
    package: str
    then: str = ""


_CHARTS = (
    _Chart(
        "a Plotly chart",
        r"plotly\.",
        r"application/vnd\.plotly\..*",
        "kaleido",
        "kaleido",
    ),
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
_STYLER = re.compile(r"<pandas\.io\.formats\.style\.Styler object at 0x[0-9a-f]+>")
_FAULT = " could not draw it]"
_LINE = re.compile(
    r"\n?^\[(?:no picture of an? |figure \d+: an? \w+ chart\b|an? \w+ chart is not kept)[^\n]*\]$",
    re.MULTILINE,
)


def chart_words(value: Any) -> str:
    """Describe a chart that has no picture in words; "" for any other value."""
    modules = [c.__module__ for c in type(value).__mro__ if isinstance(c.__module__, str)]
    charts = (c for c in _CHARTS if any(re.match(c.types, module) for module in modules))
    return _words(next(charts, None))


def display_words(bundle: Mapping[str, Any]) -> str:
    """Return the words for a display of a chart without a picture, "" for any other."""
    styled = _STYLER.fullmatch(str(bundle.get("text/plain", "")))
    for chart in _CHARTS:
        if (not chart.kinds and styled) or any(re.fullmatch(chart.kinds, k) for k in bundle):
            return _words(chart)
    return ""


def without_chart_words(content: Any) -> Any:
    """Return the text of a result without these words."""
    return _LINE.sub("", content) if isinstance(content, str) else content


def name_missing_picture(name: str) -> str:
    """Return the words for a chart, named as `a Plotly chart`, of which there is no picture."""
    return _words(next((chart for chart in _CHARTS if chart.name == name), None))


def says_undrawn(text: str) -> bool:
    """Return whether such words say that nothing is missing: a picture is still to be drawn."""
    return text.endswith(_FAULT)


def _words(chart: _Chart | None) -> str:
    if chart is None:
        return ""
    missing = not find_library(chart.module)
    how = [*([f"pip install {chart.package}"] if missing else []), *filter(None, [chart.then])]
    if not how:
        return f"[no picture of {chart.name}: {chart.package}{_FAULT}"
    return f"[no picture of {chart.name}: {', then '.join(how)} makes one]"
