"""Pictures of prompts and displays of results, in the forms that are hashed, recorded and sent.

Rules
- A name, a display and the data behind a figure (`record.figure_data`) contain text, from which
  secrets are removed. Without a function that does this, the data are left out.
- The text chunks of a picture are neither recorded nor sent (`without_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..record import FigureData
from ..wire import Attachment, base64_without_text, plain_value
from .clean_json import clean_value

Picture = dict[str, Any]
Hide = Callable[[Any], Any]  # removes secrets from a value


def pictures_of(attachments: Any, hide: Hide | None = None) -> tuple[Picture, ...]:
    """Return one or several attachments as `{media_type, data}`, with `name` if they have one.

    `hide` is applied to the names and to the data of figures; None leaves these data out. Raises
    UsageError for an attachment that is not an image.
    """
    is_one = isinstance(attachments, str | bytes | bytearray | memoryview | Mapping)
    if is_one or not isinstance(attachments, Iterable):
        attachments = () if attachments is None else (attachments,)
    return tuple(_clean_picture(attachment, hide) for attachment in attachments)


def recorded_pictures(attachments: Sequence[Any], hide: Hide) -> Iterator[Picture]:
    """Yield the pictures and displays among `attachments` as recorded; skip other values."""
    for attachment in attachments:
        if (clean := Attachment.clean(attachment)) is not None:
            shown = clean.display
            display = {Attachment.DISPLAY: hide(clean_value(shown))} if shown else {}
            if clean.get(Attachment.NOTE):
                display[Attachment.NOTE] = hide(clean[Attachment.NOTE])
            yield {**clean, **display, **_redact_figure_data(attachment, hide)}


def _redact_figure_data(attachment: Mapping[str, Any], hide: Hide | None) -> Picture:
    """Return the redacted data of a figure as a dict of one entry; {} without data or `hide`."""
    data = attachment.get(FigureData.KEY)
    if hide is None or FigureData.read(data) is None:
        return {}
    return {FigureData.KEY: hide(clean_value(data))}


def _clean_picture(attachment: Any, hide: Hide | None) -> Picture:
    """Return one attachment: a mapping with a picture, or any source that `image_block` takes."""
    from .images import image_block

    attachment = plain_value(attachment)
    clean = Attachment.clean_picture(attachment) if isinstance(attachment, Mapping) else None
    if clean is not None:
        name = clean_value(attachment.get("name"))
        if isinstance(name, str) and name:
            clean["name"] = name if hide is None else hide(name)
        return {**clean, **_redact_figure_data(attachment, hide)}
    block = image_block(attachment)
    return {"media_type": block.media_type, "data": block.data}


def without_text(pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """Return pictures without their text chunks, as recorded and sent.

    The inputs of a run hash the pictures with their text chunks, so that old records still match.
    """
    return tuple({**picture, "data": base64_without_text(picture["data"])} for picture in pictures)
