"""Tokens mean the same for every provider, whatever its figures leave out."""

import pytest

from agent_nb.events.usage import whole_output


@pytest.mark.parametrize(
    ("given", "reasoning", "total", "expected"),
    [
        (320, 300, 420, (320, 300)),  # thoughts are in the output
        (20, 300, 420, (320, 300)),  # beside it: xAI
        (20, 0, 420, (320, 300)),  # beside it and not named: Gemini
        (20, 0, 120, (20, 0)),
        (20, 300, 0, (20, 300)),  # no total: as given
        (20, 300, 500, (20, 300)),  # another difference says nothing
    ],
)
def test_thoughts_are_in_the_output(given, reasoning, total, expected):
    assert whole_output(given, reasoning, input_tokens=100, total=total) == expected
