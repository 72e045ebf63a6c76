"""Which variables of the notebook a function uses, as its code shows."""

import sys
import textwrap
import types

import pytest

from agent_nb.tools.reads import find_used_variables


def notebook(source, name="__main__"):
    """Run a cell and return its namespace."""
    space = {"__name__": name}
    exec(textwrap.dedent(source), space)
    return space


DATA = {
    "a number": "base = 40\ndef f(): return base + 2",
    "a frame, by its method": "base = []\ndef f(): return base.copy()",
    "a name that is written": "def f():\n    global base\n    base = 1",
    "a name that is deleted": "base = 1\ndef f():\n    global base\n    del base",
    "a name that nobody has defined": "def f(): return base",
    "an inner function": "base = 1\ndef f():\n    def g(): return base\n    return g()",
    "a comprehension": "base = 1\ndef f(): return [base for _ in range(3)]",
    "a lambda": "base = 1\nf = lambda: base",
    "an async generator": "base = 1\nasync def f():\n    yield base",
    "a class inside": "base = 1\ndef f():\n    class C:\n        x = base\n    return C.x",
    "a helper": "base = 1\ndef g(): return base\ndef f(): return g()",
    "helpers that call each other": "base = 1\ndef g(): return f()\ndef f(): return g() + base",
    "a class of the notebook": "base = 1\nclass C:\n    def m(self): return base\ndef f(): return C().m()",
    "an inherited method": "base = 1\nclass A:\n    def m(self): return base\nclass C(A): pass\ndef f(): return C().m()",
    "a property": "base = 1\nclass C:\n    @property\n    def m(self): return base\ndef f(): return C().m",
    "a cached function": "import functools\nbase = 1\n@functools.cache\ndef f(): return base",
    "a wrapped function": "import functools\nbase = 1\ndef g(): return base\n@functools.wraps(g)\ndef f(): return 1",
    "a decorator of the notebook": "base = 1\ndef d(g):\n    def w(): return g()\n    return w\n@d\ndef f(): return base",
    "a bound method of data": "base = [].append\ndef f(): base(1)",
    "a closure": "def make():\n    base = 1\n    def f(): return base\n    return f\nf = make()",
    "a partial": "import functools\nbase = 1\ndef g(x): return base + x\nf = functools.partial(g, 2)",
    "an object with a name": "class C:\n    __name__ = 'c'\nbase = C()\ndef f(): return base",
    "a simple namespace": "import types\nbase = types.SimpleNamespace(n=1)\ndef f(): return base.n",
    "a static method": "base = 1\nclass C:\n    @staticmethod\n    def m(): return base\nf = C.m",
    "a class method": "base = 1\nclass C:\n    @classmethod\n    def m(cls): return base\nf = C.m",
}


@pytest.mark.parametrize("source", DATA.values(), ids=DATA)
def test_data_of_the_notebook_are_found_in(source):
    assert find_used_variables(notebook(source)["f"]) == {"base"}


NONE = {
    "arguments and literals": "def f(x, n=5, how='utf-8', none=None, pair=(1, 2)): return x * n + 1",
    "modules": "import math\ndef f(x): return math.sqrt(x)",
    "functions of modules": "from math import sqrt\nfrom textwrap import dedent\ndef f(x): return dedent(str(sqrt(x)))",
    "classes": "from fractions import Fraction\nclass C:\n    size = 3\ndef f(x): return Fraction(x), C.size",
    "builtins": "def f(x): return print(len(x), sorted(x))",
    "attributes of the same name as a variable": "base = 1\ndef f(x): return x.base",
    "local variables of the same name": "base = 1\ndef f(base): return base",
    "keywords of the same name": "base = 1\ndef f(x): return dict(base=x)",
    "names in a class body that it defines itself": "base = 1\ndef f():\n    class C:\n        base = 2\n        x = base\n    return C.x",
    "type aliases": "from typing import Any, Literal\nT = Literal['a', 'b']\nL = list[int]\nU = int | str\ndef f(x): return T, L, U, Any",
    "helpers that use none": "def g(x): return x\ndef f(x): return g(x)",
    "functions of compiled libraries": "import numpy\nsqrt = numpy.sqrt\ndef f(x): return sqrt(x)",
    "agents": "from agent_nb import Agent, Scripted\nhelper = Agent(Scripted(['x']))\ndef f(q): return helper.run_sync(q)",
    "what the notebook calls itself": "def f(): return __name__",
    "a function that calls itself": "def f(n): return n and f(n - 1)",
    "an unfilled closure": "def make():\n    def f(): return late\n    if False: late = 1\n    return f\nf = make()",
}


