"""The hierarchy of errors, and how unknown names are worded."""

import pickle

import pytest

from agent_nb import errors
from agent_nb.errors import ModelError, RunFailed, did_you_mean, unknown_name


def test_close_names_are_offered_and_no_others():
    assert did_you_mean("opnai", ["openai", "ollama"]) == " Did you mean openai?"
    assert did_you_mean("fiel", ["field", "file"], 2) == " Did you mean field or file?"
    assert did_you_mean("opnai", ["openai"], written=repr) == " Did you mean 'openai'?"
    assert did_you_mean("xyz", ["openai"]) == ""


def test_an_unknown_name_is_answered_with_the_known_ones():
    assert unknown_name("form", "x", ["a", "b"]) == "There is no form 'x'. Known: a, b."
    assert unknown_name("tool", "x", [], label="Tools") == "There is no tool 'x'. Tools: none."


def test_an_error_after_the_first_part_is_not_retried():
    error = ModelError("Broken off.", retryable=True)
    assert error.final() is error
    assert not error.retryable


def test_a_failed_run_is_pickled_without_its_run():
    error = pickle.loads(pickle.dumps(RunFailed("It failed.", run=object())))
    assert (str(error), error.run) == ("It failed.", None)


@pytest.mark.parametrize(
    "error",
    [errors.MissingExtra("Dask", "pip install dask"), errors.NotAllowed("No.", {"file": "a"})],
)
def test_an_error_of_a_worker_arrives_as_it_was(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
