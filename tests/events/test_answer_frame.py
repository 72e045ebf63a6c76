"""The typed answer of a run as a DataFrame."""

import pytest

from agent_nb.events.answer_frame import make_answer_frame


@pytest.mark.parametrize(
    ("document", "columns"),
    [
        (["\ud800"], {"value": ["?"]}),
        ([{"a": "\ud800", "b": 1}], {"a": ["?"], "b": [1]}),
        ({"\ud800": "a"}, {"?": ["a"]}),
    ],
)
def test_half_a_character_of_a_record_becomes_a_question_mark(document, columns):
    assert make_answer_frame(document).to_dict("list") == columns
