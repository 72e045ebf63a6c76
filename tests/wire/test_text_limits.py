"""Text is cut to its limit, with a mark where something is missing."""

import pytest

from agent_nb.wire.text_limits import cut_end, cut_middle, fit_text


@pytest.mark.parametrize("cut", [cut_end, cut_middle, fit_text])
def test_text_within_its_limit_is_unchanged(cut):
    assert cut("abcdef", 6) == "abcdef"


def test_a_cut_end_counts_what_is_missing():
    assert cut_end("abcdef", 4) == "abcd…"
    assert cut_end("a" * 5000, 4, " … {:,} more characters") == "aaaa … 4,996 more characters"


def test_a_cut_middle_keeps_beginning_and_end():
    assert cut_middle("abcdefgh", 4) == "ab\n[… 4 characters left out …]\ngh"
    assert cut_middle("abcdefgh", 6, "{} gone", tail=1) == "abcde\n2 gone\nh"
    assert cut_middle("abcdefgh", 3, tail=0) == "abc\n[… 5 characters left out …]\n"


def test_fitted_text_is_as_wide_as_its_limit():
    assert fit_text("abcdef", 4) == "abc…"
