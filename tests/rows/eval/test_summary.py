"""The pages of evaluations and comparisons: figures in words, hostile texts, long data."""

from __future__ import annotations

import re

import pytest
from helpers.evaluations import evaluation

from agent_nb import Agent, compare
from agent_nb.models.scripted import Scripted
from agent_nb.rows.eval.summary import TABLE_ROWS, format_score

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">'


def forms(shown):
    made = shown._repr_mimebundle_()
    assert made.keys() == {"text/html", "text/markdown", "text/plain"}
    return made


def test_an_evaluation_says_its_figure_its_interval_and_what_they_are():
    said = forms(evaluation([1] * 30 + [0] * 10, name="short"))["text/plain"]
    assert said.startswith("short  0.750  95 % interval 0.598 to 0.858\n")
    assert "share of 40 rows; 95 % Wilson interval · score: function f" in said
    assert "40 rows · 400 tokens, $0.04" in said


def test_the_rows_with_the_lowest_scores_come_first():
    said = forms(evaluation([0.5, 0.9, 0.1, 0.7]))["text/plain"]
    assert re.findall(r"answer (\d)", said.split("lowest")[1]) == ["2", "0", "3"]


def test_failures_are_said_with_their_first_error():
    said = forms(evaluation([[1, 0], [None, 1], [None, None]] * 4))["text/plain"]
    assert "12 answers without a score (12 rate limit)" in said
    assert "4 rows left out" in said
    assert "1 of 2   429: slow down" in said
    assert "the repeats differ in 4 rows" in said


def test_an_exception_of_the_score_is_said_whole_and_its_row_once():
    def unfit(answer, row):
        raise TypeError("a bowl of oranges cannot be compared with a number")

    found = Agent(Scripted(["x"]), secrets={}).eval_sync(
        ["one"], "{{ text }}", score=unfit, repeats=1, store=False
    )
    said = forms(found)["text/plain"]
    assert "1 answer without a score (1 failed in scoring)" in said
    reason = "TypeError: a bowl of oranges cannot be compared with a number"
    assert f"    0  1 of 1   {reason}" in said
    assert found.frame[0]["_error"] == f"row 0 could not be scored: {reason}"


def test_a_comparison_says_difference_verdict_both_sides_and_the_rows():
    a = evaluation([0] * 20 + [1] * 20, name="short")
    b = evaluation([1] * 18 + [0] * 2 + [1] * 19 + [0], name="careful")
    said = forms(compare(a, b))["text/plain"]
    assert said.startswith("careful − short  +0.425  95 % interval +0.232 to +0.581\n")
    assert "careful scores higher than short: the whole interval is above 0." in said
    assert "18 improved, 1 worse, 21 same" in said
    assert "Rows that got worse (1)" in said
    assert "Rows that improved (18)" in said
    assert "missing" not in said


def test_what_makes_a_comparison_doubtful_is_said():
    said = forms(compare(evaluation([1, 0] * 8), evaluation([[1, 0]] * 16)))["text/plain"]
    assert "Each row was asked once, and twice: tokens and cost count all answers." in said


def test_long_tables_are_cut_and_say_so():
    shown = evaluation([n / 100 for n in range(100)])
    html = forms(shown)["text/html"]
    assert html.count("<tr>") == TABLE_ROWS + 1
    assert "89 more rows: the frame has them all" in html
    assert len(html) < 20_000


@pytest.mark.parametrize("side", ["data", "answer", "name"])
def test_hostile_texts_are_text(side):
    data = [{"text": HOSTILE if side == "data" else "x", HOSTILE: n} for n in range(12)]
    about = {
        "answers": [HOSTILE if side == "answer" else "y"] * 12,
        "name": HOSTILE if side == "name" else "n",
        "scored_by": HOSTILE,
    }
    a = evaluation([1, 0] * 6, data, **about)
    b = evaluation([0, 1] * 6, data, **{**about, "name": "other"})
    for shown in (a, compare(a, b)):
        html = forms(shown)["text/html"]
        assert "<script" not in html
        assert "<img" not in html
        assert "&lt;script&gt;" in html


def test_keys_are_redacted_before_values_are_cut(monkeypatch):
    key = "sk-proj-" + "Ab3" * 20
    monkeypatch.setenv("OPENAI_API_KEY", key)
    data = [{"text": "x" * 60 + " " + key, "id": n} for n in range(12)]
    a = evaluation([1, 0] * 6, data, answers=[f"my key is {key}"] * 12)
    for shown in (a, compare(a, evaluation([0] * 12, data))):
        for form in forms(shown).values():
            assert key[:12] not in form


def test_keys_are_redacted_in_the_names_of_columns(monkeypatch):
    key = "sk-proj-" + "Ab3" * 20
    monkeypatch.setenv("OPENAI_API_KEY", key)
    a = evaluation([1, 0] * 6, [{key: n} for n in range(12)])
    for shown in (a, compare(a, evaluation([0, 1] * 6, [{key: n} for n in range(12)]))):
        for form in forms(shown).values():
            assert key[:12] not in form


def test_the_page_has_no_script_no_style_element_and_no_remote_address():
    html = forms(compare(evaluation([1, 0] * 6), evaluation([0, 1] * 6)))["text/html"]
    assert not re.search(r"<(script|style|svg|link|iframe)|https?://", html)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.5, "0.500"),
        (-0.0, "0.000"),
        (-0.0001, "0.000"),
        (99.9999, "100"),
        (123.45, "123.5"),
        (999.97, "1,000"),
        (1234.5, "1,234"),
        (-12.25, "−12.250"),
        (123456.7, "123,457"),
        (-98765432.1, "−98,765,432"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_are_short(value, text):
    assert format_score(value) == text


def test_signed_numbers_have_their_sign():
    assert format_score(0.25, signed=True) == "+0.250"
    assert format_score(-0.25, signed=True) == "−0.250"


def test_a_difference_that_rounds_to_zero_looks_like_zero():
    assert {format_score(v, signed=True) for v in (0.0, -0.0, 0.0001, -0.0001)} == {"+0.000"}


def test_an_answer_is_not_shown_beside_the_mean_of_repeats():
    once, twice = evaluation([1] * 12), evaluation([[1, 0]] * 11 + [[1, 1]])
    assert "answer 0" in forms(evaluation([0] + [1] * 11))["text/plain"]
    assert "answer 0" in forms(compare(once, evaluation([0] * 12)))["text/plain"]
    for shown in (twice, compare(once, twice)):
        text = forms(shown)["text/plain"]
        assert "0.500" in text
        assert "answer " not in text


def test_keys_are_redacted_in_names_before_these_are_cut(monkeypatch):
    key = "sk-proj-" + "Ab3" * 20
    monkeypatch.setenv("OPENAI_API_KEY", key)
    a = evaluation([1, 0] * 6, name=f"with {key}")
    b = evaluation([0, 1] * 5 + [0, 0], name="x" * 50 + " " + key, scored_by=f"by {key}")
    for shown in (a, b, compare(a, b), compare(b, a)):
        for text in (*forms(shown).values(), repr(shown)):
            assert key[:12] not in text
