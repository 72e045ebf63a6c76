"""Token counts with one meaning for every provider and protocol. Imports nothing of ours.

Some providers count tokens read from a cache among the input tokens, others beside them; likewise
thoughts and the output. Here `input` (`tokens_in` in frames) is every token of the request, some of
them `cached` or `cache_written`; `output` is every token of the answer, some of them `reasoning`.
"""

from __future__ import annotations


def whole_input(counted: int, cached: int, *, output: int = 0, total: int = 0) -> int:
    """Return the input tokens of a usage object that may exclude those read from a cache.

    `counted`: the input tokens as reported. They exclude the `cached` ones if those are more, or if
    `counted`, `cached` and `output` add up to `total` (0: unknown).
    """
    excluded = cached > counted or (cached > 0 and total == counted + cached + output)
    return counted + cached if excluded else counted


def whole_output(
    counted: int, reasoning: int, *, input_tokens: int, total: int = 0
) -> tuple[int, int]:
    """Return (output, reasoning) tokens of a usage object whose output may exclude thoughts.

    xAI and Gemini exclude them, and Gemini does not always report them. `counted`: the output as
    reported. `input_tokens`: all of them. The rest of `total` (0: unknown) is excluded thoughts, if
    `reasoning` equals it or is 0 (not reported).
    """
    excluded = total - input_tokens - counted
    if excluded > 0 and reasoning in (0, excluded):
        return counted + excluded, excluded
    return counted, reasoning
