"""Collect what a tool call shows (pictures, charts, tables) as attachments of its result.

Why: people want a plot in the card of the call that drew it, and a model reads it with the result.

Rule: a chart is kept as JSON (`wire.Attachment`); its picture is drawn when the call ends
(`draw_charts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..record import FigureData
from ..wire import Attachment, as_dict, describe_picture
from . import display
from .chart_notes import is_about_failure, write_display_note, write_missing_note
from .charts import draw_chart
from .figure_artists import is_figure
from .pictures import MOST, Picture, draw_picture, fit_size, picture_of_bundle, with_figure_data

IN_CELL = "[shown in the cell]"  # the text of a display that has none


class Figures:
    """The pictures, charts and tables of one call, in the order in which they first appeared.

    A picture that appears again counts once: code often displays a figure and also returns it. A
    picture with a `key` (the id of a display) is replaced by the next one with that key.
    """

    def __init__(
        self, on_change: Callable[[int, Picture | None], None] = lambda index, picture: None
    ) -> None:
        """`on_change` gets index and content of each new picture, and (0, None) after `clear`."""
        # key, or an object in place of one -> picture; loops go over a copy, since threads of the
        # call may add others meanwhile
        self._pictures: dict[Any, Picture] = {}
        self._formatted: dict[str, Picture] = {}  # base64 -> that picture, with its figure's data
        self._on_change = on_change

    @property
    def all(self) -> tuple[Picture, ...]:
        """The pictures so far."""
        return tuple(self._pictures.values())

    def add(self, picture: Picture, key: str = "") -> str:
        """Keep a picture and return its caption for the text of the result."""
        items = list(self._pictures.items())
        earlier = next((slot for slot, each in items if _is_same(each, picture)), None)
        if earlier is not None and key not in self._pictures:
            return self._describe(earlier, picture)
        small = fit_size(picture)
        slot, count = key or object(), len(self._pictures)  # without a key: a slot of its own
        text = self._describe(slot, picture)
        if count >= MOST and slot not in self._pictures:
            return f"{text[:-1]}; not kept, a result has at most {MOST}]"
        if small is None:
            rest = "; the earlier one stays" if slot in self._pictures else ""
            return f"{text[:-1]}; not kept, it is too large{rest}]"
        self._pictures[slot] = small
        self._on_change(list(self._pictures).index(slot), small)
        return text

    def _describe(self, key: Any, picture: Picture) -> str:
        """Return the numbered caption of a figure (`key` may be new), "[shown]" for a table."""
        number = 1
        for known, before in list(self._pictures.items()):
            if known == key:
                break
            number += Attachment(before).is_figure
        shown = Attachment(picture)
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
        (`Attachment.was_below`).
        """
        picture = self.find_picture(bundle)
        if _needs_cell(bundle):
            # a card runs no script, so the cell displays it; only its picture is kept
            return False, _join_lines(self.add(picture, key)) if picture else ""
        kind, chart = Attachment.find_chart(bundle)
        refusal, missing = _explain_chart(kind, chart, picture)
        if refusal and picture is None:
            picture = _draw_refused(kind, chart)
        # the card writes the note after the chart's name: the note must not repeat that name
        note = refusal or (missing and missing.replace(Attachment.CHARTS[kind], "it"))
        attachment = _make_attachment(bundle, picture, note.strip("[]"), below=below)
        if attachment is None:  # text alone needs no attachment; a refused chart leaves the reason
            return bool(refusal) or not bundle.keys() - {"text/plain"}, _join_lines(refusal)
        caption = self.add(attachment, key)
        if not attachment.is_figure:
            return True, ""
        # a caption is enough for a chart with a picture; any other needs its text and the reason
        if picture and not refusal:
            return True, _join_lines(caption)
        plain = str(bundle.get("text/plain", IN_CELL))
        if not refusal and is_about_failure(missing):
            return True, _join_lines(plain, caption)
        return True, _join_lines(plain, caption, refusal or missing)

    def draw_charts(self) -> str:
        """Draw the charts that have no picture; return notes on those that could not be drawn."""
        faults = []
        for key, attachment in list(self._pictures.items()):
            shown = Attachment(attachment)
            if not shown.chart_name or shown["data"]:
                continue
            picture = draw_picture(draw_chart(*shown.chart))
            if picture is not None and (small := fit_size(picture)) is not None:
                live = {Attachment.LIVE: {**as_dict(shown.get(Attachment.LIVE)), "drawn": True}}
                self._pictures[key] = {
                    k: v for k, v in {**shown, **small, **live}.items() if k != Attachment.NOTE
                }
            elif is_about_failure(note := write_missing_note(shown.chart_name)):
                faults.append(note)
        return "\n".join(faults)

    #: for other rooms, which use this class alone
    draw = staticmethod(draw_picture)

    @property
    def has_chart(self) -> bool:
        """Whether a chart is among the attachments."""
        return any(Attachment(attachment).chart_name for attachment in self.all)

    @staticmethod
    def read_display(
        bundle: Mapping[str, Any], clean: Callable[[Any], Any]
    ) -> tuple[dict[str, Any], str]:
        """Return a displayed MIME bundle without hidden content, and its text for the result.

        The text stands for the display if the cell shows it; `clean` removes secrets from the
        bundle.
        """
        data = clean(display.without_hidden(bundle))
        return data, _join_lines(data.get("text/plain", IN_CELL), write_display_note(data))

    def remember_figure(self, figure: Any, bundle: Mapping[str, Any]) -> None:
        """Keep the data of a figure that was formatted as `bundle`, for `find_picture`.

        The display that follows has only the picture, and the figure may be closed by then.
        """
        if not is_figure(figure):
            return
        picture = with_figure_data(picture_of_bundle(bundle), figure)
        if picture is not None:
            self._formatted[picture["data"]] = picture

    def find_picture(self, bundle: Mapping[str, Any]) -> Picture | None:
        """Return the picture in a MIME bundle, with its figure's data if known, or None."""
        picture = picture_of_bundle(bundle)
        return None if picture is None else self._formatted.get(picture["data"], picture)

    def find(self, key: str) -> Picture | None:
        """Return the picture with this key, or None."""
        return self._pictures.get(key)

    def clear(self) -> None:
        """Forget the pictures."""
        self._pictures.clear()
        self._on_change(0, None)


