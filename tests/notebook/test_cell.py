"""A cell is known by the id its front end sends, else by its inputs and its occurrence."""

import pytest

from agent_nb.notebook.cell import Cells, content_hash


class Kernel:
    def __init__(self, request):
        self.request = request

    def get_parent(self):
        if isinstance(self.request, Exception):
            raise self.request
        return self.request


class Shell:
    def __init__(self, request):
        self.kernel = Kernel(request)


def test_the_front_ends_id_is_the_key():
    request = {"metadata": {"cellId": "7a83", "agent_nb": {"notebook": "x.ipynb"}}, "content": {"allow_stdin": True}}
    cell = Cells().current(Shell(request), "-m x", "hello")
    assert (cell.key, cell.id, cell.stdin, cell.kernel) == ("7a83", "7a83", True, True)
    assert cell.sent == {"notebook": "x.ipynb"}


def test_without_an_id_equal_cells_are_told_apart_by_their_occurrence():
    cells, shell = Cells(), Shell({"metadata": {}})
    first, second = cells.current(shell, "", "x"), cells.current(shell, "", "x")
    assert first.key != second.key
    assert Cells().current(shell, "", "x").key == first.key


@pytest.mark.parametrize("request_", [{}, None, {"metadata": None}, {"metadata": {"cellId": 7}}, RuntimeError("no parent")])
def test_whatever_a_kernel_sends_a_cell_has_a_key(request_):
    cell = Cells().current(Shell(request_), "", "x")
    assert cell.id == ""
    assert cell.key.startswith("sha256:")
    assert not cell.stdin


def test_a_shell_without_kernel_is_a_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    cell = Cells().current(object(), "", "x")
    assert not cell.kernel
    assert not cell.stdin


def test_the_hash_ignores_space_at_line_ends_only():
    assert content_hash(" -m x ", "a  \r\nb\n\n") == content_hash("-m x", "a\nb")
    assert content_hash("-m x", "a b") != content_hash("-m x", "ab")
