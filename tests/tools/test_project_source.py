"""What of a project counts as the code behind a tool."""

import importlib
import json
import sys
import types
from pathlib import Path

import pytest

from agent_nb.tools.project_source import ProjectSearch, find_project
from agent_nb.tools.source import digest_code

FILES = {
    "pyproject.toml": "",
    "notebooks/a.ipynb": "",
    "src/shop_of_tests/__init__.py": "from .settings import RATE as RATE_OF_ALL\nCHAIN = RATE_OF_ALL\n",
    "src/shop_of_tests/settings.py": """
BASE = 3
RATE = BASE + 1
if BASE:
    SWITCH = 5
try:
    import missing_module_of_tests
except ImportError:
    FALLBACK = 6
ONE, TWO = 1, 2
START = {"unit": 7}
UNUSED = 8
""",
    "src/shop_of_tests/late.py": "VALUE = 9\n",
    "src/shop_of_tests/prices.py": """
from .settings import RATE, SWITCH, FALLBACK, TWO
from .settings import *
from shop_of_tests import CHAIN
from . import settings as rules

FACTOR = 2
TABLE = {"oak": FACTOR}

def price(n):
    return n * RATE

def switched(n):
    return n * SWITCH

def fallen(n):
    return n * FALLBACK

def paired(n):
    return n * TWO

def starred(n):
    return START["unit"] * n

def chained(n):
    return n * CHAIN

def through(n):
    return n * rules.RATE

def tabled(name):
    return TABLE[name]

def defaulted(n, rate=RATE):
    return n * rate

def late(n):
    from . import late
    return late.VALUE

class Shelf:
    woods = {"oak": FACTOR}

    def __init__(self, discount=0):
        self.discount = discount

    def cost(self, name):
        return self.inner(name)

    def inner(self, name):
        return self.woods[name] - self.discount

    def __call__(self, name):
        return self.cost(name)

shelf = Shelf()

def shelved(name):
    return shelf.cost(name)
""",
}
SETTINGS, PRICES, INIT, LATE = (
    f"src/shop_of_tests/{name}.py" for name in ("settings", "prices", "__init__", "late")
)
CHANGES = {
    "a constant imported into its module": ("price", SETTINGS, "BASE + 1", "BASE + 2"),
    "what that constant is made of": ("price", SETTINGS, "BASE = 3", "BASE = 4"),
    "a constant below if": ("switched", SETTINGS, "SWITCH = 5", "SWITCH = 6"),
    "a constant below except": ("fallen", SETTINGS, "FALLBACK = 6", "FALLBACK = 7"),
    "one of two constants": ("paired", SETTINGS, "ONE, TWO = 1, 2", "ONE, TWO = 1, 3"),
    "a constant imported with a star": ("starred", SETTINGS, '"unit": 7', '"unit": 8'),
    "a constant imported over two modules": ("chained", SETTINGS, "BASE = 3", "BASE = 4"),
    "where it is imported under another name": ("chained", INIT, "CHAIN = ", "CHAIN = 2 * "),
    "a constant of an imported module": ("through", SETTINGS, "BASE = 3", "BASE = 4"),
    "a constant in a table": ("tabled", PRICES, "FACTOR = 2", "FACTOR = 3"),
    "a constant in a default": ("defaulted", SETTINGS, "BASE = 3", "BASE = 4"),
    "a module imported when it runs": ("late", LATE, "9", "10"),
    "another method of its class": ("Shelf().cost", PRICES, "- self.discount", "+ self.discount"),
    "a table of its class": ("Shelf().cost", PRICES, "FACTOR = 2", "FACTOR = 3"),
    "the class of an object of the module": ("shelved", PRICES, "- self.d", "+ self.d"),
    "how an object of the module is made": ("shelved", PRICES, "Shelf()\n", "Shelf(1)\n"),
}
NO_CHANGES = {
    "a constant that it does not use": ("price", SETTINGS, "UNUSED = 8", "UNUSED = 9"),
    "a function that it does not use": ("price", PRICES, "START[", "2 * START["),
    "a comment in a module": ("price", SETTINGS, "BASE = 3", "BASE = 3  # as before"),
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write the project, changed where told, and import its module of prices."""
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget():
        for name in [n for n in sys.modules if n.partition(".")[0] == "shop_of_tests"]:
            del sys.modules[name]

    def load(file="", old="", new=""):
        for name, text in FILES.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            assert name != file or old in text
            path.write_text(text.replace(old, new) if name == file else text)
        forget()
        importlib.invalidate_caches()
        return importlib.import_module("shop_of_tests.prices")

    yield load
    forget()


def digest(module, name, folder):
    call, _, method = name.partition("().")
    function = getattr(module, call)
    return ProjectSearch.read(getattr(function(), method) if method else function, folder).digest


@pytest.mark.parametrize("what", CHANGES)
def test_it_counts(what, load, tmp_path):
    name, *change = CHANGES[what]
    before = digest(load(), name, tmp_path / "notebooks")
    assert before
    assert digest(load(*change), name, tmp_path / "notebooks") != before


@pytest.mark.parametrize("what", NO_CHANGES)
def test_it_does_not_count(what, load, tmp_path):
    name, *change = NO_CHANGES[what]
    before = digest(load(), name, tmp_path / "notebooks")
    assert digest(load(*change), name, tmp_path / "notebooks") == before


@pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
def test_a_project_begins_at_its_mark(mark, tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / mark).mkdir()
    assert find_project(inside) == tmp_path


def test_the_nearest_mark_counts(tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / "pyproject.toml").touch()
    assert find_project(inside) == tmp_path / "a"


def test_packages_installed_in_a_project_do_not_count(load, tmp_path, monkeypatch):
    module = load()
    inside = tmp_path / ".venv" / "lib" / "site-packages" / "prices.py"
    monkeypatch.setattr(module, "__file__", str(inside))
    assert ProjectSearch.read(module.price, tmp_path).digest == ""


def test_the_library_of_an_interpreter_in_a_project_does_not_count():
    library = Path(json.__file__).resolve().parent.parent
    assert ProjectSearch.read(json.dumps, library).digest == ""


def test_the_earlier_rules_find_what_they_found(load, tmp_path):
    before = digest_code(load().price, tmp_path).digest
    assert before
    assert digest_code(load(SETTINGS, "BASE = 3", "BASE = 4").price, tmp_path).digest == before
    assert digest_code(load().price, tmp_path / "notebooks").digest == ""


def test_circular_imports_end(load, tmp_path):
    module = load(INIT, "CHAIN = RATE_OF_ALL", "CHAIN = 1\nfrom .prices import CHAIN as OTHER")
    assert isinstance(module, types.ModuleType)
    assert digest(module, "chained", tmp_path)
