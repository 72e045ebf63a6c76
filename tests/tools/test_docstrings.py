"""Docstrings in the three common forms become a description and texts of parameters."""

from __future__ import annotations

import pytest

from agent_nb.tools import docstrings

GOOGLE = """Add two numbers.

    It is quick.

    Args:
        a (int): The first
            number.
        b: The second: really.
        **more: The rest.

    Returns:
        The sum.
    """
NUMPY = """Add two numbers.

    It is quick.

    Parameters
    ----------
    a : int
        The first
        number.
    b : int, optional
        The second: really.
    **more
        The rest.

    Returns
    -------
    int
        The sum.
    """
REST = """Add two numbers.

    It is quick.

    :param int a: The first
        number.
    :param b: The second: really.
    :param more: The rest.
    :returns: The sum.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_every_form_gives_the_same_description_and_parameters(text: str) -> None:
    doc = docstrings.parse_docstring(text)
    assert doc.description == "Add two numbers.\n\nIt is quick."
    assert doc.parameters == {
        "a": "The first number.",
        "b": "The second: really.",
        "more": "The rest.",
    }


def test_several_numpy_parameters_on_one_line_share_their_text() -> None:
    assert docstrings.parse_docstring(
        "X.\n\nParameters\n----------\na, b : int\n    Both."
    ).parameters == {
        "a": "Both.",
        "b": "Both.",
    }


def test_text_below_the_parameters_costs_none_of_them() -> None:
    text = "X.\n\nArgs:\n    a: First.\n\n    b: Second,\n        long.\n\nMore text: here."
    assert docstrings.parse_docstring(text).parameters == {"a": "First.", "b": "Second, long."}


def test_a_type_may_hold_parentheses() -> None:
    text = "X.\n\nArgs:\n    a: First.\n    b (list of (int, str)): Second (2): yes."
    assert docstrings.parse_docstring(text).parameters == {"a": "First.", "b": "Second (2): yes."}


def test_a_line_that_begins_with_a_role_continues_the_field() -> None:
    text = "X.\n\n:param a: A name, or a\n    :class:`Table` of names.\n:param b: Second."
    assert docstrings.parse_docstring(text).parameters == {
        "a": "A name, or a :class:`Table` of names.",
        "b": "Second.",
    }


def test_a_line_that_ends_with_a_colon_is_text_unless_a_section() -> None:
    assert (
        docstrings.parse_docstring("Do this:\n- a\n- b: c").description == "Do this:\n- a\n- b: c"
    )


@pytest.mark.parametrize(
    "text", [None, "", "Args:", ":param", "----", "Args:\nx", "Parameters\n----------"]
)
def test_odd_texts_are_read_without_an_error(text: str | None) -> None:
    assert docstrings.parse_docstring(text).parameters == {}
