"""Compressed bodies: read in small pieces, once, in any chunking; everything else is refused by
name.
"""

import gzip
import zlib

import anyio
import pytest

from agent_nb.errors import WireError
from agent_nb.wire.compression import PIECE, Decompressor, decompress_body, read_unzipped

TEXT = "".join(f"data: {n} é🙂\n\n" for n in range(40)).encode()
BODIES = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "GZIP": gzip.compress(TEXT[:100]) + gzip.compress(b"") + gzip.compress(TEXT[100:]) + b"\0" * 9,
    "identity, gzip": gzip.compress(TEXT),
    "identity": TEXT,
    "": TEXT,
}


def read(encoding, *chunks):
    decompressor = Decompressor(encoding)
    pieces = [piece for chunk in chunks for piece in decompressor.feed(chunk)]
    decompressor.close()
    return b"".join(pieces)


@pytest.mark.parametrize("encoding", BODIES)
def test_a_body_is_the_same_whole_per_byte_and_split_anywhere(encoding):
    body = BODIES[encoding]
    assert read(encoding, body) == TEXT
    assert read(encoding, *(body[i : i + 1] for i in range(len(body)))) == TEXT
    for at in range(len(body)):
        assert read(encoding, body[:at], body[at:]) == TEXT


@pytest.mark.parametrize(
    "encoding",
    ["gzip, gzip", "deflate,gzip", "br", "zstd", "compress", "gzip;q=1", "gzip, identity, deflate"],
)
def test_another_encoding_or_several_are_refused_by_name(encoding):
    with pytest.raises(WireError, match=encoding):
        Decompressor(encoding)


def test_a_bomb_comes_in_small_pieces():
    bomb = zlib.compress(b"\0" * (64 << 20), 9)
    assert len(bomb) < 1 << 17
    sizes = [len(piece) for piece in Decompressor("deflate").feed(bomb)]
    assert (max(sizes), sum(sizes)) == (PIECE, 64 << 20)


DAMAGED = (
    b"no gzip at all",
    gzip.compress(TEXT)[:-1],
    gzip.compress(TEXT)[:40] + b"\xff" * 40,
    gzip.compress(TEXT) + b"x",
)


@pytest.mark.parametrize("body", DAMAGED, ids=["not gzip", "cut", "overwritten", "longer"])
def test_damaged_data_is_an_error_after_what_could_be_read(body):
    with pytest.raises(WireError, match="compressed"):
        read("gzip", body)


def test_a_file_of_many_empty_members_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    assert not list(read_unzipped([gzip.compress(b"") * 300_000]))


def test_a_stop_ends_an_expansion():
    async def source():
        yield zlib.compress(b"\0" * (64 << 20), 9)

    async def main():
        seen = 0
        with anyio.CancelScope() as scope:
            async for _ in decompress_body(source(), "deflate"):
                seen += 1
                if seen == 3:
                    scope.cancel()
        return seen

    assert anyio.run(main) == 3


@pytest.mark.parametrize("body", [gzip.compress(TEXT), TEXT, b"", b"\x1f", b"\x1fx"])
def test_a_file_says_by_its_first_bytes_whether_it_is_gzipped(body):
    text = TEXT if len(body) > 2 else body
    assert b"".join(read_unzipped([body])) == text
    assert b"".join(read_unzipped([body[i : i + 1] for i in range(len(body))])) == text
    for at in range(len(body)):
        assert b"".join(read_unzipped([body[:at], body[at:]])) == text


def test_a_gzipped_file_that_broke_off_is_an_error_and_text_passes():
    with pytest.raises(WireError, match="broke off"):
        list(read_unzipped([gzip.compress(TEXT)[:-4]]))
    assert list(read_unzipped(["\x1f\x8b", "b"])) == ["\x1f\x8b", "b"]
