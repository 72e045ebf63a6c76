"""The mark `few`: which cases of a test the fast runs take; CI takes all."""

import pytest
from helpers import marks


class Case:
    """A collected case of a test, as far as marks are concerned."""

    def __init__(self, nodeid, *found):
        self.nodeid = nodeid
        self._found = {mark.name: mark for mark in found}

    def iter_markers(self, name):
        return iter([self._found[name]] if name in self._found else [])


def find_long(mark, ids, *more):
    cases = [Case(f"test_x.py::test_y[{name}]", mark.mark, *more) for name in ids]
    return [case.nodeid[18:-1] for case in marks._beyond_few(cases)]


def test_a_number_of_cases_is_spread_evenly():
    assert find_long(pytest.mark.few(2), "abcdef") == ["b", "c", "e", "f"]
    assert find_long(pytest.mark.few(3), "ab") == []


def test_cases_are_chosen_by_their_ids():
    assert find_long(pytest.mark.few("b", "d"), "abcd") == ["a", "c"]


def test_cases_of_other_kernels_do_not_count():
    assert find_long(pytest.mark.few(1), "ab", pytest.mark.other_kernel.mark) == []


def test_each_test_keeps_its_own_cases():
    few = pytest.mark.few(1).mark
    names = ("test_a[x]", "test_a[y]", "test_b[x]", "test_c")
    cases = [Case(f"test_x.py::{name}", few) for name in names]
    assert [case.nodeid for case in marks._beyond_few(cases)] == ["test_x.py::test_a[y]"]
