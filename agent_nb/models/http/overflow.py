"""Recognises a request that is too long for its model, by the provider's words.

A shorter request mends this refusal and no other, and each server words it differently. Only the
words are read here, since an error within a stream has no HTTP status; `errors` checks the status.
"""

from __future__ import annotations

import re

CODE = "context"  # of the ModelError and the Fault for such a request
HINT = (
    "Shorten the prompt, begin a new conversation with --new, "
    "or have earlier turns left out (--memory window) or summarised (--memory summary)."
)
_TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|exceed_context|(prompt|model|context|input) length|maximum context"
    r"|(prompt|input|messages?|conversation) (is |are )?too (long|large)|too many (input |prompt )?tokens|longer than the (maximum )?model"
    r"|(input )?token count\b.{0,40}\bexceed|reduce the length of the (messages|prompt|input)|`?inputs`? tokens \+",
    re.IGNORECASE | re.DOTALL,
)
# a limit of tokens per minute is worded alike, but is not an overflow
_RATE = re.compile(r"per (minute|min|day|hour)|\bTPM\b|rate limit", re.IGNORECASE)
# where refusals state the size of the context, the most specific first
_SIZES = (
    re.compile(r"n_ctx: (\d+)"),
    re.compile(r"> (\d[\d,]*)"),
    re.compile(r"(\d[\d,]*) maximum context"),
    re.compile(
        r"(?:maximum|context|exceed|limit|must be)(?:(?!\bby\b)[^\d.]){0,40}(\d[\d,]*)",
        re.IGNORECASE,
    ),
)


def is_too_long(message: str) -> bool:
    """Return whether a refusal says that the request exceeds the model's context."""
    return bool(_TOO_LONG.search(message)) and not _RATE.search(message)


def find_context_size(message: str) -> int:
    """Return the size of the model's context in tokens, as given in a refusal, else 0."""
    for pattern in _SIZES:
        for number in pattern.findall(message):
            tokens = int(number.replace(",", "")[:12])
            # other numbers are statuses, positions or sizes in bytes
            if 256 <= tokens <= 100_000_000:
                return tokens
    return 0
