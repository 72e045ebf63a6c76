"""What a map will take, before its first request: tokens and dollars.

    estimate_map(rows, basis).words     about 120,000 tokens in and 40,000 out, about $0.06 …

Why: a thousand rows cost a thousand times as much as the prompt that was tried.

Rules
- Nothing is asked. Tokens are counted as everywhere here (`history.estimate_tokens`): the prompt
  and pictures of a row, and what each request repeats: instructions, tools, the answer's schema.
- Up to `SAMPLE` rows are counted, of more as many are drawn, the same in every execution.
- The tokens of an answer are a guess: `ANSWER`, for a typed answer by the number of its fields,
  never more than `max_tokens`. `basis` says which.
- One request a row: tool calls, thoughts and repeated requests come on top, a provider's cache
  makes it cheaper.
- The price is that of the first model, by row, because prices may depend on the size of a request.
  An unknown price is None.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from ...agent import Basis, Limits, OutputType
from ...events import Counts, fields_of
from ...models import Tariff
from .budget import about_dollars, exceeded_limit
from .row import Row

SAMPLE = 1_000  # rows whose tokens are counted
ANSWER = 250  # tokens of an answer in plain text
BASE, FIELD = 20, 15  # tokens of a typed answer without fields, and of each of its fields


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of all rows, sent (`input`) and `written`, and their cost in dollars (None: unknown).

    `basis`: in words, what the figures rest on. `limit`: in words, the limit that they exceed ("":
    none).
    """

    rows: int
    input: int
    written: int
    cost: float | None = None
    basis: str = ""
    limit: str = ""

    @property
    def words(self) -> str:
        """The estimate as people read it."""
        cost = "at an unknown price" if self.cost is None else f"about {about_dollars(self.cost)}"
        size = f"about {self.input:,} tokens in and {self.written:,} out, {cost} ({self.basis})"
        return f"{size}. {self.limit}" if self.limit else size

    @property
    def payload(self) -> dict[str, Any]:
        """The estimate for the log; `basis` and `limit` only if they say something."""
        texts = {"basis": self.basis, "limit": self.limit}
        figures = {"input": self.input, "written": self.written, "cost": self.cost}
        return {**figures, **{name: words for name, words in texts.items() if words}}


def estimate_map(rows: Sequence[Row], basis: Basis, limits: Limits | None = None) -> Estimate:
    """Return what the live runs of `rows` will take; `limits`: those of the whole map."""
    count = len(rows)
    if not count:
        return Estimate(rows=0, input=0, written=0, cost=0.0)
    agent, (model, _) = basis.agent, basis.models[0]
    drawn = rows if count <= SAMPLE else random.Random(0).sample(rows, SAMPLE)  # noqa: S311
    own = sum(basis.estimate_prompt_tokens(row.prompt, len(row.attachments)) for row in drawn)
    sent = basis.estimate_repeated_tokens() + own / len(drawn)
    answer, guess = _guess_answer(agent.output, agent.settings)
    each = Tariff.of(model).cost(Counts(input=round(sent), output=answer))
    part = f", counted in {len(drawn):,} of {count:,} rows" if len(drawn) < count else ""
    result = Estimate(
        rows=count,
        input=round(sent * count),
        written=answer * count,
        cost=None if each is None else each * count,
        basis=f"{guess}, one request a row{part}",
    )
    limits = limits or Limits(tokens=0)
    exceeded = exceeded_limit(
        count,
        result.input + result.written,
        result.cost,
        tokens_limit=limits.tokens,
        cost_limit=limits.cost,
    )
    return msgspec.structs.replace(result, limit=exceeded)


def _guess_answer(output: OutputType | None, settings: Any) -> tuple[int, str]:
    """Return the guessed tokens of an answer, and where the guess comes from."""
    guess = ANSWER if output is None else BASE + FIELD * len(fields_of(output.schema))
    most = settings.get("max_tokens")
    if isinstance(most, int) and 0 < most <= guess:
        return most, f"max_tokens={most} an answer"
    return guess, f"assuming {guess} tokens an answer"
