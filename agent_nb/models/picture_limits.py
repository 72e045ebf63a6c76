"""A picture as a model gets it: no larger than needed to see what is on it.

Why: models scale pictures down themselves, bill by their size, and refuse large ones.

Rules
- Within the limits a picture is sent as it is, byte for byte. A larger one is scaled down, as PNG;
  as JPEG where PNG has too many bytes.
- Only the first frame of a moving picture that is too large is sent.
- Scaling needs Pillow, which is optional and imported when it is needed; without it a picture
  beyond the limits is not sent, and the reason says how to change that.
- Pictures come from strangers: one of more than `LARGEST` pixels is not opened.
"""

from __future__ import annotations

import base64
import binascii
import io
from typing import Any

import msgspec

from ..wire import measure_picture, media_type

SIDE = 1024  # pixels of the longer side
GIVEN_SIDE = 2048  # of a picture that the user attached: the details may be the question
MOST = 1_000_000  # bytes
LARGEST = 40_000_000  # pixels
_QUALITIES = (85, 70, 50)
BROKEN = "a picture that cannot be opened"
HUGE = "a picture too large to be sent"
# what a user can do about a picture that is not sent
ADVICE = {
    BROKEN: "It cannot be opened: save it again, as PNG.",
    HUGE: "It is too large: make it smaller.",
}
NO_PILLOW = "It is too large, and scaling it down needs Pillow: pip install pillow."


class Fitted(msgspec.Struct, frozen=True):
    """A picture to send, or the words `why` it is not sent, with `advice` to the user."""

    media_type: str = ""
    data: str = ""
    why: str = ""
    advice: str = ""


def fit_picture(data: str, side: int = SIDE, most: int = MOST) -> Fitted:
    """Return a picture in base64 within `side` pixels and `most` bytes; never raises."""
    try:
        raw = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return Fitted(why=BROKEN, advice=ADVICE[BROKEN])
    kind, size = media_type(raw), measure_picture(raw)
    if not kind:
        return Fitted(why=BROKEN, advice=ADVICE[BROKEN])
    if size is not None and max(size) <= side and len(raw) <= most:
        return Fitted(kind, data)
    if size is not None and size[0] * size[1] > LARGEST:
        return Fitted(why=HUGE, advice=ADVICE[HUGE])
    try:
        from PIL import Image
    except ImportError:
        return Fitted(why=HUGE, advice=NO_PILLOW)
    try:
        with Image.open(io.BytesIO(raw)) as picture:
            small = _scaled(picture, side)
        return _written(small, most, photo=kind == "image/jpeg")
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError):
        return Fitted(why=BROKEN, advice=ADVICE[BROKEN])


def _scaled(picture: Any, side: int) -> Any:
    from PIL import Image, ImageOps

    if picture.size[0] * picture.size[1] > LARGEST:
        raise ValueError(HUGE)
    picture.draft("RGB", (side, side))  # a JPEG is decoded at a fraction of its size
    upright = ImageOps.exif_transpose(picture)
    small = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


def _written(picture: Any, most: int, *, photo: bool) -> Fitted:
    """Return a picture as PNG (a photo as JPEG) if that fits, else smaller and smaller as JPEG."""
    if not photo:
        data = _saved(picture, "PNG", optimize=True)
        if len(data) <= most:
            return _fit("image/png", data)
    plain = _on_white(picture)
    while True:
        for quality in _QUALITIES:
            data = _saved(plain, "JPEG", quality=quality)
            if len(data) <= most:
                return _fit("image/jpeg", data)
        if max(plain.size) < 2:
            return Fitted(why=HUGE, advice=ADVICE[HUGE])
        plain = plain.resize((max(1, plain.size[0] // 2), max(1, plain.size[1] // 2)))


def _on_white(picture: Any) -> Any:
    from PIL import Image

    if picture.mode == "RGB":
        return picture
    ground = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(ground, picture).convert("RGB")


def _saved(picture: Any, form: str, **options: Any) -> bytes:
    target = io.BytesIO()
    picture.save(target, form, **options)
    return target.getvalue()


def _fit(kind: str, data: bytes) -> Fitted:
    return Fitted(kind, base64.b64encode(data).decode("ascii"))
