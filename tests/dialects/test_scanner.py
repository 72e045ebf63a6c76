"""What of a text is held back for a marker that may be coming."""

import pytest

from agent_nb.dialects.scanner import Markers, find_marker_start


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("abc", ""),
        ("abc<", "<"),
        ("abc</th", "</th"),
        ("</thx", ""),
        ("<</t", "</t"),
        ("</think>", ""),
        ("", ""),
        ("</", "</"),
    ],
)
def test_one_marker(text, held):
    assert text[find_marker_start(text, 0, "</think>") :] == held


def test_nothing_before_the_start_is_held():
    assert find_marker_start("abc<x", 4, "<xy>") == 5


MARKERS = Markers(
    r"<think>|<end ?/?>|§end(?=\W)", ["<think>", "<end>", "<end/>", "<end />", "§end"], fold=True
)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a<", "<"),
        ("a<e", "<e"),
        ("a<end ", "<end "),
        ("a<end x", ""),
        ("a§", "§"),
        ("a§END", "§END"),
        ("a§ENDE", ""),
        ("a<§", "§"),
        ("a<b", ""),
        ("a", ""),
    ],
)
def test_several_markers(text, held):
    assert text[MARKERS.find_start(text, 0) :] == held


def test_the_first_marker_is_found():
    assert MARKERS.search("a <b> <end/> <think>", 0)[0] == "<end/>"


def test_the_sigils_are_known():
    assert MARKERS.sigils == "<§"
