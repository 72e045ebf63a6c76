"""Attachments of a tool's result: pictures, charts as JSON, tables as HTML, widgets.

An attachment has a picture (`media`), a display (a MIME bundle), or both:

    {"media_type": "image/png", "data": "<base64>", "display": {MIME type: content}}

A front end draws a chart from its JSON without running code. The HTML of chart libraries is a
script, which needs a network and does nothing in an untrusted notebook. So HTML with a script or a
frame is dropped; other HTML is sanitised when it is drawn. A widget exists in its kernel only: its
id (`LIVE`) is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from . import chart_safety
from .json_text import as_dict, dumps
from .media import clean_attachment
from .surrogates import replace_surrogates

WIDGET = "application/vnd.jupyter.widget-view+json"
_STATIC_TYPES = ("text/html", "image/svg+xml", "text/markdown", "text/latex", "application/json")
# elements that show nothing once the HTML is sanitised
_ACTIVE_ELEMENT = re.compile(r"<(?:script|iframe|object|embed|audio|video|canvas)\b", re.IGNORECASE)
_model_id = re.compile(r"[\w-]{1,64}").fullmatch
_LONGEST_NOTE = 300  # characters


class Attachment(dict[str, Any]):
    """A copy of an attachment, whose content may be forged; only `clean` checks it."""

    DISPLAY: ClassVar = "display"  # the key of the MIME bundle
    NOTE: ClassVar = "chart_note"  # the key of a sentence for people, such as what makes a picture
    LIVE: ClassVar = "live"  # the key of values of this kernel only: `below`, `drawn`, `model_id`
    WIDGET: ClassVar = WIDGET
    CHARTS: ClassVar = chart_safety.CHARTS

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
        return chart_safety.CHARTS.get(self.chart[0], "")

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
    def number_all(
        cls, attachments: Iterable[Mapping[str, Any]]
    ) -> Iterator[tuple[int, Attachment]]:
        """Yield attachments with their numbers among the figures; 0 for other attachments."""
        number = 0
        for attachment in map(cls, attachments):
            number += attachment.is_figure
            yield (number if attachment.is_figure else 0), attachment

    @classmethod
    def clean(cls, value: Any) -> Attachment | None:
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
            text = str(own.display.get("text/plain", "a widget"))
            bundle = {"text/plain": text[: chart_safety.LARGEST]}
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
        text, limit = bundle.get("text/plain"), chart_safety.LARGEST
        plain = {"text/plain": replace_surrogates(text[:limit])} if isinstance(text, str) else {}
        kind, chart = Attachment.find_chart(bundle)
        if not kind:
            contents = {m: bundle[m] for m in _STATIC_TYPES if _is_static(m, bundle.get(m))}
        elif chart_safety.explain_refusal(kind, chart):
            contents = {}
        else:
            contents = {kind: chart_safety.without_instructions(kind, chart)}
        return {**contents, **plain} if contents else {}

    @staticmethod
    def find_chart(bundle: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the chart of a MIME bundle under the type that is kept, else ("", None)."""
        charts = ((chart_safety.stored_type(str(k)), content) for k, content in bundle.items())
        return next(((kind, content) for kind, content in charts if kind), ("", None))

    explain_refusal = staticmethod(chart_safety.explain_refusal)
    loads_address = staticmethod(chart_safety.loads_address)


def _is_static(kind: str, content: Any) -> bool:
    """Return whether content may be kept: bounded, and HTML without script or frame."""
    if kind == "application/json":
        try:
            return content is not None and len(dumps(content)) <= chart_safety.LARGEST
        except chart_safety.NO_JSON:
            return False
    return (
        isinstance(content, str)
        and 0 < len(content) <= chart_safety.LARGEST
        and not (kind == "text/html" and _ACTIVE_ELEMENT.search(content))
    )
