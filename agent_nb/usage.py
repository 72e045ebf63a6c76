"""What the counts of tokens mean, whoever told them.

Why: some providers count what they read from a cache among the input tokens, others beside them; a limit, a cost or a column that adds
up both would compare nothing.

Rules: `input` (`tokens_in` in frames) is every token of the request, those read from a cache or written to it included; `cached`
(`tokens_cached`) says how many were read from a cache; `output` is every token of the answer, `reasoning` how many of them were thoughts.
This file imports nothing of ours.
"""

from __future__ import annotations


def whole_input(told: int, cached: int, *, output: int = 0, total: int = 0) -> int:
    """Return the input tokens of a usage object that may leave out what was read from a cache.

    It shows: the tokens of the cache are more than those told, or only together with them do they add up to the `total` (0: not told).
    """
    apart = cached > told or (cached > 0 and total == told + cached + output)
    return told + cached if apart else told
