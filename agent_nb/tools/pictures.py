"""Find the pictures in a value that a tool returned, and draw figures.

Why: a model that can see reads a plot better than the words `<Figure size 700x300>`. A Matplotlib
figure is stored with its data (`figure_artists`), which a replay compares.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..models import FittedPicture
from ..record import FigureData
from ..wire import Attachment
from . import display
from .figure_artists import read_figure_data

Picture = dict[str, Any]
NO_PICTURE = "[a value that is no PNG, JPEG, GIF or WebP was left out]"
MOST = 30  # pictures that a call shows; a `Pictured` that it returns may bring as many more
LARGEST = 3_000_000  # bytes of a picture
_DEEPEST, _WIDEST = 3, 50  # levels of containers, and items of each, that are searched
_METHODS = ("_repr_png_", "_repr_jpeg_")


def draw_picture(source: Any) -> Picture | None:
    """Return bytes, a figure or an image as an attachment; None if it is neither."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Attachment.clean_picture({"data": bytes(source)})
    kind = type(source)
    if hasattr(kind, "savefig"):
        return with_figure_data(_attach(display.draw_figure(source)), source)
    if _is_axes(kind):
        return draw_picture(display.call_method(source, "get_figure"))
    candidates = (
        _attach(display.call_method(source, name)) for name in _METHODS if hasattr(kind, name)
    )
    return next(filter(None, candidates), None)


def fit_size(picture: Picture) -> Picture | None:
    """Return a picture of at most `LARGEST` bytes, None if it cannot be made smaller."""
    if len(picture["data"]) * 3 // 4 <= LARGEST:  # 4 characters of base64 are 3 bytes
        return picture
    small = FittedPicture.fit(picture["data"], FittedPicture.USER_SIDE, LARGEST)
    content = {"media_type": small.media_type, "data": small.data}
    return {**picture, **content} if small.data else None


def with_figure_data(picture: Picture | None, source: Any) -> Picture | None:
    """Return the picture of a figure, once it is drawn, with the figure's data."""
    drawing = None if picture is None else read_figure_data(source)
    return picture if drawing is None else {**(picture or {}), FigureData.KEY: drawing}


def _attach(image: Any) -> Picture | None:
    """Return the base64 or bytes from a `_repr_png_` or a MIME bundle as an attachment."""
    if isinstance(image, tuple):  # (data, metadata), as IPython allows
        image = image[0] if image else None
    return Attachment.clean_picture({"data": image})


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


def _attach_result(source: Any) -> Picture | None:
    """Return a value (bytes, an attachment, a figure, an image) as an attachment, None for others.

    Never raises. A figure is closed, so that Matplotlib does not show it again below the cell.
    """
    if isinstance(source, Mapping):
        return Attachment.clean_picture(source)
    image = draw_picture(source) or picture_of_bundle(display.read_rich_bundle(source) or {})
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
    candidates = [_attach_result(source) for source in sources]
    attachments = tuple(filter(None, map(fit_size, filter(None, candidates))))[:MOST]
    return attachments, len(candidates) - len(attachments)


def replace_pictures(value: Any, keep: Callable[[Picture], str], depth: int = _DEEPEST) -> Any:
    """Return a value with its pictures replaced by their captions.

    `keep` keeps a picture and returns its caption. `depth`: levels of containers that are searched.
    """
    if type(value) is dict and len(value) <= _WIDEST and depth:
        fields = {k: replace_pictures(v, keep, depth - 1) for k, v in value.items()}
        return fields if any(fields[k] is not value[k] for k in fields) else value
    if type(value) in (list, tuple) and len(value) <= _WIDEST and depth:
        items = [replace_pictures(v, keep, depth - 1) for v in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    image = draw_picture(value)
    if image is None:
        return value
    _close_figure(value)
    return keep(image)
