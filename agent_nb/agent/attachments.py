"""The pictures of a prompt, as they are hashed and as they are recorded and sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Picture = dict[str, Any]


def pictures_of(attachments: Sequence[Any]) -> tuple[Picture, ...]:
    """Return attachments as `{media_type, data}`. Raises UsageError for a non-image."""
    if not attachments:
        return ()
    from ..models.images import image_block

    blocks = [image_block(a) for a in attachments]
    return tuple({"media_type": b.media_type, "data": b.data} for b in blocks)


def without_text(pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """Return pictures without their text chunks, as recorded and sent.

    The inputs of a run hash the pictures as given, so that old records are still found.
    """
    from ..wire.media import base64_without_text

    return tuple({**picture, "data": base64_without_text(picture["data"])} for picture in pictures)
