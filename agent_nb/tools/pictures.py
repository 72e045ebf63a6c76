"""Collect what a tool call shows (pictures, charts, tables) as attachments of its result.

Why: a model that can see reads a plot better than the words `<Figure size 700x300>`, and people
want it in the card of the call that drew it.

Rules
- Figures and PIL images are drawn by methods of their types (`display`), without an import.
- A picture is a PNG, JPEG, GIF or WebP, recognised by its first bytes; text inside it is removed.
- A Matplotlib figure is kept with its data (`figure_artists`), which a replay compares.
- The text of a result has a caption for each picture and chart, for readers that cannot see them.
- A chart is kept as JSON (`wire.Shown`); its picture is drawn when the call ends (`draw_charts`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..models import FittedPicture
from ..record import FigureData
from ..wire import Shown, as_dict, describe_picture
from . import display
from .chart_notes import is_about_failure, write_display_note, write_missing_note
from .charts import draw_chart
from .figure_artists import is_figure, read_figure_data

Picture = dict[str, Any]
IN_CELL = "[shown in the cell]"  # the text of a display that has none
NO_PICTURE = "[a value that is no PNG, JPEG, GIF or WebP was left out]"
MOST = 30  # pictures that a call shows; a `Pictured` that it returns may bring as many more
LARGEST = 3_000_000  # bytes of a picture
_DEEPEST, _WIDEST = 3, 50  # levels of containers, and items of each, that are searched
_METHODS = ("_repr_png_", "_repr_jpeg_")


class Figures:
    """The pictures, charts and tables of one call, in the order in which they first appeared.

    A picture that appears again counts once: code often displays a figure and also returns it. A
    picture with a `key` (the id of a display) is replaced by the next one with that key.
    """

    def __init__(
        self, on_change: Callable[[int, Picture | None], None] = lambda index, picture: None
    ) -> None:
        """`on_change` gets index and content of each new picture, and (0, None) after `clear`."""
        self._pictures: dict[Any, Picture] = {}  # key, or an object in place of one -> picture
        self._formatted: dict[str, Picture] = {}  # base64 -> that picture, with its figure's data
        self._on_change = on_change

    @property
    def all(self) -> tuple[Picture, ...]:
        """The pictures so far."""
        return tuple(self._pictures.values())

    def add(self, picture: Picture, key: str = "") -> str:
        """Keep a picture and return its caption for the text of the result."""
        earlier = next((slot for slot, p in self._pictures.items() if _is_same(p, picture)), None)
        if earlier is not None and key not in self._pictures:
            return self._describe(earlier, picture)
        small = fit_size(picture)
        slot, count = key or object(), len(self._pictures)  # without a key: a slot of its own
        text = self._describe(slot, picture)
        if count >= MOST and slot not in self._pictures:
            return f"{text[:-1]}; not kept, a result has at most {MOST}]"
        if small is None:
            return f"{text[:-1]}; not kept, it is too large]"
        self._pictures[slot] = small
        self._on_change(list(self._pictures).index(slot), small)
        return text

    def _describe(self, key: Any, picture: Picture) -> str:
        """Return the numbered caption of a figure (`key` may be new), "[shown]" for a table."""
        number = 1
        for known, before in self._pictures.items():
            if known == key:
                break
            number += Shown(before).is_figure
        shown = Shown(picture)
        if not shown.is_figure:
            return "[shown]"
        if shown.chart_name and not picture["data"]:
            return f"[figure {number}: {shown.chart_name}]"
        return describe_picture(number, picture)

    def add_display(
        self, bundle: Mapping[str, Any], key: str = "", *, below: bool = True
    ) -> tuple[bool, str]:
        """Keep a MIME bundle, already without secrets, if it can be shown again.

        Return whether it is kept, and its text for the result. `below`: code displayed it
        (`Shown.was_below`).
        """
        picture = self.find_picture(bundle)
        if _needs_cell(bundle):
            # a card runs no script, so the cell displays it; only its picture is kept
            return False, f"{self.add(picture, key)}\n" if picture else ""
        kind, chart = Shown.find_chart(bundle)
        refusal, missing = _explain_chart(kind, chart, picture)
        if refusal and picture is None:
            picture = self._draw_refused(kind, chart)
        live = {"below": below, "model_id": as_dict(bundle.get(Shown.WIDGET)).get("model_id")}
        # the card writes the note after the chart's name: the note must not repeat that name
        note = refusal or (missing and missing.replace(Shown.CHARTS[kind], "it"))
        fields = {Shown.DISPLAY: bundle, Shown.LIVE: live, Shown.NOTE: note.strip("[]")}
        attachment = Shown.clean({**(picture or {}), **fields})
        if attachment is None:  # text alone needs no attachment; a refused chart leaves the reason
            return bool(refusal) or not bundle.keys() - {"text/plain"}, _lines(refusal)
        figure_fields = {k: v for k, v in (picture or {}).items() if k == FigureData.KEY}
        caption = self.add({**attachment, **figure_fields}, key)
        if not attachment.is_figure:
            return True, ""
        # a caption is enough for a chart with a picture; any other needs its text and the reason
        if picture and not refusal:
            return True, _lines(caption)
        plain = str(bundle.get("text/plain", IN_CELL))
        if not refusal and is_about_failure(missing):
            return True, _lines(plain, caption)
        return True, _lines(plain, caption, refusal or missing)

    def _draw_refused(self, kind: str, chart: Any) -> Picture | None:
        """Draw a chart whose JSON is refused, unless drawing would load data from an address."""
        try:
            loads = Shown.loads_address(kind, chart)
        except (ValueError, TypeError, RecursionError, AttributeError):
            return None
        return None if loads else self.draw(draw_chart(kind, chart))

    def draw_charts(self) -> str:
        """Draw the charts that have no picture; return notes on those that could not be drawn."""
        faults = []
        for key, attachment in self._pictures.items():
            shown = Shown(attachment)
            if not shown.chart_name or shown["data"]:
                continue
            picture = self.draw(draw_chart(*shown.chart))
            if picture is not None and (small := fit_size(picture)) is not None:
                live = {Shown.LIVE: {**as_dict(shown.get(Shown.LIVE)), "drawn": True}}
                self._pictures[key] = {
                    k: v for k, v in {**shown, **small, **live}.items() if k != Shown.NOTE
                }
            elif is_about_failure(note := write_missing_note(shown.chart_name)):
                faults.append(note)
        return "\n".join(faults)

    @property
    def has_chart(self) -> bool:
        """Whether a chart is among the attachments."""
        return any(Shown(attachment).chart_name for attachment in self.all)

    @staticmethod
    def draw(source: Any) -> Picture | None:
        """Return bytes, a figure or an image as an attachment; None if it is neither."""
        if isinstance(source, bytes | bytearray | memoryview):
            return Shown.clean_picture({"data": bytes(source)})
        kind = type(source)
        if hasattr(kind, "savefig"):
            return _with_figure_data(_attach(display.draw_figure(source)), source)
        if _is_axes(kind):
            return Figures.draw(display.call_method(source, "get_figure"))
        candidates = (
            _attach(display.call_method(source, name)) for name in _METHODS if hasattr(kind, name)
        )
        return next(filter(None, candidates), None)

    @staticmethod
    def read_display(
        bundle: Mapping[str, Any], clean: Callable[[Any], Any]
    ) -> tuple[dict[str, Any], str]:
        """Return a displayed MIME bundle without hidden content, and its text for the result.

        The text stands for the display if the cell shows it; `clean` removes secrets from the
        bundle.
        """
        data = clean(display.without_hidden(bundle))
        lines = [data.get("text/plain", IN_CELL), write_display_note(data)]
        return data, "".join(f"{text}\n" for text in lines if text)

    def note_figure(self, figure: Any, bundle: Mapping[str, Any]) -> None:
        """Keep the data of a figure that was formatted as `bundle`, for `find_picture`.

        The display that follows has only the picture, and the figure may be closed by then.
        """
        if not is_figure(figure):
            return
        picture = _with_figure_data(picture_of_bundle(bundle), figure)
        if picture is not None:
            self._formatted[picture["data"]] = picture

    def find_picture(self, bundle: Mapping[str, Any]) -> Picture | None:
        """Return the picture in a MIME bundle, with its figure's data if known, or None."""
        picture = picture_of_bundle(bundle)
        return None if picture is None else self._formatted.get(picture["data"], picture)

    def has(self, key: str) -> bool:
        """Return whether a picture has this key."""
        return key in self._pictures

    def clear(self) -> None:
        """Forget the pictures."""
        self._pictures.clear()
        self._on_change(0, None)


