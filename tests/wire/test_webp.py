"""WebPs lose what is not drawn, and nothing else."""

import base64
import io

import pytest
from helpers.pictures import frames, mandelbrot, opened
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.wire.media import base64_without_text, clean_attachment, without_text

Image = pytest.importorskip("PIL.Image")
PLACE = 0x8825  # the Exif tag of the GPS data


def made(turned=0, secret="", *, count=1, **options):
    exif = Image.Exif()
    if turned:
        exif[0x0112] = turned
    if secret:
        exif.get_ifd(PLACE)[1] = secret
        options["xmp"] = b"<x>" + secret.encode() + b"</x>"
    if turned or secret:
        options["exif"] = exif
    out = io.BytesIO()
    first, *more = [mandelbrot("RGBA", 20 + n) for n in range(count)]
    first.save(out, "WEBP", append_images=more, save_all=count > 1, **options)
    return out.getvalue()


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"count": 3}], ids=str)
def test_a_picture_loses_its_texts_and_keeps_its_pixels(options):
    loaded = made(secret="NORTH-SECRET", icc_profile=b"a profile", **options)
    assert loaded.count(b"SECRET") == 2
    clean = without_text(loaded + b"sk-after-the-end")
    assert b"SECRET" not in clean
    assert b"sk-" not in clean
    assert int.from_bytes(clean[4:8], "little") == len(clean) - 8
    assert frames(clean) == frames(loaded)
    assert opened(clean).info["icc_profile"] == b"a profile"
    assert not opened(clean).getexif()
    assert "xmp" not in opened(clean).info
    assert clean[20] & 0x0C == 0  # VP8X announces neither


@pytest.mark.parametrize("turned", range(2, 9))
def test_the_way_a_picture_is_turned_stays(turned):
    clean = without_text(made(turned, "NORTH-SECRET"))
    assert b"SECRET" not in clean
    assert dict(opened(clean).getexif()) == {0x0112: turned}
    assert without_text(clean) is clean


@pytest.mark.parametrize("count", [1, 3])
def test_a_picture_without_texts_is_the_very_same(count):
    plain = made(count=count)
    assert without_text(plain) is plain


def test_an_unknown_chunk_goes_also_from_a_frame():
    plain = made(count=2)
    at = plain.index(b"ANMF") + 8
    size = int.from_bytes(plain[at - 4 : at], "little")
    more = b"note\x09\0\0\0sk-secret\0"
    frame = (size + len(more)).to_bytes(4, "little") + plain[at : at + size] + more
    loaded = plain[: at - 4] + frame + plain[at + size :] + more
    loaded = loaded[:4] + (len(loaded) - 8).to_bytes(4, "little") + loaded[8:]
    assert without_text(loaded) == plain


def test_frames_in_frames_go():
    nested = b""
    for _ in range(5_000):
        nested = b"ANMF" + (len(nested) + 16).to_bytes(4, "little") + bytes(16) + nested
    head = b"RIFF" + (len(nested) + 4).to_bytes(4, "little") + b"WEBP"
    assert len(without_text(head + nested)) == 36


def test_attachments_and_base64_are_cleaned():
    loaded = made(secret="NORTH-SECRET")
    given_ = {"data": base64.b64encode(loaded).decode()}
    cleaned = base64.b64encode(without_text(loaded)).decode()
    assert clean_attachment(given_) == {"media_type": "image/webp", "data": cleaned}
    assert base64_without_text(given_["data"]) == cleaned


LOADED = made(6, "NORTH-SECRET", count=2)


def test_a_picture_that_breaks_off_anywhere_says_nothing():
    for cut in range(12, len(LOADED)):
        kept = without_text(LOADED[:cut])
        assert b"SECRET" not in kept, cut
        assert without_text(kept) == kept, cut


CHUNK = st.sampled_from([b"VP8X", b"ANMF", b"EXIF", b"XMP ", b"VP8 "])


@given(st.lists(st.one_of(st.binary(max_size=40), CHUNK)).map(b"".join), st.integers(0, 200))
def test_any_bytes_after_the_start_are_read(rest, size):
    kept = without_text(b"RIFF" + size.to_bytes(4, "little") + b"WEBP" + rest)
    assert without_text(kept) == kept