@pytest.mark.parametrize("source", NONE.values(), ids=NONE)
def test_no_data_are_found_in(source):
    assert find_used_variables(notebook(source)["f"]) == frozenset()


def test_values_that_can_change_count_as_defaults_and_bound_arguments():
    space = notebook(
        "import functools\ndef f(x, store=[]): return store\ndef g(x, y): return x\nh = functools.partial(g, {})"
    )
    assert find_used_variables(space["f"]) == {"a default"}
    assert find_used_variables(space["h"]) == {"a bound argument"}


def test_objects_of_the_notebook_are_data():
    space = notebook(
        "class C:\n    def m(self): return 1\n    def __call__(self): return 1\no = C()"
    )
    assert find_used_variables(space["o"]) == find_used_variables(space["o"].m) == {"self"}


def test_a_class_attribute_that_can_change_is_data():
    assert find_used_variables(
        notebook("class Store:\n    items = []\ndef f(x): Store.items.append(x)")["f"]
    ) == {"Store.items"}


def test_a_function_of_a_module_is_not_the_notebooks():
    assert (
        find_used_variables(notebook("base = 1\ndef f(): return base", name="helpers")["f"])
        == frozenset()
    )


def test_a_wrapper_of_a_module_counts_by_what_it_wraps():
    space = notebook(
        "secret = 1\ndef d(g):\n    def w(): return g(), secret\n    return w", name="helpers"
    )
    inner = notebook("base = 1\ndef f(): return base")["f"]
    assert find_used_variables(space["d"](inner)) == {"base"}


def test_nothing_is_asked_of_the_objects():
    class Touchy:
        def __getattribute__(self, name):
            raise AssertionError(name)

    space = notebook("def f(): return base")
    space["base"] = Touchy()
    assert find_used_variables(space["f"]) == {"base"}


def test_no_code_of_a_metaclass_runs():
    space = notebook(
        """
        class Meta(type):
            @property
            def __module__(cls):
                raise RuntimeError
            __name__ = __module__
            def __getattr__(cls, name):
                raise RuntimeError

        class Odd(metaclass=Meta):
            items = []

        odd = Odd()
        def f(): return odd, Odd
        """
    )
    assert find_used_variables(space["f"]) == {"odd", "Odd.items"}


SHOP = """
class Shop:
    def __init__(self):
        self.prices = {"oak": 61}
    def price(self, wood):
        return self.prices[wood]
    def __call__(self, wood):
        return self.price(wood)

shop = Shop()
"""
OF_THE_NOTEBOOK = {
    "a method of an object": "f = Shop().price",
    "a method of a variable": "here = Shop()\nf = here.price",
    "a method of a variable that a module holds too": "f = shop.price",
    "an object that can be called": "f = Shop()",
    "a method of data": "f = {'oak': 61}.get",
    "a partial of a method": "import functools\nf = functools.partial(Shop().price, 'oak')",
}
OF_A_MODULE = {
    "a method of an object that only a module holds": "import shop_of_reads\nf = shop_of_reads.shop.price",
    "a function of random": "from random import randint as f",
    "a function of numpy.random": "from numpy.random import rand as f",
    "a class method": "f = dict.fromkeys",
    "a builtin": "f = len",
}


@pytest.fixture
def main(tmp_path, monkeypatch):
    """Run a cell in a notebook beside a module; return its namespace."""
    (tmp_path / "shop_of_reads.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(source, imports=""):
        module = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", module)
        exec(f"{imports}\n{source}", module.__dict__)
        return module.__dict__

    yield run
    sys.modules.pop("shop_of_reads", None)


@pytest.mark.parametrize("source", OF_THE_NOTEBOOK.values(), ids=OF_THE_NOTEBOOK)
def test_an_object_is_the_notebooks_wherever_its_class_is(main, source):
    space = main(source, "from shop_of_reads import Shop, shop")
    assert find_used_variables(space["f"]) == {"self"}
    assert find_used_variables(space["f"], earlier=True) == set()


@pytest.mark.parametrize("source", OF_A_MODULE.values(), ids=OF_A_MODULE)
def test_an_object_that_only_a_module_holds_is_the_modules(main, source):
    assert find_used_variables(main(source)["f"]) == set()
