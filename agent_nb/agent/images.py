"""Makes the image block of a message from a path, bytes, a PIL image or a Matplotlib figure.

Models take PNG, JPEG, GIF and WebP, as base64. Files and bytes must have one of these formats;
objects that can draw themselves are written as PNG. They are recognised by their methods: neither
PIL nor Matplotlib is imported here.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..models import ImageBlock
from ..wire import media_type

MOST_BYTES = 20 * 1024 * 1024  # of an image file


def image_block(source: Any) -> ImageBlock:
    """Return `source` as an image block. Raises UsageError if it cannot be sent as one."""
    data = _read_bytes(source)
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"The image has {len(data) / 1e6:.0f} MB; at most {MOST_BYTES / 1e6:.0f} MB can be sent. Make it smaller."
        )
    kind = media_type(data)
    if not kind:
        raise UsageError(f"{_describe_source(source)} is not a PNG, JPEG, GIF or WebP image.")
    return ImageBlock(kind, base64.b64encode(data).decode("ascii"))


def _read_bytes(source: Any) -> bytes:
    """Return the image file that `source` names, contains or draws. Raises UsageError."""
    if isinstance(source, ImageBlock):
        with suppress(ValueError):
            return base64.b64decode(source.data)
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source)
    if isinstance(source, str | Path):
        return _read_file(Path(os.path.expanduser(source)))
    # `savefig` of a Matplotlib figure, `save` of a PIL image
    for method, options in (
        ("savefig", {"format": "png", "bbox_inches": "tight"}),
        ("save", {"format": "PNG"}),
    ):
        write = getattr(source, method, None)
        if callable(write):
            return _write_png(write, options, source)
    png = getattr(source, "_repr_png_", None)  # how other objects draw themselves in a notebook
    if callable(png):

        def write_drawn(raw: io.BytesIO) -> None:
            raw.write(drawn if isinstance(drawn := png(), bytes) else b"")

        if data := _write_png(write_drawn, {}, source):
            return data
    # a data frame, or a series
    if hasattr(source, "columns") or (hasattr(source, "to_frame") and hasattr(source, "dtype")):
        raise UsageError(
            f"A {type(source).__name__} is a table, not an image. Point at it with @ and its name in the prompt, put it there with {{{{ its name }}}}, or ask about each of its rows with --map (agent.map)."
        )
    raise UsageError(
        f"{_describe_source(source)} is not an image: give a path, bytes, a PIL image or a Matplotlib figure."
    )


def _read_file(path: Path) -> bytes:
    try:
        if path.is_fifo() or path.is_char_device():  # reading it may never end
            raise UsageError(f"The image {path} is a pipe or a device: save it as a file first.")
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} is larger than {MOST_BYTES / 1e6:.0f} MB. Make it smaller.")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null byte
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"The image {path} cannot be read: {reason}.") from None


def _write_png(write: Callable[..., object], options: dict[str, str], source: Any) -> bytes:
    """Return what the method `write` of `source` writes with `options`. Raises UsageError."""
    buffer = io.BytesIO()
    try:
        write(buffer, **options)
    except Exception as error:  # many objects have a `save` that writes no picture
        raise UsageError(
            f"{_describe_source(source)} could not be written as PNG: {error}."
        ) from None
    return buffer.getvalue()


def _describe_source(source: Any) -> str:
    """Return how a message names the source: a path itself, else its type."""
    is_path = isinstance(source, str | Path)
    return str(source) if is_path else f"A value of type {type(source).__name__}"
