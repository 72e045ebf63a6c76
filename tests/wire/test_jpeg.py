"""JPEGs lose what is not drawn, and nothing else."""

import base64
import io

import pytest
from helpers.pictures import mandelbrot, opened
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.wire.media import base64_without_text, clean_attachment, without_text

Image = pytest.importorskip("PIL.Image")
PLACE = 0x8825  # the Exif tag of the GPS data


def photo(turned=0, place=b"", *, comment=b"", progressive=False, profile=b"", size=(40, 30)):
    picture = mandelbrot("RGB", size=size)
    exif = Image.Exif()
    if turned:
        exif[0x0112] = turned
    if place:
        exif.get_ifd(PLACE)[1] = place.decode()
    out = io.BytesIO()
    options = {"icc_profile": profile} if profile else {}
    picture.save(
        out, "JPEG", exif=exif, comment=comment, progressive=progressive, quality=90, **options
    )
    return out.getvalue()


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
def test_a_photo_loses_its_place_and_comment_and_keeps_its_pixels(progressive):
    loaded = photo(place=b"NORTH-SECRET", comment=b"sk-secret", progressive=progressive)
    assert b"NORTH-SECRET" in loaded
    clean = without_text(loaded + b"sk-after-the-end")
    assert b"SECRET" not in clean
    assert b"sk-" not in clean
    assert opened(clean).tobytes() == opened(loaded).tobytes()
    assert not opened(clean).getexif()


@pytest.mark.parametrize("turned", range(2, 9))
def test_the_way_a_photo_is_turned_stays(turned):
    clean = without_text(photo(turned, b"NORTH-SECRET"))
    assert dict(opened(clean).getexif()) == {0x0112: turned}
    assert without_text(clean) is clean


def test_the_colour_profile_stays():
    clean = without_text(photo(comment=b"sk-secret", profile=b"a profile"))
    assert opened(clean).info["icc_profile"] == b"a profile"


def test_a_photo_without_text_is_the_very_same():
    clean = without_text(photo())
    assert without_text(clean) is clean


def test_attachments_and_base64_are_cleaned():
    loaded = photo(comment=b"sk-secret")
    given_ = {"data": base64.b64encode(loaded).decode()}
    cleaned = base64.b64encode(without_text(loaded)).decode()
    assert clean_attachment(given_) == {"media_type": "image/jpeg", "data": cleaned}
    assert base64_without_text(given_["data"]) == cleaned


LOADED = photo(6, b"NORTH-SECRET", comment=b"sk-secret", size=(9, 7))


def test_a_photo_that_breaks_off_anywhere_says_nothing():
    for cut in range(2, len(LOADED)):
        kept = without_text(LOADED[:cut])
        assert b"SECRET" not in kept, cut
        assert b"sk-secret" not in kept, cut
        assert without_text(kept) == kept, cut


@pytest.mark.parametrize("after", [b"", b"\0", b"\xd9", b"\xfe\0\x0bsk-secret"])
def test_a_scan_full_of_fill_bytes_is_read_once(after):
    """A search that begins again at each of them does not end."""
    whole = b"\xff\xd8\xff\xda\0\x02" + b"\xff" * 1_000_000 + after
    kept = without_text(whole)
    assert whole.startswith(kept)
    assert b"sk-secret" not in kept
    assert len(kept) >= 1_000_000


@given(st.binary(max_size=300))
def test_any_bytes_after_the_start_are_read(rest):
    kept = without_text(b"\xff\xd8" + rest)
    assert without_text(kept) == kept
