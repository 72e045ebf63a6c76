"""Every change of the table `changes` is noticed, with the right message, and no provider is asked.

By default one change in four runs, and all at the edges, the same ones each time;
AGENT_NB_CI=all runs all of them.
"""

import json
import os

import pytest
from ci.changes import CHANGES, EDGES, Change
from ci.conftest import other_kernels
from ci.recipes import RECIPES, edges

ALL = os.environ.get("AGENT_NB_CI") == "all"
pytestmark = [pytest.mark.kernel, pytest.mark.forked_kernel]


def _cases():
    """Yield the changes as cases of a test."""
    for number, change in enumerate(CHANGES):
        if ALL or number % 4 == 1 or change in EDGES:
            yield pytest.param(change, id=f"{number}-{change.recipe}")


def apply(change, path):
    """Make a change beside or in the notebook at `path`."""
    if change.file:
        target = path.parent / change.file
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


@pytest.mark.few(2)
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


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["", *other_kernels()])
def test_each_changed_value_is_noticed_217_days_later(copied, check, move_on, other_kernel, kernel):
    options = other_kernel(kernel)
    path = copied("changing")
    apply(Change("changing", edges.BEFORE, edges.AFTER, ""), path)
    move_on()
    _, lines = check(path, *options)
    missed = {
        what
        for n, what in enumerate(edges.CHANGES)
        if not any(line.startswith(f"cell {n + edges.FIRST_ROW} (") for line in lines)
    }
    assert missed == set()
    assert not [line for line in lines if "stale" in line]
    heads = [n for n, line in enumerate(lines) if "gave another result" in line]
    assert all(lines[n + 1].startswith(("---", "it is recorded as")) for n in heads)
