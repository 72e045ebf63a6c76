"""GIFs lose what is not drawn, and nothing else."""

import base64
import io

import pytest
from helpers.pictures import frames, mandelbrot, opened
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.wire.media import base64_without_text, clean_attachment, without_text

pytest.importorskip("PIL.Image")
XMP = b"\x21\xff\x0bXMP DataXMP\x09sk-secret\0"
NOTE = b"\x21\xfe\x09sk-secret\0"
WORDS = b"\x21\x01\x0c" + bytes(12) + b"\x09sk-secret\0"


def made(count=1, **options):
    out = io.BytesIO()
    first, *more = [mandelbrot("P", 20 + 9 * n) for n in range(count)]
    first.save(out, "GIF", append_images=more, save_all=count > 1, **options)
    return out.getvalue()


PLAIN = made(3, loop=0, duration=[10, 20, 30])
FIRST = PLAIN.index(b"\x21\xff\x0bNETSCAPE2.0")
LOADED = PLAIN[:FIRST] + NOTE + XMP + WORDS + PLAIN[FIRST:-1] + b"\0" + NOTE + PLAIN[-1:]


def test_a_picture_loses_its_texts_and_keeps_frames_and_times():
    clean = without_text(LOADED + b"sk-after-the-end")
    assert clean == PLAIN
    assert len(frames(clean)) == 3
    assert opened(clean).info["loop"] == 0
    assert b"sk-secret" not in without_text(made(comment=b"sk-secret"))


@pytest.mark.parametrize("plain", [made(), PLAIN], ids=["one", "several"])
def test_a_picture_without_texts_is_the_very_same(plain):
    assert without_text(plain) is plain


def test_attachments_and_base64_are_cleaned():
    given_ = {"data": base64.b64encode(LOADED).decode()}
    cleaned = base64.b64encode(PLAIN).decode()
    assert clean_attachment(given_) == {"media_type": "image/gif", "data": cleaned}
    assert base64_without_text(given_["data"]) == cleaned


def test_a_picture_that_breaks_off_anywhere_says_nothing():
    for cut in range(6, len(LOADED)):
        kept = without_text(LOADED[:cut])
        assert b"sk-" not in kept, cut
        assert PLAIN.startswith(kept), cut
        assert without_text(kept) == kept, cut


@given(st.binary(max_size=300))
def test_any_bytes_after_the_start_are_read(rest):
    kept = without_text(b"GIF89a" + rest)
    assert without_text(kept) == kept
