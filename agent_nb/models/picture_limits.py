"""Fits a picture to a model: no larger than the model needs to recognise its content.

Models scale pictures down themselves, bill by their size, and refuse large ones. Pictures come from
strangers: one of more than `MOST_PIXELS` is not decoded, since few bytes can fill all memory.
"""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any, ClassVar

import msgspec

from ..wire import measure_picture, media_type

MOST_BYTES = 1_000_000  # bytes of a picture that is sent
MOST_PIXELS = 40_000_000  # pixels of a picture that is decoded
_QUALITIES = (85, 70, 50)  # of JPEG, tried in this order before the picture is halved
BROKEN = "a picture that cannot be opened"
HUGE = "a picture too large to be sent"
# why a picture is not sent -> what the user can do about it
ADVICE = {
    BROKEN: "It cannot be opened: save it again, as PNG.",
    HUGE: "It is too large: make it smaller.",
}
NO_PILLOW = "It is too large, and scaling it down needs Pillow: pip install pillow."


class FittedPicture(msgspec.Struct, frozen=True):
    """A picture to send (`data` in base64), or in words `why` it is not sent, with `advice`."""

    SIDE: ClassVar[int] = 1024  # pixels of the longer side
    USER_SIDE: ClassVar[int] = 2048  # of a picture that the user attached: details may matter

    media_type: str = ""
    data: str = ""
    why: str = ""
    advice: str = ""

    @classmethod
    def fit(cls, data: str, side: int = SIDE, most: int = MOST_BYTES) -> FittedPicture:
        """Return a picture, given in base64, within `side` pixels and `most` bytes; never raises.

        `side` limits the longer side, `most` the bytes before base64. A moving picture that is too
        large is reduced to its first frame.
        """
        try:
            raw = base64.b64decode(data)
        except (binascii.Error, ValueError):
            return _make_unsent(BROKEN)
        kind, size = media_type(raw), measure_picture(raw)
        if not kind:
            return _make_unsent(BROKEN)
        if size is not None and max(size) <= side and len(raw) <= most:
            return cls(kind, data)
        if size is not None and size[0] * size[1] > MOST_PIXELS:
            return _make_unsent(HUGE)
        try:
            from PIL import Image
        except ImportError:
            return cls(why=HUGE, advice=NO_PILLOW)
        try:
            with Image.open(io.BytesIO(raw)) as picture:
                small = _scale_down(picture, side)
            return _compress(small, most, photo=kind == "image/jpeg")
        except Image.DecompressionBombError:
            return _make_unsent(HUGE)
        except (OSError, ValueError, SyntaxError, MemoryError):
            return _make_unsent(BROKEN)


def _make_unsent(why: str) -> FittedPicture:
    return FittedPicture(why=why, advice=ADVICE[why])


def _scale_down(picture: Any, side: int) -> Any:
    from PIL import Image, ImageOps

    # checked again: the size read from the first bytes may be unknown, or not the one Pillow reads
    if picture.size[0] * picture.size[1] > MOST_PIXELS:
        raise Image.DecompressionBombError(HUGE)
    picture.draft("RGB", (side, side))  # a JPEG is decoded at a fraction of its size
    upright = ImageOps.exif_transpose(picture)
    small = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


def _compress(picture: Any, most: int, *, photo: bool) -> FittedPicture:
    """Return a picture as PNG (a photo as JPEG) if that fits, else smaller and smaller as JPEG."""
    if not photo:
        data = _save(picture, "PNG", optimize=True)
        if len(data) <= most:
            return _encode("image/png", data)
    plain = _put_on_white(picture)
    while True:
        for quality in _QUALITIES:
            data = _save(plain, "JPEG", quality=quality)
            if len(data) <= most:
                return _encode("image/jpeg", data)
        if max(plain.size) < 2:
            return _make_unsent(HUGE)
        plain = plain.resize((max(1, plain.size[0] // 2), max(1, plain.size[1] // 2)))


def _put_on_white(picture: Any) -> Any:
    from PIL import Image

    if picture.mode == "RGB":
        return picture
    ground = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(ground, picture).convert("RGB")


def _save(picture: Any, form: str, **options: Any) -> bytes:
    target = io.BytesIO()
    picture.save(target, form, **options)
    return target.getvalue()


def _encode(kind: str, data: bytes) -> FittedPicture:
    return FittedPicture(kind, base64.b64encode(data).decode("ascii"))
