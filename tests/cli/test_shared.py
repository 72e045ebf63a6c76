"""Lists of notebooks, and their work at once: after a failure none begins."""

import threading
from pathlib import Path

import pytest

from agent_nb.cli.shared import in_parallel, list_notebooks


def test_a_notebook_that_is_named_in_two_ways_is_listed_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_text("{}")
    names = ["a.ipynb", str(tmp_path / "a.ipynb"), str(tmp_path)]
    assert list_notebooks(names) == [Path("a.ipynb")]


def test_no_work_begins_after_a_failure():
    begun = []
    is_slow, has_failed = threading.Event(), threading.Event()

    def work(item, _):
        begun.append(item)
        if item == "fails":
            is_slow.wait(5)
            has_failed.set()
            raise ValueError(item)
        is_slow.set()
        has_failed.wait(5)
        threading.Event().wait(0.3)  # goes on after the failure

    items = [(name, name) for name in ("slow", "fails", "late", "last")]
    with pytest.raises(ValueError, match="fails"):
        in_parallel(work, items, 2)
    assert sorted(begun) == ["fails", "slow"]
