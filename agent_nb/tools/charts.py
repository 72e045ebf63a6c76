"""Charts of Plotly, Altair and Bokeh: read the JSON of a chart object, and draw a chart as PNG.

Why: a model, and the reader of an untrusted notebook, see a chart only as a picture, and each
library needs another package to make one (`chart_notes`).

Rules
- The module of its type identifies a chart. No chart library is imported unless user code has
  loaded it; the package that draws its picture is imported if it is installed.
- A library that fails costs the picture, not the result; what it prints and logs is dropped.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from ..host import find_library
from ..wire import Attachment, loads
from .capture import OutputCapture
from .display import call_method

PLOTLY, VEGA_LITE, VEGA = Attachment.CHARTS
_TEXT = "text/plain"


def chart_bundle(value: Any) -> dict[str, Any]:
    """Return the MIME bundle of a chart object, with its JSON; {} for any other value."""
    libraries = [_find_library(class_) for class_ in type(value).__mro__]
    if "altair" in libraries:
        # Altair itself refuses a long table, as it does in any cell
        chart = call_method(value, "to_dict") if hasattr(type(value), "to_dict") else None
        return {VEGA_LITE: chart, _TEXT: "alt.Chart(...)"} if _is_whole(chart, "$schema") else {}
    if "plotly" in libraries:
        text = call_method(value, "to_json") if hasattr(type(value), "to_json") else None
        try:
            chart = loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):  # of a foreign `to_json`
            chart = None
        return {PLOTLY: chart, _TEXT: "Figure"} if _is_whole(chart, "data") else {}
    return {}


def _is_whole(chart: Any, key: str) -> bool:
    """Return whether the JSON describes a complete chart, not a part of one."""
    return isinstance(chart, dict) and key in chart


def _find_library(kind: type) -> str:
    """Return the top package that defines a class."""
    return str(kind.__module__).partition(".")[0]


def prefer_json(value: Any, bundle: Mapping[str, Any]) -> dict[str, Any]:
    """Return the MIME bundle of a value; a chart has its JSON in place of HTML and scripts.

    A Bokeh chart keeps its bundle and gets a picture, if one can be made.
    """
    if not bundle:  # the value has displayed itself
        return dict(bundle)
    if chart := chart_bundle(value):
        rest = {k: v for k, v in bundle.items() if k == _TEXT or k.startswith("image/")}
        return {**chart, **rest}
    if _find_library(type(value)) == "bokeh" and (picture := _draw_quietly(_draw_bokeh, value)):
        return {"image/png": picture, **bundle}
    return dict(bundle)


def draw_chart(kind: str, chart: Any) -> bytes:
    """Return as PNG the chart whose JSON is `chart`, of the MIME type `kind`; b"" on a failure."""
    return _draw_quietly(_draw_plotly if kind == PLOTLY else _draw_vega, kind, chart)


def _draw_quietly(draw: Callable[..., Any], *args: Any) -> bytes:
    """Return the PNG that `draw` makes, b"" if it fails; drop what it prints and logs."""
    with OutputCapture(lambda text: None):
        try:
            return bytes(draw(*args))
        except Exception:  # foreign code: the result then goes without its picture
            return b""


def _draw_plotly(_: str, chart: Any) -> Any:
    if "plotly" not in sys.modules or not find_library("kaleido"):
        return b""
    return import_module("plotly.io").to_image(chart, format="png", validate=False)


def _draw_vega(kind: str, chart: Any) -> Any:
    if not find_library("vl_convert"):
        return b""
    vl_convert: Any = import_module("vl_convert")
    draw = vl_convert.vega_to_png if kind == VEGA else vl_convert.vegalite_to_png
    return draw(chart, allowed_base_urls=[])  # loads nothing from the network


def _draw_bokeh(value: Any) -> bytes:
    """Return a screenshot of a Bokeh chart as PNG, from a browser that Selenium drives."""
    target = io.BytesIO()
    if find_library("selenium"):
        import_module("bokeh.io.export").get_screenshot_as_png(value).save(target, "PNG")
    return target.getvalue()
