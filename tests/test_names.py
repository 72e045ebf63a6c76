"""The names of functions, parameters, fields and tests: each number may only become smaller.

A function that leaves its file is verb and noun; participles do not stand for nouns; the name of a
test fits into a line. `python tests/helpers/house_figures.py` prints the numbers of today.
"""

import pytest
from helpers import house_figures, import_graph, used_names
from helpers.paths import CHECKOUT

MODULES = import_graph.modules(CHECKOUT)

ONE_WORD_LEAVES_ROOM = 5
ONE_WORD_LEAVES_FILE = 75
PARAMETERS = 1  # that have a participle for a name: `asked` of a codec, which is public
FIELDS = 2  # `asked` of a codec and of the card of a call, which plug-ins read
MODULES_NAMED_SO = 0
OF_THOUSAND = 9  # names that are bound
LONG_TEST_NAMES = 0

LIBRARY = {
    "__init__.py": "",
    "errors.py": "class Fault(Exception): pass",
    "wire/__init__.py": "from .lines import cut as cut",
    "wire/lines.py": "def cut(): pass\ndef join_lines(): pass\nWIDTH = 80",
    "host/__init__.py": "",
    "host/paths.py": "from .. import wire\nfrom ..wire import cut, lines\nlines.WIDTH\nwire.cut()",
    "host/folder.py": "def f():\n    from ..wire import lines as text\n    text.join_lines()",
    "host/other.py": "from .paths import cut\nfrom ..errors import Fault",
}


@pytest.fixture(scope="module")
def users():
    return used_names.find_used_names(CHECKOUT)


@pytest.fixture(scope="module")
def leave_file(users):
    return used_names.select_functions(users, CHECKOUT)


@pytest.fixture
def library(tmp_path):
    """Return a checkout with a small package."""
    for name, text in LIBRARY.items():
        file = tmp_path / import_graph.PACKAGE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_a_function_that_leaves_its_room_has_verb_and_noun(users, leave_file):
    leave_room = leave_file & used_names.select_crossing(users)
    assert len(house_figures.select_one_word(leave_room)) <= ONE_WORD_LEAVES_ROOM


def test_a_function_that_leaves_its_file_has_verb_and_noun(leave_file):
    assert len(house_figures.select_one_word(leave_file)) <= ONE_WORD_LEAVES_FILE


def test_no_parameter_has_a_participle_for_a_name():
    names = [name for path in MODULES.values() for name in house_figures.find_parameters(path)]
    assert house_figures.count_participles(names) <= PARAMETERS


def test_no_field_has_a_participle_for_a_name():
    names = [name for path in MODULES.values() for name in house_figures.find_fields(path)]
    assert house_figures.count_participles(names) <= FIELDS


def test_no_module_has_a_participle_for_a_name():
    names = [part for module in MODULES for part in module.split(".")[-1:]]
    assert house_figures.count_participles(names) <= MODULES_NAMED_SO


def test_few_bound_names_are_participles():
    names = [name for path in MODULES.values() for name in house_figures.find_bound_names(path)]
    assert 1000 * house_figures.count_participles(names) <= (OF_THOUSAND + 0.5) * len(names)


def test_names_of_tests_fit_into_a_line():
    assert len(house_figures.find_long_test_names(CHECKOUT)) <= LONG_TEST_NAMES


def test_a_name_counts_once_and_where_it_is_defined(library):
    lines = f"{import_graph.PACKAGE}.wire.lines"
    users = used_names.find_used_names(library)
    assert {name for name in users if name[0] == lines} == {
        (lines, "cut"),
        (lines, "join_lines"),
        (lines, "WIDTH"),
    }


def test_names_used_inside_their_room_do_not_cross(library):
    crossing = used_names.select_crossing(used_names.find_used_names(library))
    assert sorted(name for _, name in crossing) == ["Fault", "WIDTH", "cut", "join_lines"]
    assert used_names.find_visible_files(library) == {"agent_nb.errors", "agent_nb.wire.lines"}


def test_verbs_that_stand_alone_and_two_words_suffice():
    functions = {("m", name) for name in ("cut", "_cut", "cut_line", "parse")}
    assert house_figures.select_one_word(functions) == [("m", "_cut"), ("m", "cut")]


def test_the_table_of_figures_has_all(library):
    for room in ("errors", "wire", "host"):
        assert room in import_graph.FLOOR
    figures = house_figures.measure_house(library)
    assert figures["names that cross rooms"] == "4"
    assert figures["one-word functions that leave their room"] == "1 of 2 (50 %)"
