"""The scores of an evaluation in the record of its map, and how those of a replay differ."""

import msgspec
import pytest

from agent_nb.rows.eval.recorded_scores import MOST_SCORES, UNSEEN, compare_scores, scores_payload
from agent_nb.rows.eval.scores import Candidate, Score
from agent_nb.rows.map.row import RowResult


def payload(scores=(1.0, 0.0, None), by="function exact", **inputs):
    each = [
        Candidate(position=n // 2, repeat=n % 2, result=RowResult(position=n, key=str(n)), row={})
        for n in range(len(scores))
    ]
    found = scores_payload(by, each, [Score(value) for value in scores], inputs)
    return msgspec.json.decode(msgspec.json.encode(found))


HEAD = "the evaluation (function exact) changed since the recording: "
OLD = payload(code="a", expected=["x", "y", "z"])
CASES = {
    "a score": (
        payload((1.0, 1.0, None), code="b", expected=["x", "y", "z"]),
        [(f"{HEAD}1 score of 3, first of row 0, repeat 1 (0 → 1)", False)],
    ),
    "an answer without a score": (
        payload((None, 0.0, None), code="a", expected=["x", "y", "z"]),
        [(f"{HEAD}1 score of 3, first of row 0 (1 → no score)", False)],
    ),
    "the code": (
        payload(code="b", expected=["x", "y", "z"]),
        [(f"{HEAD}its code, but no score", True)],
    ),
    "an expected value that leaves the score": (
        payload(code="a", expected=["x", "y", "w"]),
        [(f"{HEAD}the expected value, first of row 1", False)],
    ),
    "one answer more": (
        payload((1.0, 0.0, None, 1.0), code="a", expected=["x", "y", "z"]),
        [(f"{HEAD}it has 4 scores, not 3", False)],
    ),
    "nothing": (OLD, []),
    "the last digit of a float": (
        payload((1.0 + 1e-15, 0.0, None), code="a", expected=["x", "y", "z"]),
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_changed_of_the_scores_is_named(name):
    fresh, expected = CASES[name]
    found = compare_scores(OLD, fresh)
    assert [(change.text, change.warning) for change in found.changes] == expected
    assert found.unseen == ()


def test_a_record_without_scores_is_not_compared_and_says_so():
    assert compare_scores(None, OLD).unseen == (UNSEEN,)
    assert compare_scores(None, OLD).changes == ()


@pytest.mark.parametrize(
    "forged",
    [
        [],
        "x",
        {"scores": {"a": 1}},
        {"by": [1], "scores": [[], {}, "1"]},
        {"scores": [10**400, 0.0, None]},
    ],
)
def test_forged_scores_are_a_change_and_never_an_error(forged):
    assert compare_scores(forged, OLD).changes


def test_many_scores_are_kept_as_a_digest():
    scores = [float(n % 2) for n in range(MOST_SCORES + 1)]
    old = payload(scores, expected=["x"] * len(scores))
    assert len(msgspec.json.encode(old)) < 300
    assert compare_scores(old, old).changes == ()
    scores[7] = 0.5
    (change,) = compare_scores(old, payload(scores, expected=["x"] * len(scores))).changes
    assert change.text == f"{HEAD}some of its 5,001 scores"


def test_fewer_scores_than_a_digest_covers_are_counted_right():
    many = MOST_SCORES + 1
    old = payload([1.0] * many, expected=["x"] * many)
    texts = [c.text for c in compare_scores(old, payload([1.0], expected=["x"])).changes]
    assert texts == [f"{HEAD}it has 1 score, not 5,001", f"{HEAD}the expected value"]


def test_more_scores_than_are_recorded_one_by_one_are_counted_right():
    changes = compare_scores(payload([1.0]), payload([1.0] * (MOST_SCORES + 1))).changes
    assert [change.text for change in changes] == [f"{HEAD}it has 5,001 scores, not 1"]


def test_an_evaluation_of_many_rows_without_a_score_has_no_mean():
    assert payload([None] * (MOST_SCORES + 1))["mean"] is None