def _is_same(picture: Picture, other: Picture) -> bool:
    """Return whether both show the same picture or chart; tables and widgets are never the same."""
    shown, fresh = Attachment(picture), Attachment(other)
    if not (shown.is_figure and fresh.is_figure):
        return False
    return bool(shown.chart == fresh.chart if fresh.chart[0] else picture["data"] == other["data"])


def _make_attachment(
    bundle: Mapping[str, Any], picture: Picture | None, note: str, *, below: bool
) -> Attachment | None:
    """Return the attachment of a display with its picture, if it has one; None for text alone."""
    live = {"below": below, "model_id": as_dict(bundle.get(Attachment.WIDGET)).get("model_id")}
    fields = {Attachment.DISPLAY: bundle, Attachment.LIVE: live, Attachment.NOTE: note}
    attachment = Attachment.clean({**(picture or {}), **fields})
    if attachment and picture and FigureData.KEY in picture:  # which `clean` leaves out
        attachment[FigureData.KEY] = picture[FigureData.KEY]
    return attachment


def _draw_refused(kind: str, chart: Any) -> Picture | None:
    """Draw a chart whose JSON is refused, unless drawing would load data from an address."""
    try:
        loads = Attachment.loads_address(kind, chart)
    except (ValueError, TypeError, RecursionError, AttributeError):
        return None
    return None if loads else draw_picture(draw_chart(kind, chart))


def _join_lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines if line)


def _explain_chart(kind: str, chart: Any, picture: Picture | None) -> tuple[str, str]:
    """Return why a chart's JSON is refused, and the note on its missing picture; each may be ""."""
    if not kind:
        return "", ""
    name = Attachment.CHARTS[kind]
    why = Attachment.explain_refusal(kind, chart)
    refusal = f"[{name} is not kept as one: {why}]" if why else ""
    return refusal, write_missing_note(name) if picture is None else ""


def _needs_cell(bundle: Mapping[str, Any]) -> bool:
    """Return whether showing a display takes a script or an extension of the front end."""
    if Attachment.find_chart(bundle)[0]:
        return False
    kinds = map(str, bundle.keys() - {Attachment.WIDGET})
    foreign = any(kind.startswith("application/vnd.") for kind in kinds)
    return foreign or "application/javascript" in bundle