def _is_same(picture: Picture, other: Picture) -> bool:
    """Return whether both show the same picture or chart; tables and widgets are never the same."""
    shown, fresh = Shown(picture), Shown(other)
    if not (shown.is_figure and fresh.is_figure):
        return False
    return bool(shown.chart == fresh.chart if fresh.chart[0] else picture["data"] == other["data"])


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines if line)


def _explain_chart(kind: str, chart: Any, picture: Picture | None) -> tuple[str, str]:
    """Return why a chart's JSON is refused, and the note on its missing picture; each may be ""."""
    if not kind:
        return "", ""
    name = Shown.CHARTS[kind]
    why = Shown.explain_refusal(kind, chart)
    refusal = f"[{name} is not kept as one: {why}]" if why else ""
    return refusal, write_missing_note(name) if picture is None else ""


def _needs_cell(bundle: Mapping[str, Any]) -> bool:
    """Return whether showing a display takes a script or an extension of the front end."""
    if Shown.find_chart(bundle)[0]:
        return False
    foreign = (k for k in bundle if str(k).startswith("application/vnd.") and k != Shown.WIDGET)
    return "application/javascript" in bundle or any(foreign)


def fit_size(picture: Picture) -> Picture | None:
    """Return a picture of at most `LARGEST` bytes, None if it cannot be made smaller."""
    if len(picture["data"]) * 3 // 4 <= LARGEST:  # 4 characters of base64 are 3 bytes
        return picture
    small = FittedPicture.fit(picture["data"], FittedPicture.USER_SIDE, LARGEST)
    content = {"media_type": small.media_type, "data": small.data}
    return {**picture, **content} if small.data else None


