"""Reads the text of a model turn, written in a dialect, into events: the public `parse`.

Recorded or pasted text can be checked without a model or a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

from ..dialects import Dialect
from ..events import End, Event, EventLog
from ..host import load_plugin
from ..models import parts
from ..wire import plain_value
from .turn import Turn


def parse(chunks: Iterable[str], dialect: str = "xml") -> list[Event]:
    """Return the stored events of one model turn, given as text in any chunking.

    An `end` event follows only if the model wrote the end marker. `dialect`: `native`, `xml`,
    `section`, `thinking` or a plug-in. Raises UsageError for an unknown dialect; any text is valid.
    """
    return read_turn(chunks, load_plugin("dialects", dialect))


def with_thought_tags(dialect: Dialect, named: Sequence[str] = ()) -> Dialect:
    """Return `dialect`, extended to read thoughts between tags such as `<think>`.

    Reasoning models write thoughts into the text (`dialects.thinking`). `named`: further tags that
    the user chose. Raises UsageError for an invalid tag name.
    """
    reader: Dialect = load_plugin("dialects", "thinking").over(dialect, named)
    return reader


def read_turn(chunks: Iterable[str], dialect: Dialect) -> list[Event]:
    """Return the stored events of one model turn; see `parse`."""
    turn, log = Turn(1), EventLog("parse")
    for event in turn.feed(_join_deltas(_read_parts(chunks, dialect))) + turn.close():
        if event.type != "delta":
            log.append(event)
    if turn.ended:
        log.append(End(finish_reason="end"))
    return list(log)


def _read_parts(chunks: Iterable[str], dialect: Dialect) -> Iterator[Sequence[parts.Part]]:
    """Yield the parts of each chunk until the dialect stops reading."""
    parser = dialect.parser()
    for chunk in chunks:
        yield parser.feed(plain_value(chunk))
        if parser.stopped:
            return
    yield parser.close()


def _join_deltas(batches: Iterable[Sequence[parts.Part]]) -> Iterator[parts.Part]:
    """Join neighbouring texts, and neighbouring thoughts that have only text, into one part.

    The single pieces are not needed, since no view shows them here.
    """
    for kind, pieces in groupby(chain.from_iterable(batches), key=_find_text_kind):
        group: list[Any] = list(pieces)
        yield from group if kind is None else [kind("".join(part.text for part in group))]


def _find_text_kind(part: Any) -> type[parts.Text | parts.Thought] | None:
    """Return the class of a part that has only text, None for any other part."""
    kind = type(part)
    if kind is parts.Text or (kind is parts.Thought and part == parts.Thought(part.text)):
        return kind
    return None
