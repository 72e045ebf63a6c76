"""The prompt of each row: columns first, then the row itself, then the notebook."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers.pictures import attached, png
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.attachments import pictures_of
from agent_nb.agent.interpolate import PromptTemplate
from agent_nb.errors import UsageError
from agent_nb.rows.map.table.rows import rows_of
from agent_nb.rows.map.table.template import Template

HOSTILE = ["__class__", "a b", "{{", "}}", "__builtins__", "__import__", "class", "é", '"']


def prompts(text, data, namespace=None, **options):
    rows, template = rows_of(data), Template(text, namespace, **options)
    return [template.fill(rows.values(place)).prompt for place in range(len(rows))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say {{ text }}", ["Say a", "Say b"]),
        ("{{ text.upper() }}{{n+1}}", ["A2", "B3"]),
        ('{{ row["a b"] }}', ["x", "None"]),
        ('{{ row["text"] + top }}', ["a!", "b!"]),
        ("{{ [text * k for k in (1, 2)] }}", ["['a', 'aa']", "['b', 'bb']"]),
        ("{{ (lambda: text)() }}{{ ''.join(text for _ in top) }}", ["aa", "bb"]),
        ("{{ len }}", ["3", "4"]),  # a column hides a builtin
        ("{{ shadowed }}", ["column", "column"]),  # and a name of the notebook
        (r"\{{ text }} {{ text }}", ["{{ text }} a", "{{ text }} b"]),
        ("{{ (n := n + 1) + n }}", ["4", "6"]),
        ("{{ row.get('nothing', 0) }}{{ 'nothing' in row }}", ["0False", "0False"]),
    ],
)
def test_an_expression_sees_columns_then_the_row_then_the_notebook(text, expected):
    data = [
        {"text": "a", "n": 1, "a b": "x", "len": 3, "shadowed": "column"},
        {"text": "b", "n": 2, "len": 4, "shadowed": "column"},
    ]
    names = {"top": "!", "shadowed": "notebook", "row": "notebook"}
    assert prompts(text, data, names) == expected
    assert prompts(text, pd.DataFrame(data), names) == expected
    assert names == {"top": "!", "shadowed": "notebook", "row": "notebook"}


@given(st.lists(st.sampled_from(HOSTILE), min_size=1, unique=True), st.text(max_size=4))
def test_a_column_of_any_name_is_read_from_the_row_and_breaks_no_other(names, value):
    row = {**{name: f"{n}{value}" for n, name in enumerate(names)}, "text": value}
    for n, name in enumerate(names):
        assert prompts("{{ row[name] }}{{ text }}", [row], {"name": name}) == [f"{n}{value}{value}"]
    assert prompts("{{ str(len(text)) }}", [row]) == [str(len(value))]


def test_a_column_named_row_hides_the_row_itself():
    assert prompts("{{ row }} {{ text }}", [{"row": 7, "text": "a"}]) == ["7 a"]


@given(st.text(), st.text())
def test_what_a_value_contains_is_not_read_again(before, value):
    text = before.replace("{", "(").replace("\\", "/")
    assert prompts(f"{text}{{{{ v }}}}", [{"v": value}]) == [f"{text}{value}"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Decimal("1.50"), "1.50"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (pd.Timestamp("2024-01-02 03:04"), "2024-01-02 03:04:00"),
        (np.float64(1.5), "1.5"),
        (True, "True"),
        (None, "None"),
        (float("nan"), "None"),
        ([1], "[1]"),
    ],
)
def test_a_value_is_written_as_people_write_it(value, said):
    assert prompts("{{ v }}", [{"v": value}]) == [said]


def test_the_whole_row_can_be_written():
    assert prompts("{{ row }}", pd.DataFrame({"a": [1], "b": ["x"]})) == ["{'a': 1, 'b': 'x'}"]


def test_an_expression_is_compiled_once(monkeypatch):
    template, rows = Template("{{ text + '!' }}"), rows_of(["a", "b"])
    monkeypatch.setattr("builtins.compile", None)
    monkeypatch.setattr("ast.parse", None)
    assert [template.fill(rows.values(n)).prompt for n in range(2)] == ["a!", "b!"]


def test_columns_that_no_expression_names_are_not_read():
    class Untouched(dict):
        def get(self, key, default=None):
            assert key == "text"
            return super().get(key, default)

    assert prompts("{{ text }}", [Untouched(text="a", other="b")]) == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ 1 // n }}", r"Row 1, counted from 0: \{\{ 1 // n \}\} failed: ZeroDivisionError"),
        ("{{ txt }}", r"Row 0.*NameError.*Columns: n, text\. Did you mean text\?"),
        ("{{ text|upper }}", r"Row 0.*NameError.*not filters: write text\.upper\(\)"),
        ("{{ text | len }}", r"Row 0.*TypeError.*not filters"),
        ("{{ row['txt'] }}", r"Row 0.*KeyError.*Columns: n, text\. Did you mean text\?"),
    ],
)
def test_a_fault_names_the_row_the_expression_and_the_columns(text, said):
    with pytest.raises(UsageError, match=said):
        prompts(text, [{"n": 1, "text": "a"}, {"n": 0, "text": "b"}])


@pytest.mark.parametrize("text", ["{{ }}", "{{ not python! }}"])
def test_a_template_that_cannot_be_read_is_an_error_before_any_row(text):
    with pytest.raises(UsageError):
        Template(text)


@pytest.mark.parametrize("text", ["{{ class }}", "{{ a b }}"])
def test_a_column_whose_name_python_cannot_write_is_found_in_the_row(text):
    with pytest.raises(UsageError, match=r'Write row\["…"\] for a column'):
        Template(text)


def test_a_fault_names_at_most_thirty_columns():
    with pytest.raises(UsageError, match=r"c29 and 70 more\. Did you mean c98\?"):
        prompts("{{ c_98 }}", [{f"c{n}": n for n in range(100)}])


def test_a_name_of_two_columns_is_an_error_where_it_is_used():
    frame = pd.DataFrame([["x", "y", "z"]], columns=["count", "count", "text"])
    assert prompts("{{ text.count('z') }}", frame) == ["1"]
    for text in ("{{ count }}", "{{ row['count'] }}"):
        with pytest.raises(UsageError, match=r"Row 0.*2 columns are named 'count'; rename one"):
            prompts(text, frame, {"count": "of the notebook"})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (["a", "b"], r'"Classify \{\{ text \}\}"'),
        ([{"a b": 1}, {"a b": 2}], r'"Classify \{\{ row\["a b"\] \}\}"\. Columns: a b\.'),
    ],
)
def test_the_same_prompt_for_every_row_is_an_error_that_says_what_to_write(data, said):
    with pytest.raises(UsageError, match=f"all 2 rows would be asked the same.*{said}"):
        Template("Classify").check(rows_of(data))


def test_a_prompt_without_braces_is_fine_for_one_row_or_with_pictures():
    Template("Classify").check(rows_of(["a"]))
    Template("Classify").check(rows_of([]))
    Template("Classify", attachments="picture").check(rows_of([{"picture": b""}] * 2))
    Template("Classify", attachments=lambda row: None).check(rows_of(["a", "b"]))


def test_pictures_of_a_row_go_with_its_prompt_after_those_attached():
    one, two, shared = png(3, 2), png(4, 2), png(5, 2)
    data = [{"a": one, "b": [two, one]}, {"a": two, "b": None}]
    rows = rows_of(data)
    by_column = Template("See {{ row['a'] }}", attachments="b")
    by_function = Template("See {{ row['a'] }}", attachments=lambda row: row["b"])
    for template in (by_column, by_function):
        filled = [template.fill(rows.values(n)) for n in range(2)]
        assert [f.prompt for f in filled] == [
            "See [row['a']: 3×2 pixels]",
            "See [row['a']: 4×2 pixels]",
        ]
        assert filled[0].pictures == (
            *pictures_of([two, one]),
            {**attached(one), "name": "row['a']"},
        )
        assert filled[1].pictures == ({**attached(two), "name": "row['a']"},)
    everywhere = Template("{{ a and 1 }}", attachments=[shared])
    assert everywhere.fill(rows.values(1)).pictures == pictures_of([shared])


@pytest.mark.parametrize(
    ("attachments", "said"),
    [
        ("text", r"Row 0.*attachment in the column 'text': .*cannot be read"),
        (lambda row: row["nothing"], r"Row 0.*attachments function failed: KeyError"),
        (lambda row: 7, r"Row 0.*not an image"),
    ],
)
def test_an_attachment_that_cannot_be_sent_names_its_row(attachments, said):
    with pytest.raises(UsageError, match=said):
        prompts("{{ text }}", ["no file"], attachments=attachments)


def test_attachments_of_a_column_that_is_not_there_are_an_error():
    with pytest.raises(
        UsageError, match=r"'pic' does not name a column.*Did you mean pict\?.*\['pic'\]"
    ):
        Template("{{ pict }}", attachments="pic").check(rows_of([{"pict": 1}]))


@given(st.text(alphabet='{}\\ ax"', max_size=12))
def test_a_template_is_read_as_the_prompt_of_a_cell_is(text):
    try:
        expected = PromptTemplate(text).fill({"a": "A", "x": 1})
    except UsageError:
        with pytest.raises(UsageError, match=r"failed|is empty"):
            prompts(text, [{"a": "A"}], {"x": 1})
        return
    assert prompts(text, [{"a": "A"}], {"x": 1}) == [expected]
