"""What of a tool's code counts."""

import importlib
import inspect
import sys
import textwrap

import pytest

from agent_nb.tools.project_source import ProjectSearch
from agent_nb.tools.source import digest_code
from agent_nb.tools.source_text import normalize_source, read_source

MODULE = """
import json
import functools

RATE = 3

def helper(n):
    return n * RATE_OF(n)

def RATE_OF(n):
    return 3

def double(n):
    '''Double it.'''
    return helper(n)

PRICES = {"a": 1}

def price(name):
    return PRICES[name]

def wrapped(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner

@wrapped
def around(n):
    return n + 1

def adder(n):
    def add(x):
        return x + n
    return add

class Shape:
    def area(self):
        return 1

def area():
    return Shape().area()

def dumped(n):
    return json.dumps(n)

def late(n):
    import other_of_the_folder
    return other_of_the_folder.x

bound = functools.partial(helper, 3)
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "other_of_the_folder.py").write_text("x = 1\n")

    def load(*changes):
        text = MODULE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "tools_of_the_folder.py").write_text(text)
        sys.modules.pop("tools_of_the_folder", None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            import linecache

            linecache.checkcache()
            return importlib.import_module("tools_of_the_folder")
        finally:
            sys.dont_write_bytecode = before

    yield load
    sys.modules.pop("tools_of_the_folder", None)


def digest(load, tmp_path, name, *changes):
    return digest_code(getattr(load(*changes), name), tmp_path).digest


CHANGES = {
    "its body": ("double", ("return helper(n)", "return helper(n) + 1")),
    "a helper": ("double", ("return n * RATE_OF(n)", "return n * RATE_OF(n) + 1")),
    "a helper of a helper": ("double", ("return 3", "return 4")),
    "its docstring": ("double", ("Double it.", "Double the number.")),
    "a wrapped function": ("around", ("return n + 1", "return n + 2")),
    "a wrapper": ("around", ("return function(*args)", "return function(*args) or 0")),
    "a method of a class it uses": ("area", ("return 1", "return 2")),
    "the function of a partial": ("bound", ("return n * RATE_OF(n)", "return n + RATE_OF(n)")),
    "what the module assigns": ("price", ('{"a": 1}', '{"a": 2}')),
    "a bound argument": ("bound", ("helper, 3", "helper, 4")),
}
NO_CHANGES = {
    "a comment": ("double", ("return helper(n)", "return helper(n)  # so\n    # and so")),
    "blank lines": ("double", ("'''Double it.'''\n", "'''Double it.'''\n\n\n")),
    "the indentation of its docstring": (
        "double",
        ("'''Double it.'''", "'''\n        Double it.\n        '''"),
    ),
    "a function it does not use": ("double", ("return n + 1", "return n + 2")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_it_counts(what, load, tmp_path):
    name, change = CHANGES[what]
    assert digest(load, tmp_path, name) != digest(load, tmp_path, name, change)


@pytest.mark.parametrize("what", NO_CHANGES)
def test_it_does_not_count(what, load, tmp_path):
    name, change = NO_CHANGES[what]
    assert digest(load, tmp_path, name) == digest(load, tmp_path, name, change)


def test_a_closure_counts_with_its_constants(load, tmp_path):
    module = load()
    one, same, other = (digest_code(module.adder(n), tmp_path).digest for n in (1, 1, 2))
    assert one == same != other


def test_a_module_that_is_imported_when_it_runs_counts(load, tmp_path):
    before = digest(load, tmp_path, "late")
    (tmp_path / "other_of_the_folder.py").write_text("x = 2\n")
    assert digest(load, tmp_path, "late") != before
    assert "other_of_the_folder" not in sys.modules


def test_what_has_become_of_a_value_does_not_count(load, tmp_path):
    module = load()
    before = digest_code(module.price, tmp_path).digest
    module.PRICES["b"] = 2
    assert digest_code(module.price, tmp_path).digest == before


def test_it_stops_at_the_standard_library_and_says_so(load, tmp_path):
    assert digest_code(load().dumped, tmp_path).unseen == ("json.dumps",)


def test_nothing_outside_the_folder_is_looked_into(load, tmp_path):
    found = digest_code(load().double, tmp_path / "elsewhere")
    assert (found.digest, found.unseen) == ("", ("tools_of_the_folder.double",))


def test_packages_installed_in_the_folder_are_not_looked_into(tmp_path, load):
    module = load()
    inside = tmp_path / "site-packages"
    inside.mkdir()
    module.__file__ = str(inside / "tools_of_the_folder.py")
    assert digest_code(module.double, tmp_path).digest == ""


@pytest.mark.parametrize("name", ["double", "around", "bound"])
def test_its_text_is_what_inspect_returns(name, load):
    found = inspect.unwrap(getattr(load(), name))
    function = getattr(found, "func", found)
    assert read_source(function) == normalize_source(inspect.getsource(function.__code__))


@pytest.mark.parametrize("read", [digest_code, ProjectSearch.read])
@pytest.mark.parametrize("name", ["__module__", "__name__", "__bases__"])
def test_no_code_of_a_metaclass_runs(name, read, load, tmp_path):
    meta = f"class Meta(type):\n    @property\n    def {name}(cls):\n        raise RuntimeError\n"
    odd = "class Odd(metaclass=Meta):\n    def method(self):\n        pass\n\ndef made():\n    return Odd()\n"
    module = load(("bound =", f"{meta}\n{odd}\nbound ="))
    assert read(module.made, tmp_path).digest
    assert read(module.Odd().method, tmp_path).digest
    assert read(module.made, tmp_path / "elsewhere").unseen == ("tools_of_the_folder.made",)
    assert read(module.Odd, tmp_path / "elsewhere").unseen == ("tools_of_the_folder.Odd",)


def test_how_a_tool_is_compared_does_not_count():
    text = "@tool(effect='none'{})\ndef f(n):\n    return n\n"
    assert normalize_source(text.format("")) == normalize_source(text.format(", compare='none'"))
    assert normalize_source("@tool\ndef f(): pass") == normalize_source(
        "@tool(compare='text')\ndef f(): pass"
    )
    assert normalize_source(text.format("")) != normalize_source(text.format(", timeout=3"))


def test_a_function_in_a_function_is_dedented():
    text = "def f(n):\n    return n\n"
    assert normalize_source(textwrap.indent(text, "    ")) == normalize_source(text)


def test_a_form_feed_is_not_the_end_of_a_line():
    assert normalize_source("\x0c\n# one\nx = 1\n# two\ny = 2  # three\n") == "x = 1\ny = 2"
