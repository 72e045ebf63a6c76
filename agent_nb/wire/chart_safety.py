"""Decides whether a chart may be stored: it must load nothing, and change nothing outside it.

Charts come from anywhere, and a front end draws them when a notebook is opened.

Rules
- A chart that loads anything from an address is refused: it would contact a stranger. That holds
  too for what a button, a frame, a cursor or a tooltip of the chart would load later, and for paths
  of the page's own server.
- A chart whose JSON has `__proto__` or `constructor.prototype` anywhere is refused: as a key or in
  a path, merging it would change every object of the page.
- A Vega chart whose inputs may do more than set a value of the chart is refused: a front end writes
  each key of `bind` as an attribute, also `onfocus`, and dispatches clicks to any `element`.
"""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from typing import Any

from .json_text import as_dict, as_list, dumps

PLOTLY = "application/vnd.plotly.v1+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"
VEGA = "application/vnd.vega.v5+json"
CHARTS = {PLOTLY: "a Plotly chart", VEGA_LITE: "an Altair chart", VEGA: "a Vega chart"}
LARGEST = 2_000_000  # characters of the JSON of a chart, or of a text
# what writing raises for a value that is not JSON
NO_JSON = (ValueError, TypeError, RecursionError, OverflowError)
_VEGA = re.compile(r"application/vnd\.vega(lite)?\.v\d[\d.]*[.+]json")
_NO_OBJECT = "it is not an object of JSON"
# keys of a Plotly figure whose values may be addresses
_LOADING_KEYS = frozenset({
    "source", "style", "geojson", "tiles", "url", "urls", "data", "sprite", "glyphs", "topojsonURL",
    "plotlyServerURL", "plotlyServerUrl",
})  # fmt: skip
_DROPPED_CHARACTERS = re.compile(r"[\x00-\x20]+")  # browsers drop these, or some, from an address
# an address, or a path: the page's own server may act on a request
_ADDRESS = re.compile(r"(?:[a-z][\w+.-]*:|\.{0,2}[/\\])", re.IGNORECASE)
_INLINE_PICTURE = re.compile(r"data:image/", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# the beginning of a tag that Plotly knows, at the end of a text: another text may complete it
_OPEN_TAG = re.compile(
    r"<(?:[abisu]?|em?|su[bp]?|spa?n?|str?o?n?g?|(?:%|(?:[abisu]|em|su[bp]|span|strong)\s)[^<>]*)\Z",
    re.IGNORECASE,
)
# a function of CSS besides those of colours, or an escape, which may be a part of its name
_STYLE_CALL = re.compile(r"\\|(?<!rgb)(?<!rgba)(?<!hsl)(?<!hsla)\(", re.IGNORECASE)
# the parts of a key of Plotly, which may be a path: images[0].source
_KEY_PARTS = re.compile(r"[^.\[\]\s]*[^.\[\]\s\d][^.\[\]\s]*")
# sought in the whole JSON, so a chart with one of these in its data is refused too
_POLLUTING_KEYS = ("__proto__", "constructor.prototype")
_cursor_word = re.compile(r"[\w-]+").fullmatch  # a picture would be url(…)
# how a tooltip of Vega gets a member `image`, whose address it shows as a picture: as a key of data
# or of an expression, as a field or title, in a text of rows, or by escapes in an expression
_TOOLTIP_PICTURE = re.compile(
    r"""\bimage\\?["']?\s*:|"(?:field|title|as|fields)":(?:\[[^\]]*)?"image"|"values":"[^"]*\bimage\b|\\\\[ux]"""
)
# keys of an input of Vega that only describe it
_INPUT_KEYS = frozenset({
    "input", "options", "labels", "min", "max", "step", "name", "debounce", "placeholder",
    "autocomplete", "legend",
})  # fmt: skip
_MOST_LEVELS = 100  # of a chart


def stored_type(kind: str) -> str:
    """Return the MIME type under which a chart is stored, "" for another type."""
    vega = _VEGA.fullmatch(kind)
    if vega is not None:
        return VEGA_LITE if vega[1] else VEGA
    return kind if kind in CHARTS else ""


def without_instructions(kind: str, chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart without instructions for the program that embeds it.

    These are `usermeta`, and addresses in Plotly's `config`.
    """
    fields = {key: value for key, value in chart.items() if key != "usermeta"}
    if kind == PLOTLY:
        config = as_dict(fields.pop("config", None))
        safe_config = {k: v for k, v in config.items() if k not in _LOADING_KEYS}
        if safe_config:
            fields["config"] = safe_config
    return fields


def explain_refusal(kind: str, chart: Any) -> str:
    """Return why a chart is not stored as JSON, "" if it is."""
    if not isinstance(chart, dict):
        return _NO_OBJECT
    try:
        text = dumps(chart)
        if len(text) > LARGEST:
            return f"its JSON has {len(text) / 1e6:.1f} MB, at most {LARGEST / 1e6:.0f} MB are kept"
        if any(key in text for key in _POLLUTING_KEYS):
            return "it would change every object of the page"
        if loads_address(kind, chart):
            return "it loads something from an address"
        reaches_out = kind != PLOTLY and _reaches_out(without_instructions(kind, chart))
        return "its inputs may change the page" if reaches_out else ""
    except NO_JSON:
        return _NO_OBJECT


def loads_address(kind: str, chart: dict[str, Any]) -> bool:
    """Return whether a chart loads anything from an address.

    Raises RecursionError if it is nested too deeply.
    """
    own = without_instructions(kind, chart)
    if kind != PLOTLY and _may_show_pictures(own):
        return True
    return _loads_any(kind, own, _MOST_LEVELS)


def _loads_any(kind: str, value: Any, depth: int) -> bool:
    """Return whether a part of a chart, a dict or list, loads anything from an address.

    Raises RecursionError if it has more than `depth` levels.
    """
    if not depth:
        raise RecursionError
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return any(_member_loads(kind, key, member, depth - 1) for key, member in items)


def _member_loads(kind: str, key: Any, member: Any, depth: int) -> bool:
    """Return whether the member `key` of a dict or list, or anything in it, loads an address."""
    if kind == PLOTLY:
        if (_is_loading_key(key) and _is_address(member)) or _text_loads(member):
            return True
        # the arguments of a button: a path, and the value that it gets
        pairs = pairwise(member) if key in ("args", "args2") and isinstance(member, list) else ()
        if any(_is_loading_key(path) and _is_address(new) for path, new in pairs):
            return True
    elif key == "values" and isinstance(member, list):
        return False  # data, in which an address is only a text
    elif key == "datasets" and isinstance(member, dict):
        others = {name: rows for name, rows in member.items() if not isinstance(rows, list)}
        return _loads_any(kind, others, depth)
    elif key == "url" or (key == "cursor" and not _is_cursor(member)):
        return True
    return isinstance(member, dict | list) and _loads_any(kind, member, depth)


def _is_loading_key(key: Any) -> bool:
    """Return whether a key of Plotly, or a path to one, is among `_LOADING_KEYS`."""
    parts = _KEY_PARTS.findall(key) if isinstance(key, str) else []
    return bool(parts) and parts[-1] in _LOADING_KEYS


def _text_loads(text: Any) -> bool:
    """Return whether a text of Plotly has, or may become, a tag whose style loads something."""
    if not isinstance(text, str) or "<" not in text:
        return False
    if _OPEN_TAG.search(text):
        return True
    return any(
        "%{" in tag or ("style" in tag.lower() and _STYLE_CALL.search(unescape(tag)))
        for tag in _TAG.findall(text)
    )


def _is_cursor(value: Any) -> bool:
    """Return whether the cursor of a Vega mark is a word, and so no picture."""
    word = value.get("value") if isinstance(value, dict) and len(value) == 1 else value
    return isinstance(word, str) and _cursor_word(word) is not None


def _reaches_out(value: Any) -> bool:
    """Return whether an input in a part of a Vega chart may do more than set a value of it."""
    items = value.items() if isinstance(value, dict) else enumerate(as_list(value))
    return any((k == "bind" and not _is_input(v)) or _reaches_out(v) for k, v in items)


def _is_input(bind: Any) -> bool:
    """Return whether what `bind` holds, one input or inputs by field, only describes inputs."""
    fields = as_dict(bind).items()
    return all(k in _INPUT_KEYS or (isinstance(v, dict) and _is_input(v)) for k, v in fields)


def _may_show_pictures(chart: dict[str, Any]) -> bool:
    """Return whether a tooltip of a Vega chart may show a picture from an address."""
    text = dumps(chart)
    pivots = '"pivot"' in text and '"image"' in text  # values become fields
    return '"tooltip"' in text and (pivots or _TOOLTIP_PICTURE.search(text) is not None)


def _is_address(value: Any) -> bool:
    """Return whether a text, or one of a list, is an address and not inline data."""
    values = value if isinstance(value, list) else [value]
    texts = [_DROPPED_CHARACTERS.sub("", text) for text in values if isinstance(text, str)]
    return any(_ADDRESS.match(text) and not _INLINE_PICTURE.match(text) for text in texts)
