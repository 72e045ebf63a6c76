"""Whether two pictures look the same."""

import base64
import io
import struct
import sys

import pytest

from agent_nb.record.pictures import PictureComparison


def picture(size=(20, 20), marks=(), colour=(200, 0, 0), level=6):
    image = pytest.importorskip("PIL.Image").new("RGB", size, colour)
    for place, other in marks:
        image.putpixel(place, other)
    target = io.BytesIO()
    image.save(target, "png", compress_level=level)
    return base64.b64encode(target.getvalue()).decode()


BLACK = (0, 0, 0)


def test_the_colour_of_transparent_pixels_is_no_difference():
    pillow = pytest.importorskip("PIL.Image")
    pictures = []
    for colour in ((255, 0, 0), (0, 0, 255)):
        target = io.BytesIO()
        pillow.new("RGBA", (9, 9), (*colour, 0)).save(target, "png")
        pictures.append(base64.b64encode(target.getvalue()).decode())
    assert PictureComparison.of_pair(*pictures).difference == ""


def test_another_file_of_the_same_picture_is_the_same():
    assert picture(level=0) != picture(level=9)
    assert PictureComparison.of_pair(picture(level=0), picture(level=9)).difference == ""


def test_of_an_animation_what_follows_the_first_picture_is_unseen():
    pillow = pytest.importorskip("PIL.Image")
    animations = []
    for colour in ("red", "blue"):
        first, last = (pillow.new("RGB", (9, 9), each) for each in ("white", colour))
        target = io.BytesIO()
        first.save(target, "gif", save_all=True, append_images=[last])
        animations.append(base64.b64encode(target.getvalue()).decode())
    comparison = PictureComparison.of_pair(*animations)
    assert comparison == PictureComparison(unseen="an animation after its first picture")


@pytest.mark.parametrize(("marks", "differs"), [(4, False), (5, True)])
def test_one_pixel_of_a_hundred_of_a_figure_may_differ(marks, differs):
    other = picture(marks=[((n, 0), BLACK) for n in range(marks)])
    assert bool(PictureComparison.of_pair(picture(), other, figure=True).difference) is differs


@pytest.mark.parametrize(("marks", "differs"), [(2, False), (3, True)])
def test_in_each_tile_of_a_picture_one_pixel_of_a_hundred_may_differ(marks, differs):
    other = picture((640, 480), marks=[((n + 100, 200), BLACK) for n in range(marks)])
    words = "1% of its pixels near (96, 192) differ" if differs else ""
    assert PictureComparison.of_pair(picture((640, 480)), other).difference == words


def written(text, smoothed="BOX", width=1, lower=0):
    """Return a picture that is drawn large and made small, which smooths its edges."""
    pillow = pytest.importorskip("PIL.Image")
    image = pillow.new("RGB", (1280, 960), "white")
    draw = pytest.importorskip("PIL.ImageDraw").Draw(image)
    draw.text((160, 120), text, "black", font_size=56)
    draw.line((40, 400, 1200, 720), "blue", width=4 * width)
    draw.rectangle((400, 800, 480, 920 - 4 * lower), "green")
    image = image.resize((320, 240), getattr(pillow.Resampling, smoothed))
    target = io.BytesIO()
    image.save(target, "png")
    return base64.b64encode(target.getvalue()).decode()


@pytest.mark.parametrize(
    "change",
    [{"text": "p = 0.05"}, {"text": "p = 0.04 "}, {"lower": 3}, {"width": 5}],
    ids=["a digit", "nothing", "a bar", "a line"],
)
def test_a_small_change_of_a_picture_is_noticed(change):
    found = PictureComparison.of_pair(
        written("p = 0.04"), written(**{"text": "p = 0.04", **change})
    ).difference
    assert bool(found) is (change != {"text": "p = 0.04 "})


def test_a_patch_that_is_a_little_darker_is_noticed():
    mark = [((n % 10 + 100, n // 10 + 100), (160, 0, 0)) for n in range(100)]
    assert (
        "differ"
        in PictureComparison.of_pair(
            picture((640, 480)), picture((640, 480), marks=mark)
        ).difference
    )


@pytest.mark.parametrize("smoothed", ["HAMMING", "BILINEAR", "BICUBIC"])
def test_edges_of_a_picture_that_are_smoothed_otherwise_are_the_same(smoothed):
    assert written("p = 0.04") != written("p = 0.04", smoothed)
    assert (
        PictureComparison.of_pair(written("p = 0.04"), written("p = 0.04", smoothed)).difference
        == ""
    )


@pytest.mark.parametrize(("red", "differs"), [(184, False), (183, True)])
def test_a_colour_may_be_off_by_sixteen(red, differs):
    assert (
        bool(PictureComparison.of_pair(picture(), picture(colour=(red, 0, 0))).difference)
        is differs
    )


def test_another_size_is_a_difference():
    assert (
        PictureComparison.of_pair(picture(), picture((20, 21))).difference
        == "it is 20 × 21 pixels, not 20 × 20"
    )


def test_a_picture_that_is_gone_is_a_difference():
    assert PictureComparison.of_pair(picture(), None).difference == "a picture is missing"
    assert PictureComparison.of_pair(None, picture()).difference == "there is a picture"


def test_invalid_pictures_compare_by_their_bytes():
    assert PictureComparison.of_pair("AAAA", "AAAA").difference == ""
    assert PictureComparison.of_pair("AAAA", picture()).difference
    assert PictureComparison.of_pair("not base64!", picture()).difference


def test_without_pillow_pictures_are_not_compared_and_it_says_so(monkeypatch):
    one, other = picture(), picture(colour=BLACK)
    monkeypatch.setitem(sys.modules, "PIL", None)
    found = PictureComparison.of_pair(one, other)
    assert (found.difference, found.unseen) == (
        "",
        "pictures are compared with Pillow: pip install pillow",
    )


def test_a_file_of_another_kind_is_not_opened(monkeypatch):
    image = pytest.importorskip("PIL.Image").new("RGB", (20, 20), BLACK)
    stamp = io.BytesIO()
    image.save(stamp, "EPS")
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *_: pytest.fail("a program ran"))
    forged = base64.b64encode(stamp.getvalue()).decode()
    assert (
        PictureComparison.of_pair(forged, picture()).difference
        == "it cannot be opened and is not the same file"
    )


def test_a_picture_that_claims_a_hundred_million_pixels_is_not_opened():
    huge = base64.b64decode(picture())
    huge = huge[:16] + struct.pack(">II", 10_000, 10_000) + huge[24:]
    found = PictureComparison.of_pair(base64.b64encode(huge).decode(), picture())
    assert found.unseen == "a picture of 100,000,000 pixels is too large to be compared"
