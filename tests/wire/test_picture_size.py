"""The size of a picture is read from its head, as Pillow reads it; rubbish has none."""

import io

import pytest
from helpers.pictures import attached, png
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agent_nb.wire.picture_size import (
    describe_picture,
    describe_size,
    measure_picture,
    size_of,
)

KINDS = ("PNG", "JPEG", "GIF", "WEBP")


def saved(form, size=(37, 19), **options):
    target = io.BytesIO()
    Image.new("RGB", size, "red").save(target, form, **options)
    return target.getvalue()


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("size", [(37, 19), (1, 300), (640, 480)])
def test_the_size_of_every_kind(form, size):
    assert measure_picture(saved(form, size)) == size


@pytest.mark.parametrize(
    "options", [{"lossless": True}, {"lossless": False}, {"save_all": True, "exif": b"Exif\0\0x"}]
)
def test_the_size_of_every_form_of_webp(options):
    assert measure_picture(saved("WEBP", **options)) == (37, 19)


def test_the_size_of_a_jpeg_behind_a_long_comment():
    data = saved("JPEG", comment=b"x" * 60_000, progressive=True)
    assert size_of(attached(data, "image/jpeg")) == (37, 19)


@pytest.mark.parametrize("form", KINDS)
def test_a_cut_picture_has_a_size_or_none(form):
    data = saved(form)
    for end in range(len(data)):
        assert measure_picture(data[:end]) in (None, (37, 19))


@given(st.binary(), st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b""]))
def test_rubbish_raises_nothing(data, head):
    measure_picture(head + data)


@pytest.mark.parametrize("data", [None, 3, "", "no base64!", "AAAA"])
def test_an_attachment_without_a_picture_has_no_size(data):
    assert describe_size({"data": data}) == ""


def test_words_of_a_picture():
    picture = attached(png(700, 300))
    assert describe_picture(2, picture) == "[figure 2: 700×300 pixels]"
    assert describe_picture(2, {}) == "[figure 2]"
    words = describe_picture("figure 1", picture, "a picture the model cannot see")
    assert words == "[a picture the model cannot see: figure 1, 700×300]"
