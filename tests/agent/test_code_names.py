"""Which names pieces of code read before they assign them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.code_names import CodeNames
from agent_nb.agent.context_check import find_mentioned


def names(*texts):
    found = CodeNames()
    for text in texts:
        found.add_code(text)
    return list(found.read), found.assigned


@pytest.mark.parametrize(
    ("texts", "read", "assigned"),
    [
        (["a = b"], ["b"], {"a"}),
        (["a = a + 1"], ["a"], {"a"}),
        (["a = 1; a + b"], ["b"], {"a"}),
        (["a = 1", "a + b"], ["b"], {"a"}),
        (["a += 1"], ["a"], {"a"}),
        (["a: int = b"], ["b"], {"a"}),
        (["a: int"], [], set()),
        (["a[b] = c"], ["c", "a", "b"], set()),
        (["a.b = c"], ["c", "a"], set()),
        (["del a"], ["a"], {"a"}),
        (["(a := b) + a"], ["b"], {"a"}),
        (["for a in b: c(a)"], ["b", "c"], {"a"}),
        (["with a() as b: b"], ["a"], {"b"}),
        (["import a.b, c as d; a; d"], [], {"a", "d"}),
        (["from a import b; b"], [], {"b"}),
        (["from a import *; b"], ["b"], set()),
        (["try:\n    a\nexcept b as e:\n    e"], ["a", "b"], {"e"}),
        (["[a for a in b if c]"], ["b", "c"], set()),
        (["{a: d for a in b for d in a}; a"], ["b", "a"], set()),
        (["[(a := b) for b in c]; a"], ["c"], {"a"}),
        (["match a:\n    case {'b': c, **d}:\n        c, d"], ["a"], {"c", "d"}),
        (["def f(a, b=c):\n    d = 1\n    return a + d + e"], ["c", "e"], {"f"}),
        (["def f():\n    return a\na = 1\nf()"], [], {"f", "a"}),
        (["def f():\n    global a\n    a = b"], ["b"], {"f", "a"}),
        (["def f():\n    def g():\n        return a\n    return g"], ["a"], {"f"}),
        (["f = lambda a: a + b"], ["b"], {"f"}),
        (["def f():\n    def g():\n        a = 1\n    return a"], ["a"], {"f"}),
        (["def f(a):\n    def g():\n        return a, b\n    b = 1\n    return g"], [], {"f"}),
        (["def f():\n    b = [a for a in c]\n    return a"], ["c", "a"], {"f"}),
        (["def f():\n    g = lambda: (a := 1)\n    return a"], ["a"], {"f"}),
        (
            ["def f():\n    def g():\n        global a\n        a = 1\n    a = 2\n    a"],
            [],
            {"f", "a"},
        ),
        (["def f(b):\n    match b:\n        case [a]: pass\n    return a"], [], {"f"}),
        (["class A:\n    a = 1\n    def f(self):\n        return a"], ["a"], {"A"}),
        (["def f():\n    a = 1\n    class A:\n        b = a\n    return A"], [], {"f"}),
        (["class A(b):\n    c = 1\n    d = c + e"], ["b", "e"], {"A"}),
        (["match a:\n    case [b, *c]: b\n    case {'k': d}: d"], ["a"], {"b", "c", "d"}),
        (["await a()"], ["a"], set()),
        (["%timeit a\nb"], ["timeit", "a", "b"], set()),
        (["!ls {a}\nb = 1"], ["ls", "a"], {"b"}),
        (["c = !ls {a}\nc"], ["ls", "a"], {"c"}),
        (["a?"], ["a"], set()),
        (["a = = b"], ["a", "b"], set()),
        (["a = 'b'"], [], {"a"}),
        ([""], [], set()),
    ],
)
def test_names(texts, read, assigned):
    assert names(*texts) == (read, assigned)


@given(st.text(max_size=80))
def test_any_text_is_read(text):
    names(text)


def test_code_that_python_warns_about_is_read_without_a_warning():
    names = CodeNames()  # in tests a warning is an error: `d` would be a name, too
    names.add_code("re.findall('\\d', text)")
    assert set(names.read) == {"re", "text"}


def test_code_that_nests_too_deep_is_read_by_its_words():
    assert names("(" * 5_000 + "a" + ")" * 5_000)[0] == ["a"]
    assert "a" in names("-" * 20_000 + "a")[0]


@pytest.mark.few(2)
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "\n" * 190_000,
        "?\n" * 90_000,
        "a =\n" * 40_000,
        "a\n" * 10**6,
    ],
)
def test_long_code_takes_no_long_time(text):
    assert set(names(text)[0]) <= {"a"}


@pytest.mark.long
@pytest.mark.timeout(20)
def test_many_functions_beside_many_names_take_no_long_time():
    texts = [
        "".join(f"a{call}_{n}=0\n" for n in range(9_000)) + "lambda:0\n" * 9_000
        for call in range(3)
    ]
    assert len(names(*texts)[1]) == 27_000


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Plot df.", ["Plot", "df"]),
        ("A test of a plot, I say", ["test", "of", "plot", "say"]),
        ("What is `a`?", ["What", "is", "a"]),
        ("`a + df['n']`", ["a", "df", "n"]),
        ("größe 数", ["größe", "数"]),
        ("", []),
    ],
)
def test_words_that_may_name_variables(prompt, found):
    assert find_mentioned(prompt) == found
