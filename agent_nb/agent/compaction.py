"""Shortens a conversation that exceeds the model's context, which its server would refuse.

Earlier runs are left out, the oldest first; with the strategy `summary` the model also summarises
them for the system message. In the current run, the oldest tool results lose their pictures and the
end of a long text, and a mark shows the model where. The log has everything.
"""

from __future__ import annotations

from bisect import bisect_left
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
ASSISTANT = "Assistant: "
LONGEST_RESULT = 400  # characters that a shortened result keeps
LONGEST_DIALOGUE = 24_000  # characters of a transcript; of a summary, reading stops after them


def write_transcript(runs: Sequence[Sequence[Event]], max_chars: int = LONGEST_DIALOGUE) -> str:
    """Return runs as lines of dialogue: their last `max_chars` characters, which must be over 0."""
    lines: list[str] = []
    for run in runs:
        texts = Texts()
        for event in (e for e in run if not e.span):
            relation = texts.add(event)
            if isinstance(event, events.Respond) and relation != "begin":
                # "go_on" adds to the newest line, "instead" replaces it
                lines[-1] = (lines[-1] if relation == "go_on" else ASSISTANT) + event.content
            else:
                lines += _write_lines(event)
    return "\n".join(line.rstrip() for line in lines)[-max_chars:]


def _write_lines(event: Event) -> list[str]:
    if isinstance(event, events.User):
        return [f"User: {event.content}"]
    if isinstance(event, events.Respond):
        return [ASSISTANT + event.content.lstrip()]
    if isinstance(event, events.Result):
        return [f"Tool {event.name}: {content_text(event.content)[:LONGEST_RESULT]}"]
    return []


def request_summary(runs: Sequence[Sequence[Event]], max_chars: int = LONGEST_DIALOGUE) -> Request:
    """Return the request for a summary of the last `max_chars` characters of `runs`."""
    dialogue = write_transcript(runs, min(max_chars, LONGEST_DIALOGUE))
    return Request(
        messages=(text_message("system", TASK), text_message("user", dialogue)),
        settings={"max_tokens": 400},
    )


async def ask_for_summary(model: Model, request: Request) -> tuple[str, list[Part]]:
    """Return the model's summary, and the parts about its usage; see `request_summary`.

    Stops reading after `LONGEST_DIALOGUE` characters of text and thoughts. Raises ModelError.
    """
    texts: list[str] = []
    usage: list[Part] = []
    size = 0
    async with aclosing(model.stream(request)) as stream:
        async for batch in stream:
            texts += [p.text for p in batch if isinstance(p, Text)]
            usage += [p for p in batch if isinstance(p, Head | Usage)]
            size += sum(len(p.text) for p in batch if isinstance(p, Text | Thought))
            if size > LONGEST_DIALOGUE:
                break
    dialect = with_thought_tags(load_plugin("dialects", "native"))
    return answer_text(read_turn(texts, dialect)), usage


def cut_results(dialect: Dialect, run: Sequence[Event], budget: int) -> list[Event]:
    """Return `run` with its oldest tool results shortened until it fits into `budget` tokens.

    A budget of 0 is unlimited. The newest result is never cut, so the run may still be too long.
    """
    results = [(n, event) for n, event in enumerate(run) if isinstance(event, events.Result)]

    def cut(count: int) -> list[Event]:
        shorter = list(run)
        for n, result in results[:count]:
            shorter[n] = _shorten(result)
        return shorter

    def fits(count: int) -> bool:
        return estimate_tokens(write_messages(dialect, [cut(count)])) <= budget

    # the fewest that are enough; a search, as each estimate reads the whole run
    return cut(bisect_left(range(len(results) - 1), True, key=fits) if budget > 0 else 0)


def _shorten(result: events.Result) -> events.Result:
    """Return a result without its pictures and with the beginning of its text only."""
    if result.attachments:
        captions = vision.replace_with_words(result.attachments, vision.LEFT_OUT)
        result = msgspec.structs.replace(result, attachments=captions)
    text = content_text(result.content)
    left_out = f"[… {len(text) - LONGEST_RESULT:,} more characters left out]"
    shorter = f"{text[:LONGEST_RESULT]}\n{left_out}"
    if len(shorter) >= len(text):
        return result
    return msgspec.structs.replace(result, content=shorter)
