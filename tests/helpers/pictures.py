"""Pictures for tests: PNGs made without a library, others with Pillow."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib
from typing import Any

from agent_nb.wire.media import PNG


def chunk(name: bytes, data: bytes = b"") -> bytes:
    """Return one chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(
    width: int = 4,
    height: int = 3,
    colour: tuple[int, int, int] = (200, 30, 30),
    *,
    noise: int = 0,
    level: int = 6,
    text: bytes = b"",
) -> bytes:
    """Return a PNG of one colour.

    `noise`: seed of random pixels (0: none), which do not compress. `level`: of zlib. `text`: a
    comment in it.
    """
    if noise:
        source = random.Random(noise)
        rows = b"".join(b"\0" + source.randbytes(3 * width) for _ in range(height))
    else:
        rows = (b"\0" + bytes(colour) * width) * height
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    said = chunk(b"tEXt", b"Comment\0" + text) if text else b""
    return PNG + head + said + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND")


def base64_of(data: bytes) -> str:
    """Return bytes as base64 text."""
    return base64.b64encode(data).decode()


def attached(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    """Return a picture as an attachment."""
    return {"media_type": kind, "data": base64_of(data)}


def mandelbrot(mode: str, shade: int = 20, size: tuple[int, int] = (9, 7)) -> Any:
    """Return an image of Pillow with many colours, in a mode of Pillow."""
    from PIL import Image

    return Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), shade).convert(mode)


def opened(data: bytes) -> Any:
    """Return the image of Pillow in a file."""
    from PIL import Image

    return Image.open(io.BytesIO(data))


def frames(data: bytes) -> list[bytes]:
    """Return the pixels of each frame of a picture, as RGBA."""
    shown = opened(data)
    numbers = range(getattr(shown, "n_frames", 1))
    return [(shown.seek(n), shown.convert("RGBA").tobytes())[1] for n in numbers]