def picture_of(source: Any) -> Picture | None:
    """Return `source` (bytes, an attachment, a figure or an image) as an attachment.

    None if it is none of these. Never raises.
    """
    if isinstance(source, Mapping):
        return Shown.clean_picture(source)
    return Figures.draw(source) or picture_of_bundle(display.read_rich_bundle(source) or {})


def _with_figure_data(picture: Picture | None, source: Any) -> Picture | None:
    """Return the picture of a figure, once it is drawn, with the figure's data."""
    drawing = None if picture is None else read_figure_data(source)
    return picture if drawing is None else {**(picture or {}), FigureData.KEY: drawing}


def _attach(image: Any) -> Picture | None:
    """Return the base64 or bytes from a `_repr_png_` or a MIME bundle as an attachment."""
    if isinstance(image, tuple):  # (data, metadata), as IPython allows
        image = image[0] if image else None
    return Shown.clean_picture({"data": image})


def _is_axes(kind: type) -> bool:
    return hasattr(kind, "get_figure") and any(
        c.__module__.startswith("matplotlib.axes") for c in kind.__mro__
    )


def _close_figure(source: Any) -> None:
    """Close a returned figure where Matplotlib would show it again below the cell."""
    kind, pyplot = type(source), sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not (hasattr(kind, "savefig") or _is_axes(kind)):
        return
    if "inline" in str(display.call_method(pyplot, "get_backend")):
        figure = display.call_method(source, "get_figure") if _is_axes(kind) else source
        display.call_method(pyplot, "close", figure)


def picture_of_result(source: Any) -> Picture | None:
    """Return the picture of a value that a tool returned, None if it has none.

    A figure is closed, so that Matplotlib does not show it again below the cell.
    """
    image = picture_of(source)
    if image is not None:
        _close_figure(source)
    return image


def picture_of_bundle(bundle: Mapping[str, Any]) -> Picture | None:
    """Return the picture of a mime bundle, None if it has none."""
    candidates = (_attach(bundle[kind]) for kind in display.PICTURE_TYPES if bundle.get(kind))
    return next(filter(None, candidates), None)


def is_bundle(value: Any) -> bool:
    """Return whether a value is a mime bundle with a picture, as a plain dictionary."""
    return (
        type(value) is dict
        and any(kind in value for kind in display.PICTURE_TYPES)
        and all(isinstance(key, str) and "/" in key for key in value)
    )


def collect_pictures(sources: Iterable[Any]) -> tuple[tuple[Picture, ...], int]:
    """Return the sources that are pictures as attachments, and the number of those left out: other
    values, pictures that stay too large, and those beyond `MOST`.
    """
    candidates = [picture_of_result(source) for source in sources]
    attachments = tuple(filter(None, map(fit_size, filter(None, candidates))))[:MOST]
    return attachments, len(candidates) - len(attachments)


def replace_pictures(value: Any, figures: Figures, depth: int = _DEEPEST) -> Any:
    """Return a value with its pictures moved to `figures` and replaced by their captions.

    `depth`: levels of containers that are still searched.
    """
    if type(value) is dict and len(value) <= _WIDEST and depth:
        fields = {k: replace_pictures(v, figures, depth - 1) for k, v in value.items()}
        return fields if any(fields[k] is not value[k] for k in fields) else value
    if type(value) in (list, tuple) and len(value) <= _WIDEST and depth:
        items = [replace_pictures(v, figures, depth - 1) for v in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    image = Figures.draw(value)
    if image is None:
        return value
    _close_figure(value)
    return figures.add(image)
