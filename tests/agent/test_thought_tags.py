"""What runs make of thought tags in the text of a model: thoughts at its start, words after it."""

from __future__ import annotations

import json

import pytest
from helpers.waiting import wait

from agent_nb import Agent, Scripted

SUMMARY = '{"summary": "<think>x</think> is stripped"}'


def run(turns, output=None, dialect="native", **options):
    agent = Agent(Scripted(turns, dialect=dialect), output=output, secrets={}, **options)
    return wait(lambda: agent("go", check=False))


def thoughts(done):
    return [e.content for e in done.log.of("think")]


@pytest.mark.parametrize(
    "answer", [SUMMARY, "Write `<think>x</think>`.", "```\n<thinking>x</thinking>\n```"]
)
def test_an_answer_keeps_the_thought_tags_that_it_is_about(answer):
    done = run([answer])
    assert (done.status, done.answer, thoughts(done)) == ("ok", answer, [])


@pytest.mark.parametrize("before", ["", "<think>\nplan\n</think>\n\n"])
def test_a_typed_answer_keeps_thought_tags_in_its_texts(before):
    done = run([{"text": before + SUMMARY, "chunk": 3}], output=dict[str, str])
    assert (done.status, done.output) == ("ok", json.loads(SUMMARY))
    assert [text.strip() for text in thoughts(done)] == ["plan"][: len(before)]


@pytest.mark.parametrize("tags", [["analysis"], "analysis"])
def test_tags_that_the_user_names_count_in_the_middle_of_an_answer(tags):
    turn = "a <analysis>b</analysis> c <think>d</think>"
    done = run([turn], thought_tags=tags)
    assert (done.answer, thoughts(done)) == ("a  c <think>d</think>", ["b"])


def test_the_dialect_thinking_reads_its_tags_anywhere():
    turn = "a <think>b</think> c"
    done = run([turn], dialect="thinking")
    assert (done.answer, thoughts(done)) == ("a  c", ["b"])
