"""Attachments of a tool's result: pictures, charts as JSON, tables as HTML, widgets.

An attachment has a picture (`media`), a display (a MIME bundle), or both:

    {"media_type": "image/png", "data": "<base64>", "display": {MIME type: content}}

Why JSON: a front end draws a chart from it without running code. The HTML of chart libraries is a
script, which needs a network and does nothing in an untrusted notebook.

Rules
- A chart is kept under one of the `CHARTS` types: any version of Vega becomes the newest that
  JupyterLab draws.
- A chart that loads anything from an address is refused: a forged result would contact a stranger
  when the notebook is opened. That holds too for what a button, a frame, a cursor or a tooltip
  of the chart would load later, and for paths of the page's own server.
- A chart whose JSON has `__proto__` or `constructor.prototype` anywhere is refused: as a key or in
  a path, merging it would change every object of the page.
- Instructions for the program that embeds a chart (`usermeta`, addresses in Plotly's `config`) are
  removed.
- HTML that needs a script or a frame is not kept; other HTML is sanitised when it is drawn.
- A widget exists in its kernel only. `LIVE` holds its id, and is never recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, ClassVar

from .json_text import as_dict, dumps
from .media import clean_attachment
from .surrogates import replace_surrogates

PLOTLY = "application/vnd.plotly.v1+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"
VEGA = "application/vnd.vega.v5+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
CHARTS = {PLOTLY: "a Plotly chart", VEGA_LITE: "an Altair chart", VEGA: "a Vega chart"}
LARGEST = 2_000_000  # characters of the JSON of a chart, or of a text
_VEGA = re.compile(r"application/vnd\.vega(lite)?\.v\d[\d.]*[.+]json")
_STATIC_TYPES = ("text/html", "image/svg+xml", "text/markdown", "text/latex", "application/json")
# elements that show nothing once the HTML is sanitised
_ACTIVE_ELEMENT = re.compile(r"<(?:script|iframe|object|embed|audio|video|canvas)\b", re.IGNORECASE)
_model_id = re.compile(r"[\w-]{1,64}").fullmatch
_LONGEST_NOTE = 300  # characters
_NO_OBJECT = "it is not an object of JSON"
# what writing raises for a value that is not JSON
_NO_JSON = (ValueError, TypeError, RecursionError, OverflowError)


class Shown(dict[str, Any]):
    """A copy of an attachment, whose content may be forged; only `clean` checks it."""

    DISPLAY: ClassVar = "display"  # the key of the MIME bundle
    NOTE: ClassVar = "chart_note"  # the key of a sentence for people, such as what makes a picture
    LIVE: ClassVar = "live"  # the key of values of this kernel only: `below`, `drawn`, `model_id`
    WIDGET: ClassVar = WIDGET
    CHARTS: ClassVar = CHARTS

    @property
    def display(self) -> dict[str, Any]:
        """The MIME bundle, {} if it has none."""
        return as_dict(self.get(self.DISPLAY))

    @property
    def chart(self) -> tuple[str, Any]:
        """The MIME type and the JSON of the chart, ("", None) if it shows none."""
        return self.find_chart(self.display)

    @property
    def chart_name(self) -> str:
        """The kind of chart in words, as `a Plotly chart`; "" if it shows no chart."""
        return CHARTS.get(self.chart[0], "")

    @property
    def model_id(self) -> str:
        """The id of the widget that it shows in this kernel, "" for none."""
        name = as_dict(self.get(self.LIVE)).get("model_id")
        return name if isinstance(name, str) and _model_id(name) else ""

    @property
    def was_below(self) -> bool:
        """Whether code displayed it; older versions showed such displays below the run's page."""
        return as_dict(self.get(self.LIVE)).get("below") is True

    @property
    def was_drawn(self) -> bool:
        """Whether its picture was drawn from its chart, by a package that others may lack."""
        return as_dict(self.get(self.LIVE)).get("drawn") is True

    @property
    def is_figure(self) -> bool:
        """Whether it counts as a figure: a picture or a chart, not a table or a widget."""
        return bool(self.get("data") or not self.display or self.chart[0])

    @classmethod
    def number_all(cls, attachments: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Shown]]:
        """Yield attachments with their numbers among the figures; 0 for other attachments."""
        number = 0
        for attachment in map(cls, attachments):
            number += attachment.is_figure
            yield (number if attachment.is_figure else 0), attachment

    @classmethod
    def clean(cls, value: Any) -> Shown | None:
        """Return `value`, which may come from anywhere, as an attachment to keep, or None."""
        if not isinstance(value, Mapping):
            return None
        own, picture = cls(value), clean_attachment(value)
        live_fields, note = as_dict(value.get(cls.LIVE)), value.get(cls.NOTE)
        extras: dict[str, Any] = {cls.LIVE: dict(live_fields)} if live_fields else {}
        if isinstance(note, str) and note:
            extras[cls.NOTE] = replace_surrogates(note[:_LONGEST_NOTE])
        bundle = cls.clean_display(own.display)
        if picture is not None:
            chart = {cls.DISPLAY: bundle} if cls.find_chart(bundle)[0] else {}
            return cls({**picture, **chart, **extras})
        if not bundle and own.model_id:
            bundle = {"text/plain": str(own.display.get("text/plain", "a widget"))[:LARGEST]}
        if not bundle:
            return None
        return cls({"media_type": next(iter(bundle)), "data": "", cls.DISPLAY: bundle, **extras})

    @staticmethod
    def clean_picture(value: Any) -> dict[str, str] | None:
        """Return the picture in `value` alone; see `clean_attachment`."""
        return clean_attachment(value)

    @staticmethod
    def clean_display(bundle: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a displayed MIME bundle to keep; {} if that is only plain text."""
        text = bundle.get("text/plain")
        plain = {"text/plain": replace_surrogates(text[:LARGEST])} if isinstance(text, str) else {}
        kind, chart = Shown.find_chart(bundle)
        if not kind:
            contents = {m: bundle[m] for m in _STATIC_TYPES if _is_static(m, bundle.get(m))}
        elif Shown.explain_refusal(kind, chart):
            contents = {}
        else:
            contents = {kind: _without_instructions(kind, chart)}
        return {**contents, **plain} if contents else {}

    @staticmethod
    def find_chart(bundle: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the chart of a MIME bundle under the type that is kept, else ("", None)."""
        charts = ((_chart_kind(str(kind)), content) for kind, content in bundle.items())
        return next(((kind, content) for kind, content in charts if kind), ("", None))

    @staticmethod
    def explain_refusal(kind: str, chart: Any) -> str:
        """Return why a chart is not kept as JSON, "" if it is."""
        if not isinstance(chart, dict):
            return _NO_OBJECT
        try:
            text = dumps(chart)
            size = len(text)
            if size > LARGEST:
                return f"its JSON has {size / 1e6:.1f} MB, at most {LARGEST / 1e6:.0f} MB are kept"
            if any(key in text for key in _POLLUTING_KEYS):
                return "it would change every object of the page"
            return "it loads something from an address" if Shown.loads_address(kind, chart) else ""
        except _NO_JSON:
            return _NO_OBJECT

    @staticmethod
    def loads_address(kind: str, chart: dict[str, Any]) -> bool:
        """Return whether a chart loads anything from an address.

        Raises RecursionError if it is nested too deeply.
        """
        own = _without_instructions(kind, chart)
        if kind != PLOTLY and _may_show_pictures(own):
            return True
        return _loads_any(kind, own, _MOST_LEVELS)


# keys of a Plotly figure whose values may be addresses
_LOADING_KEYS = frozenset({
    "source", "style", "geojson", "tiles", "url", "urls", "data", "sprite", "glyphs", "topojsonURL",
    "plotlyServerURL", "plotlyServerUrl",
})  # fmt: skip
_DROPPED_CHARACTERS = re.compile(r"[\x00-\x20]+")  # browsers drop these, or some, from an address
# an address, or a path: the page's own server may act on a request
_ADDRESS = re.compile(r"(?:[a-z][\w+.-]*:|\.{0,2}[/\\])", re.IGNORECASE)
_INLINE_PICTURE = re.compile(r"data:image/", re.IGNORECASE)
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
_MOST_LEVELS = 100  # of a chart


def _without_instructions(kind: str, chart: dict[str, Any]) -> dict[str, Any]:
    """Return a chart without fields that make an embedding program load something."""
    fields = {key: value for key, value in chart.items() if key != "usermeta"}
    if kind == PLOTLY:
        config = as_dict(fields.pop("config", None))
        safe_config = {k: v for k, v in config.items() if k not in _LOADING_KEYS}
        if safe_config:
            fields["config"] = safe_config
    return fields


def _chart_kind(kind: str) -> str:
    """Return the MIME type under which a chart is kept, "" for another type."""
    vega = _VEGA.fullmatch(kind)
    if vega is not None:
        return VEGA_LITE if vega[1] else VEGA
    return kind if kind in CHARTS else ""


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
        if _is_loading_key(key) and _is_address(member):
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


def _is_cursor(value: Any) -> bool:
    """Return whether the cursor of a Vega mark is a word, and so no picture."""
    word = value.get("value") if isinstance(value, dict) and len(value) == 1 else value
    return isinstance(word, str) and _cursor_word(word) is not None


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


def _is_static(kind: str, content: Any) -> bool:
    """Return whether content may be kept: bounded, and HTML without script or frame."""
    if kind == "application/json":
        try:
            return content is not None and len(dumps(content)) <= LARGEST
        except _NO_JSON:
            return False
    return (
        isinstance(content, str)
        and 0 < len(content) <= LARGEST
        and not (kind == "text/html" and _ACTIVE_ELEMENT.search(content))
    )
