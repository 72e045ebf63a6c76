"""The merge of notebooks cell by cell: whatever two branches do, nothing is lost or doubled."""

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from agent_nb.notebook.files.cell_merge import add_ids, merge_notebooks, remove_ids
from agent_nb.record.ipynb import source_of


def joined(base, ours, theirs):
    """Stand in for git: the lines of both sides, as a conflict."""
    return f"<<<<<<<\n{ours}\n=======\n{theirs}\n>>>>>>>\n", False


def notebook(cells):
    listed = [
        {"cell_type": "code", "source": text, "metadata": {}, **({"id": name} if name else {})}
        for name, text in cells
    ]
    return {"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def merged(base, ours, theirs):
    versions = tuple(copy.deepcopy(notebook(cells)) for cells in (base, ours, theirs))
    add_ids(versions)
    nb, conflicts = merge_notebooks(versions, joined)
    remove_ids(nb)
    return [(c.get("id", ""), source_of(c)) for c in nb["cells"]], conflicts


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


@st.composite
def version(draw, base):
    """A version of a notebook: cells removed, moved, edited and added."""
    kept = draw(st.permutations([c for c in base if draw(st.booleans())]))
    edited = [(name, text + draw(st.sampled_from(["", "", "!", "?"]))) for name, text in kept]
    for n in range(draw(st.integers(0, 3))):
        side = draw(st.sampled_from("xyz"))
        edited.insert(draw(st.integers(0, len(edited))), (f"{side}{n}", f"new {side}{n}"))
    return edited


@given(st.data())
def test_any_two_versions_merge_into_a_notebook_that_holds_both(data):
    base = [(name, f"text {name}") for name in data.draw(NAMES)]
    ours, theirs = data.draw(version(base)), data.draw(version(base))
    ours, theirs = (list(dict(side).items()) for side in (ours, theirs))
    found, conflicts = merged(base, ours, theirs)
    names = [name for name, _ in found]
    before, mine, yours, result = map(dict, (base, ours, theirs, found))
    assert len(set(names)) == len(names)
    for name in {*mine, *yours}:
        versions = [side[name] for side in (mine, yours) if name in side]
        changed = [text for text in versions if text != before.get(name)]
        if len(versions) == 2 or name not in before or changed:
            assert all(text in result[name] for text in changed)
        else:
            assert name not in result  # one side removed it, the other left it alone
    assert bool(conflicts) == any(
        "<<<" in text or (name in before and (name in mine) != (name in yours))
        for name, text in found
    )
    json.dumps(found)


@given(st.data())
def test_a_side_that_changed_nothing_leaves_the_other_as_it_is(data):
    base = [(name, f"text {name}") for name in data.draw(NAMES)]
    other = list(dict(data.draw(version(base))).items())
    assert merged(base, other, base) == merged(base, base, other) == (other, [])
    assert merged(base, other, other) == (other, [])


def test_cells_without_ids_are_matched_by_text_and_get_none():
    base = [("", "a"), ("", "a"), ("", "b")]
    found, conflicts = merged(base, [*base, ("", "ours")], [("", "a"), ("", "b"), ("", "theirs")])
    assert found == [("", "a"), ("", "b"), ("", "ours"), ("", "theirs")]
    assert conflicts == []


def test_a_version_that_gave_its_cells_ids_meets_one_without():
    base = [("", "a"), ("", "b")]
    with_ids = [("cell-1", "a"), ("cell-2", "b")]
    found, _ = merged(base, with_ids, [*base, ("", "c")])
    assert found == [*with_ids, ("", "c")]


def test_cells_keep_their_own_ids_whatever_these_look_like():
    base = [("text-intro", "one"), (7, "two")]
    assert merged(base, base, [*base, ("new", "three")])[0] == [*base, ("new", "three")]
