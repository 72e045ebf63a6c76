"""The pictures of a prompt, as they are hashed and as they are recorded and sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..wire.plain_values import plain

Picture = dict[str, Any]


def pictures_of(attachments: Sequence[Any]) -> tuple[Picture, ...]:
    """Return attachments as `{media_type, data}`, with `name` if they have one.

    Raises UsageError for a non-image.
    """
    return tuple(map(_picture, attachments))


def _picture(attachment: Any) -> Picture:
    from ..models.images import image_block
    from ..wire.media import clean_attachment

    attachment = plain(attachment)
    if isinstance(attachment, Mapping) and (known := clean_attachment(attachment)) is not None:
        name = attachment.get("name")
        return {**known, "name": name} if isinstance(name, str) and name else dict(known)
    block = image_block(attachment)
    return {"media_type": block.media_type, "data": block.data}


def without_text(pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """Return pictures without their text chunks, as recorded and sent.

    The inputs of a run hash the pictures as given, so that old records are still found.
    """
    from ..wire.media import base64_without_text

    return tuple({**picture, "data": base64_without_text(picture["data"])} for picture in pictures)
