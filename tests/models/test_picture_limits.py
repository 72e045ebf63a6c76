"""A picture within a model's limits is sent as it is; a larger one is scaled down."""

import base64
import io
import random

import pytest
from helpers.pictures import base64_of, chunk, png
from PIL import Image

from agent_nb.models import picture_limits
from agent_nb.models.picture_limits import ADVICE, BROKEN, HUGE, MOST_BYTES, FittedPicture
from agent_nb.wire.media import PNG


def saved(picture, form, **options):
    target = io.BytesIO()
    picture.save(target, form, **options)
    return target.getvalue()


def noise(width, height, mode="RGB"):
    data = random.Random(7).randbytes(width * height * len(mode))
    return Image.frombytes(mode, (width, height), data)


def opened(found):
    return Image.open(io.BytesIO(base64.b64decode(found.data)))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_picture_within_the_limits_is_not_touched(form):
    data = base64_of(saved(noise(90, 40), form))
    assert FittedPicture.fit(data).data == data


@pytest.mark.parametrize("size", [(1025, 10), (10, 3000), (2048, 2048)])
def test_a_large_picture_is_scaled_to_the_longer_side(size):
    small = opened(FittedPicture.fit(base64_of(png(*size))))
    assert max(small.size) == FittedPicture.SIDE
    assert small.format == "PNG"


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_picture_of_many_bytes_becomes_a_jpeg_that_fits(mode):
    found = FittedPicture.fit(base64_of(saved(noise(1000, 1000, mode), "PNG")))
    assert found.media_type == "image/jpeg"
    assert len(base64.b64decode(found.data)) <= MOST_BYTES
    assert opened(found).size == (1000, 1000)


def test_a_limit_that_no_quality_meets_makes_the_picture_smaller():
    found = FittedPicture.fit(base64_of(saved(noise(600, 600), "PNG")), most=20_000)
    assert len(base64.b64decode(found.data)) <= 20_000
    assert opened(found).size[0] < 600


def test_what_is_transparent_stays_so():
    small = opened(
        FittedPicture.fit(base64_of(saved(Image.new("RGBA", (2000, 20), (0, 0, 0, 0)), "PNG")))
    )
    assert small.getpixel((5, 5))[3] == 0


def test_a_photo_stays_a_jpeg_and_upright():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    data = saved(noise(1500, 1100), "JPEG", exif=exif)
    found = FittedPicture.fit(base64_of(data))
    assert (found.media_type, opened(found).size) == ("image/jpeg", (751, 1024))


def test_a_moving_picture_that_is_too_large_stands_still():
    frames = [noise(1200, 20), noise(1200, 20)]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert opened(FittedPicture.fit(base64_of(data))).size == (1024, 17)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("no base64", BROKEN),
        (base64_of(b"text"), BROKEN),
        (base64_of(png(2000, 9)[:60]), BROKEN),
        (base64_of(PNG + chunk(b"IHDR", b"\0\1\0\0\0\1\0\0\10\2\0\0\0")), HUGE),
    ],
    ids=["no base64", "no picture", "cut", "4 billion pixels"],
)
def test_a_picture_that_cannot_be_sent_says_why(data, why):
    found = FittedPicture.fit(data)
    assert (found.data, found.why, found.advice) == ("", why, ADVICE[why])


def test_a_picture_whose_size_lies_in_its_head_is_not_unfolded(monkeypatch):
    monkeypatch.setattr(picture_limits, "MOST_PIXELS", 1_000)
    assert FittedPicture.fit(base64_of(png(1100, 10))).why == HUGE


def test_a_picture_of_which_only_pillow_knows_the_size_is_too_large(monkeypatch):
    monkeypatch.setattr(picture_limits, "MOST_PIXELS", 1_000)
    monkeypatch.setattr(picture_limits, "measure_picture", lambda raw: None)
    assert FittedPicture.fit(base64_of(png(1100, 10))).why == HUGE
