"""Pictures: their kind, and PNGs without texts."""

import base64
import io
import struct
import zlib

import pytest
from PIL import Image

from agent_nb.wire.media import PNG, base64_without_text, media_type, without_text


def chunk(name, data=b""):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


HEAD = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"pHYs", b"\0" * 9)
PIXELS = chunk(b"IDAT", zlib.compress(b"\0\x10\x20\x30")) + chunk(b"IEND")
PLAIN = PNG + HEAD + PIXELS
TEXTS = {
    "tEXt": chunk(b"tEXt", b"Comment\0" + b"sk-secret"),
    "zTXt": chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"sk-secret")),
    "iTXt": chunk(b"iTXt", b"Comment\0\0\0\0\0" + b"sk-secret"),
    "eXIf": chunk(b"eXIf", b"II*\0sk-secret"),
    "a chunk of nobody's": chunk(b"prVt", b"sk-secret"),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "made",
    [lambda t: PNG + HEAD + t + PIXELS, lambda t: PNG + t + HEAD + t + t + PIXELS],
    ids=["one", "several"],
)
def test_a_png_loses_its_texts_and_keeps_its_pixels_to_the_byte(text, made):
    assert without_text(made(TEXTS[text])) == PLAIN


def test_a_png_keeps_only_the_orientation_of_its_exif():
    exif = Image.Exif()
    exif.update({0x0112: 6, 0x010E: "sk-secret"})
    turned = without_text(PNG + HEAD + chunk(b"eXIf", exif.tobytes()[6:]) + PIXELS)
    assert dict(Image.open(io.BytesIO(turned)).getexif()) == {0x0112: 6}
    assert without_text(turned) is turned


def test_what_follows_the_end_of_a_png_goes():
    assert without_text(PLAIN + b"sk-secret") == PLAIN


def test_a_png_without_texts_is_the_very_same():
    assert without_text(PLAIN) is PLAIN


def test_a_png_that_breaks_off_keeps_whole_chunks():
    for cut in range(8, len(PLAIN)):
        kept = without_text(PLAIN[:cut])
        assert PLAIN.startswith(kept), cut
        assert without_text(kept) == kept, cut


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 1 << 20])
def test_a_chunk_that_claims_to_be_huge_hides_nothing(size):
    assert b"sk-secret" not in without_text(
        PNG + HEAD + struct.pack(">I", size) + b"tEXt" + b"sk-secret" + PIXELS
    )


def test_base64_of_a_png_is_cleaned_and_every_other_text_is_left():
    loaded = base64.b64encode(PNG + HEAD + TEXTS["tEXt"] + PIXELS).decode()
    assert base64.b64decode(base64_without_text(loaded)) == PLAIN
    for text in (
        "",
        "iVBORw0KGgo",
        "iVBORw0KGgo\N{SNOWMAN}",
        "hello",
        base64.b64encode(PLAIN).decode(),
        "\n".join("R0lGODlh"),
        "R0lGODlh",
        "UklGRg==",
    ):
        assert base64_without_text(text) == text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PLAIN, "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"", ""),
    ],
)
def test_the_kind_of_a_picture_is_in_its_first_bytes(data, kind):
    assert media_type(data) == kind
