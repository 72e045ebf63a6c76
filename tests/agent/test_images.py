"""Images for messages."""

import base64
from types import SimpleNamespace

import pandas as pd
import pytest

from agent_nb.agent import images
from agent_nb.agent.attachments import pictures_of
from agent_nb.agent.images import image_block
from agent_nb.errors import UsageError
from agent_nb.models import ImageBlock

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"
OTHERS = [
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
]


@pytest.mark.parametrize(("data", "kind"), [(PNG, "image/png"), *OTHERS])
def test_the_format_is_read_from_the_bytes(data, kind):
    block = image_block(data)
    assert (block.media_type, base64.b64decode(block.data)) == (kind, data)


@pytest.mark.parametrize("wrap", [str, lambda path: path])
def test_a_path_is_read(tmp_path, wrap):
    (tmp_path / "x.bin").write_bytes(PNG)
    assert image_block(wrap(tmp_path / "x.bin")).media_type == "image/png"


class Pillow:
    def save(self, file, format):  # noqa: A002  (Pillow's name)
        assert format == "PNG"
        file.write(PNG)


class Figure:
    def savefig(self, file, **options):
        assert options["format"] == "png"
        file.write(PNG)


class Displayed:
    def _repr_png_(self):
        return PNG


@pytest.mark.parametrize(
    "source", [Pillow(), Figure(), Displayed(), bytearray(PNG), memoryview(PNG)]
)
def test_objects_that_can_become_png_are_written(source):
    assert image_block(source).media_type == "image/png"


@pytest.mark.parametrize("wrap", [list, tuple, iter, lambda pictures: pictures[0]])
def test_one_attachment_needs_no_list(tmp_path, wrap):
    path = tmp_path / "x.png"
    path.write_bytes(PNG)
    for source in (str(path), path, PNG, Pillow(), {"data": base64.b64encode(PNG).decode()}):
        (picture,) = pictures_of(wrap([source]))
        assert base64.b64decode(picture["data"])[:8] == PNG[:8]
    assert pictures_of(None) == ()


def test_a_block_passes():
    assert image_block(image_block(PNG)) == image_block(PNG)


class Broken:
    def save(self, file, format):  # noqa: A002  (Pillow's name)
        raise ValueError("mode F")


class Model:
    def save(self, folder, format="pt"):  # noqa: A002  (Pillow's name)
        folder.mkdir()


def test_a_block_that_is_not_base64_is_a_usage_error():
    with pytest.raises(UsageError, match="ImageBlock is not an image"):
        image_block(ImageBlock("image/png", "a"))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"hello", "not a PNG, JPEG, GIF or WebP"),
        (3, "A value of type int is not an image"),
        (pd.DataFrame({"a": [1]}), r"DataFrame is a table.*\{\{ its name \}\}.*--map"),
        (pd.Series([1]), "Series is a table"),
        ("none.png", "none.png cannot be read: No such file"),
        ("a\0.png", "cannot be read: embedded null byte"),
        (Broken(), "could not be written as PNG: mode F"),
        (Model(), "could not be written as PNG: .*has no attribute 'mkdir'"),
    ],
)
def test_a_source_that_is_not_an_image_is_a_usage_error(source, words):
    with pytest.raises(UsageError, match=words):
        image_block(source)


def test_what_fails_to_draw_itself_is_a_usage_error():
    drawing = SimpleNamespace(_repr_png_=lambda: 1 / 0)
    with pytest.raises(UsageError, match="could not be written as PNG: division by zero"):
        image_block(drawing)


def test_what_draws_itself_as_no_bytes_is_not_an_image():
    drawing = SimpleNamespace(_repr_png_=lambda: (PNG, {"width": 1}))
    with pytest.raises(UsageError, match="is not an image: give a path"):
        image_block(drawing)


def test_an_image_that_is_too_large_is_a_usage_error(monkeypatch, tmp_path):
    monkeypatch.setattr(images, "MOST_BYTES", 8)
    (tmp_path / "x.png").write_bytes(PNG)
    for source in (PNG, tmp_path / "x.png"):
        with pytest.raises(UsageError, match=r"[Mm]ake it smaller"):
            image_block(source)
