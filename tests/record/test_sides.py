"""Two texts side by side."""

from agent_nb.record import sides


def test_equal_lines_stand_beside_each_other_and_others_are_marked():
    assert sides.lines("a\nb\nc", "a\nB\nc\nd") == [
        ("", "a", "a"),
        ("≠", "b", "B"),
        ("", "c", "c"),
        ("≠", "", "d"),
    ]


def test_equal_texts_have_no_rows():
    assert sides.lines("a\nb", "a\nb") == []


def test_equal_lines_far_from_a_difference_are_left_out():
    many = "\n".join(map(str, range(50)))
    assert sides.lines(many, many.replace("25", "x")) == [
        ("⋮", "", ""),
        ("", "23", "23"),
        ("", "24", "24"),
        ("≠", "25", "x"),
        ("", "26", "26"),
        ("", "27", "27"),
        ("⋮", "", ""),
    ]


def test_long_differences_are_bounded_and_say_so():
    rows = sides.lines("", "\n".join(map(str, range(10_000))))
    assert len(rows) == sides.LONGEST + 1
    assert rows[-1][1] == f"({sides.MOST - sides.LONGEST} more rows)"


def test_as_text_it_has_two_columns_of_bounded_width():
    assert sides.text("a" * 99, "b", width=10).splitlines() == [
        "  recorded   | now",
        f"≠ {'a' * 9}… | b",
    ]
