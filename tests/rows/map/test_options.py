import pytest

from agent_nb.errors import UsageError
from agent_nb.rows.map.options import MapOptions


@pytest.mark.parametrize("name", ["concurrency", "rpm", "limit", "repeats"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10"])
def test_an_option_that_is_not_a_count_is_refused_by_name(name, value):
    with pytest.raises(UsageError, match=name):
        MapOptions(**{name: value}).checked()


def test_on_error_names_what_there_is():
    with pytest.raises(UsageError, match="keep"):
        MapOptions(on_error="ignore").checked()


def test_the_defaults_can_be_used():
    assert MapOptions().checked().concurrency == 10
