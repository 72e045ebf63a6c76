"""The tool `add_cell`: an offer is an event; what a reader would not see is refused."""

import pytest
from helpers.scripts import batch, calling

from agent_nb import Agent, Scripted
from agent_nb import events as e
from agent_nb.tools.add_cell import LONGEST, find_code_fault


def results(*turns, **options):
    agent = Agent(Scripted([*turns, "Done."]), ["add_cell"], **options)
    return [event for event in agent.run_sync("Offer.").log if isinstance(event, e.Result)]


def test_an_offer_has_a_number_and_needs_no_approval():
    first, second = results(batch(("add_cell", {"code": "a"}), ("add_cell", {"code": "b"})))
    assert (first.status, second.status) == ("ok", "ok")
    assert first.content.startswith("Offered as cell 1.")
    assert second.content.startswith("Offered as cell 2.")
    command = f"%agent cell 2 {second.run[:4]}"
    assert second.display == {"text/plain": f"{command} inserts it"}
    assert second.content.endswith(f"(later: {command}).")


def test_a_trace_that_is_no_run_is_not_named():
    offer, *_ = results(calling("add_cell", code="a"), trace_id="monday")
    assert offer.display == {"text/plain": "%agent cell 1 inserts it"}


def test_a_refused_offer_takes_no_number():
    bad, good = results(calling("add_cell", code="  "), calling("add_cell", code="x = 1"))
    assert bad.status == "error"
    assert "cell 1" in good.content


def test_the_cell_of_a_sub_agent_has_no_number():
    helper = Agent(
        Scripted([calling("add_cell", code="x = 1"), "Offered."]), ["add_cell"], name="helper"
    )
    boss = Agent(Scripted([calling("helper", prompt="Offer."), "Done."]), [helper])
    inner, _ = [x for x in boss.run_sync("Go.").log if isinstance(x, e.Result)]
    assert inner.content == "Offered. The user inserts it if they want to (later: %agent cell)."


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("x" * (LONGEST + 1), "20,001 characters"),
        ("x = '\u202e'", "U+202E"),
        ("x\x1b[2K", "U+001B"),
        ("x = 1\rimport os", "U+000D"),
        ("x\u200b = 1", "U+200B"),
        ("x\x00", "U+0000"),
    ],
)
def test_a_code_that_its_card_cannot_show_whole_is_refused(code, word):
    assert word in find_code_fault(code)


@pytest.mark.parametrize(
    "code", ["x = 1", "x = 1\r\ny = 2\r\n", "\tprint('größer 😀')", "%%bash\nls"]
)
def test_any_other_code_can_be_offered(code):
    assert find_code_fault(code) == ""
