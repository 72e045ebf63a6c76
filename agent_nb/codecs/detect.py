"""Finds the format of a stream by its first lines.

Every codec scores them, because formats share field names, so that a single field rarely identifies
one; the best score wins.
"""

from __future__ import annotations

import re

from ..errors import AgentError, UsageError
from ..host import blame_plugin, list_plugins, load_plugin
from .base import Codec

HEAD_SIZE = 64 * 1024  # bytes of a stream that are scored
MOST_LINES = 24  # of a stream that are scored
MINIMUM = 0.2  # a format with a lower score is not recognised
# A live stream is shown before `MOST_LINES` lines have come if its format is clear: the best score
# is at least SURE, or at least LIKELY and at least LEAD above the second.
SURE = 0.9
LIKELY, LEAD = 0.6, 0.25
_COMMENTS = re.compile(rb"^:.*\n", re.MULTILINE)  # of SSE; a server may send any number before


def named(name: str) -> tuple[Codec, str]:
    """Return (codec, form) for a name `codec` or `codec:form`. Raises UsageError if unknown."""
    base, _, form = name.partition(":")
    codec: Codec = load_plugin("codecs", base)
    codec.check_form(form)
    return codec, form


def load_codec(name: str) -> Codec:
    """Return the codec for a name `codec` or `codec:form`. Raises UsageError if unknown."""
    return named(name)[0]


def rank_codecs(head: bytes | str) -> list[tuple[float, str]]:
    """Return (score, codec name) for every codec, best first; `head` is a stream's beginning.

    Among equal scores `canonical` comes first, then the alphabet decides.
    """
    text = head if isinstance(head, str) else head[:HEAD_SIZE].decode("utf-8", "replace")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    complete_lines = lines[:-1] or lines
    names = sorted(list_plugins("codecs"), key=lambda name: (name != "canonical", name))
    scored = [(_score(name, complete_lines[:MOST_LINES]), name) for name in names]
    return sorted(scored, key=lambda entry: -entry[0])


def _score(name: str, lines: list[str]) -> float:
    """Return the score of one codec; an installed one that cannot be used scores 0."""
    try:
        with blame_plugin("codecs", name):
            score = float(load_codec(name).sniff(lines))
    except AgentError:
        return 0.0
    return score if 0 <= score <= 1 else 0.0


def detect(head: bytes | str) -> Codec:
    """Return the codec of a stream that begins with `head`. Raises UsageError if none is likely."""
    ranking = rank_codecs(head)
    best, name = ranking[0]
    if best < MINIMUM:
        raise UsageError(
            f"The format is not clear from the first lines. Name it: {', '.join(sorted(n for _, n in ranking))}."
        )
    return load_codec(name)


class Detector:
    """Collects the beginning of a stream, without comments, until its format is clear."""

    def __init__(self) -> None:
        self.head = b""
        self._lines = 0  # lines in the head when it was last scored

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return whether the head suffices to decide."""
        self.head += data
        if b"\n" in data:
            self.head = _COMMENTS.sub(b"", self.head).lstrip()
        lines = self.head.count(b"\n")
        if len(self.head) >= HEAD_SIZE or lines >= MOST_LINES:
            return True
        if lines == self._lines:
            return False
        self._lines = lines
        (best, _), (second, _), *_ = rank_codecs(self.head)
        return best >= SURE or (best >= LIKELY and best - second >= LEAD)
