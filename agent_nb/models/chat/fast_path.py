"""The fast path for plain chunks, which nearly all chunks of a chat completion are.

Each token brings one piece of text, reasoning or arguments, and bookkeeping; a strict type reads it
in a third of the time. Any other chunk is refused here and takes the general path: a field of type
None is one that only the general path reads.
"""

from __future__ import annotations

import msgspec


# gc=False: these objects form no cycles, so the garbage collector need not track them
class Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The next piece of a call's arguments."""

    arguments: str
    name: None = None


class Fragment(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A further fragment of a call."""

    function: Function
    index: int
    id: None = None
    type: str | None = None


class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The content of a plain chunk."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Fragment] | None = None
    role: str | None = None
    refusal: None = None
    channel: str | None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The only choice of a plain chunk."""

    delta: Delta
    index: int | None = None
    finish_reason: None = None
    native_finish_reason: None = None
    logprobs: None = None


class Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A plain chunk."""

    choices: tuple[Choice]
    id: str | None = None
    object: str | None = None
    created: float | None = None
    model: str | None = None
    provider: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    obfuscation: str | None = None
    usage: None = None


_decode = msgspec.json.Decoder(Chunk).decode


def read_plain_choice(data: str) -> Choice | None:
    """Return the choice of a plain chunk, None for any other; never raises."""
    try:
        return _decode(data).choices[0]
    # UnicodeEncodeError: the text holds half a character (a lone surrogate)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None
