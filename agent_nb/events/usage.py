"""The meaning of token counts, the same for every provider and protocol.

Why: some providers count tokens read from a cache among the input tokens, others beside them, and
so with thoughts and the output; a limit, a cost or a column that adds up both would compare
nothing.

Rules: `input` (`tokens_in` in frames) is every token of the request, those read from a cache or
written to it included; `cached` (`tokens_cached`) is how many were read from a cache,
`cache_written` (`tokens_cache_written`) how many were written to it; `output` is every token of the
answer, `reasoning` how many of them were thoughts. This file imports nothing of ours.
"""

from __future__ import annotations


def whole_input(counted: int, cached: int, *, output: int = 0, total: int = 0) -> int:
    """Return the input tokens of a usage object that may exclude those read from a cache.

    They are excluded if there are more cached than input tokens, or if only both together add up to
    `total` (0: unknown).
    """
    apart = cached > counted or (cached > 0 and total == counted + cached + output)
    return counted + cached if apart else counted


def whole_output(counted: int, reasoning: int, *, whole: int, total: int = 0) -> tuple[int, int]:
    """Return the output and reasoning tokens of a usage object that may exclude thoughts (xAI,
    Gemini) or not even name them (Gemini).

    They are excluded if `whole` (the input) and `counted` leave exactly them to `total`, or, where
    none are named, leave anything to it (0: unknown).
    """
    apart = total - whole - counted
    if apart > 0 and reasoning in (0, apart):
        return counted + apart, apart
    return counted, reasoning
