"""Whether two pictures look the same."""

import base64
import io
import sys

import pytest

from agent_nb.record.pictures import compare


def picture(size=(20, 20), marks=(), colour=(200, 0, 0), level=6):
    image = pytest.importorskip("PIL.Image").new("RGB", size, colour)
    for place, other in marks:
        image.putpixel(place, other)
    target = io.BytesIO()
    image.save(target, "png", compress_level=level)
    return base64.b64encode(target.getvalue()).decode()


BLACK = (0, 0, 0)


def test_another_file_of_the_same_picture_is_the_same():
    assert picture(level=0) != picture(level=9)
    assert compare(picture(level=0), picture(level=9)).difference == ""


@pytest.mark.parametrize(("marks", "differs"), [(4, False), (5, True)])
def test_one_pixel_of_a_hundred_may_differ(marks, differs):
    other = picture(marks=[((n, 0), BLACK) for n in range(marks)])
    assert bool(compare(picture(), other).difference) is differs


@pytest.mark.parametrize(("red", "differs"), [(184, False), (183, True)])
def test_a_colour_may_be_off_by_sixteen(red, differs):
    assert bool(compare(picture(), picture(colour=(red, 0, 0))).difference) is differs


def test_another_size_is_a_difference():
    assert compare(picture(), picture((20, 21))).difference == "it is 20 × 21 pixels, not 20 × 20"


def test_a_picture_that_is_gone_is_a_difference():
    assert compare(picture(), None).difference == "a picture is missing"
    assert compare(None, picture()).difference == "there is a picture"


def test_invalid_pictures_compare_by_their_bytes():
    assert compare("AAAA", "AAAA").difference == ""
    assert compare("AAAA", picture()).difference
    assert compare("not base64!", picture()).difference


def test_without_pillow_pictures_are_not_compared_and_it_says_so(monkeypatch):
    one, other = picture(), picture(colour=BLACK)
    monkeypatch.setitem(sys.modules, "PIL", None)
    found = compare(one, other)
    assert (found.difference, found.unseen) == (
        "",
        "pictures are compared with Pillow: pip install pillow",
    )
