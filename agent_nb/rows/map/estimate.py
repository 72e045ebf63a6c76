"""Estimates the tokens and dollars of a map before its first request.

A thousand rows cost a thousand times as much as the single prompt that a user tries first. Each row
counts as one request: tool calls, thoughts and retries cost more, a provider's cache less.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from ...agent import Basis, Limits, OutputType
from ...events import Counts, fields_of
from ...models import Tariff
from .budget import Budget, describe_exceeded_limit
from .row import Row

SAMPLED_ROWS = 1_000  # the most rows whose tokens are counted
TEXT_TOKENS = 250  # of an answer in plain text
TYPED_TOKENS, FIELD_TOKENS = 20, 15  # of a typed answer without fields, and of each of its fields


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of all rows, sent (`input`) and `written`, and their cost in dollars (None: unknown).

    `basis`: the assumptions, in words. `limit`: the limit that the figures exceed, in words, or "".
    """

    input: int
    written: int
    cost: float | None = None
    basis: str = ""
    limit: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """The estimate for the log, without empty texts."""
        fields = msgspec.structs.asdict(self)
        return {name: v for name, v in fields.items() if v != ""}


def estimate_map(
    rows: Sequence[Row], basis: Basis, limits: Limits | Budget | None = None
) -> Estimate:
    """Return the estimate for live runs of `rows`; `limits` of the whole map (None: unlimited)."""
    if not (count := len(rows)):
        return Estimate(input=0, written=0, cost=0.0)
    agent, (model, _) = basis.agent, basis.models[0]
    sampled_rows = rows if count <= SAMPLED_ROWS else random.Random(0).sample(rows, SAMPLED_ROWS)  # noqa: S311
    prompt_tokens = sum(
        basis.estimate_prompt_tokens(row.prompt, len(row.attachments)) for row in sampled_rows
    )
    input_tokens = basis.estimate_repeated_tokens() + prompt_tokens / len(sampled_rows)
    answer_tokens, assumption = _guess_answer(agent.output, agent.settings)
    row_cost = Tariff.of(model).cost(Counts(input=round(input_tokens), output=answer_tokens))
    sampling_note = ""
    if len(sampled_rows) < count:
        sampling_note = f", counted in {len(sampled_rows):,} of {count:,} rows"
    total_input, written = round(input_tokens * count), answer_tokens * count
    cost = None if row_cost is None else row_cost * count
    return Estimate(
        input=total_input,
        written=written,
        cost=cost,
        basis=f"{assumption}, one request a row{sampling_note}",
        limit=describe_exceeded_limit(count, total_input + written, cost, limits or Budget()),
    )


def _guess_answer(output: OutputType | None, settings: Any) -> tuple[int, str]:
    """Return the guessed tokens of an answer, and the assumption in words."""
    guess = TEXT_TOKENS
    if output is not None:
        guess = TYPED_TOKENS + FIELD_TOKENS * len(fields_of(output.schema))
    max_tokens = settings.get("max_tokens")
    if isinstance(max_tokens, int) and 0 < max_tokens <= guess:
        return max_tokens, f"max_tokens={max_tokens} an answer"
    return guess, f"assuming {guess} tokens an answer"
