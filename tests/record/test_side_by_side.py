"""Two texts side by side."""

import hypothesis
import pytest
from hypothesis import strategies as st

from agent_nb.record import side_by_side as sides


def test_equal_lines_stand_beside_each_other_and_others_are_marked():
    assert sides.SideBySide("a\nb\nc", "a\nB\nc\nd").rows() == [
        ("", "a", "a"),
        ("≠", "b", "B"),
        ("", "c", "c"),
        ("≠", "", "d"),
    ]


def test_equal_texts_have_no_rows():
    assert sides.SideBySide("a\nb", "a\nb").rows() == []


def test_equal_lines_far_from_a_difference_are_left_out():
    many = "\n".join(map(str, range(50)))
    assert sides.SideBySide(many, many.replace("25", "x")).rows() == [
        ("⋮", "", ""),
        ("", "23", "23"),
        ("", "24", "24"),
        ("≠", "25", "x"),
        ("", "26", "26"),
        ("", "27", "27"),
        ("⋮", "", ""),
    ]


def test_long_differences_are_bounded_and_say_so():
    rows = sides.SideBySide("", "\n".join(map(str, range(10_000)))).rows()
    assert len(rows) == sides.MOST_ROWS + 1
    omitted, beyond = sides.MOST_LINES - sides.MOST_ROWS, 10_000 - sides.MOST_LINES
    assert rows[-1][1] == f"({omitted} more rows, {beyond} more lines not compared)"


def test_lines_that_are_too_many_to_be_compared_are_counted():
    many = [str(number) for number in range(sides.MOST_LINES)]
    recorded, now = ("\n".join([first, *many, last]) for first, last in ("ac", "bd"))
    assert sides.SideBySide(recorded, now).rows()[-1] == ("⋮", "(2 more lines not compared)", "")


def test_as_text_it_has_two_columns_of_bounded_width():
    assert sides.SideBySide("a" * 99, "b").columns(10).splitlines() == [
        "  recorded   | now",
        f"≠ {'a' * 9}… | b",
    ]


def test_a_difference_behind_thousands_of_equal_lines_is_shown():
    many = "\n".join(map(str, range(5_000)))
    assert ("≠", "4000", "x") in sides.SideBySide(many, many.replace("4000", "x")).rows()


@pytest.mark.parametrize("pair", [("a\n", "a"), ("a\x0cb", "a\nb"), ("", "\n"), ("a\r\nb", "a\nb")])
def test_texts_that_differ_always_have_a_row_that_differs(pair):
    assert [mark for mark, *_ in sides.SideBySide(*pair).rows()].count("≠")
    assert sides.SideBySide(*pair).unified_diff()


@hypothesis.given(st.text("a\n\r\x0c", max_size=6), st.text("a\n\r\x0c", max_size=6))
def test_only_equal_texts_have_no_row_that_differs(one, other):
    assert any(mark == "≠" for mark, *_ in sides.SideBySide(one, other).rows()) == (one != other)
    assert bool(sides.SideBySide(one, other).unified_diff()) == (one != other)


def test_a_difference_far_to_the_right_is_shown_as_text():
    shown = sides.SideBySide("x" * 500 + "61", "x" * 500 + "62").columns()
    assert "61 |" in shown
    assert "62" in shown
