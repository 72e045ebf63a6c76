"""What a map will take, before the first request: the tokens that its requests then have."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest
from helpers.asked_models import Asked
from helpers.examples import count_examples
from helpers.output_types import Row as Product
from helpers.pictures import attached, png
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb import Agent
from agent_nb.agent.assembly import Basis
from agent_nb.agent.history import IMAGE_TOKENS, estimate_tokens
from agent_nb.agent.limits import Limits
from agent_nb.models.prices import Prices
from agent_nb.models.tariff import Tariff
from agent_nb.rows.map.estimate import (
    FIELD_TOKENS,
    SAMPLED_ROWS,
    TEXT_TOKENS,
    TYPED_TOKENS,
    estimate_map,
)
from agent_nb.rows.map.row import Row
from agent_nb.wire.json_text import dumps


class Priced(Asked):
    """A model with a price: a dollar per token in, ten out."""

    tariff = Tariff(prices=Prices(input=1e6, output=1e7))


def rows_of(prompts, attachments=()):
    return [
        Row(position=place, prompt=prompt, key="", attachments=tuple(attachments))
        for place, prompt in enumerate(prompts)
    ]


def estimated(prompts, model=None, limits=None, attachments=(), **options):
    agent = Agent(model or Asked(["."]), secrets={}, **options)
    return estimate_map(rows_of(prompts, attachments), Basis.of(agent, agent.redaction()), limits)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("dialect", ["xml", "section", "native"])
@pytest.mark.parametrize(
    "options", [{}, {"system": "Be brief. " * 50}, {"tools": [add]}, {"output": Product}]
)
def test_the_tokens_are_those_of_the_requests_that_the_rows_send(dialect, options):
    prompts = ["What?", "Say ä and \n" * 40]
    model = Asked(["Yes."] * 20, dialect=dialect)
    agent = Agent(model, secrets={}, approve="auto", **options)
    guessed = estimate_map(rows_of(prompts), Basis.of(agent, agent.redaction()))
    sent = 0
    for prompt in prompts:
        first = len(model.requests)
        agent.run_sync(prompt, check=False)
        sent += tokens_of(model.requests[first], native=dialect == "native")
    assert guessed.input == sent


def tokens_of(request, *, native):
    """Return the tokens of a request, with the tools and the schema that it has beside its text."""
    beside = [msgspec.to_builtins(spec) for spec in request.tools] if native else []
    beside += [request.output.schema] if request.output else []
    return estimate_tokens(request.messages) + sum(len(dumps(held)) // 4 + 1 for held in beside)


@settings(max_examples=count_examples(30))
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_rows_add_up(prompts):
    whole, alone = estimated(prompts), [estimated([prompt]) for prompt in prompts]
    assert whole.input == sum(each.input for each in alone)
    assert whole.written == sum(each.written for each in alone) == TEXT_TOKENS * len(prompts)
    assert whole.cost is None


def test_a_picture_counts_unless_the_model_sees_none():
    picture = attached(png(3, 3))
    plain = estimated(["x"]).input
    assert estimated(["x"], attachments=[picture, picture]).input >= plain + 2 * IMAGE_TOKENS
    blind = Asked(["."])
    blind.vision = False
    assert estimated(["x"], blind, attachments=[picture]).input == plain


def test_of_many_rows_a_sample_is_counted_and_the_words_say_so():
    prompts = ["short", "a longer prompt " * 20] * SAMPLED_ROWS
    found, half = estimated(prompts), estimated(prompts[:SAMPLED_ROWS])
    assert found.input == pytest.approx(2 * half.input, rel=0.1)
    assert found == estimated(prompts)
    assert f"counted in {SAMPLED_ROWS:,} of {2 * SAMPLED_ROWS:,} rows" in found.basis
    assert "counted in" not in half.basis


def test_a_hundred_thousand_rows_are_not_all_counted(monkeypatch):
    counted = []
    monkeypatch.setattr(
        "agent_nb.agent.assembly.estimate_tokens",
        lambda sent: counted.append(sent) or estimate_tokens(sent),
    )
    assert estimated(["a prompt"] * 100_000).written == 100_000 * TEXT_TOKENS
    assert len(counted) <= SAMPLED_ROWS + 1


@pytest.mark.parametrize(
    ("options", "answer", "said"),
    [
        ({}, TEXT_TOKENS, f"assuming {TEXT_TOKENS} tokens an answer"),
        ({"settings": {"max_tokens": 7}}, 7, "max_tokens=7 an answer"),
        ({"settings": {"max_tokens": 9_999}}, TEXT_TOKENS, f"assuming {TEXT_TOKENS} tokens"),
        ({"output": Product}, TYPED_TOKENS + 2 * FIELD_TOKENS, "assuming 50 tokens"),
        ({"output": Literal["a", "b"]}, TYPED_TOKENS, "assuming 20 tokens"),
    ],
)
def test_the_answer_is_a_guess_and_the_words_say_which(options, answer, said):
    found = estimated(["x"] * 3, **options)
    assert found.written == 3 * answer
    assert said in found.basis
    assert "one request a row" in found.basis


def test_the_cost_is_that_of_the_tokens_and_unknown_without_a_price():
    found = estimated(["x", "y"], Priced(["."]))
    assert found.cost == found.input + 10 * found.written
    assert estimated(["x"]).cost is None


def test_a_limit_of_the_map_that_is_too_small_is_said_with_its_rows():
    fits = estimated(["x"] * 10, limits=Limits(tokens=10_000))
    assert fits.limit == ""
    small = estimated(["x"] * 100, limits=Limits(tokens=(fits.input + fits.written) // 2))
    assert small.limit.startswith("The limit of 1,")
    assert "ends the map after about 5 of 100 rows; all of them need about 32,200." in small.limit
    dear = estimated(["x"] * 10, Priced(["."]), limits=Limits(tokens=0, cost=1000.0))
    assert dear.limit.startswith("The limit of $1000.00 ends the map after about 0 of 10 rows")
    assert estimated(["x"] * 10, limits=Limits(tokens=0)).limit == ""


def test_the_log_gets_the_figures_and_words_only_if_there_are_some():
    found = estimated(["x"])
    assert found.payload == {
        "input": found.input,
        "written": found.written,
        "cost": None,
        "basis": found.basis,
    }
    assert estimated([]).payload == {"input": 0, "written": 0, "cost": 0.0}
