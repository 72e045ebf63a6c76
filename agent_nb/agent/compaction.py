"""Shorten a conversation that exceeds the model's context.

Two strategies: `window` leaves out the oldest runs and says so; `summary` first has the model
summarise them for the system message. Within one run, the oldest tool results are cut first.

Rules
- Pure functions, except `summary`, which asks the model once and raises its ModelError.
- What the model reads is marked where something was left out or cut; the log keeps everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

import msgspec

from .. import events
from ..dialects import Dialect
from ..events import Event, Texts, answer_text, content_text
from ..host import load_plugin
from ..models import Head, Model, Part, Request, Text, Thought, Usage, text_message
from . import vision
from .history import estimate_tokens, write_messages
from .parse import read_turn, with_thought_tags

STRATEGIES = ("window", "summary")
TASK = "Summarise this conversation in at most 150 words: facts, names, numbers, decisions, and what is still open. Write only the summary."
SAYS = "Assistant: "
SHORT = 400  # characters left of a shortened result
# characters of a transcript, and the most that is read of a summary
MOST = 24_000


def transcript(runs: Sequence[Sequence[Event]], most: int = MOST) -> str:
    """Return runs as lines of dialogue: the last `most` characters."""
    lines: list[str] = []
    for run in runs:
        texts = Texts()
        for event in (e for e in run if not e.span):
            how = texts.add(event)
            if isinstance(event, events.Respond) and how != "begin":
                lines[-1] = (lines[-1] if how == "go_on" else SAYS) + event.content
            else:
                lines += _line(event)
    return "\n".join(line.rstrip() for line in lines)[-most:]


def _line(event: Event) -> list[str]:
    if isinstance(event, events.User):
        return [f"User: {event.content}"]
    if isinstance(event, events.Respond):
        return [SAYS + event.content.lstrip()]
    if isinstance(event, events.Result):
        return [f"Tool {event.name}: {content_text(event.content)[:SHORT]}"]
    return []


def request_summary(runs: Sequence[Sequence[Event]], room: int = MOST) -> Request:
    """Return the request for a summary of `runs`, of which at most `room` characters are shown."""
    shown = transcript(runs, min(room, MOST))
    return Request(
        messages=(text_message("system", TASK), text_message("user", shown)),
        settings={"max_tokens": 400},
    )


async def ask_for_summary(model: Model, request: Request) -> tuple[str, list[Part]]:
    """Return the answer of `model` to `asked` (see `request`), and what it says of its usage.

    Raises ModelError.
    """
    texts: list[str] = []
    usage: list[Part] = []
    size = 0
    async with aclosing(model.stream(request)) as stream:
        async for batch in stream:
            texts += [p.text for p in batch if isinstance(p, Text)]
            usage += [p for p in batch if isinstance(p, Head | Usage)]
            size += sum(len(p.text) for p in batch if isinstance(p, Text | Thought))
            if size > MOST:
                break
    dialect = with_thought_tags(load_plugin("dialects", "native"))
    return answer_text(read_turn(texts, dialect)), usage


def cut_results(dialect: Dialect, run: Sequence[Event], budget: int) -> list[Event]:
    """Return `run` with its oldest long tool results cut until it fits into `budget` tokens.

    A budget of 0 is unlimited. The newest result is never cut.
    """
    shorter = list(run)
    results = [i for i, e in enumerate(shorter) if isinstance(e, events.Result)]
    for i in results[:-1]:
        if budget <= 0 or estimate_tokens(write_messages(dialect, [shorter])) <= budget:
            break
        shorter[i] = _cut(shorter[i])
    return shorter


def _cut(event: Event) -> Event:
    if not isinstance(event, events.Result):
        return event
    if event.attachments:
        gone = vision.left_out(event.attachments, vision.LEFT_OUT)
        event = msgspec.structs.replace(event, attachments=gone)
    text = content_text(event.content)
    if len(text) <= SHORT:
        return event
    return msgspec.structs.replace(
        event, content=f"{text[:SHORT]}\n[… {len(text) - SHORT:,} more characters left out]"
    )
