"""Forged notebooks in JupyterLab: every cell is run, every question is answered with no, and
nothing has happened unasked.
"""

from __future__ import annotations

import json

import pytest
from helpers.forgeries import CASES, MINE, marks, own, unasked, written

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
SAY_NO = """() => {
    window.denied = 0;
    window.noes = setInterval(() => {
        for (const button of document.querySelectorAll('.jp-Notebook button:not(:disabled)')) {
            if (button.innerText.trim() === 'Deny') { window.denied += 1; button.click(); }
        }
    }, 100);
}"""
ASKED = "a-function-that-uses-a-variable"
NAMED = "words-that-begin-anew"


@pytest.fixture(scope="module")
def users(server, tmp_path_factory):
    """A server of a user with a secret of their own, who was sent the notebook."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "data").mkdir()
    (folder / "data" / "notebook_secret").write_bytes(MINE)
    made = type(server)(folder)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def front(users, new_page, browser_context):
    """The notebook of all forged cells, open in JupyterLab, with its first cell run."""
    written(users.root / "forged")
    made = new_page(browser_context, users, "lab", "forged/n.ipynb")
    run(made, "setup")
    yield made
    made.close()


def run(front, cell):
    """Run a cell by its id, to its end; return its index."""
    index = front.ids().index(cell)
    front.start(index)
    front.wait(index, 120)
    return index


def test_a_strangers_call_is_asked_about_with_arguments_and_no_means_no(front):
    index = front.ids().index(ASKED)
    front.start(index)
    front.button(index, "Deny").wait_for()
    front.sees(index, "This code comes from a record that you have not signed.")
    front.sees(index, ASKED)
    assert front.button(index, "Always…").count() == 0
    front.shot("forged-question")
    front.press(index, "Deny", "Deny")
    front.wait(index)
    assert front.value("touched") == []
    front.sees(index, "denied")


def test_a_yes_is_for_exactly_these_arguments(front):
    index = front.ids().index("such-a-function-in-the-second-batch")
    front.start(index)
    front.sees(index, "1", 30)
    front.button(index, "Approve").wait_for()
    front.sees(index, "python")
    front.button(index, "Approve").click()
    front.sees(index, "such-a-function-in-the-second-batch")
    front.page.wait_for_timeout(0)
    front.output(index).get_by_text("note").first.wait_for()
    front.press(index, "Deny", "Deny")
    front.wait(index)
    assert front.value("touched") == []


def test_words_of_others_are_named_in_the_header_beforehand(front):
    run(front, f"{NAMED}-above-0")
    index = run(front, NAMED)
    front.sees(index, "1 earlier turn comes from a record you did not sign")
    front.shot("forged-named-light")
    front.theme("JupyterLab Dark")
    front.shot("forged-named-dark")
    front.theme("JupyterLab Light")


def test_nothing_of_it_happens_unasked(front, users):
    """All cells, in their order."""
    front.page.evaluate(SAY_NO)
    for cell in front.ids():
        run(front, cell)
    assert front.page.evaluate("() => window.denied") > 20
    found = marks(users.root / "forged")
    left = {name: left for name in CASES if (left := unasked(name, found, "browser"))}
    assert left == {}
    assert "arguments-altered-and-the-old-hash.model" in found, (
        "cells still go live where nothing counts that was forged"
    )
    assert front.dialogs() == []


def test_what_the_user_has_signed_is_still_there_after_a_save(front):
    saved = json.loads(json.dumps(front.save()["metadata"]["agent_nb"]["runs"]))
    kept = {record.get("signature") for listed in saved.values() for record in listed}
    mine = {
        record["signature"]
        for name, case in CASES.items()
        for record in case.records(name)
        if record == own(name)
    }
    assert mine
    assert mine <= kept
