"""What a library reads in a recorded answer, for the person who decides whether it is served.

Why not the events of the record: the record stores them beside the exchange, and in a forged record
the events may say less than the answer that the library gets. Each choice of an answer is read by
itself, since a library may use any choice, and a decoder reads only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..agent import AnswerReader
from ..errors import UsageError
from ..events import Call, Respond
from ..models import make_decoder
from ..record import Record
from ..wire import as_dict, as_list
from .exchange import Body, Exchange
from .packed import read_exchange

_CHOICES = ("choices", "candidates")  # fields that hold several answers to one request
_MOST_CHOICES = 100  # of an answer


class TapedAnswer(msgspec.Struct, frozen=True):
    """One choice of an answer: its text, and the calls that the library's user may run."""

    text: str
    calls: Sequence[Call] = ()


def read_answers(record: Record) -> list[TapedAnswer]:
    """Return the choices of a taped answer, [] if the record can answer nothing.

    Raises UsageError if the record is damaged or the answer has too many choices.
    """
    exchange = read_exchange(record)
    if exchange is None or not exchange.is_replayable:
        return []
    return [_read_answer(exchange, body) for body in _split_choices(exchange.response.body)]


def _read_answer(exchange: Exchange, body: Body) -> TapedAnswer:
    decoder = make_decoder(exchange.request.path, exchange.response.status)
    if decoder is None or exchange.response.status >= 400 or body.kind not in ("json", "stream"):
        return TapedAnswer(b"".join(body.pieces()).decode("utf-8", "replace"))
    reader = AnswerReader(decoder)
    events = [*reader.feed(b"".join(body.pieces())), *reader.close()]
    text = "\n".join(e.content for e in events if isinstance(e, Respond))
    return TapedAnswer(text, [e for e in events if isinstance(e, Call)])


def _split_choices(body: Body) -> Iterator[Body]:
    """Yield a body for each choice; an answer without choices is one."""
    if body.kind not in ("json", "stream"):
        yield body
        return
    in_chunks = isinstance(body.value, list)  # Google's streams without SSE are a JSON list
    values = body.value if in_chunks else [body.value]
    chunks = values if body.kind == "stream" else [{"data": value} for value in values]
    data = [as_dict(chunk.get("data")) for chunk in chunks]
    names = dict.fromkeys(name for value in data for name, _ in _list_choices(value, in_chunks))
    if len(names) > _MOST_CHOICES:
        raise UsageError(
            f"The answer has {len(names)} choices; at most {_MOST_CHOICES} can be read."
        )
    if not names:
        yield body
    for name in names:
        selected = [_select_in_chunk(chunk, in_chunks, name) for chunk in chunks]
        values = selected if body.kind == "stream" else [chunk["data"] for chunk in selected]
        yield msgspec.structs.replace(body, value=values if in_chunks else values[0])


def _list_choices(value: dict[str, Any], in_chunks: bool) -> list[tuple[str, Any]]:
    """Return (name, choice) pairs.

    In a chunk the name is the choice's index, by which chunks belong together; in a whole answer
    the name is the position.
    """
    choices = (as_dict(c) for field in _CHOICES for c in as_list(value.get(field)))
    return [
        (str(choice.get("index", 0) if in_chunks else position), choice)
        for position, choice in enumerate(choices)
    ]


def _select_in_chunk(chunk: dict[str, Any], in_chunks: bool, name: str) -> dict[str, Any]:
    """Return a chunk with the choice `name` alone, its index changed to 0."""
    value = chunk.get("data")
    if not isinstance(value, dict):
        return chunk
    choices = [c | {"index": 0} for n, c in _list_choices(value, in_chunks) if n == name]
    return {**chunk, "data": {k: choices if k in _CHOICES else v for k, v in value.items()}}
