"""What callers hand over may be of a subclass of text or number: runs, maps and records take it."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pandas as pd
import pytest
from helpers.waiting import wait
from markupsafe import Markup

import agent_nb
from agent_nb import Agent, Scripted, tool
from agent_nb.errors import UsageError
from agent_nb.events import Respond
from agent_nb.record.record import run_record

TEXTS = [np.str_("low"), Markup("low")]
NUMBERS = [np.float64(3.0), np.float32(3.0), np.int64(3)]


def run(prompt="go", turns=("<b>",), **options):
    agent = Agent(Scripted(turns, dialect="native"), secrets={}, **options)
    done = wait(lambda: agent(prompt, check=False))
    assert msgspec.json.encode(run_record(done.log))
    return done


def is_plain(value):
    if isinstance(value, dict):
        return all(map(is_plain, [*value, *value.values()]))
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return type(value) in (str, int, float, bool, type(None))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("place", ["prompt", "system", "name", "trace_id", "notes"])
def test_a_text_of_a_subclass_is_taken(text, place) -> None:
    if place == "notes":
        agent = Agent(Scripted(["x"], dialect="native"), secrets={})
        done = wait(lambda: agent("go", notes=[text], check=False))
    else:
        done = run(text) if place == "prompt" else run(**{place: text})
    assert (done.status, type(done.prompt)) == ("ok", str)
    assert all(is_plain(msgspec.structs.asdict(event).get("content", "")) for event in done.log)


@pytest.mark.parametrize("text", TEXTS)
def test_a_setting_that_is_a_text_of_a_subclass_is_taken(text) -> None:
    done = run(settings={"stop": [text], "reasoning": text, "extra_body": {text: text}})
    assert done.status == "ok"
    assert is_plain(done.log[0].settings)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_setting_or_limit_that_is_a_number_of_numpy_is_taken(number) -> None:
    done = run(settings={"temperature": number}, limits={"seconds": number, "turns": number})
    assert done.status == "ok"
    assert is_plain(done.log[0].settings)


def test_words_of_the_agent_may_be_texts_of_a_subclass() -> None:
    words = {"dialect": "native", "approve": "auto", "memory": "window"}
    assert run(**{name: np.str_(word) for name, word in words.items()}).status == "ok"


def test_an_infinite_limit_is_none_and_one_that_is_no_number_is_refused() -> None:
    assert run(limits={"seconds": math.inf, "tokens": math.inf}).status == "ok"
    with pytest.raises(UsageError, match="'seconds' is a number of at least 0"):
        run(limits={"seconds": math.nan})


@pytest.mark.parametrize("value", [np.arange(3), math.nan, object()])
def test_a_setting_that_cannot_be_sent_is_refused_before_anything_is(value) -> None:
    with pytest.raises(UsageError, match="settings are not JSON"):
        Agent(Scripted(["x"]), settings={"extra_body": {"a": value}})


@pytest.mark.parametrize("place", ["prompt", "system", "stop"])
def test_half_a_character_in_an_input_becomes_a_replacement_character(place) -> None:
    half = "a\ud83d"
    done = run(half) if place == "prompt" else run(system=half, settings={"stop": half})
    assert done.status == "ok"
    assert "a\ufffd" in done.log.to_ndjson()


@pytest.mark.parametrize(
    "data", [[np.str_("a<b")], [Markup("a<b")], pd.DataFrame({"text": ["a<b"]})]
)
def test_rows_and_template_of_a_map_may_be_of_a_subclass(data) -> None:
    agent = Agent(Scripted(["x"], dialect="native"), secrets={})
    asked = agent.map(data, Markup("<i>{{ text }}"), store=False)
    assert [(row.prompt, type(row.prompt)) for row in asked.rows] == [("<i>a<b", str)]
    frame = agent.map_sync(data, Markup("<i>{{ text }}"), store=False)
    assert len(frame) == 1


def test_the_options_of_a_map_may_be_numbers_of_numpy() -> None:
    agent = Agent(Scripted(["x"] * 2, dialect="native"), secrets={})
    frame = agent.map_sync(
        [{"a": 1}, {"a": 2}], "{{ a }}", concurrency=np.int64(2), limit=np.uint8(1), store=False
    )
    assert len(frame) == 1
    with pytest.raises(UsageError, match=r"concurrency=2\.5: give a whole number"):
        agent.map_sync([{"a": 1}], "{{ a }}", concurrency=np.float64(2.5))


@tool(effect="none")
def tell(text: str) -> object:
    """Tell."""
    return {Markup("a"): np.str_(text), "b": [np.float64(1.5), np.int64(2)]}


def test_a_script_and_a_tool_may_give_values_of_subclasses() -> None:
    turns = [{"calls": [{"name": np.str_("tell"), "args": {"text": Markup("q")}}]}, Markup("done")]
    done = run(turns=turns, tools=[tell])
    (result,) = done.log.of("result")
    assert (done.answer, result.content) == ("done", {"a": "q", "b": [1.5, 2]})
    assert is_plain(result.content)


def test_what_is_watched_may_hold_values_of_subclasses() -> None:
    lines = [
        {
            "type": np.str_("respond"),
            "content": Markup("a<b"),
            "seq": np.int64(1),
            "run": "r",
            "ts": np.float64(1),
        },
        {"type": "end", "status": "ok", "seq": 2, "run": Markup("r"), "ts": 1.5},
    ]
    for source in (
        lines,
        [Respond(content=Markup("a<b"))],
        [Markup(json.dumps({"type": "respond", "content": "a<b"}))],
    ):
        done = wait(lambda source=source: agent_nb.watch(source, "canonical", show=False))
        assert (done.answer, type(done.answer)) == ("a<b", str)
        assert "a<b" in done.log.to_ndjson()


def test_chunks_that_are_parsed_may_be_of_a_subclass() -> None:
    (said,) = agent_nb.parse([Markup("a"), "<b"], "native")
    assert said.content == "a<b"


@pytest.mark.parametrize(
    "answer",
    [
        '{"s": "a\\ud83d"}',
        '{"\\ud83d": "a"}',
        '{"s": 3, "t": "\\udfff"}',
        '```json\n{"s": "\\ud83d"}\n```',
    ],
)
def test_half_a_character_in_a_typed_answer_is_sent_back_for_correction(answer) -> None:
    done = run(turns=[answer, '{"s": "b"}'], output=dict[str, str])
    assert (done.status, done.output) == ("ok", {"s": "b"})
    (fault,) = done.log.of("error")
    assert fault.code == "invalid_output"
    assert "half of a character" in fault.message
