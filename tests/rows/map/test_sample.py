"""The lines of rows in the log of a map."""

from agent_nb.rows.map.row import Row, RowResult
from agent_nb.rows.map.sample import LONGEST_LINE, Sample


def line(**result):
    row = Row(position=0, key="k", prompt="Is it\n good?")
    return Sample(1).add(row, RowResult(position=0, key="k", **result), None)


def test_the_fields_of_a_typed_answer_are_named():
    answer = {"mood": "glad", "stars": 4, "wish": None, "tags": ["a"]}
    assert (
        line(status="ok", answer="{…}", output=answer).answered
        == 'mood: glad · stars: 4 · wish: null · tags: ["a"]'
    )


def test_a_text_is_one_line_of_bounded_length():
    shown = line(status="ok", answer="one\n two" + "x" * 500)
    assert shown.prompt == "Is it good?"
    assert shown.answered.startswith("one two")
    assert len(shown.answered) <= LONGEST_LINE + 1  # the mark of the cut


def test_a_row_that_failed_shows_why():
    assert line(status="error", error="No such model.", output={"a": 1}).answered == (
        "No such model."
    )
