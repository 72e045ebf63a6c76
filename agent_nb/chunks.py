"""How the pieces of a block came, as one short string.

Why: a streamed block is stored once, as a whole; the lengths and times of its deltas take about 1.4 bytes a byte of text in this
form (a JSON list takes 5 to 10), and the delta stream can be regenerated exactly, pace included.

Form: base64-VLQ numbers (5 bits a digit, bit 6 says that more follow, least significant first) in pairs: code points of the delta,
milliseconds since the delta before (the first: since the run's start). Rules: no negative number; pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUE = {c: i for i, c in enumerate(ALPHABET)}
_MORE = 32


def _digits(n: int) -> str:
    out = ""
    while n >= _MORE:
        out += ALPHABET[_MORE | (n & 31)]
        n >>= 5
    return out + ALPHABET[n]


_SMALL = [_digits(n) for n in range(4096)]


def encode_chunks(pairs: Iterable[tuple[int, int]]) -> str:
    """Encode (code points, milliseconds) pairs. Raises ValueError on a negative number."""
    out: list[str] = []
    for pair in pairs:
        for n in pair:
            if n < 0:
                raise ValueError(f"chunk numbers are not negative: {n}")
            out.append(_SMALL[n] if n < len(_SMALL) else _digits(n))
    return "".join(out)


def decode_chunks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the pairs of `encode_chunks`. Raises ValueError on a character or length that it cannot have written."""
    numbers = _numbers(text)
    for length in numbers:
        gap = next(numbers, None)
        if gap is None:
            raise ValueError("chunks end in the middle of a pair")
        yield length, gap


def _numbers(text: str) -> Iterator[int]:
    n = shift = 0
    for c in text:
        digit = _VALUE.get(c)
        if digit is None:
            raise ValueError(f"chunks hold a character that is no base64 digit: {c!r}")
        n |= (digit & 31) << shift
        shift += 5
        if digit < _MORE:
            yield n
            n = shift = 0
    if shift:
        raise ValueError("chunks end in the middle of a number")
