"""The lengths and times of a block's deltas, as one short string.

A record stores a streamed block as a whole; from this string its deltas are made again exactly.

Form
- Base64-VLQ numbers without a sign: 5 bits per digit, bit 6 marks a continuation, least significant
  first.
- The numbers are pairs: code points of the delta, milliseconds since the delta before (the first:
  since the run's start). `F4DCA`: 5 code points after 120 ms, then 2 after 0 ms.
- A long string may be packed: `~` and base85 of deflated digits of 7 bits, one per byte, all
  lengths before all times.

Reading refuses a number of more than 64 bits, and a packed string that expands to more than
`MOST_UNPACKED` bytes. `encode_chunks` checks neither.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_DIGIT_BITS = 5
_BYTE_BITS = 7  # of a digit in the packed form
# set in a digit, or byte, that is not the last one of its number
_DIGIT_MORE, _BYTE_MORE = 1 << _DIGIT_BITS, 1 << _BYTE_BITS
_BEFORE_LAST = bytes(range(_BYTE_MORE, 256))  # every byte that is not the last of its number
PACKED = "~"  # begins a packed string; not a digit
MOST_UNPACKED = 1 << 26  # bytes that a packed string may expand to
_MOST_BITS = 64  # of a number


class _DigitValues(dict[str, int]):
    """The values of the digits. Raises ValueError for a character that is not a digit."""

    def __missing__(self, c: str) -> int:
        raise ValueError(f"chunks hold a character that is not a base64 digit: {c!r}")


_DIGIT_VALUES = _DigitValues((c, i) for i, c in enumerate(ALPHABET))


def _write_number(n: int) -> str:
    """Return a number as digits of 5 bits, the least significant first."""
    out = ""
    while n >= _DIGIT_MORE:
        out += ALPHABET[_DIGIT_MORE | (n & 31)]
        n >>= 5
    return out + ALPHABET[n]


# the digits of small numbers, which are almost all: a look-up is faster
_SMALL_NUMBERS = [_write_number(n) for n in range(4096)]


def encode_chunks(pairs: Iterable[tuple[int, int]]) -> str:
    """Encode (code points, milliseconds) pairs. Raises ValueError on a negative number."""
    out: list[str] = []
    for pair in pairs:
        for n in pair:
            if n < 0:
                raise ValueError(f"chunk numbers are not negative: {n}")
            out.append(_SMALL_NUMBERS[n] if n < len(_SMALL_NUMBERS) else _write_number(n))
    return "".join(out)


def pack_chunks(text: str) -> str:
    """Return the packed form of an encoded string, or the string itself if that is not longer.

    Raises like `decode_chunks`.
    """
    if text.startswith(PACKED):
        return text
    lengths, gaps = bytearray(), bytearray()
    for length, gap in decode_chunks(text):
        _append_number(lengths, length)
        _append_number(gaps, gap)
    packed = PACKED + base64.b85encode(zlib.compress(lengths + gaps, 9)).decode()
    return packed if len(packed) < len(text) else text


def unpack_chunks(text: str) -> str:
    """Return the plain form of a packed string. Raises like `decode_chunks`."""
    return encode_chunks(_unpack_pairs(text)) if text.startswith(PACKED) else text


def _append_number(out: bytearray, n: int) -> None:
    """Append a number in digits of 7 bits, one per byte, the least significant first."""
    while n >= _BYTE_MORE:
        out.append(_BYTE_MORE | (n & 127))
        n >>= 7
    out.append(n)


def _unpack_pairs(text: str) -> Iterator[tuple[int, int]]:
    """Return the pairs of a packed string, which has all lengths first, then all times."""
    try:
        decompressor = zlib.decompressobj()
        data = decompressor.decompress(base64.b85decode(text[len(PACKED) :]), MOST_UNPACKED)
    except zlib.error as fault:
        raise ValueError(f"packed chunks cannot be unfolded: {fault}") from None
    if not decompressor.eof:
        raise ValueError("packed chunks are cut off or too large")
    # no list of the numbers, which would be many times as large as the data
    pairs, odd = divmod(len(data.translate(None, _BEFORE_LAST)), 2)
    if odd:
        raise ValueError("chunks end in the middle of a pair")
    ends = (end for end, byte in enumerate(data, 1) if byte < _BYTE_MORE)
    half = next(islice(ends, pairs - 1, None)) if pairs else 0
    halves = (memoryview(data)[:half], memoryview(data)[half:])
    return zip(*(_read_numbers(part, _BYTE_BITS) for part in halves), strict=True)


def _read_numbers(digits: Iterable[int], bits: int) -> Iterator[int]:
    """Yield the numbers that digits make, each of `bits` bits below its bit for "more follows"."""
    continues = 1 << bits
    n = shift = 0
    for digit in digits:
        n |= (digit & (continues - 1)) << shift
        shift += bits
        if shift > _MOST_BITS and (digit >= continues or n >> _MOST_BITS):
            raise ValueError("chunks hold a number that is too large")
        if digit < continues:
            yield n
            n = shift = 0
    if shift:
        raise ValueError("chunks end in the middle of a number")


def decode_chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a plain or packed string. Raises ValueError if it is malformed."""
    if text.startswith(PACKED):
        yield from _unpack_pairs(text)
        return
    numbers = _read_numbers(map(_DIGIT_VALUES.__getitem__, text), _DIGIT_BITS)
    for length in numbers:
        gap = next(numbers, None)  # of the same iterator: every second number
        if gap is None:
            raise ValueError("chunks end in the middle of a pair")
        yield length, gap
