"""A question on the keyboard: what is not clearly a yes is a no, and hostile text stays text."""

import asyncio
import builtins

import pytest

from agent_nb.notebook.asking import ANSWERS, put, stdin_asker, wording
from agent_nb.tools.base import Question

QUESTION = Question("c1", "python", {"code": "import os\nos.remove('x')"})


@pytest.fixture
def answer(monkeypatch):
    """Have `input()` give these answers in turn; return the texts it was asked with."""

    def answer(*said):
        asked, left = [], list(said)

        def fake(text=""):
            asked.append(text)
            item = left.pop(0)
            if isinstance(item, BaseException):
                raise item
            return item

        monkeypatch.setattr(builtins, "input", fake)
        return asked

    return answer


@pytest.mark.parametrize(
    ("said", "allow", "scope"),
    [("y", True, "once"), ("  YES ", True, "once"), ("a", True, "tool"), ("n", False, "once"), ("No", False, "once")],
)
def test_an_answer_is_a_decision(answer, said, allow, scope):
    answer(said)
    decision = put(QUESTION)
    assert (decision.allow, decision.scope, decision.by) == (allow, scope, "stdin")


def test_an_unclear_answer_is_asked_again_and_then_a_no(answer):
    asked = answer("", "perhaps", "yep")
    assert not put(QUESTION).allow
    assert len(asked) == 3


def test_the_end_of_input_is_a_no(answer):
    answer(EOFError())
    assert not put(QUESTION).allow


def test_no_input_after_all_is_nobody(answer):
    answer(NotImplementedError("raw_input was called, but this frontend does not support input requests"))
    assert put(QUESTION) is None


def test_the_question_shows_tool_and_arguments():
    text = wording(QUESTION)
    assert "python" in text
    assert "os.remove('x')" in text
    assert text.endswith(": ")


def test_control_and_direction_characters_are_shown_as_escapes():
    hostile = Question("c1", "li\x1b[2Jst\u202e", {"path\r": "a\x1b]0;x\x07\u2066b"}, preview="\x1b[31mred")
    text = wording(hostile)
    assert all(c.isprintable() or c in "\n\t" for c in text)
    assert r"\x1b[2J" in text


def test_long_arguments_are_cut_and_say_so():
    assert "98000 more characters" in wording(Question("c1", "x", {"code": "y" * 100_000}))


def test_the_asker_asks_on_the_main_thread_or_nobody(answer):
    answer("y")

    class Host:
        async def call(self, function):
            return function()

    assert asyncio.run(stdin_asker(Host(), True)(QUESTION)) is ANSWERS["y"]
    assert asyncio.run(stdin_asker(Host(), False)(QUESTION)) is None
