"""Lists of notebooks, and their work at once: after a failure none begins."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_nb.cli.shared import in_parallel, list_notebooks
from agent_nb.errors import UsageError


def test_a_notebook_that_is_named_in_two_ways_is_listed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_text("{}")
    names = ["a.ipynb", str(tmp_path / "a.ipynb"), str(tmp_path)]
    assert list_notebooks(names) == [Path("a.ipynb")]


def test_an_executed_copy_is_tested_only_if_it_is_named(tmp_path):
    paths = [tmp_path / name for name in ("a.ipynb", "a.run.ipynb")]
    for path in paths:
        path.write_text("{}")
    assert list_notebooks([str(tmp_path)]) == paths
    for name in (tmp_path, tmp_path / "*.ipynb"):
        assert list_notebooks([str(name)], copies=False) == paths[:1]
    assert list_notebooks([str(paths[1])], copies=False) == paths[1:]


def test_executed_copies_are_tested_where_there_is_nothing_else(tmp_path):
    path = tmp_path / "a.run.ipynb"
    path.write_text("{}")
    for name in (tmp_path, tmp_path / "*.run.ipynb"):
        assert list_notebooks([str(name)], copies=False) == [path]


def test_a_file_whose_name_looks_like_a_glob_is_taken_as_it_is(tmp_path):
    path = tmp_path / "n[1].run.ipynb"
    path.write_text("{}")
    assert list_notebooks([str(path)], copies=False) == [path]


def test_a_name_too_long_for_a_file_is_not_found():
    with pytest.raises(UsageError, match="File not found: xxx"):
        list_notebooks(["x" * 300])


def test_no_work_begins_after_a_failure(monkeypatch):
    begun = []
    is_slow, is_known = threading.Event(), threading.Event()
    plain = ThreadPoolExecutor.shutdown

    def shutdown(pool, **options):
        plain(pool, **options)
        is_known.set()

    def work(item, _):
        begun.append(item)
        if item == "fails":
            is_slow.wait(30)
            raise ValueError(item)
        is_slow.set()
        is_known.wait(30)  # goes on after the failure

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    items = [(name, name) for name in ("slow", "fails", "late", "last")]
    with pytest.raises(ValueError, match="fails"):
        in_parallel(work, items, 2)
    assert sorted(begun) == ["fails", "slow"]
