"""What scores an answer: functions however they take their arguments, columns, and their errors."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial

import pandas as pd
import pytest
from helpers.evaluations import candidate

from agent_nb.agent.typed.output_type import OutputType
from agent_nb.errors import UsageError
from agent_nb.rows.eval.scoring import ColumnScore, FunctionScore, equal


def scores(scorer, *candidates):
    return asyncio.run(scorer.score(candidates)).each


def one(function, **about):
    (score,) = scores(FunctionScore(function), candidate(**about))
    assert not score.error, score.error
    return score.value


class Callable:
    def __call__(self, answer, row):
        return answer == row["label"]


async def awaited(answer, row):
    await asyncio.sleep(0)
    return answer == row["label"]


@pytest.mark.parametrize(
    "function",
    [
        lambda answer, row: answer == row["label"],
        lambda said, wanted: said == wanted["label"],
        lambda row, answer: answer == row["label"],
        lambda text, row: text == row["label"],
        lambda said: said == "good",
        lambda said, row, strict=True: said == row["label"] and strict,
        lambda *, answer, row: answer == row["label"],
        lambda answer, *row: answer == (row[0]["label"] if row else "good"),
        partial(lambda label, said: said == label, "good"),
        Callable(),
        awaited,
    ],
)
def test_a_function_gets_its_arguments_by_name_or_in_order(function):
    assert one(function, answer="good", row={"label": "good"}) == 1.0


def test_a_function_may_ask_for_the_prompt():
    assert one(lambda answer, prompt: len(prompt), answer="") == 6


def test_the_answer_is_the_typed_one_and_the_text_stays_the_text():
    typed = {"answer": '{"n": 3}', "value": {"n": 3}}
    assert one(lambda answer: answer["n"], **typed) == 3
    assert one(lambda text: text.count("n"), **typed) == 1


@pytest.mark.parametrize("function", [lambda: 1, lambda a, b, c: 1, lambda *, wanted: 1])
def test_a_function_that_cannot_be_called_is_refused_before_any_request(function):
    with pytest.raises(UsageError, match="def score"):
        FunctionScore(function)


@pytest.mark.parametrize(("value", "score"), [(True, 1.0), (False, 0.0), (3, 3.0), (-0.5, -0.5)])
def test_a_number_and_a_bool_are_scores(value, score):
    assert one(lambda answer: value) == score


def test_numbers_of_numpy_are_scores():
    np = pytest.importorskip("numpy")
    assert one(lambda answer: np.bool_(True)) == 1.0
    assert one(lambda answer: np.float32(0.5)) == 0.5


@pytest.mark.parametrize(
    "value", [None, "0.5", b"1", float("nan"), float("inf"), [1], 1j, 1e200, 10**400]
)
def test_what_is_no_number_is_an_error_of_that_row(value):
    found = scores(
        FunctionScore(lambda answer: value), candidate(position=7), candidate(position=8)
    )
    assert [s.value for s in found] == [None, None]
    assert "row 7" in found[0].error
    assert "return" in found[0].error


def test_a_list_of_a_frame_that_numpy_holds_is_the_expected_list():
    np = pytest.importorskip("numpy")
    assert equal([1, 2], np.array([1, 2]))
    assert not equal([1, 2], np.array([1, 3]))
    assert not equal("yes", np.array([1, 2]))


def test_an_exception_of_the_function_is_the_error_of_its_row_alone():
    def strict(answer, row):
        if row["text"] == "bad":
            raise KeyError("label")
        return True

    bad = candidate(row={"text": "bad"}, position=3, repeat=2)
    found = scores(FunctionScore(strict), candidate(), bad, candidate())
    assert [s.value for s in found] == [1.0, None, 1.0]
    assert found[1].kind == "scoring"
    assert found[1].error == "row 3, repeat 2 could not be scored: KeyError: 'label'"


def test_a_function_that_gives_bools_has_scores_from_0_to_1():
    def bounded(function):
        return asyncio.run(FunctionScore(function).score([candidate("a"), candidate("b")])).bounded

    assert bounded(lambda answer: answer == "a")
    assert not bounded(lambda answer: 0.5)
    assert not bounded(lambda answer: True if answer == "a" else 0)


def test_scores_that_are_awaited_come_in_order_and_some_at_once():
    now, most = 0, 0

    async def slow(answer, row):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002 if row["text"] == "0" else 0)
        now -= 1
        return int(row["text"])

    found = scores(FunctionScore(slow), *(candidate(row={"text": str(n)}) for n in range(40)))
    assert [s.value for s in found] == list(range(40))
    assert 1 < most <= 10


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (" good\n", "good"),
        ("1.5", Decimal("1.50")),
        (0.1, Decimal("0.10")),
        ("good", " good "),
        ("42", 42),
        ("42.0", 42),
        (" 1e3 ", 1000.0),
        ("2026-01-02", pd.Timestamp("2026-01-02")),
        ("2026-01-02T03:04:05Z", pd.Timestamp("2026-01-02 03:04:05", tz="UTC")),
        ("2026-01-02 03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02", date(2026, 1, 2)),
        ("TRUE", True),
        ("false", False),
        (True, True),
        (3, 3),
        (3.0, 3),
        ("red", Colour.RED),
        (["a", "b"], ["a", "b"]),
        (["a", "b"], ("a", "b")),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_these_are_equal(answer, expected):
    assert equal(answer, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Good", "good"),
        ("good.", "good"),
        ("", "good"),
        ("42 apples", 42),
        ("soon", pd.Timestamp("2026-01-02")),
        ("2026-01-02T03:04:05", pd.Timestamp("2026-01-02 03:04:05", tz="UTC")),
        ("1", True),
        (1, True),
        (True, 1),
        (0, False),
        (["b", "a"], ["a", "b"]),
        (None, "x"),
    ],
)
def test_these_are_not_equal(answer, expected):
    assert not equal(answer, expected)


@dataclass
class Label:
    label: str
    why: str = ""


@dataclass
class Only:
    colour: str


def column(name, output=None, columns=("text", "label")):
    return ColumnScore(name, columns, output and OutputType(output))


def test_a_column_scores_1_or_0():
    found = scores(
        column("label"),
        candidate("good ", {"label": "good"}),
        candidate("bad", {"label": "good"}),
    )
    assert [s.value for s in found] == [1.0, 0.0]


def test_the_field_of_that_name_counts_in_a_typed_answer_else_the_only_one():
    typed = candidate(output={"label": "good", "why": "x"}, row={"label": "good"})
    assert scores(column("label", Label), typed)[0].value == 1.0
    alone = candidate(output={"colour": "red"}, row={"label": "red"})
    assert scores(column("label", Only), alone)[0].value == 1.0
    value = candidate(output=3, row={"label": 3})
    assert scores(column("label", int), value)[0].value == 1.0


def test_a_typed_answer_with_other_fields_needs_a_function():
    with pytest.raises(UsageError, match=r"answer\.label == row\['text'\]"):
        column("text", Label)


def test_an_unknown_column_names_the_ones_there_are():
    with pytest.raises(UsageError, match=r"Did you mean label.*Columns: text, label"):
        column("lable")


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_without_an_expected_value_is_not_scored(nothing):
    (found,) = scores(column("label"), candidate("x", {"label": nothing}, position=4))
    assert found.value is None
    assert found.error == "row 4 could not be scored: the column 'label' holds no expected value"


def test_the_words_name_what_scored():
    assert column("label").title == "equal to column 'label'"
    assert FunctionScore(Callable()).title == "function Callable"
    assert FunctionScore(test_these_are_equal).title == "function test_these_are_equal"
