"""Every change of the table `changes` is noticed, with the right message, and no provider is asked.

By default one change in four runs, the same ones each time; AGENT_NB_CI=all runs all of them.
"""

import json
import os

import pytest
from ci.changes import CHANGES
from ci.recipes import RECIPES

ALL = os.environ.get("AGENT_NB_CI") == "all"
pytestmark = pytest.mark.kernel


def _cases():
    """Yield the changes as cases of a test."""
    for number, change in enumerate(CHANGES):
        if ALL or number % 4 == 1:
            yield pytest.param(change, id=f"{number}-{change.recipe}")


def apply(change, path):
    """Make a change beside or in the notebook at `path`."""
    if change.file:
        target = path.with_name(change.file)
        if not change.old:
            target.write_bytes(change.new)
            return
        text = target.read_text()
        assert text.count(change.old) == 1
        target.write_text(text.replace(change.old, change.new))
        return
    nb = json.loads(path.read_text())
    sources = ["".join(cell["source"]) for cell in nb["cells"]]
    assert sum(source.count(change.old) for source in sources[1:]) == 1
    for cell, source in zip(nb["cells"][1:], sources[1:], strict=True):
        cell["source"] = source.replace(change.old, change.new)
    path.write_text(json.dumps(nb))


def test_the_table_is_complete():
    assert len(CHANGES) >= 60
    assert {change.recipe for change in CHANGES} <= RECIPES.keys()


@pytest.mark.parametrize("change", list(_cases()))
def test_a_change_is_noticed(copied, check, change):
    path = copied(change.recipe)
    apply(change, path)
    code, lines = check(path, *change.options)
    if change.warned:
        assert code == 0
        assert any(change.expected in line for line in lines)
    elif change.options:
        assert code == 1
        assert any(change.expected in line for line in lines)
    else:
        assert (code, [line[: len(change.expected)] for line in lines[1:2]]) == (
            1,
            [change.expected],
        )
