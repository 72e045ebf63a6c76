"""HTTP/1.1 between a client and the relay: requests are read, and answers become bytes.

Why our own: with `h11` on this side, too, the first byte comes a quarter of a millisecond later.
Source: RFC 9112.

Rule: what two readers could understand in two ways is a FramingError, after which the connection
must be closed. The headers of an answer are checked too: they may come from a record, and a line
break in one would begin another header or an answer.
"""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from http import HTTPStatus

from .headers import Pairs, join_headers, list_options

MOST_OF_HEAD = 1 << 18  # bytes of a request's head: the limit to give its StreamReader
_PIECE = 1 << 16  # bytes of a body that are read at once
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = (204, 304)  # statuses

_match_first_line = re.compile(rb"([!-~]+) ([!-~]+) HTTP/1\.([01])").fullmatch
_NAME = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_match_name = re.compile(_NAME).fullmatch
_VALUE = rb"[\t -~\x80-\xff]*"
_match_value = re.compile(_VALUE).fullmatch
_match_headers = re.compile(rb"(?:%s:%s\r\n)*" % (_NAME, _VALUE)).fullmatch
_match_length = re.compile(r"[0-9]{1,18}").fullmatch
_match_chunk = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r\n").fullmatch


class FramingError(Exception):
    """A request that breaks the rules of HTTP/1.1, or an answer that would."""


class RequestHead:
    """The first line and the headers of a request, from the bytes before its body.

    Raises FramingError.
    """

    def __init__(self, data: bytes) -> None:
        first, *lines = data.split(b"\r\n")
        parts = _match_first_line(first)
        if parts is None:
            raise FramingError("the first line is not that of a request")
        self.method, self.target = parts[1].decode(), parts[2].decode()
        self.headers: Mapping[str, str] = join_headers(_read_headers(lines))
        self.is_old = parts[3] == b"0"  # HTTP/1.0
        self.is_last = self.is_old or "close" in list_options(self.headers)  # of its connection

    @cached_property
    def length(self) -> int | None:
        """The bytes of the body; None if it comes in chunks. Raises FramingError."""
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if length is None and coding is not None and coding.lower() == "chunked":
            return None
        if coding is not None or not _match_length(length if length is not None else "0"):
            raise FramingError("the length of the body is not clear")
        return int(length or 0)

    @property
    def waits(self) -> bool:
        """Whether the client waits for "100 Continue" before it sends the body."""
        return not self.is_old and self.headers.get("expect", "").lower() == "100-continue"


def _read_headers(lines: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    if not _match_headers(b"\r\n".join((*lines, b""))):
        raise FramingError("a header is malformed")
    for line in lines:
        name, _, value = line.partition(b":")
        yield name, value.strip(b" \t")


async def read_head(reader: StreamReader) -> RequestHead | None:
    """Return the head of the next request, None if the client ends the connection before one.

    Raises FramingError, also for a head beyond the limit of `reader`.
    """
    data = b""
    while not data:  # RFC 9112, section 2.2: empty lines before a request are ignored
        try:
            data = (await reader.readuntil(b"\r\n\r\n")).strip(b"\r\n")
        except IncompleteReadError as fault:
            if fault.partial.strip(b"\r\n"):
                raise FramingError("the head breaks off") from None
            return None
        except LimitOverrunError:
            raise FramingError("the head is too large") from None
    return RequestHead(data)


async def read_body(reader: StreamReader, head: RequestHead, largest: int) -> bytes | None:
    """Return the body of a request, None if it has more than `largest` bytes.

    A body that is too large is read to its end, since a client that still writes would not read the
    answer. Raises FramingError if it breaks off.
    """
    size, body = 0, bytearray()

    async def take(count: int) -> None:
        nonlocal size
        size += count
        while count:
            piece = await reader.read(min(count, _PIECE))
            if not piece:
                raise EOFError
            count -= len(piece)
            if size <= largest:
                body.extend(piece)
            else:
                body.clear()

    try:
        if head.length is not None:
            await take(head.length)
        else:
            while length := await _read_chunk_size(reader):
                await take(length)
                if await reader.readexactly(2) != b"\r\n":
                    raise FramingError("a chunk has another size than it says")
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass  # a trailer
    except (EOFError, LimitOverrunError):
        raise FramingError("the body breaks off") from None
    return bytes(body) if size <= largest else None


async def _read_chunk_size(reader: StreamReader) -> int:
    size = _match_chunk(await reader.readuntil(b"\r\n"))
    if size is None:
        raise FramingError("a chunk has no size")
    return int(size[1], 16)


class AnswerFraming:
    """The bytes of the answer to one request: its `head`, its body by `frame`, then its `end`.

    Raises FramingError for a status or headers that cannot be sent, and for a body that is longer
    or shorter than its header says. If `closes`, the connection must be closed after the answer.
    `size`: the bytes of the body, where they are known and no header says so.
    """

    def __init__(
        self,
        request: RequestHead,
        status: int,
        headers: Pairs,
        reason: str = "",
        *,
        size: int | None = None,
    ) -> None:
        pairs = list(headers)
        self._bodiless = request.method == "HEAD" or status in _BODILESS
        joined = join_headers(pairs)
        if size is not None and not self._bodiless and "content-length" not in joined:
            pairs.append((b"content-length", b"%d" % size))
            joined["content-length"] = str(size)
        length = joined.get("content-length")
        if not _match_length("0" if length is None else length) or not 200 <= status <= 999:
            raise FramingError("the answer has an unclear length or no valid status")
        self._left = None if length is None or self._bodiless else int(length)  # None: unknown
        self._chunked = length is None and not self._bodiless and not request.is_old
        self.closes = request.is_last
        if self._chunked:
            pairs.append((b"transfer-encoding", b"chunked"))
        if self.closes:
            pairs.append((b"connection", b"close"))
        phrase = (reason or _PHRASES.get(status, "")).encode("ascii", "replace")
        are_fit = all(_match_name(name) and _match_value(value) for name, value in pairs)
        if not are_fit or not _match_value(phrase):
            raise FramingError("a header or the reason of the answer cannot be sent")
        lines = [b"HTTP/1.1 %d %s" % (status, phrase), *(b"%s: %s" % pair for pair in pairs)]
        self.head = b"\r\n".join((*lines, b"", b""))

    def frame(self, piece: bytes) -> bytes:
        """Return the bytes that send a piece of the body."""
        if self._bodiless:
            return b""
        if self._chunked:
            return b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b""  # empty: the end
        if self._left is not None:
            self._left -= len(piece)
            if self._left < 0:
                raise FramingError("the answer is longer than it says")
        return piece

    def end(self) -> bytes:
        """Return the bytes that end the body."""
        if self._left:
            raise FramingError("the answer is shorter than it says")
        return b"0\r\n\r\n" if self._chunked else b""
